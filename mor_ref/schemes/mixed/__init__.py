"""Mixtures: each unit of a tensor takes one of several formats."""
