"""Recipes from texts: a short one of words, a table of TOML, or an object of JSON."""

import contextlib
import json
import re
import tomllib
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any

from mor_ref.argument_checks import UnknownNameError, hint_of, known_name, spelling
from mor_ref.definitions.catalogue import INTEGERS
from mor_ref.policies import POLICIES
from mor_ref.recipes.catalogue import TENSOR_RECIPES
from mor_ref.recipes.floats import Mor, Nvfp4, OneOf, Scaled
from mor_ref.recipes.other_representations import Row
from mor_ref.recipes.tensor_recipe import TensorRecipe
from mor_ref.representations import (
    OTHER_REPRESENTATIONS,
    REPRESENTATIONS,
    as_representation,
    known_names,
    words_of,
)

Table = Mapping[str, Any]
_FIRST_KEY = re.compile(r"\s*(#.*\n\s*)*[A-Za-z_]+\s*=")  # words have a name first
GIVE = "give the text of str(recipe)"
_SUCH_AS = "e4m3:gam:128x128, mxfp8:rceil, nvfp4:te:1x16 or mor:three_way"


def as_tensor_recipe(given: str | Table | TensorRecipe) -> TensorRecipe:
    """Return the recipe that is given, by itself, by a table or by a text.

    A short text is a name and words. Each word is read as the first field that has such a value
    and has none yet. A table names fields: a mapping, or a text of TOML or JSON.

    >>> as_tensor_recipe("mxfp8:rceil") == as_tensor_recipe('{"kind": "mx", "scale_rule": "rceil"}')
    True
    >>> as_tensor_recipe("e4m3:gam:128x128").asked.operation
    'quantize'
    """
    if isinstance(given, TensorRecipe):
        return given
    read = words_or_table(given)
    return _of_words(read) if isinstance(read, str) else tensor_recipe_from(read, "recipe")


def short_text(tensor_recipe: TensorRecipe) -> str:
    """Return the short text of a recipe that has one; else its table of TOML.

    >>> short_text(as_tensor_recipe("nvfp4"))
    'nvfp4:te:1x16'
    """
    values = (getattr(tensor_recipe, field) for field in tensor_recipe.words)
    words = (_word(value) for value in values if value != "")
    text = ":".join((tensor_recipe.head, *words))
    try:
        is_whole = as_tensor_recipe(text) == tensor_recipe
    except ValueError:
        is_whole = False
    return text if is_whole else tensor_recipe.text


def _word(value: object) -> str:
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _of_words(text: str) -> TensorRecipe:
    head, *words = text.split(":")
    kind, given = _kind_of(head, text)
    for place, word in enumerate(words):
        for field, read in kind.words.items():
            if field not in given and (value := read(word)) is not None:
                given[field] = value
                break
        else:
            wrong = _wrong_word(word, words[:place], kind, given)
            raise ValueError(f"recipe is {text!r}, where {wrong}")
    if kind is Scaled:
        missing = [field for field in kind.words if field not in given]
        if missing:
            raise ValueError(
                f"recipe is {text!r}, without {' and '.join(missing)}; give the scales and their "
                f"blocks, such as {head}:gam:128x128 or {head}:fp32:tensor"
            )
    return kind(**given)


def _wrong_word(
    word: str, before: Collection[str], kind: type[TensorRecipe], given: Mapping[str, Any]
) -> str:
    """Say why no field of a recipe takes a word, after the words before it."""
    if word in before:
        return f"{word!r} is given twice; give it once"
    for field, read in kind.words.items():
        if read(word) is not None:
            return f"{word!r} is a second word for {field}; give one"
    small = word.lower()
    if any(field not in given and read(small) is not None for field, read in kind.words.items()):
        return f"{word!r} is not known; did you mean {small!r}?"
    left = {field: read for field, read in kind.words.items() if field not in given}
    wanted = f"a word for {_choices(left)}" if left else "nothing more"
    return f"{word!r} is not known; {_hint(small, left)}give {wanted}"


def _names_of(read: object) -> Collection[str]:
    return tuple(read.names) if isinstance(read, OneOf) else ()


def _choices(left: Mapping[str, object]) -> str:
    """Return the fields that a word may be of, with the names that it may be."""
    said = [
        f"{field} ({', '.join(names)})" if (names := _names_of(read)) else field
        for field, read in left.items()
    ]
    return ", or for ".join(said)


