"""Numbers under a shared exponent that differ: roundings, limits, signs, units and codes."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from mor_ref.deviations.deviation import Deviation, deviation
from mor_ref.schemes.shared import exact as shared
from mor_ref.schemes.shared.definition import NAN_BLOCK, SharedKind, SharedProfile
from mor_ref.schemes.shared.deviations import carries, passes, shifts
from mor_ref.schemes.shared.domain import IN_SHARED
from mor_ref.schemes.shared.exact import SharedElement

Reference = Callable[..., Any]


@deviation(shared.nearest, rules=("SHX-005",), domain=IN_SHARED)
def shared_ties_away(
    reference: Reference, x: float, exponent: int, tau: int, kind: SharedKind
) -> int:
    """Ties go away from zero, as in an option of Quark's kernel for ONNX Runtime."""
    if not reference(x, exponent, tau, kind) and shared.exponent_field(x) == 0:
        return 0
    return math.floor(Fraction(abs(x)) / shared.unit(exponent, tau, kind) + Fraction(1, 2))


@deviation(shared.nearest, rules=("SHX-005",), domain=IN_SHARED)
def shared_truncates(
    reference: Reference, x: float, exponent: int, tau: int, kind: SharedKind
) -> int:
    """The bits below a unit are cut."""
    if not reference(x, exponent, tau, kind):
        return 0
    return math.floor(Fraction(abs(x)) / shared.unit(exponent, tau, kind))


@deviation(shared.nearest, rules=("SHX-005",), domain=IN_SHARED)
def shared_keeps_subnormal_numbers(
    reference: Reference, x: float, exponent: int, tau: int, kind: SharedKind
) -> int:
    """Subnormal numbers are not flushed, as in Quark's BFP if a block has no others."""
    del reference
    return round(Fraction(abs(x)) / shared.unit(exponent, tau, kind))


@deviation(shared.magnitude, rules=("SHX-005",), domain=IN_SHARED)
def shared_magnitude_not_limited(
    reference: Reference, x: float, exponent: int, tau: int, kind: SharedKind
) -> int:
    """A number that rounds to 2^m units has the magnitude 2^m, and its code wraps."""
    if not math.isfinite(x) or exponent == NAN_BLOCK:
        return int(reference(x, exponent, tau, kind))
    return int(shared.nearest(x, exponent, tau, kind))


@deviation(shared.magnitude, where=carries, rules=("SHX-005",), domain=IN_SHARED)
def shared_limited_to_127_units(
    reference: Reference, x: float, exponent: int, tau: int, kind: SharedKind
) -> int:
    """A negative number of a kind with a carry is limited as a positive one."""
    return min(int(reference(x, exponent, tau, kind)), (1 << kind.magnitude_bits) - 1)


@deviation(shared.magnitude, rules=("SHX-005",), domain=IN_SHARED)
def shared_infinity_is_zero(
    reference: Reference, x: float, exponent: int, tau: int, kind: SharedKind
) -> int:
    """An infinity has the magnitude 0."""
    return 0 if math.isinf(x) else int(reference(x, exponent, tau, kind))


@deviation(shared.magnitude, rules=("SHX-005",), domain=IN_SHARED)
def shared_nan_is_the_largest(
    reference: Reference, x: float, exponent: int, tau: int, kind: SharedKind
) -> int:
    """A NaN that passes has the magnitude 2^m - 1."""
    if math.isnan(x) and exponent != NAN_BLOCK:
        return (1 << kind.magnitude_bits) - 1
    return int(reference(x, exponent, tau, kind))


@deviation(shared.element, rules=("SHX-005",), domain=IN_SHARED)
def shared_rounded_to_plus_zero(
    reference: Reference,
    x: float,
    exponent: int,
    tau: int,
    kind: SharedKind,
    profile: SharedProfile,
) -> SharedElement:
    """A negative number that rounds to 0 becomes +0, as in Quark's kernels for BFP."""
    found: SharedElement = reference(x, exponent, tau, kind, profile)
    if found.magnitude or not found.sign:
        return found
    return SharedElement(0, 0, 0, 0.0)


