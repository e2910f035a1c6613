"""Rules as terms, and proofs that a mistake of a block format changes nothing.

A term is a computation as data. NumPy evaluates it for columns of numbers, so that golden vectors
check it, and a solver decides questions about all numbers.
"""
