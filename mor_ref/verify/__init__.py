"""Verifying somebody's implementation on golden vectors, or on results of one's own."""

from mor_ref.verify.assertion import assert_bit_exact

__all__ = ["assert_bit_exact"]
