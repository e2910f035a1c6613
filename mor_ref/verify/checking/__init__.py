"""Checking a directory of suites against the exact model and the engine."""
