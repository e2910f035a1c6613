"""Roundings, and the special cases in which formats and libraries differ.

A rounding is a name. The special cases (overflow, NaN, and zero and negative numbers in
e8m0) are a record, `SpecialCases`: made from the arguments `overflow` and `nan`, or taken from a
profile, which is the record of another library. Every implementation reads the same record.
"""

from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from mor_ref.argument_checks import known_name
from mor_ref.definitions.format import Format

Rounding = Literal["rne", "rtz", "rtp", "rtn", "rna", "rto", "sr"]
ElementRounding = Literal["rne", "rna", "rnz"]  # of block formats (BLF-014)
Overflow = Literal["satfinite", "ieee"]
Nan = Literal["canonical", "signed"]

ROUNDINGS: tuple[Rounding, ...] = get_args(Rounding)
ELEMENT_ROUNDINGS: tuple[ElementRounding, ...] = get_args(ElementRounding)
DETERMINISTIC_ROUNDINGS = ROUNDINGS[:-1]
POWER_OF_TWO_ROUNDINGS: tuple[Rounding, ...] = ("rtp", "rtz", "rna")  # and rne, which is rna
# In CUDA, PTX, RISC-V and IEEE 754.
_OTHER_OVERFLOWS = {
    **dict.fromkeys(
        ("saturate", "saturating", "sat", "clamp", "clip", "finite", "true"), ("satfinite",)
    ),
    **dict.fromkeys(("inf", "infinity", "nan", "ieee754", "nosat", "none", "false"), ("ieee",)),
}
_OTHER_ROUNDINGS = {
    **dict.fromkeys(("rn", "rtne", "even", "nearesteven", "tonearesteven", "tiestoeven"), ("rne",)),
    **dict.fromkeys(("nearest", "tonearest"), ("rne", "rna")),
    **dict.fromkeys(("rz", "towardzero", "towardszero", "trunc", "truncate", "zero"), ("rtz",)),
    **dict.fromkeys(("ru", "rup", "ceil", "towardpositive"), ("rtp",)),
    **dict.fromkeys(("rd", "rdn", "rm", "floor", "towardnegative"), ("rtn",)),
    **dict.fromkeys(("rmm", "rtna", "away", "tiestoaway"), ("rna",)),
    **dict.fromkeys(("odd", "toodd"), ("rto",)),
    **dict.fromkeys(("up",), ("rtp", "rna")),
    **dict.fromkeys(("down",), ("rtn", "rtz")),
    **dict.fromkeys(("rs", "stochastic", "random"), ("sr",)),
}
OVERFLOWS: tuple[Overflow, ...] = get_args(Overflow)
NANS: tuple[Nan, ...] = get_args(Nan)


@dataclass(frozen=True, kw_only=True)
class SpecialCases:
    """The codes of inputs that are not simply rounded (ENC-008 to ENC-016).

    `nan` is a rule, or a pair of codes: for a NaN without and with the sign bit. The last four
    fields are of formats whose values are powers of two. None for `zero_code` is the code of
    2^-bias; None for `negative_code` is that of the magnitude. With `above_smallest_goes_up`, rna
    takes every number between the two smallest values up. `power_of_two_rounding` is the
    rounding if none is asked for.
    """

    overflow: Overflow = "satfinite"
    nan: Nan | tuple[int, int] = "canonical"
    zero_code: int | None = None
    negative_code: int | None = None
    above_smallest_goes_up: bool = False
    power_of_two_rounding: Rounding = "rtp"


@dataclass(frozen=True)
class RandomBits:
    """Random bits that elements next to each other take from a word of 32 bits (ENC-017).

    `places` has the ranges of bits of each element, from its highest bit to its lowest. The bits of
    `ending` follow them.
    """

    count: int  # of an element
    places: tuple[tuple[tuple[int, int], ...], ...]
    ending: str = ""


def rounding_for(fmt: Format, rounding: str | None, special: SpecialCases) -> Rounding:
    """Return the rounding of that name; None stands for the format's own.

    In formats of powers of two, rne is rna (ENC-013).
    """
    if rounding is None:
        return special.power_of_two_rounding if fmt.is_power_of_two else "rne"
    if rounding not in ROUNDINGS:
        known_name("rounding", rounding, ROUNDINGS, _OTHER_ROUNDINGS)
    if fmt.is_power_of_two and rounding == "rne":
        return "rna"
    if fmt.is_power_of_two and rounding not in POWER_OF_TWO_ROUNDINGS:
        raise ValueError(
            f"rounding is {rounding!r}, which {fmt.name} does not admit, as it holds powers of two "
            f"only; give one of {', '.join(POWER_OF_TWO_ROUNDINGS)}, rne"
        )
    return cast("Rounding", rounding)


def takes_random_bits(rounding: Rounding, **given: object) -> bool:
    """Return whether a rounding takes random bits: then all of these are given, and else none."""
    for argument, value in given.items():
        if rounding != "sr" and value is not None:
            raise ValueError(f"{argument} is given, but rounding is {rounding!r}, which takes none")
        if rounding == "sr" and value is None:
            raise ValueError(
                f"rounding is 'sr', which needs {argument}; give {' and '.join(given)}"
            )
    return rounding == "sr"


def special_cases(overflow: str | None = None, nan: str | None = None) -> SpecialCases:
    """Return the record of this reference's own rules; None stands for the default."""
    given: dict[str, Any] = {}
    if overflow is not None:
        given["overflow"] = known_name("overflow", overflow, OVERFLOWS, _OTHER_OVERFLOWS)
    if nan is not None:
        given["nan"] = known_name("nan", nan, NANS)
    return SpecialCases(**given)
