"""Candidates: the implementations that can be verified, and how each is asked."""
