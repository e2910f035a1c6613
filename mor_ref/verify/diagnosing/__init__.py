"""Diagnosing mismatches: the deviations that explain them."""
