"""Recipes from texts: a short one of words, a table of TOML, or an object of JSON."""

import contextlib
import json
import os.path
import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from mor_ref.argument_checks import UnknownNameError, hint_of, known_name, spelling
from mor_ref.definitions.block_formats import BlockFormat
from mor_ref.definitions.catalogue import INTEGERS, NAMES_OF_REPRESENTATIONS
from mor_ref.definitions.format_names import format_of_dtype
from mor_ref.definitions.formats import formats
from mor_ref.definitions.scales import USUAL_SCALING
from mor_ref.former_names import with_former_name
from mor_ref.policies import POLICIES, PREFIX, Policy
from mor_ref.recipes.block_formats import Blocks
from mor_ref.recipes.catalogue import TENSOR_RECIPES
from mor_ref.recipes.floats import Mor, Nvfp4, OneOf, Scaled, Unquantized
from mor_ref.recipes.policy_text import LADDER
from mor_ref.recipes.recipe_tables import Table, policy_of_table, tensor_recipe_from
from mor_ref.recipes.row import Row
from mor_ref.recipes.tensor_recipe import REPRESENTATION, OfRow, TensorRecipe
from mor_ref.recipes.training import AXES, OPERANDS, Operand, Recipe
from mor_ref.representations import (
    REPRESENTATIONS,
    as_representation,
    formulas_of,
    known_names,
    names_taken,
    other_names,
    words_of,
)

RecipeLike = str | Table | BlockFormat | Policy | TensorRecipe
_FIRST_KEY = re.compile(r"\s*(#.*\n\s*)*[A-Za-z_]+\s*=")  # words have a name first
_OF_ANOTHER_FILE = "give the content of one that does, or a recipe"
_SUCH_AS = "e4m3:gam:128x128, mxfp8:rceil, nvfp4:te:1x16 or mor:three_way"


def as_tensor_recipe(given: RecipeLike) -> TensorRecipe:
    """Return the recipe that is given, by itself, a block format, a policy, a table or a text.

    A short text is a name and words. Each word is read as the first field that has such a value
    and has none yet. A table names fields: a mapping, or a text of TOML or JSON.

    >>> as_tensor_recipe('{"representation": "mx", "scale_rule": "rceil"}').scale_rule
    'rceil'
    >>> as_tensor_recipe("e4m3:gam:128x128").asked.operation
    'quantize'
    """
    if isinstance(given, TensorRecipe):
        return given
    if isinstance(given, BlockFormat):
        return Blocks(given)
    if isinstance(given, Policy):
        return Mor(given)
    read = words_or_table(given)
    if isinstance(read, str):
        return _of_words(read)
    return tensor_recipe_from(_with_tables_for_words(read), "recipe")


def as_policy(policy: str | Policy | Mapping[str, Any]) -> Policy:
    """Return the policy that is given: by itself, its name, a table, or a text of it.

    In recipes, a name begins with mor:.

    >>> as_policy("mor:three_way") is as_policy("three_way")
    True
    >>> as_policy('''
    ... name = "mine"
    ... [[ladder]]
    ... representation = "mxfp8:rceil"
    ... metric = "sqnr"
    ... threshold = { "*" = 25, gradient = 20 }
    ... ''').names
    ('mxfp8_e4m3_rceil', 'bf16')
    """
    if isinstance(policy, Policy):
        return policy
    if isinstance(policy, str) and policy not in POLICIES:
        read = words_or_table(policy)
        return POLICIES[read.removeprefix(PREFIX)] if isinstance(read, str) else as_policy(read)
    if isinstance(policy, Mapping):
        return policy_of_table(_with_tables_for_words(policy))
    return POLICIES[policy]


def _with_tables_for_words(table: Table) -> Table:
    """Return a table whose rungs have tables in place of texts such as mxfp8:rceil."""
    if isinstance(table.get("policy"), Mapping):
        return {**table, "policy": _with_tables_for_words(table["policy"])}
    rungs = table.get(LADDER)
    if not isinstance(rungs, list | tuple):
        return table
    return {**table, LADDER: [_with_table_for_words(rung) for rung in rungs]}


def _with_table_for_words(rung: object) -> object:
    """Return a rung that has the tables of such texts."""
    if not isinstance(rung, Mapping):
        return rung
    texts = {
        key: rung[key]
        for key in (REPRESENTATION, "yardstick")
        if isinstance(rung.get(key), str) and ":" in rung[key]
    }
    recipes = {key: _of_words(text) for key, text in texts.items()}
    return {**rung} | {
        key: {REPRESENTATION: recipe.name, **recipe.arguments} for key, recipe in recipes.items()
    }


def is_recipe(text: str) -> bool:
    """Return whether a text is that of a recipe, as far as its first word says."""
    head = text.split(":", maxsplit=1)[0]
    is_known = head in (Nvfp4.name, *known_names()) or head in REPRESENTATIONS
    return is_known or is_table_in_text(text)


def is_table_in_text(text: str) -> bool:
    """Return whether a text is a table of TOML or JSON, and not words."""
    return text.lstrip().startswith(("{", "[")) or _FIRST_KEY.match(text) is not None


