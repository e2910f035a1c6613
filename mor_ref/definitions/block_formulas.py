"""Block formats as data: elements, and levels of scales whose formulas say each rounding."""

import math
from dataclasses import dataclass, replace
from typing import Literal

from mor_ref.definitions.blocks import Cut
from mor_ref.definitions.encoding import Rounding
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.definitions.formulas import check_names
from mor_ref.definitions.mx import SCALE_RULES
from mor_ref.definitions.nvfp4 import Nvfp4Profile
from mor_ref.definitions.scales import Scaling


@dataclass(frozen=True)
class Level:
    """A scale: the numbers that share it, its formula, and how it is stored.

    `number` is a formula of amax, and of the levels above and their amaxes (NAME and amax_NAME).
    `counted` says which numbers an amax counts; with "all", it is NaN if one of them is.
    """

    name: str
    over: Cut
    number: str
    stored: Format = formats["f32"]
    rounding: Rounding = "rne"
    counted: Literal["finite", "not nan", "all"] = "not nan"


@dataclass(frozen=True)
class BlockFormulas:
    """Elements in blocks, under levels of scales.

    The last level is that of the blocks, and each lies in the one before it. Numbers are multiplied
    by `encode`, or divided by `decode` if there is no `encode`; values of codes are multiplied by
    `decode`, or divided by `encode`. Of several `tries`, formulas of the number t of the last
    level, the one of least error is stored, and the first of equals. `error` is that of a number x
    whose code stands for v; a block adds it up in binary32, from the left, and then the rows in
    halves. With `drops_sign_of_zero`, a scaled -0 has the code 0.
    """

    element: Format
    levels: tuple[Level, ...]
    decode: str | None
    encode: str | None = None
    tries: tuple[str, ...] = ("t",)
    error: str = "square(y - x)"
    drops_sign_of_zero: bool = False

    def __post_init__(self) -> None:
        known = {"amax"}
        for level in self.levels:
            check_names(level.number, known)
            known |= {level.name, f"amax_{level.name}"}
        for formula in self.tries:
            check_names(formula, known | {"t"})
        for name in ("decode", "encode"):
            formula = getattr(self, name)
            if formula is not None:
                check_names(formula, known)
                known |= {name}
        check_names(self.error, known | {"x", "v", "y"})


# ---------------------------------------------------------------------- MX


def mx_formulas(element: Format, rule: str, block: int) -> BlockFormulas:
    """Return MX with a scale rule (MXS-001 to MXS-008)."""
    scale = Level("s", (1, block), _mx_number(element, rule), formats["e8m0"], "rtp", "all")
    return BlockFormulas(element, (scale,), decode="s", encode="1 / s")


def _mx_number(element: Format, rule: str) -> str:
    if SCALE_RULES[rule].up_from is None:  # MXS-006
        return f"amax / {element.largest}"
    exponent = math.frexp(element.largest)[1] - 1
    turn = 1 + SCALE_RULES[rule].up_from_of(element) / 2**23
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


def nvfp4_formulas(profile: Nvfp4Profile, tile: tuple[int, int]) -> BlockFormulas:
    """Return a profile of NVFP4 (NVF-001 to NVF-012)."""
    rule, largest = _NVFP4_RULES[profile.rule], repr(profile.range)
    above = Level(rule.above, "row" if profile.per_row else "tensor", _ABOVE[rule.above])
    above = replace(above, number=above.number.replace("Q", largest))
    formulas = BlockFormulas(
        formats["e2m1"],
        (above, Level("s", tile, rule.number, formats["e4m3"])),
        rule.decode,
        rule.encode,
        drops_sign_of_zero=profile.drops_sign_of_zero,
    )
    if rule.error is None:
        return formulas
    return replace(formulas, tries=("t", "1.5 * t"), error=rule.error.replace("Q", largest))


# ---------------------------------------------------------------------- scaled formats


def scaled_formulas(element: Format, scaling: Scaling, block: Cut, group: Cut) -> BlockFormulas:
    """Return a format with a scale for each block (SCL and GAM).

    The mantissa that a group shares is a level above, and the scales of its blocks are powers of
    two under it.
    """
    largest = repr(element.largest)
    ideal = f"max({largest} / amax, 2**-126)"
    if scaling == "fp32":
        number = f"min({ideal}, MAX) if amax else 1"
        levels: tuple[Level, ...] = (Level("s", block, number, counted="finite"),)
    else:
        power = Level("s", block, f"{ideal} if amax else 1", formats["e8m0"], "rtz", "finite")
        levels = (power,)
    if scaling != "gam":
        return BlockFormulas(element, levels, decode=None, encode="s")
    # largest / amax can be above all numbers of binary32; its mantissa is that of a smaller one.
    smaller = f"{largest} / (amax * 2**100)"
    number = f"({_mantissa(ideal)} if amax > 1 else {_mantissa(smaller)}) if amax else 1"
    shared = Level("m", group, number, counted="finite")
    under = replace(levels[0], number=f"{ideal} / m if amax else 1")
    return BlockFormulas(element, (shared, under), decode=None, encode="m * s")


def _mantissa(formula: str) -> str:
    return f"{formula} / pow2({formula}, 2)"
