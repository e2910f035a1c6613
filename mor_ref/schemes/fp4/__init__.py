"""FP4 of libraries: MX and NVFP4 in the order of roundings, ties and zeros of each library."""
