"""Inputs at which implementations differ: edges, thresholds, found by search, and random."""
