"""NVFP4 with mistakes in tables of scales, and in infinite or NaN amaxes and errors."""

import numpy as np

from wrong.kernel import Kernel
from wrong.nvfp4_candidates import ONE, SIX, THREE_HALVES, chosen, scales, under
from wrong.nvfp4_four_over_six import error
from wrong.nvfp4_parts import ALL, E4M3, F32, FOUR_OVER_SIX, TE, largest, registrar
from wrong.nvfp4_right import program as right
from wrong.nvfp4_right import transformer_engine

KERNELS: list[Kernel] = []
wrong = registrar(KERNELS)
# One error is NaN, and the other is not, if none of 256 numbers has the code 0 in one candidate.
NO_LONE_NAN = "no tile of 16 x 16 has one error that is NaN: each has numbers with the code 0"


def with_table(entry):
    """Return a program that restores codes with a table of scales, one entry of it wrong."""

    def program(profile, x, amax):
        fields = dict(right(profile, x, amax))
        factor = np.where(fields["block_scale"] == entry, F32(2), ONE)
        return fields | {"decode_scale": fields["decode_scale"] * factor, "y": fields["y"] * factor}

    program.__name__ = f"table_{entry:02x}"
    return program


for entry in (0x0F, 0x1B, 0x41):
    wrong(f"entry {entry:#x} of a table of scales is wrong", *ALL)(with_table(entry))


def candidates(profile, x, amax):
    """Return the fields of both candidates, and their errors."""
    q, b, s_enc, s_dec = scales(profile, x, amax)
    base = b / SIX * s_enc
    six = under(x, base, b, s_enc, s_dec)
    four = under(x, THREE_HALVES * base, b, s_enc, s_dec)
    return six, four, error(profile, x, six, amax, q), error(profile, x, four, amax, q), base


def choosing(name, mistake, takes_four, large=""):
    """Register a choice: a function of both errors, the scale code of six and its number."""

    def program(profile, x, amax):
        six, four, e6, e4, base = candidates(profile, x, amax)
        return chosen(six, four, e6, e4, less=takes_four(e6, e4, six["block_scale"], base))

    program.__name__ = name
    wrong(mistake, *FOUR_OVER_SIX, large=large)(program)


def as_numbers(e):
    """Return errors, with 0 in place of NaN."""
    return np.where(np.isnan(e), F32(0), e)


choosing(
    "nan_of_six_takes_four",
    "a candidate whose error is NaN is never taken",
    lambda e6, e4, *_: (e4 < e6) | (np.isnan(e6) & ~np.isnan(e4)),
    large=NO_LONE_NAN,
)
choosing(
    "nan_of_four_takes_four",
    "an error of NaN is the least",
    lambda e6, e4, *_: as_numbers(e4) < as_numbers(e6),
    large=NO_LONE_NAN,
)
choosing(
    "unless_six_is_less",
    "four is taken unless the error of six is at most as large",
    lambda e6, e4, *_: ~(e6 <= e4),
)
choosing(
    "infinite_keeps_six",
    "six is kept if its error is infinite",
    lambda e6, e4, *_: (e4 < e6) & np.isfinite(e6),
)
choosing(
    "nonfinite_takes_four",
    "four is taken if the error of six is not finite",
    lambda e6, e4, *_: (e4 < e6) | ~np.isfinite(e6),
)
choosing(
    "no_four_at_scale_0",
    "six is kept if its scale is 0",
    lambda e6, e4, s6, _: (e4 < e6) & (s6 != 0),
)
choosing(
    "no_four_at_subnormal_scales",
    "six is kept if its scale is subnormal",
    lambda e6, e4, s6, _: (e4 < e6) & (s6 >= 8),
)


@wrong("four is not taken if its scale is above 448", *FOUR_OVER_SIX[1::2])
def no_four_above_the_largest(profile, x, amax):
    six, four, e6, e4, base = candidates(profile, x, amax)
    return chosen(six, four, e6, e4, less=(e4 < e6) & (THREE_HALVES * base <= E4M3[0x7E]))


# Special numbers in the amaxes of tiles


def tile_amax(name, mistake, is_lost):
    """Register a kernel of Transformer Engine whose amaxes of tiles omit some numbers."""

    def program(profile, x, amax):
        seen = np.where(is_lost(x), F32(0), x)
        return transformer_engine(profile, x, amax, largest(seen, (1, 2)))

    program.__name__ = name
    wrong(mistake, *TE, *FOUR_OVER_SIX)(program)


tile_amax("tile_infinity_is_lost", "infinities are not in an amax", np.isinf)
tile_amax("tile_negative_infinity_is_lost", "-infinity is not in an amax", np.isneginf)


@wrong("a NaN is the largest bit pattern in the amax of a tile", *TE, *FOUR_OVER_SIX)
def tile_amax_of_bits(profile, x, amax):
    held = (np.ascontiguousarray(x).view(np.uint32) & np.uint32(0x7FFFFFFF)).max(axis=(1, 2))
    return transformer_engine(profile, x, amax, held.view(F32).reshape(-1, 1, 1))
