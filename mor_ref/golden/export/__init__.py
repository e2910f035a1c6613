"""Exports of suites to other languages."""
