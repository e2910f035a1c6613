"""Recipes for a user's own tensors, with their given numbers and random words."""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from mor_ref.argument_checks import whole_number
from mor_ref.definitions.block_formats import BlockFormat, inline_toml
from mor_ref.definitions.scales import given_amax, given_scale
from mor_ref.former_names import FormerAttribute
from mor_ref.policies import Policy
from mor_ref.recipes.floats import BITS
from mor_ref.recipes.recipe_text import (
    RecipeLike,
    as_tensor_recipe,
    short_text,
    takes_of,
    words_or_table,
)
from mor_ref.recipes.tensor_recipe import TensorRecipe
from mor_ref.representations import Asked

Axis = Literal["rows", "columns"]
_AXES = ("rows", "columns")
_GIVEN = ("amax", "scale", "global_scale")
_MOST_BITS = 32
_NEXT = "give a number such as amax=3.5, or a table of numbers by the names of tensors"
_TAKEN = {"amax": given_amax, "scale": given_scale, "global_scale": given_scale}


@dataclass(frozen=True)
class OwnRecipe:
    """A recipe of tensors, along an axis, with an amax or a scale that is given.

    If `axis` is "columns", the blocks run along the columns: a tensor is folded into rows and
    columns, and transposed, and all fields are those of the transposed tensor. `amax`, `scale` and
    `global_scale` are a number, or numbers by the names of tensors. With `n_random_bits`, elements
    are rounded with random words of so many bits, which are given with each tensor (QNT-005).

    >>> own_recipe("nvfp4:columns:amax=3.5").text
    'nvfp4:te:1x16:columns:amax=3.5'
    """

    tensor_recipe: TensorRecipe
    axis: Axis = "rows"
    amax: float | Mapping[str, float] | None = None
    scale: float | Mapping[str, float] | None = None
    global_scale: float | Mapping[str, float] | None = None
    n_random_bits: int | None = None

    treatment = FormerAttribute("tensor_recipe")

    def __post_init__(self) -> None:
        if self.axis not in _AXES:
            raise ValueError(f"axis is {self.axis!r}; give rows or columns")
        for name in _GIVEN:
            self._check(name)
        both = [name for name in _GIVEN if getattr(self, name) is not None]
        if len(both) > 1:
            raise ValueError(f"{' and '.join(both)} are both given; give one of them")
        if self.is_random:
            self._check_random_bits()

    @property
    def asked(self) -> Asked:
        """The operation, with the parameters that all tensors share."""
        return self.tensor_recipe.asked

    @property
    def is_random(self) -> bool:
        """Whether elements are rounded with random words."""
        return self.n_random_bits is not None

    def __str__(self) -> str:
        """Return the text, which is read as an equal recipe; numbers by name make it a table."""
        has_names = any(isinstance(getattr(self, name), Mapping) for name in _GIVEN)
        return self._table if has_names else self.text

    @property
    def text(self) -> str:
        """The short text, which has no numbers by name; a table if there is no short text."""
        first = short_text(self.tensor_recipe)
        return self._table if first == self.tensor_recipe.text else self._with_words(first)

    @property
    def _table(self) -> str:
        given = {name: getattr(self, name) for name in _GIVEN}
        more = {"axis": self.axis, **given, BITS: self.n_random_bits}
        usual = {"axis": _AXES[0]}
        said = {name: own for name, own in more.items() if own not in (None, usual.get(name))}
        text = self.tensor_recipe.text
        return f"{text.removesuffix(' }')}, {inline_toml(said)[2:]}" if said else text

    @property
    def title(self) -> str:
        """The text, or a name in place of a long one, in what is printed."""
        return self._with_words(self.tensor_recipe.title or short_text(self.tensor_recipe))

    def _with_words(self, first: str) -> str:
        words = [first, *(["columns"] if self.axis == "columns" else [])]
        for name in _GIVEN:
            given = getattr(self, name)
            if given is not None:
                words.append(f"{name}={given!r}" if isinstance(given, float) else f"{name}=by name")
        if self.is_random:
            words.append(f"{BITS}={self.n_random_bits}")
        return ":".join(words)

    def parameters_for(self, tensor: str) -> Mapping[str, Any]:
        """Return the parameters of the operation for a tensor."""
        found: dict[str, float] = {}
        if self.n_random_bits is not None:
            found[BITS] = self.n_random_bits
        for name in _GIVEN:
            given = getattr(self, name)
            if isinstance(given, Mapping):
                if tensor not in given:
                    raise ValueError(
                        f"tensor {tensor!r} has no {name} in the recipe, whose numbers have the "
                        "names of tensors; give one for each tensor"
                    )
                given = given[tensor]
            if given is not None:
                found[name] = given
        return {**self.asked.parameters, **found}

    def _check_random_bits(self) -> None:
        """Refuse a wrong number of bits, and a recipe that takes no random words."""
        whole_number(BITS, self.n_random_bits, 1, _MOST_BITS)
        if BITS not in takes_of(self.tensor_recipe):
            raise ValueError(
                f"recipe is {short_text(self.tensor_recipe)}, which takes no {BITS}; a format with "
                "its scales, MX and nvfp4 take random words"
            )

    def _check(self, name: str) -> None:
        """Refuse a number that cannot be given, or that the recipe does not take."""
        given = getattr(self, name)
        if given is None:
            return
        if name not in takes_of(self.tensor_recipe):
            raise ValueError(
                f"recipe is {short_text(self.tensor_recipe)}, which takes no {name}; "
                "nvfp4 takes amax, and global_scale without 4 over 6; a format with its scales "
                "takes amax, and scale with fp32 scales; a block format of your own takes both"
            )
        taken = _TAKEN[name]
        own = (
            {tensor: taken(name, number) for tensor, number in given.items()}
            if isinstance(given, Mapping)
            else taken(name, given)
        )
        object.__setattr__(self, name, own)


