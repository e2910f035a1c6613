"""Encoding: steps in bits, roundings side by side, special values of each profile."""

import math
from fractions import Fraction

from mor_docs.shown.markup import code_bits, code_hex, equation, number, table
from mor_ref import exact, formats
from mor_ref.definitions.encoding import (
    DETERMINISTIC_ROUNDINGS,
    POWER_OF_TWO_ROUNDINGS,
    SpecialCases,
)
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import encoding_profiles
from mor_ref.exact import floor_log2, in_units_of
from mor_ref.explanations.encoding import explain

_IEEE = SpecialCases(overflow="ieee")


def steps(name: str, *given: str) -> str:
    """Show finite numbers on their way to codes, with the default rounding (ENC-002 to ENC-006)."""
    fmt = formats[name]
    rows = []
    for x in map(float, given):
        p = max(floor_log2(abs(x)), fmt.smallest_exponent)
        below, rest, whole = in_units_of(p - fmt.mantissa_bits, abs(x))
        found = explain(x, fmt)
        rows.append([number(x), number(p), below, number(Fraction(rest, whole)), found.outcome])
        rows[-1] += [code_hex(found.code, fmt), code_bits(found.code, fmt), number(found.value)]
    return table([f"x, to {name}", "p", "k", "f", "k becomes", "code", "bits", "stands for"], rows)


def roundings(name: str, *given: str) -> str:
    """Show numbers under every rounding that takes no random bits (ENC-003, ENC-007)."""
    fmt = formats[name]
    rows = []
    for x in map(float, given):
        found = [exact.encode(x, fmt, mode, _IEEE) for mode in DETERMINISTIC_ROUNDINGS]
        rows.append([number(x), *(f"{number(fmt.value(c))} {code_hex(c, fmt)}" for c in found)])
    return table([f"x, to {name} under ieee", *DETERMINISTIC_ROUNDINGS], rows)


def stochastic(name: str, given: str, bits: str) -> str:
    """Show one number under all random words of some bits (ENC-005)."""
    fmt, x, n = formats[name], float(given), int(bits)
    p = max(floor_log2(abs(x)), fmt.smallest_exponent)
    below, rest, whole = in_units_of(p - fmt.mantissa_bits, abs(x))
    f = (rest << n) // whole
    rows = []
    for r in range(1 << n):
        code = exact.encode(x, fmt, "sr", random_word=r, n_random_bits=n)
        goes = f"{f} + {r} {'≥' if f + r >= 1 << n else '<'} {1 << n}"
        rows.append([r, goes, code_hex(code, fmt), number(fmt.value(code))])
    said = (
        f"x = {number(x)} to {name} with n = {n}: k = {below}, "
        f"{equation('f', Fraction(rest, whole))}, F = floor(2^{n} · f) = {f}.\n\n"
    )
    return said + table(["r", "F + r ≥ 2^n", "code", "stands for"], rows)


def powers(*given: str) -> str:
    """Show numbers to e8m0 under its three roundings (ENC-013, ENC-014)."""
    fmt = formats["e8m0"]
    rows = []
    for x in map(float, given):
        found = [exact.encode(x, fmt, mode) for mode in POWER_OF_TWO_ROUNDINGS]
        rows.append([number(x), *(f"{code_hex(c, fmt)} {number(fmt.value(c))}" for c in found)])
    return table(["x, to e8m0", *POWER_OF_TWO_ROUNDINGS], rows)


def specials() -> str:
    """Show the codes of special inputs under profiles, and under this reference's own rules."""
    inputs = {"NaN": math.nan, "−NaN": -math.nan, "∞": math.inf, "−∞": -math.inf, "1e30": 1e30}
    inputs |= {"−0": -0.0, "−1": -1.0}
    parts = []
    for fmt in formats.values():
        if not any(fmt.name in rows for rows in encoding_profiles.values()):
            continue
        known = {"satfinite, canonical": SpecialCases(), "ieee, canonical": _IEEE}
        known |= {
            f"profile {p}": rows[fmt.name]
            for p, rows in encoding_profiles.items()
            if fmt.name in rows
        }
        rows = [
            [rule, *(_shown(x, fmt, special) for x in inputs.values())]
            for rule, special in known.items()
        ]
        parts.append(table([f"**{fmt.name}**", *inputs], rows))
    return "\n".join(parts)


def _shown(x: float, fmt: Format, special: SpecialCases) -> str:
    code = exact.encode(x, fmt, None, special)
    return f"{code_hex(code, fmt)}<br/>{number(fmt.value(code))}"
