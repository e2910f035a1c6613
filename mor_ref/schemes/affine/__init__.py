"""Integers with zero points: a scale and a zero point for each block, as libraries have them."""