def own_recipe(given: "RecipeLike | OwnRecipe") -> OwnRecipe:
    """Return the recipe that is given, with or without more words, by a table or by a text.

    A short text is that of a recipe with more words: columns, and NAME=NUMBER for amax, scale,
    global_scale and n_random_bits. A table has these names and axis as keys. A decimal amax or
    scale means the nearest number of binary32, and 0x40533333 is its bits.

    >>> own_recipe("e4m3:fp32:tensor:scale=0x3e800000").scale
    0.25
    """
    if isinstance(given, OwnRecipe):
        return given
    if isinstance(given, TensorRecipe | BlockFormat | Policy):
        return OwnRecipe(as_tensor_recipe(given))
    read = words_or_table(given)
    if not isinstance(read, str):
        table = dict(read)
        more = {key: table.pop(key) for key in ("axis", *_GIVEN, BITS) if key in table}
        more |= {key: _in_table(key, more[key]) for key in _GIVEN if key in more}
        return OwnRecipe(as_tensor_recipe(table), **more)
    return _of_words(read)


def _in_table(name: str, value: object) -> float | dict[str, float]:
    """Return a number, or numbers by name, of a table."""
    if isinstance(value, Mapping):
        return {str(tensor): _number_in(name, str(number)) for tensor, number in value.items()}
    return _number_in(name, str(value))


def _value_in(name: str, text: str) -> float:
    """Return the value of a word: a whole number of bits, or a number of binary32."""
    if name != BITS:
        return _number_in(name, text)
    if not text.isdecimal():
        raise ValueError(f"{name} is {text!r}; give a whole number, 1 to {_MOST_BITS}")
    return int(text)


def _number_in(name: str, text: str) -> float:
    """Return the number of binary32 that is nearest to a decimal number, or that has these bits."""
    try:
        word = int(text, 16) if text.startswith("0x") else None
        packed = struct.pack("<f", float(text)) if word is None else struct.pack("<I", word)
    except (ValueError, OverflowError, struct.error):
        raise ValueError(f"{name} is {text!r}; {_NEXT}") from None
    (number,) = struct.unpack("<f", packed)
    return float(number)


def _of_words(text: str) -> OwnRecipe:
    """Return the recipe of a short text."""
    left: list[str] = []
    more: dict[str, Any] = {}
    for word in text.split(":"):
        name, equals, value = word.partition("=")
        if word != "columns" == word.lower():
            raise ValueError(
                f"recipe is {text!r}, where {word!r} is not known; did you mean 'columns'?"
            )
        if word == "columns" or equals:
            key = "axis" if word == "columns" else name
            if key in more:
                raise ValueError(f"recipe is {text!r}, where {name} is given twice; give it once")
            if key not in ("axis", *_GIVEN, BITS):
                raise ValueError(f"recipe is {text!r}, where {word!r} is not known; {_NEXT}")
            more[key] = word if key == "axis" else _value_in(name, value)
        else:
            left.append(word)
    return OwnRecipe(as_tensor_recipe(":".join(left)), **more)
