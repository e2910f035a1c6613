"""Definitions as data: formats, roundings, blocks, scales, NVFP4 profiles, MX rules and policies.

Every implementation reads them, and nothing is computed here. None of it needs NumPy.
"""