def as_block_format(given: RecipeLike) -> BlockFormat:
    """Return the block format that is given: by itself, by its text or by that of a recipe.

    >>> as_block_format("mxfp8:rceil").scales[0].number, as_block_format("nvfp4").name
    ('amax / 448.0', 'nvfp4_te')
    """
    if isinstance(given, BlockFormat):
        return given
    tensor_recipe = as_tensor_recipe(given)
    row = tensor_recipe.row if isinstance(tensor_recipe, OfRow) else None
    cut = tensor_recipe.cut
    formulas = None if row is None else formulas_of(row, tensor_recipe.scales, cut, "tensor")
    if formulas is None:
        raise ValueError(
            f"recipe is {short_text(tensor_recipe)}, which is no block format; give the text of a "
            "block format, MX, NVFP4 rounded to nearest, or a format with its scales"
        )
    return formulas


@with_former_name("treatment", "tensor_recipe")
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
    named = text.split(":", maxsplit=1)[0]
    for row in NAMES_OF_REPRESENTATIONS.rows_named(named):
        if isinstance(row, Recipe) and (text == named or named not in known_names()):
            raise _of_training(row, text)
    head, *words = _in_full(text).split(":")
    kind, given = _kind_of(head, text)
    for place, word in enumerate(words):
        for field, read in kind.words.items():
            if field not in given and (value := read(word)) is not None:
                given[field] = value
                break
        else:
            wrong = _wrong_word(word, words[:place], kind, given)
            raise ValueError(f"recipe is {text!r}, where {wrong}")
    if kind is Scaled:  # as `quantize` has it
        given = {"scaling": USUAL_SCALING, "block": "tensor", **given}
    return kind(**given)


def _of_training(recipe: Recipe, text: str) -> ValueError:
    """Return the error that a text has a recipe of training, which consists of several."""
    operands: dict[TensorRecipe, list[str]] = {}
    for name in OPERANDS:
        operand: Operand = getattr(recipe, name)
        if operand.row == operand.along("column"):
            operands.setdefault(operand.row, []).append(name)
        else:
            for axis in AXES:
                operands.setdefault(operand.along(axis), []).append(f"{name} by {axis}")
    parts = [f"{_part(part)} for {_joined(names)}" for part, names in operands.items()]
    texts = [short_text(part) for part in operands if _is_of_one_tensor(part)]
    first = "" if text == recipe.name else f"whose first word {recipe.name!r} is "
    return ValueError(
        f"recipe is {text!r}, {first}a recipe of training (TRN-003): {', '.join(parts)}; give "
        f"{' or '.join(texts) or f'a recipe of one tensor, such as {_SUCH_AS}'}"
    )


def _part(tensor_recipe: TensorRecipe) -> str:
    return "bfloat16" if isinstance(tensor_recipe, Unquantized) else short_text(tensor_recipe)


def _is_of_one_tensor(tensor_recipe: TensorRecipe) -> bool:
    return not tensor_recipe.needs_steps and not isinstance(tensor_recipe, Unquantized)


def _joined(names: list[str]) -> str:
    return "each operand" if names == list(OPERANDS) else " and ".join(names)


def _in_full(text: str) -> str:
    """Return a text whose first word is the name of a policy or a format here, if it means one."""
    head, colon, rest = text.partition(":")
    if head in (Mor.name, Nvfp4.name, *known_names()):
        return text
    if head in POLICIES:
        return f"{PREFIX}{text}"
    fmt = format_of_dtype(head) or head.lower()
    return f"{fmt}{colon}{rest}" if fmt in formats else text


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
    if not re.fullmatch(INTEGERS, head) and head not in known_names():
        asked = "recipe" if head == text else f"the first word of recipe {text!r}"
        try:
            known = (Mor.name, *names_taken())
            of_policies = {
                spelling(word): (f"{PREFIX}{name}",)
                for name in POLICIES
                for word in (name, f"{Mor.name}_{name}")
            }
            known_name(asked, head, known, {**of_policies, **_other_names(known)})
        except UnknownNameError as error:
            raise ValueError(str(error)) from None
    is_of_user = head in REPRESENTATIONS and head not in REPRESENTATIONS.specified
    return (Row, {"of": head}) if is_of_user and text == head else _kind_of_row(head)


def _other_names(known: Collection[str]) -> dict[str, Sequence[str]]:
    """Return the names in other software, with those of the known names that mean the same."""
    return {
        other: [name for name in names if name in known] for other, names in other_names().items()
    }


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

    >>> words_or_table('representation = "mx" # and no more'), words_or_table("mxfp8:rceil")
    ({'representation': 'mx'}, 'mxfp8:rceil')
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
        is_there = names_file(stripped)
        instead = f'give its content, as "$(cat {stripped})"' if is_there else _OF_ANOTHER_FILE
        what = "the name of a file" if is_there else "a file that does not exist"
        raise ValueError(f"recipe is {text!r}, {what}; {instead}")
    with contextlib.suppress(ValueError):
        read = json.loads(text)
        return None if isinstance(read, str) else read
    return _document(text) if stripped.startswith("[") or _FIRST_KEY.match(text) else stripped


def names_file(text: str) -> bool:
    """Return whether a text is the name of a file that exists."""
    return os.path.isfile(text)  # noqa: PTH113 (which has an answer for names that no file can have)


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
