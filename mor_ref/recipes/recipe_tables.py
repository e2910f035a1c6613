"""Recipes from tables, as TOML and JSON have them."""

import tomllib
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any

from mor_ref.argument_checks import known_name
from mor_ref.former_names import warn_of
from mor_ref.recipes.block_formats import blocks_of_table, is_table_of_blocks
from mor_ref.recipes.catalogue import TENSOR_RECIPES
from mor_ref.recipes.tensor_recipe import REPRESENTATION, TensorRecipe

Table = Mapping[str, Any]
GIVE = "give the text of str(recipe)"
_FORMER = "kind"


def tensor_recipe_from(read: object, place: str = "the table") -> TensorRecipe:
    """Return the recipe of the fields of a table; `place` names it in errors."""
    if isinstance(read, Mapping):
        read = _with_name_of_today(read, place)
        if is_table_of_blocks(read):
            return blocks_of_table(read)
        if REPRESENTATION not in read:
            names = ", ".join(TENSOR_RECIPES)
            raise ValueError(f"{place} has no {REPRESENTATION}; give one of {names}")
    name = read[REPRESENTATION] if isinstance(read, Mapping) else None
    if name is not None:
        known_name(f"{REPRESENTATION} of {place}", name, TENSOR_RECIPES)
    known = TENSOR_RECIPES[name].arguments if name is not None else {}
    given = table_of(place, read, (REPRESENTATION,), known)
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


@lru_cache(maxsize=1024)
def tensor_recipe_of_text(text: str) -> TensorRecipe:
    """Return the recipe of an inline table."""
    return tensor_recipe_from(tomllib.loads(f"it = {text}")["it"])
