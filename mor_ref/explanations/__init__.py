"""Explanations of one number: its neighbours in a format, and the rule that chooses."""
