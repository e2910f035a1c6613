"""FP8 of libraries: a decode scale for each tile, in each library's order of roundings."""
