"""MX, NVFP4 and scaled formats as block formats."""

import functools
import math
from dataclasses import dataclass, replace
from typing import Literal

from mor_ref.definitions.block_formats import BlockFormat, BlockScale
from mor_ref.definitions.blocks import Cut
from mor_ref.definitions.format import Format
from mor_ref.definitions.mx import SCALE_RULES, ScaleRule
from mor_ref.definitions.nvfp4 import Nvfp4Profile
from mor_ref.definitions.scales import Scaling

# ---------------------------------------------------------------------- MX


def mx_formulas(element: Format, rule: str, block: int) -> BlockFormat:
    """Return MX with a scale rule (MXS-001 to MXS-008)."""
    return _mx_formulas(element, SCALE_RULES[rule], block)


@functools.lru_cache
def _mx_formulas(element: Format, rule: ScaleRule, block: int) -> BlockFormat:
    # MXS-002, MXS-007 and MXS-008
    scale = BlockScale("s", (1, block), _mx_number(element, rule), "e8m0", "rtp")
    name = f"mx_{element.name}_{rule.name}_{block}"
    return BlockFormat(name, element, (scale,), decode="s", encode="1 / s", counted="all")


def _mx_number(element: Format, rule: ScaleRule) -> str:
    """MXS-003, MXS-004, MXS-005 and MXS-006: the number whose power of two is the scale."""
    if rule.up_from is None:
        return f"amax / {element.largest}"
    exponent = math.frexp(element.largest)[1] - 1
    turn = 1 + rule.up_from_of(element) / 2**23
    # pow2 comes first: a quotient below the normal numbers would be rounded, and could go up.
    return f"min(pow2(amax, {turn!r}) / 2**{exponent}, 2**{128 - exponent})"


# ---------------------------------------------------------------------- NVFP4


@dataclass(frozen=True)
class _Nvfp4Rule:
    """The formulas of an NVFP4 rule; `range` is written Q."""

    above: Literal["S", "g", "G"]
    number: str
    decode: str
    encode: str | None = None
    error: str | None = None


_ABOVE = {
    "S": "(min(Q / amax, MAX) or 1) if amax else 1",  # NVF-003
    "g": "amax / Q",
    "G": "(1 / max(amax, 2**-126)) * Q if (1 / max(amax, 2**-126)) * Q < 2**128 else 1",
}
_TE = {"decode": "s * (1 / S)", "encode": "min(1 / decode, MAX)"}
_STORED_TIMES_AMAX = "((v * s) * amax_S) / Q - x"
_NVFP4_RULES = {
    "te": _Nvfp4Rule("S", "amax * (S * (1 / 6))", **_TE),  # NVF-004
    "te_2_13": _Nvfp4Rule("S", "(amax / 6) * S", **_TE),  # NVF-005
    "4over6_mae": _Nvfp4Rule("S", "(amax / 6) * S", **_TE, error=f"abs({_STORED_TIMES_AMAX})"),
    "4over6_mse": _Nvfp4Rule("S", "(amax / 6) * S", **_TE, error=f"square({_STORED_TIMES_AMAX})"),
    "torchao": _Nvfp4Rule(  # NVF-007
        "g", "min(max((amax / 6) / g, 2**-6), 448)", decode="g * s", encode="(1 / g) / s"
    ),
    "modelopt": _Nvfp4Rule(  # NVF-008
        "g", "min(max(amax / (6 * g) or 1, 2**-9), 448)", decode="s * g"
    ),
    "compressed_tensors": _Nvfp4Rule(  # NVF-009
        "G", "e4m3(G * (amax / 6)) or 0.125", decode="s / G"
    ),
}


@functools.lru_cache
def nvfp4_formulas(profile: Nvfp4Profile, tile: tuple[int, int]) -> BlockFormat:
    """Return a profile of NVFP4 (NVF-001 to NVF-012)."""
    rule, largest = _NVFP4_RULES[profile.rule], repr(profile.range)
    over: Cut = "row" if profile.per_row else "tensor"
    above = BlockScale(rule.above, over, _ABOVE[rule.above].replace("Q", largest))
    formulas = BlockFormat(
        f"nvfp4_{profile.name}",
        "e2m1",
        (above, BlockScale("s", tile, rule.number, "e4m3")),
        decode=rule.decode,
        encode=rule.encode,
        drops_sign_of_zero=profile.drops_sign_of_zero,
    )
    if rule.error is None:
        return formulas
    return replace(formulas, tries=("t", "1.5 * t"), error=rule.error.replace("Q", largest))


# ---------------------------------------------------------------------- scaled formats


@functools.lru_cache
def scaled_formulas(element: Format, scaling: Scaling, block: Cut, group: Cut) -> BlockFormat:
    """Return a format with a scale for each block (SCL-002 to SCL-006, GAM-001 to GAM-005).

    The mantissa that a group shares is a scale above, and the scales of its blocks are powers of
    two under it.
    """
    largest, name = repr(element.largest), f"{element.name}_{scaling}"
    ideal = f"max({largest} / amax, 2**-126)"
    if scaling == "fp32":  # SCL-004
        number = f"min({ideal}, MAX) if amax else 1"
        scale = BlockScale("s", block, number)
    else:  # SCL-005
        scale = BlockScale("s", block, f"{ideal} if amax else 1", "e8m0", "rtz")
    if scaling != "gam":
        return BlockFormat(name, element, (scale,), encode="s", counted="finite")
    # largest / amax can be above all numbers of binary32; its mantissa is that of a smaller one,
    # with the significand of largest (THM-004).
    smaller = f"{2 * math.frexp(element.largest)[0]!r} / (amax * 2**100)"
    number = f"({_mantissa(ideal)} if amax > 1 else {_mantissa(smaller)}) if amax else 1"
    shared = BlockScale("m", _whole_blocks(group, block), number)
    # GAM-002, GAM-003 and GAM-004. The quotient is at least 2^-126 (THM-002).
    under = replace(scale, number=f"{ideal} / m if amax else 1")
    return BlockFormat(name, element, (shared, under), encode="m * s", counted="finite")


def _whole_blocks(group: Cut, block: Cut) -> Cut:
    """Return a group whose sides are whole blocks: those of the tensor, where it ends, are not."""
    if isinstance(group, str) or isinstance(block, str):
        return group
    rows, columns = (-(-whole // side) * side for whole, side in zip(group, block, strict=True))
    return rows, columns


def _mantissa(formula: str) -> str:
    return f"{formula} / pow2({formula}, 2)"
