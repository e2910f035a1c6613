"""Faults of a profile of dot products: fields that its family does not use, and its scales."""

from collections.abc import Mapping
from typing import Any


def fault_of_use(profile: Any, used_by: Mapping[str, tuple[str, ...]]) -> str | None:
    """Return a field that the family does not use, and the next step (DOT-002)."""
    for name, families in used_by.items():
        given, usual = getattr(profile, name), type(profile).__dataclass_fields__[name].default
        if given != usual and profile.family not in families:
            return (
                f"{name} is {given!r}, which {profile.family} does not use; leave it out, or give "
                f"{usual!r}"
            )
    usual = type(profile).__dataclass_fields__["kept_bits"].default
    if profile.result == "f16" and profile.kept_bits != usual:
        return (
            f"kept_bits is {profile.kept_bits}, which a result in f16 does not use; leave it out, "
            f"or give {usual}"
        )
    return None


def fault_of_scales(profile: Any, length: int) -> str | None:
    """Return the fault of the scales, each of so many products at least, and the next step."""
    if profile.needs_scales and not profile.scales:
        return f"scales is (), and {profile.family} needs some; give pairs of a format and a block"
    for one in profile.scales:
        if not isinstance(one, tuple) or tuple(map(type, one)) != (str, int) or one[1] < 0:
            return f"scales has {one!r}; give pairs of the name of a format and a block"
        if one[1] % length:
            return (
                f"scales has a block of {one[1]}; for {profile.family}, give a multiple of {length}"
            )
    return None
