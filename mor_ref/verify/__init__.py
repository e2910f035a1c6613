"""Verifying somebody's implementation on golden vectors."""
