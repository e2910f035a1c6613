"""Encoders that use the profile of another library (ENC-016): facts, not mistakes of the model."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from mor_ref.definitions.encoding import Rounding, SpecialCases, rounding_for
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import encoding_profiles
from mor_ref.deviations.deviation import Change, Deviation
from mor_ref.deviations.domains import ROUNDED, joined
from mor_ref.deviations.exemptions import AS_TORCH
from mor_ref.exact.arithmetic import rn32_of_binary64
from mor_ref.exact.encoding import encode

Reference = Callable[..., Any]
_DEFAULT = SpecialCases()
# Libraries that round binary64 to binary32 first: ml_dtypes did before 0.7.
_THROUGH_BINARY32 = ("ml_dtypes", "torch")
_ASKED = ("encode", "encode_presets", *joined("CAST"))
_EXEMPTIONS: Mapping[str, Mapping[str, str]] = {"ml_dtypes": {}, "torch": AS_TORCH}


def _encode_as(library: str, rows: Mapping[str, SpecialCases]) -> Deviation:
    """Return the deviation that takes the rounding and the special cases of a library."""

    def is_another(
        _x: float,
        fmt: Format,
        rounding: Rounding | None = None,
        special: SpecialCases = _DEFAULT,
        random_word: int | None = None,
        **_: Any,
    ) -> bool:
        row = rows.get(fmt.name)
        if row is None or random_word is not None:
            return False
        return special != row or rounding_for(fmt, rounding, special) != rounding_for(
            fmt, None, row
        )

    def swapped(reference: Reference, x: float, fmt: Format, *_: Any, **__: Any) -> int:
        if library in _THROUGH_BINARY32 and not math.isnan(x):
            x = rn32_of_binary64(x)
        return int(reference(x, fmt, None, rows[fmt.name]))

    return Deviation(
        f"encode_as_{library}",
        f"Codes are those of profile {library}: its overflow, its NaN, its rounding to nearest.",
        ("ENC-003", "ENC-006", "ENC-016"),
        ROUNDED if library in _EXEMPTIONS else _ASKED,
        (Change(encode, swapped, is_another),),
        _EXEMPTIONS.get(library, {}),
    )


DEVIATIONS = tuple(_encode_as(library, rows) for library, rows in encoding_profiles.items())
