"""Streams of test cases as lines of text."""