def _hint(word: str, left: Mapping[str, object]) -> str:
    return hint_of(word, [name for read in left.values() for name in _names_of(read)])


def _kind_of(head: str, text: str) -> tuple[type[TensorRecipe], dict[str, Any]]:
    """Return the kind of recipe that the first word names, and the fields that it says."""
    for kind in (Mor, Nvfp4):
        if head == kind.name:
            return kind, {}
    if not re.fullmatch(INTEGERS, head):
        asked = "recipe" if head == text else f"the first word of recipe {text!r}"
        try:
            known = (Mor.name, *known_names())
            of_policies = {spelling(name): (f"{Mor.name}:{name}",) for name in POLICIES}
            known_name(asked, head, known, {**of_policies, **OTHER_REPRESENTATIONS})
        except UnknownNameError as error:
            raise ValueError(str(error)) from None
    is_of_user = head in REPRESENTATIONS and head not in REPRESENTATIONS.specified
    return (Row, {"of": head}) if is_of_user and text == head else _kind_of_row(head)


def takes_of(tensor_recipe: TensorRecipe) -> tuple[str, ...]:
    """Return the parameters that may be given with each tensor; a row takes those of its kind."""
    if not isinstance(tensor_recipe, Row):
        return tensor_recipe.takes
    kind, given = _kind_of_row(tensor_recipe.of)
    return kind(**given).takes


def _kind_of_row(head: str) -> tuple[type[TensorRecipe], dict[str, Any]]:
    """Return the kind of recipe that has a representation, and the fields that it says.

    Words may follow for the fields that are as usual. Without words, a row of a user is taken as it
    is, with its name.
    """
    found = words_of(as_representation(head))
    if found is None:
        return Row, {"of": head}
    usual = TENSOR_RECIPES[found.kind]
    others = {name: value for name, value in found.others.items() if value != getattr(usual, name)}
    return type(usual), {**found.named, **others}


def words_or_table(given: str | Table) -> str | Table:
    """Return the words of a short text as they are, and the table of any other.

    >>> words_or_table('kind = "mx" # and no more'), words_or_table("mxfp8:rceil")
    ({'kind': 'mx'}, 'mxfp8:rceil')
    """
    if not isinstance(given, str | Mapping):
        raise TypeError(f"recipe is {given!r}; give a text or a table, such as {_SUCH_AS}")
    read = _read(given) if isinstance(given, str) else given
    if not read or not isinstance(read, str | Mapping):
        raise ValueError(
            f"recipe is {given!r}, which is neither a name nor a table with fields; give {_SUCH_AS}"
        )
    return read


def _read(text: str) -> Any:
    """Return the words of a text, or the content of TOML or JSON; None if JSON is a text."""
    stripped = text.strip()
    if stripped.startswith("{"):
        return _inline_table(text)
    if stripped.endswith((".toml", ".json")):
        raise ValueError(
            f'recipe is {text!r}, the name of a file; give its content, as "$(cat {stripped})"'
        )
    with contextlib.suppress(ValueError):
        read = json.loads(text)
        return None if isinstance(read, str) else read
    return _document(text) if stripped.startswith("[") or _FIRST_KEY.match(text) else stripped


def _document(text: str) -> Table:
    """Return the table of a document of TOML."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(
            f"recipe is {text!r}, which is not TOML: {error}; give {_SUCH_AS}"
        ) from error


def _inline_table(text: str) -> Table:
    """Return the table in braces of JSON or TOML."""
    try:
        found: Table = json.loads(text)
    except ValueError:
        pass
    else:
        return found
    try:
        return dict(tomllib.loads(f"it = {text}")["it"])
    except tomllib.TOMLDecodeError as error:
        raise ValueError(
            f"recipe is {text!r}, which is neither TOML ({error}) nor JSON; give {_SUCH_AS}"
        ) from error


def tensor_recipe_from(read: object, place: str = "the table") -> TensorRecipe:
    """Return the recipe of the fields of a table; `place` names it in errors."""
    kind: Any = read.get("kind") if isinstance(read, Mapping) else None
    known = TENSOR_RECIPES[kind].arguments if kind is not None else {}
    if isinstance(read, Mapping) and kind is None:
        raise ValueError(f"{place} has no kind; give one of {', '.join(TENSOR_RECIPES)}")
    given = table_of(place, read, ("kind",), known)
    return type(TENSOR_RECIPES[given.pop("kind")])(**given)


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
