"""`mor-ref recipes`, `profiles`, `policies` and `roundings`: what there is, with a line each."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from mor_ref.cli.show import console_of_some_width
from mor_ref.definitions.catalogue import Catalogue
from mor_ref.definitions.encoding import ROUNDINGS
from mor_ref.schemes import in_schemes

_ROUNDINGS = {
    "rne": "to nearest, ties to even; the default",
    "rtz": "toward zero",
    "rtp": "toward plus infinity; the default of e8m0",
    "rtn": "toward minus infinity",
    "rna": "to nearest, ties away from zero",
    "rto": "to odd",
    "sr": "at random, with the words that are given",
}


def recipes() -> dict[str, str]:
    """Return the usual recipes, each with what it is in full and the bits of an element."""
    from mor_ref.analysis.recipes import OF_ALL_REPRESENTATIONS, USUAL
    from mor_ref.recipes import Situation, as_tensor_recipe

    found = {}
    for name in dict.fromkeys((*USUAL, *OF_ALL_REPRESENTATIONS)):
        recipe = as_tensor_recipe(name)
        policy = recipe.policy_in(Situation())
        names = " -> ".join(policy.names) if policy and len(policy.ladder) > 1 else ""
        bits = policy.ladder[0].representation.bits if policy else 16
        found[name] = names or f"{bits} bits: {recipe.text}"
    return found


def profiles() -> dict[str, str]:
    """Return the profiles of all chapters and the scale rules of MX, each with its chapter."""
    from mor_ref.definitions.dot import DOT_PROFILES
    from mor_ref.definitions.formats import encoding_profiles
    from mor_ref.definitions.mx import SCALE_RULES
    from mor_ref.definitions.nvfp4 import PROFILES

    rows: dict[str, str] = {}
    for name, profile in PROFILES.items():
        rows[name] = f"NVFP4: {profile.scales.formula} ({profile.scales.id})"
    for name in SCALE_RULES:
        rows[name] = f"MX: a scale rule, as in mxfp8:{name}"
    chapters: tuple[tuple[str, Mapping[str, object]], ...] = (
        ("encode", encoding_profiles),
        *_profiles_of_schemes(),
        ("dot products", DOT_PROFILES),
    )
    for chapter, names in chapters:
        for name in names:
            rows[name] = f"{rows[name]}; {chapter}" if name in rows else chapter
    return rows


def _profiles_of_schemes() -> Iterator[tuple[str, Catalogue[Any]]]:
    """Yield the profiles of each scheme, with what its package says first."""
    for module in in_schemes("definition"):
        title, _, _ = str(sys.modules[str(module.__package__)].__doc__).partition(":")
        for value in vars(module).values():
            if isinstance(value, Catalogue) and value.noun == "profile":
                yield title.lower(), value


def policies() -> dict[str, str]:
    """Return the policies, each with its unit and its ladder."""
    from mor_ref.policies import POLICIES

    return {
        name: f"by {policy.unit}: {' -> '.join(policy.names)}" for name, policy in POLICIES.items()
    }


def roundings() -> dict[str, str]:
    """Return the roundings of an encoder, each with what it does."""
    return {name: _ROUNDINGS[name] for name in ROUNDINGS}


_LISTS: Mapping[str, Callable[[], dict[str, str]]] = {
    "recipes": recipes,
    "profiles": profiles,
    "policies": policies,
    "roundings": roundings,
}


def run(what: str, *, as_json: bool) -> None:
    """Print a list."""
    rows = _LISTS[what]()
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, words in rows.items():
        table.add_row(Text(name), Text(words))
    console_of_some_width().print(table)
