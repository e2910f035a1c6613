"""Digests of the results for all 2^32 inputs."""
