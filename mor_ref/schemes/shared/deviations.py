"""Shared exponents that differ: other libraries and profiles, other exponents, shifts and units."""

import math
from collections.abc import Callable
from typing import Any

from mor_ref.deviations.deviation import Change, Deviation, deviation
from mor_ref.deviations.floating_point import log2_in_binary32
from mor_ref.schemes.shared import exact as shared
from mor_ref.schemes.shared.definition import (
    LARGEST_EXPONENT,
    NAN_BLOCK,
    SHARED_KINDS,
    SHARED_PROFILES,
    SharedKind,
    SharedProfile,
)
from mor_ref.schemes.shared.domain import IN_SHARED

Reference = Callable[..., Any]

# ---------------------------------------------------------------------- profiles and kinds


def _as_profile(name: str) -> Deviation:
    """Return the deviation that treats special numbers as the other library does."""
    other = SHARED_PROFILES[name]

    def swapped(reference: Reference, *arguments: Any) -> Any:
        *rest, _ = arguments
        return reference(*rest, other)

    def is_another(*arguments: Any) -> bool:
        return bool(arguments[-1].name != name)

    return Deviation(
        f"shared_as_{name}",
        f"NaN, infinities and zeros are those of {name}, whichever profile is asked for.",
        ("SHX-002", "SHX-005", "SHX-006"),
        IN_SHARED,
        (
            Change(shared.shared_exponent, swapped, is_another),
            Change(shared.sign, swapped, is_another),
        ),
    )


def _as_kind(name: str, other: str, summary: str) -> Deviation:
    """Return the deviation that takes one kind of BFP in place of the other."""

    def swapped(reference: Reference, x: list[float], _: SharedKind, profile: SharedProfile) -> Any:
        return reference(x, SHARED_KINDS[other], profile)

    def is_it(_x: list[float], kind: SharedKind, _profile: SharedProfile) -> bool:
        return kind.name == name

    return Deviation(
        f"{name}_as_{other}",
        summary,
        ("SHX-004", "SHX-005", "SHX-007"),
        IN_SHARED,
        (Change(shared.shared_block, swapped, is_it),),
    )


def shifts(*arguments: Any) -> bool:
    """Return whether the kind has shifts."""
    return any(isinstance(one, SharedKind) and one.shifts for one in arguments)


def carries(*arguments: Any) -> bool:
    """Return whether the kind has a carry."""
    return any(isinstance(one, SharedKind) and one.carries for one in arguments)


def passes(*arguments: Any) -> bool:
    """Return whether the profile lets NaN and infinities pass."""
    return any(isinstance(one, SharedProfile) and not one.nan_blocks for one in arguments)


# ---------------------------------------------------------------------- exponents


@deviation(shared.shared_exponent, rules=("SHX-002",), domain=IN_SHARED)
def shared_log2_in_floating_point(
    reference: Reference, x: list[float], kind: SharedKind, profile: SharedProfile
) -> int:
    """The exponent is floor(log2(amax)) in binary32: too large just below powers of two."""
    found = int(reference(x, kind, profile))
    amax = max((abs(number) for number in x if math.isfinite(number)), default=0.0)
    if found == NAN_BLOCK or amax == 0:
        return found
    own = min(max(math.floor(log2_in_binary32(amax)) + 127, 0), LARGEST_EXPONENT)
    return max(own, found)


@deviation(shared.shared_exponent, where=passes, rules=("SHX-002",), domain=IN_SHARED)
def shared_infinity_is_the_largest(
    reference: Reference, x: list[float], kind: SharedKind, profile: SharedProfile
) -> int:
    """A block with an infinity has the exponent 254."""
    found = int(reference(x, kind, profile))
    return LARGEST_EXPONENT if any(map(math.isinf, x)) else found


@deviation(shared.rounds_up_to_the_next, where=carries, rules=("SHX-004",), domain=IN_SHARED)
def shared_carry_of_negative_numbers(
    reference: Reference, x: float, exponent: int, kind: SharedKind
) -> bool:
    """A negative number that rounds to 2^m units raises the exponent, too."""
    return bool(reference(abs(x), exponent, kind))


@deviation(shared.shift, where=shifts, rules=("SHX-003",), domain=IN_SHARED)
def shared_shifts_left_out(
    reference: Reference, exponent: int, pair: list[float], kind: SharedKind
) -> int:
    """All pairs have the unit of the block: the shifts are 0."""
    del reference, exponent, pair, kind
    return 0


@deviation(shared.shift, where=shifts, rules=("SHX-003",), domain=IN_SHARED)
def shared_shift_of_the_smaller(
    reference: Reference, exponent: int, pair: list[float], kind: SharedKind
) -> int:
    """A pair is shifted if one of its numbers is below the binade, not if both are."""
    both = [*pair, 0.0][:2]  # as the last pair of an odd row is filled up
    return max(int(reference(exponent, [number], kind)) for number in both)


@deviation(shared.shift, where=shifts, rules=("SHX-003",), domain=IN_SHARED)
def shared_shift_of_the_first(
    reference: Reference, exponent: int, pair: list[float], kind: SharedKind
) -> int:
    """The first number of a pair decides whether the pair has a shift."""
    return int(reference(exponent, pair[:1], kind))


@deviation(shared.shift, where=shifts, rules=("SHX-003",), domain=IN_SHARED)
def shared_shift_is_whole_distance(
    reference: Reference, exponent: int, pair: list[float], kind: SharedKind
) -> int:
    """A pair has an exponent of its own: the shift is not limited to 1."""
    if not reference(exponent, pair, kind):
        return 0
    fields = [shared.exponent_field(number) % NAN_BLOCK for number in pair]
    return exponent - max(fields)


@deviation(shared.shift, where=shifts, rules=("SHX-003",), domain=IN_SHARED)
def shared_infinity_holds_its_pair(
    reference: Reference, exponent: int, pair: list[float], kind: SharedKind
) -> int:
    """A pair with an infinity has no shift."""
    return 0 if any(map(math.isinf, pair)) else int(reference(exponent, pair, kind))


DEVIATIONS = (
    *map(_as_profile, SHARED_PROFILES.specified),
    _as_kind("bfp16", "bfp16_carry", "bfp16 takes the next exponent as bfp16_carry does."),
    _as_kind("bfp16_carry", "bfp16", "bfp16_carry limits magnitudes as bfp16 does."),
    *(value for value in tuple(globals().values()) if isinstance(value, Deviation)),
)
