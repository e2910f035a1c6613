"""The format explorer: its scripts, and the formats, recipes and rules that they are given."""

import json
import shutil
from pathlib import Path
from typing import Any

from mor_docs.explored import entries_of_schemes
from mor_docs.explorer_rows import format_row
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
from mor_ref.definitions.formats import encoding_profiles
from mor_ref.definitions.mx import SCALE_RULES
from mor_ref.definitions.nvfp4 import PROFILES
from mor_ref.definitions.scales import SCALINGS
from mor_ref.policies import POLICIES

SCRIPTS = ROOT / "docs" / "explorer"


def write(target: Path) -> None:
    """Write the explorer, a page of its own that works from files as they are."""
    shutil.copytree(SCRIPTS, target, dirs_exist_ok=True)
    (target / "catalogue.js").write_text(script(), encoding="utf-8")


def catalogue() -> dict[str, Any]:
    """Return everything that the page knows and does not compute."""
    return {
        "formats": {name: format_row(fmt) for name, fmt in formats.items()},
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
        **entries_of_schemes(),
        "rules": _rules(),
    }


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
