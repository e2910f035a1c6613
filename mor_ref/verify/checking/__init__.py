"""Checking a directory of suites against the exact model."""
