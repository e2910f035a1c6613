"""Levels: each row has an alpha, and its numbers are whole multiples of it."""
