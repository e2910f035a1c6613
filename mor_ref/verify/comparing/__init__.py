"""Comparing the answers of a candidate with expected values."""
