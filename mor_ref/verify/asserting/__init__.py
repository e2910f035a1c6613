"""Assertions for other people's tests: comparisons, and the texts of failures."""
