"""NVFP4 of one profile in place of every other."""

from collections.abc import Callable
from typing import Any

from mor_ref.definitions.nvfp4 import PROFILES, Nvfp4Profile
from mor_ref.deviations.deviation import Change, Deviation
from mor_ref.deviations.domains import IN_NVFP4, POLICY_SUITES
from mor_ref.exact import nvfp4

Reference = Callable[..., Any]


def _suites_without(profile: str) -> tuple[str, ...]:
    """Return the suites of other profiles; policies take te."""
    own = (f"nvfp4_{profile}", *(POLICY_SUITES if profile == "te" else ()))
    return tuple(name for name in IN_NVFP4 if name not in own)


def _nvfp4_as(other: Nvfp4Profile) -> Deviation:
    """Return the deviation that takes one profile in place of every other."""

    def comes_first(profile: Nvfp4Profile, *_: Any) -> bool:
        return profile != other

    def comes_last(*arguments: Any) -> bool:
        return bool(arguments[-1] != other)

    def swapped_first(reference: Reference, _: Nvfp4Profile, *rest: Any) -> Any:
        return reference(other, *rest)

    def swapped_last(reference: Reference, *arguments: Any) -> Any:
        return reference(*arguments[:-1], other)

    return Deviation(
        f"nvfp4_as_{other.name}",
        f"NVFP4 is computed with the profile {other.name}.",
        ("NVF-002",),
        _suites_without(other.name),
        (
            Change(nvfp4.amaxes_of, swapped_last, comes_last),
            Change(nvfp4.global_scale, swapped_first, comes_first),
            Change(nvfp4.tile_scale, swapped_first, comes_first),
            Change(nvfp4.element_code, swapped_last, comes_last),
        ),
    )


DEVIATIONS = tuple(_nvfp4_as(profile) for profile in map(PROFILES.__getitem__, PROFILES.specified))
