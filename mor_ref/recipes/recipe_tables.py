"""Recipes and policies from tables, as TOML and JSON have them."""

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any, cast

from mor_ref.argument_checks import known_name
from mor_ref.definitions.blocks import as_cut
from mor_ref.former_names import warn_of
from mor_ref.metrics import METRICS, NotWorseThan
from mor_ref.policies import Policy, Rung
from mor_ref.recipes.block_formats import blocks_of_table, is_table_of_blocks
from mor_ref.recipes.catalogue import TENSOR_RECIPES
from mor_ref.recipes.floats import Mor, Scaled
from mor_ref.recipes.policy_text import LADDER, METRIC_TYPES
from mor_ref.recipes.tensor_recipe import REPRESENTATION, OfRow, TensorRecipe, checked_digest
from mor_ref.representations import Representation, as_representation

Table = Mapping[str, Any]
GIVE = "give the text of str(recipe)"
_FORMER = "kind"


def tensor_recipe_from(read: object, place: str = "the table") -> TensorRecipe:
    """Return the recipe of the fields of a table; `place` names it in errors."""
    if isinstance(read, Mapping):
        read = _with_name_of_today(read, place)
        if is_table_of_blocks(read):
            return blocks_of_table(read)
        if LADDER in read:
            return Mor(policy_of_table(read))
        if REPRESENTATION not in read and "scales" in read:
            raise ValueError(
                f"{place} has scales, as a block format has, but no element; give the format of "
                "its elements, as element = 'e4m3'"
            )
        if REPRESENTATION not in read:
            names = ", ".join(TENSOR_RECIPES)
            raise ValueError(f"{place} has no {REPRESENTATION}; give one of {names}")
    name = read[REPRESENTATION] if isinstance(read, Mapping) else None
    if name is not None:
        known_name(f"{REPRESENTATION} of {place}", name, TENSOR_RECIPES)
    known = TENSOR_RECIPES[name].arguments if name is not None else {}
    given = table_of(place, read, (REPRESENTATION,), known)
    if isinstance(given.get("policy"), Mapping):
        given["policy"] = policy_of_table(given["policy"])
    return type(TENSOR_RECIPES[given.pop(REPRESENTATION)])(**given)


def _with_name_of_today(table: Table, place: str) -> Table:
    """Return a table whose key `kind`, of earlier versions, is `representation`."""
    if _FORMER not in table:
        return table
    if REPRESENTATION in table:
        raise ValueError(f"{place} has {_FORMER} and {REPRESENTATION}; give {REPRESENTATION}")
    warn_of(f"key {_FORMER} of a recipe", REPRESENTATION, 2)
    return {REPRESENTATION if key == _FORMER else key: own for key, own in table.items()}


def table_of(
    place: str, read: object, needed: Collection[str], known: Collection[str]
) -> dict[str, Any]:
    """Return a copy of a table, if it has all keys that it needs, and none that is not known."""
    if not isinstance(read, Mapping):
        raise ValueError(f"{place} is {read!r}, which is not a table; {GIVE}")  # noqa: TRY004 (of the text)
    for name in needed:
        if name not in read:
            raise ValueError(f"{place} has no {name}; {GIVE}")
    for name in read:
        known_name(f"a key of {place}", name, (*needed, *known))
    return dict(read)


# ---------------------------------------------------------------------- policies


def policy_of_table(table: object) -> Policy:
    """Return the policy of a table (MOR-018)."""
    read = table_of("the policy", table, ("name", LADDER), ("unit", "block", "group"))
    rungs = read.pop(LADDER)
    if not isinstance(rungs, list | tuple):
        raise TypeError(f"{LADDER} is {rungs!r}; give tables, as [[{LADDER}]] of TOML")
    for key in ("block", "group"):
        if isinstance(read.get(key), list):
            read[key] = as_cut(key, tuple(read[key]))
    places = (f"rung {place} of policy {read['name']!r}" for place in range(len(rungs)))
    return Policy(ladder=tuple(map(_rung_of, places, rungs)), **read)


def _rung_of(place: str, given: object) -> Rung:
    name = given.get("metric") if isinstance(given, Mapping) else None
    if name is not None:
        known_name(f"metric of {place}", name, dict.fromkeys((*METRIC_TYPES, *METRICS)))
        place = f"{place}, whose metric is {name},"
    kind = METRIC_TYPES.get(str(name))
    arguments = () if kind is None else tuple(field.name for field in fields(kind))
    read = table_of(place, given, (REPRESENTATION, "metric", *arguments), () if kind else ("code",))
    representation = _representation_of(f"{REPRESENTATION} of {place}", read[REPRESENTATION])
    if kind is None:
        checked_digest(METRICS[read["metric"]], read["metric"], read.get("code", ""))
        return Rung(representation, METRICS[read["metric"]])
    if kind is NotWorseThan:
        read["yardstick"] = _representation_of(f"yardstick of {place}", read["yardstick"])
    return Rung(representation, kind(**{argument: read[argument] for argument in arguments}))


def _representation_of(place: str, given: Any) -> Representation:
    """Return the representation of a name, or of the table of a recipe."""
    if not isinstance(given, Mapping):
        return as_representation(given)
    is_table = REPRESENTATION in given
    own = {key: given[key] for key in given if is_table and key == "name"}
    recipe = tensor_recipe_from({key: given[key] for key in given if key not in own}, place)
    if isinstance(recipe, Scaled):
        raise ValueError(  # noqa: TRY004  # of the text
            f"{place} is {given!r}, but blocks and scales are those of the policy; give "
            f"{recipe.fmt!r}"
        )
    if not isinstance(recipe, OfRow):
        raise ValueError(  # noqa: TRY004  # of the text
            f"{place} is {given!r}, which is no representation; give such as 'mxfp8'"
        )
    return replace(cast("Any", recipe.row), **own) if own else recipe.row


@lru_cache(maxsize=1024)
def tensor_recipe_of_text(text: str) -> TensorRecipe:
    """Return the recipe of an inline table."""
    return tensor_recipe_from(tomllib.loads(f"it = {text}")["it"])
