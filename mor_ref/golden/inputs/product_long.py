"""A row of A and a column of B with a long K, in one piece or in many."""

from mor_ref.definitions.dot import DOT_PROFILES
from mor_ref.definitions.formats import formats
from mor_ref.golden.inputs.dot_long import long_codes
from mor_ref.golden.inputs.product_pieces import Row, Two, arrays_of
from mor_ref.golden.inputs.products import Kind
from mor_ref.operations.call import Arrays

_EXPONENTS = (0, -5, 6, -7, 3), (1, -4, 2, 7, -6, 5, -7)  # of the factors of blocks, in turn


def long_products(kind: Kind) -> Arrays:
    """Return an entry of numbers near 1 and far from it, whose blocks have different factors."""
    profile = DOT_PROFILES[kind.parameters["dot_profile"]]
    of = formats[kind.formats[0]], formats[kind.formats[1]]
    codes = long_codes(profile, of, kind.width)
    at = {k: (int(a), int(b)) for k, (a, b) in enumerate(zip(*codes, strict=True))}
    factors: dict[int, Two] = {}
    for k in range(-(-kind.width // kind.parameters["scale_block"])):
        first, second = (2.0 ** row[k % len(row)] for row in _EXPONENTS)
        factors[k] = first, second
    return arrays_of(kind, [Row(at, factors)])
