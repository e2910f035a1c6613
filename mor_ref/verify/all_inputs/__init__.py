"""Verifying all 2^32 inputs of an encoder against digests."""
