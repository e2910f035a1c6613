"""The format explorer: its scripts, and the formats, recipes and rules that they are given."""

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

from mor_docs.trace import ROOT, rules_of
from mor_ref import formats
from mor_ref.definitions.encoding import (
    DETERMINISTIC_ROUNDINGS,
    NANS,
    OVERFLOWS,
    POWER_OF_TWO_ROUNDINGS,
    ROUNDINGS,
    SpecialCases,
)
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import encoding_profiles
from mor_ref.definitions.integer_grids import NARROWEST, WIDEST, IntegerGrid, integer_grid
from mor_ref.definitions.mx import SCALE_RULES, mx_element
from mor_ref.definitions.nvfp4 import PROFILES
from mor_ref.definitions.scales import SCALINGS, scaled_format
from mor_ref.exact.arithmetic import rn32_of_binary64
from mor_ref.operations.bits import f32_array
from mor_ref.policies import POLICIES
from mor_ref.schemes.affine.definition import AFFINE_PROFILES, SMALLEST_NORMAL
from mor_ref.schemes.levels.definition import ARITHMETICS, CLIP, LEVEL_KINDS, SMALLEST_ALPHA
from mor_ref.schemes.mixed.definition import FEWEST_BITS, MIXTURES, MOST_BITS, integer_format
from mor_ref.schemes.shared.definition import SHARED_KINDS, SHARED_PROFILES

_BITS = range(FEWEST_BITS, MOST_BITS + 1)
SCRIPTS = ROOT / "docs" / "explorer"


def write(target: Path) -> None:
    """Write the explorer, a page of its own that works from files as they are."""
    shutil.copytree(SCRIPTS, target, dirs_exist_ok=True)
    (target / "catalogue.js").write_text(script(), encoding="utf-8")


def catalogue() -> dict[str, Any]:
    """Return everything that the page knows and does not compute."""
    return {
        "formats": {name: _format(fmt) for name, fmt in formats.items()},
        "roundings": ROUNDINGS,
        "deterministicRoundings": DETERMINISTIC_ROUNDINGS,
        "powerOfTwoRoundings": POWER_OF_TWO_ROUNDINGS,
        "overflows": OVERFLOWS,
        "nans": NANS,
        "ours": _special(SpecialCases()),
        "presets": {
            name: {fmt: _special(special) for fmt, special in rows.items()}
            for name, rows in encoding_profiles.items()
        },
        "scalings": SCALINGS,
        "profiles": {name: _profile(name) for name in PROFILES},
        "scaleRules": list(SCALE_RULES),
        "policies": {name: _policy(name) for name in POLICIES},
        "integerGrids": {grid.name: _grid(grid) for grid in _grids()},
        "integerProfiles": {name: _integers(name) for name in AFFINE_PROFILES},
        "sharedKinds": {name: _fields(kind, "code_bits") for name, kind in SHARED_KINDS.items()},
        "sharedProfiles": {name: _fields(one) for name, one in SHARED_PROFILES.items()},
        "levelKinds": {name: _fields(kind) for name, kind in LEVEL_KINDS.items()},
        "levels": {"smallestAlpha": _bits(SMALLEST_ALPHA), "clip": _bits(CLIP)},
        "arithmetics": ARITHMETICS,
        "mixtures": {name: {"candidates": one.candidates} for name, one in MIXTURES.items()},
        "integerFormats": {fmt.name: _format(fmt) for fmt in map(integer_format, _BITS)},
        "rules": _rules(),
    }


def _format(fmt: Format) -> dict[str, Any]:
    """Return a row of the catalogue, and the codes that follow from it."""
    return {
        "name": fmt.name,
        "layout": fmt.describe_layout(),
        "exponentBits": fmt.exponent_bits,
        "mantissaBits": fmt.mantissa_bits,
        "bias": fmt.bias,
        "specials": fmt.specials,
        "sign": fmt.sign,
        "bits": fmt.bits,
        "codeCount": fmt.code_count,
        "signBit": fmt.sign_bit,
        "smallestExponent": fmt.smallest_exponent,
        "largestCode": fmt.largest_code,
        "infinityCode": fmt.infinity_code,
        "nanCodes": [[codes[0], codes[-1]] for codes in fmt.nan_codes],
        "canonicalNanCode": fmt.canonical_nan_code,
        "isPowerOfTwo": fmt.is_power_of_two,
        "isScaled": _is_taken(scaled_format, fmt),
        "isMxElement": _is_taken(mx_element, fmt),
    }


