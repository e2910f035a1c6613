"""The formulas of the chapters on formats and on encoding."""

import math
from collections.abc import Callable, Iterator

from mor_docs.checked.check import Check, Entry, Names, is_finite
from mor_docs.exact_values import Number, number
from mor_ref.definitions.format import Format


def symbols_of(fmt: Format) -> dict[str, Number]:
    """Return the symbols of a format (FMT-001), its largest number, and the code of this number."""
    sizes = {"E": fmt.exponent_bits, "M": fmt.mantissa_bits, "B": fmt.bias}
    largest = {"largest": fmt.largest, "q_amax": fmt.largest, "c_largest": fmt.largest_code}
    return {name: number(value) for name, value in {**sizes, **largest}.items()}


def _of_code(entry: Entry) -> Names:
    """Return the parts of a code (FMT-001)."""
    fmt, code = entry.fmt, int(entry["code"])
    width = fmt.exponent_bits + fmt.mantissa_bits
    parts = {
        "S": code >> width if fmt.sign == "sign-magnitude" else 0,
        "e": code >> fmt.mantissa_bits & (1 << fmt.exponent_bits) - 1,
        "m": code & (1 << fmt.mantissa_bits) - 1,
        "c": code,
        "i": code - (code >> width << width + 1),
    }
    return symbols_of(fmt) | {name: number(value) for name, value in parts.items()}


def _stands_by(rule: str) -> Callable[[Entry], bool]:
    """Return whether a rule says what a code stands for."""
    return lambda entry: _rule_of_code(entry) == rule


def _rule_of_code(entry: Entry) -> str:
    fmt = entry.fmt
    if not math.isfinite(fmt.value(int(entry["code"]))):
        return "FMT-003"
    if fmt.is_power_of_two:
        return "FMT-007"
    if fmt.sign == "twos-complement":
        return "FMT-008"
    return "FMT-001" if _of_code(entry)["e"] else "FMT-002"


def _of_number(entry: Entry) -> Names:
    x = entry["x"]
    return symbols_of(entry.fmt) | {
        "x": abs(x) if entry.fmt.sign == "none" else x,  # ENC-012
        "n": number(entry.parameters.get("n_random_bits", 0)),
        "r": entry.fields.get("random_word"),
    }


def _of_encoding(entry: Entry) -> Names:
    fmt, x = entry.fmt, entry["x"]
    rounding = entry.parameters.get("rounding", "sr")
    toward_zero = rounding == ("rtp" if x < 0 else "rtn") and fmt.sign != "none"
    codes = (fmt.infinity_code, fmt.canonical_nan_code, fmt.largest_code)  # ENC-008
    infinite = next(code for code in codes if code is not None)
    return {
        **{name: name == rounding for name in ("rne", "rna", "rtz", "rtp", "rtn", "rto", "sr")},
        "rne and rna": rounding in ("rne", "rna"),
        "never": False,
        "under rtz and rto": rounding in ("rtz", "rto") or toward_zero,
        "the code of an infinite x": number(infinite),
        "the format is of kind fnuz": fmt.specials == "fnuz" or fmt.sign == "twos-complement",
        "in a format with a sign bit": fmt.sign == "sign-magnitude",
        "in two's complement": fmt.sign == "twos-complement",
        "in a format without sign": fmt.sign == "none",
    }


def _has_sign(entry: Entry) -> bool:
    is_negative = math.copysign(1, entry["x"]) < 0
    return is_negative and is_finite(entry["x"]) and not entry.fmt.is_power_of_two


def _has_no_sign(entry: Entry) -> bool:
    is_negative = math.copysign(1, entry["x"]) < 0
    return not is_negative and is_finite(entry["x"]) and not entry.fmt.is_power_of_two


def _is_between_powers_of_two(entry: Entry) -> bool:
    """Return whether x is in the range of a format of powers of two; ENC-014 has the others."""
    fmt = entry.fmt
    return fmt.is_power_of_two and fmt.value(0) < abs(entry["x"]) <= fmt.largest


def _of_the_encoder(suite: str, rounding: str, rule: str, overflow: str) -> Iterator[Check]:
    """Return what checks an overflow rule, for numbers with and without a sign bit."""
    for entries, then, result in (
        (_has_sign, " ENC-011", "code"),
        (_has_no_sign, "", "magnitude"),
    ):
        yield Check(
            f"ENC-002 {rounding} ENC-004 {rule}{then}",
            suite,
            {result: "code"},
            _of_number,
            _of_encoding,
            cases={"overflow": (overflow,)},
            entries=entries,
        )


CHECKS = (
    *(
        Check(rule, "decode", {"": "value"}, _of_code, entries=_stands_by(rule))
        for rule in ("FMT-001", "FMT-002", "FMT-007", "FMT-008")
    ),
    *(
        check
        for suite, rounding in (("encode", "ENC-003"), ("encode_stochastic", "ENC-005 ENC-003"))
        for rule, overflow in (("ENC-006", "satfinite"), ("ENC-007", "ieee"))
        for check in _of_the_encoder(suite, rounding, rule, overflow)
    ),
    Check(
        "ENC-013",
        "encode",
        {"c": "code"},
        _of_number,
        _of_encoding,
        entries=_is_between_powers_of_two,
    ),
)
