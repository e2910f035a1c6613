"""The Numba engine: scalar steps that read like the specification, and the loops over them.

Importing it imports Numba, so nothing imports it before there is work to do.
"""
