"""Shared exponents: blocks along the rows share an exponent, and pairs a shift."""