@deviation(shared.element, rules=("SHX-006",), domain=IN_SHARED)
def shared_unit_flushed(
    reference: Reference,
    x: float,
    exponent: int,
    tau: int,
    kind: SharedKind,
    profile: SharedProfile,
) -> SharedElement:
    """A subnormal unit is flushed to 0, and so is y."""
    found: SharedElement = reference(x, exponent, tau, kind, profile)
    if not math.isfinite(found.y) or shared.unit(exponent, tau, kind) >= Fraction(2) ** -126:
        return found
    return found._replace(y=math.copysign(0.0, found.y))


@deviation(shared.element, where=shifts, rules=("SHX-006",), domain=IN_SHARED)
def shared_y_without_the_shift(
    reference: Reference,
    x: float,
    exponent: int,
    tau: int,
    kind: SharedKind,
    profile: SharedProfile,
) -> SharedElement:
    """Y is made with the unit of the block."""
    found: SharedElement = reference(x, exponent, tau, kind, profile)
    is_shifted = tau and math.isfinite(x) and exponent != NAN_BLOCK
    return found._replace(y=found.y * 2) if is_shifted else found


@deviation(shared.element, where=passes, rules=("SHX-006",), domain=IN_SHARED)
def shared_infinity_saturates(
    reference: Reference,
    x: float,
    exponent: int,
    tau: int,
    kind: SharedKind,
    profile: SharedProfile,
) -> SharedElement:
    """Y of an infinity follows from its magnitude and sign."""
    found: SharedElement = reference(x, exponent, tau, kind, profile)
    if not math.isinf(x):
        return found
    size = float(found.magnitude * shared.unit(exponent, tau, kind))
    return found._replace(y=math.copysign(size, x))


@deviation(shared.code, rules=("SHX-007",), domain=IN_SHARED)
def shared_sign_below_the_magnitude(
    reference: Reference, of: int, size: int, kind: SharedKind
) -> int:
    """The sign is the lowest bit of a code."""
    return int(reference(of, size, kind)) if kind.carries else size << 1 | of


@deviation(shared.code, where=carries, rules=("SHX-007",), domain=IN_SHARED)
def shared_code_with_a_sign(reference: Reference, of: int, size: int, kind: SharedKind) -> int:
    """The code of a kind with a carry is a sign above a magnitude, not two's complement."""
    del reference
    return (of << kind.magnitude_bits | size) % (1 << kind.code_bits)


@deviation(shared.sign, where=passes, rules=("SHX-005",), domain=IN_SHARED)
def shared_zeros_keep_their_sign(
    reference: Reference, x: float, exponent: int, profile: SharedProfile
) -> int:
    """A zero and a subnormal number keep their sign in quark_torch, too."""
    is_lost = exponent == NAN_BLOCK or math.isnan(x)
    return int(reference(x, exponent, profile)) if is_lost else int(math.copysign(1, x) < 0)


@deviation(shared.sign, rules=("SHX-005",), domain=IN_SHARED)
def shared_minus_zero_lost(
    reference: Reference, x: float, exponent: int, profile: SharedProfile
) -> int:
    """The sign is x < 0: the sign of -0 is lost."""
    return int(reference(x, exponent, profile)) if x else 0


@deviation(shared.sign, where=passes, rules=("SHX-005",), domain=IN_SHARED)
def shared_nan_keeps_its_sign(
    reference: Reference, x: float, exponent: int, profile: SharedProfile
) -> int:
    """The sign of a NaN that passes is its sign bit."""
    return int(math.copysign(1, x) < 0) if math.isnan(x) else int(reference(x, exponent, profile))


@deviation(shared.element, where=passes, rules=("SHX-006",), domain=IN_SHARED)
def shared_nan_is_zero(reference: Reference, x: float, exponent: int, *rest: Any) -> SharedElement:
    """Y of a NaN that passes is 0, as in a clamp with fmax."""
    found: SharedElement = reference(x, exponent, *rest)
    return found._replace(y=0.0) if math.isnan(x) else found


DEVIATIONS = tuple(value for value in globals().values() if isinstance(value, Deviation))