def _is_taken(check: Any, fmt: Format) -> bool:
    try:
        check(fmt)
    except ValueError:
        return False
    return True


def _special(special: SpecialCases) -> dict[str, Any]:
    return {
        "overflow": special.overflow,
        "nan": special.nan,
        "zeroCode": special.zero_code,
        "negativeCode": special.negative_code,
        "aboveSmallestGoesUp": special.above_smallest_goes_up,
        "powerOfTwoRounding": special.power_of_two_rounding,
    }


def _profile(name: str) -> dict[str, Any]:
    profile = PROFILES[name]
    return {
        "name": name,
        "rule": profile.rule,
        "id": profile.scales.id,
        "formula": profile.scales.formula,
        "globalScale": profile.scales.global_scale,
        "error": profile.scales.error,
        "range": int(profile.range),
        "perRow": profile.per_row,
        "dropsSignOfZero": profile.drops_sign_of_zero,
    }


def _policy(name: str) -> dict[str, Any]:
    policy = POLICIES[name]
    return {
        "name": name,
        "unit": policy.unit,
        "ladder": [
            {
                "representation": rung.name,
                "takesThreshold": rung.takes_threshold,
                "metric": rung.metric.name,
                **rung.metric.arguments,
            }
            for rung in policy.ladder
        ],
        "tried": [one.name for one in policy.tried],
    }


def _fields(row: Any, *more: str) -> dict[str, Any]:
    """Return the fields of a row, under the names of scripts."""
    names = [*(field.name for field in dataclasses.fields(row)), *more]
    return {_camel(name): getattr(row, name) for name in names}


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _bits(number: float) -> int:
    """Return the bits of a number, rounded to binary32."""
    return int(f32_array([rn32_of_binary64(number)])[0])


def _grids() -> list[IntegerGrid]:
    """Return every grid of integers, those of 8 and 4 bits first."""
    widths = [8, 4, *(bits for bits in range(NARROWEST, WIDEST + 1) if bits not in (4, 8))]
    return [integer_grid(f"{sign}int{bits}") for bits in widths for sign in ("", "u")]


def _grid(grid: IntegerGrid) -> dict[str, Any]:
    return {**_fields(grid), "lowest": grid.lowest, "highest": grid.highest}


def _integers(name: str) -> dict[str, Any]:
    """Return a profile of integers; its numbers are bits of binary32."""
    profile = AFFINE_PROFILES[name]
    smallest = SMALLEST_NORMAL["f32"] if profile.smallest is None else profile.smallest
    bits = {"smallest": _bits(smallest), "smallestHigh": _bits(profile.smallest_high)}
    return {**_fields(profile, "stores_amax"), **bits}


def _rules() -> dict[str, dict[str, str]]:
    """Return the chapter and the title of each rule, to link to it."""
    return {
        rule.id: {"chapter": rule.chapter, "title": rule.title} for rule in rules_of(ROOT / "spec")
    }


def script() -> str:
    """Return the text of catalogue.js, an entry a line."""
    lines = [
        '"use strict";',
        "",
        "// Written by docs/mor_docs/explorer.py from mor_ref and spec/.",
    ]
    lines += ["const Explorer = { catalogue: {"]
    for name, entry in catalogue().items():
        if isinstance(entry, dict) and all(isinstance(row, dict) for row in entry.values()):
            lines += [f"  {name}: {{"]
            lines += [f"    {json.dumps(key)}: {json.dumps(row)}," for key, row in entry.items()]
            lines += ["  },"]
        else:
            lines += [f"  {name}: {json.dumps(entry)},"]
    return "\n".join([*lines, "} };", ""])
