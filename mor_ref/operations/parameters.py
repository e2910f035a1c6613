"""The parameters of operations: which values each has, and words for them."""

import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from mor_ref.definitions.block_formats import block_format_of
from mor_ref.definitions.blocks import Cut
from mor_ref.definitions.dot import DOT_PROFILES
from mor_ref.definitions.encoding import DETERMINISTIC_ROUNDINGS, NANS, OVERFLOWS
from mor_ref.definitions.formats import encoding_profiles, formats
from mor_ref.definitions.matmul import RECORD_KINDS
from mor_ref.definitions.mx import SCALE_RULES
from mor_ref.definitions.nvfp4 import PROFILES
from mor_ref.definitions.scales import SCALINGS, given_amax, given_scale
from mor_ref.metrics import METRICS
from mor_ref.policies import POLICIES
from mor_ref.recipes import as_policy, policy_text

RECIPE, GENERATED = "recipe", "x"  # the parameter, and the field that is made from it
DOUBLINGS = "doublings"  # in a recipe: the larger rows are twice as large, so many times
# In a recipe: elements of a row with bits of their own, from a column on: [row, column, bits, ...]
PLACED = "placed"
_MOST_PLACED = 64
_USUAL_DOUBLINGS, _MOST_DOUBLINGS = 4, 64
LONGEST = 1 << 17  # side of a generated tensor
LARGEST_TENSOR = 1 << 25  # elements of a generated tensor
_LARGEST_SIDE = 1 << 20  # of blocks, tiles and groups
_CUTS = ("tensor", "row", "column")


@dataclass(frozen=True)
class Kind:
    """The values that a parameter has, and words for them."""

    holds: Callable[[Any], bool]
    words: Callable[[], str]

    @property
    def wanted(self) -> str:
        """The end of the sentence "it has to be ..."."""
        return self.words()


def is_int(value: Any, lowest: int, highest: int) -> bool:
    """Return whether a value is a whole number of this range; True and 1.0 are not."""
    return type(value) is int and lowest <= value <= highest


def one_of(names: Collection[str]) -> Kind:
    """Return the kind that has these names; a name may join them later."""
    return Kind(lambda value: isinstance(value, str) and value in names, lambda: " or ".join(names))


def row_of(catalogue: Collection[str]) -> Kind:
    """Return the kind that has the names of a catalogue, to which a user adds rows."""
    names = one_of(catalogue)
    advice = "a row that mor-ref --rows MODULE adds"
    return Kind(names.holds, lambda: f"{names.wanted} or {advice}")


def kind(holds: Callable[[Any], bool], words: str) -> Kind:
    """Return the kind of the values for which a function is true."""
    return Kind(holds, lambda: words)


def number(lowest: int, highest: int) -> Kind:
    """Return the kind of the whole numbers of a range."""
    return kind(lambda value: is_int(value, lowest, highest), f"an int, {lowest} to {highest}")


def _is_taken_by(check: Callable[[str, Any], float]) -> Callable[[Any], bool]:
    """Return whether a function that refuses wrong numbers takes one; a parameter is a number."""

    def holds(value: Any) -> bool:
        try:
            check("", value)
        except (TypeError, ValueError):
            return False
        return True

    return holds


def as_cut(value: Any) -> Cut:
    """Return how a tensor is cut: by a name, or by two sides, which a parameter has as a list."""
    cut: Cut = tuple(value) if isinstance(value, list) else value
    return cut


def group_of(parameters: Mapping[str, Any]) -> Cut:
    """Return the group of a call: its own, or that of its policy; the tensor if neither has one."""
    if "policy" in parameters:
        return as_policy(parameters["policy"]).group
    return as_cut(parameters.get("group", "tensor"))


def _is_pair(value: Any, highest: int = _LARGEST_SIDE) -> bool:
    is_list = isinstance(value, list) and len(value) == 2
    return is_list and all(is_int(side, 1, highest) for side in value)


def _is_cut(value: Any) -> bool:
    return value in _CUTS if isinstance(value, str) else _is_pair(value)


def _is_block_format(value: Any) -> bool:
    try:
        return isinstance(value, str) and block_format_of(tomllib.loads(value)).text == value
    except ValueError:
        return False


def _is_policy(value: Any) -> bool:
    try:
        return value in POLICIES or policy_text(as_policy(value)) == value
    except (TypeError, ValueError):
        return False


def _is_recipe(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and {"shape", "seed", "stream"} <= set(value) <= {
            "shape", "seed", "stream", DOUBLINGS, PLACED,
        }
        and _is_pair(value["shape"], LONGEST)
        and value["shape"][0] * value["shape"][1] <= LARGEST_TENSOR
        and all(is_int(value[name], 0, 0xFFFF) for name in ("seed", "stream"))
        and is_int(doublings_of(value), 0, _MOST_DOUBLINGS)
        and _are_placed(value.get(PLACED, []), value["shape"])
    )  # fmt: skip


def _are_placed(value: Any, shape: Any) -> bool:
    return isinstance(value, list) and len(value) <= _MOST_PLACED and all(
        isinstance(entry, list)
        and len(entry) > 2
        and is_int(entry[0], 0, shape[0] - 1)
        and is_int(entry[1], 0, shape[1] - len(entry) + 2)
        and all(is_int(bits, 0, 0xFFFFFFFF) for bits in entry[2:])
        for entry in value
    )  # fmt: skip


def doublings_of(recipe: Mapping[str, Any]) -> int:
    """Return how often the larger rows of a recipe are doubled."""
    doublings: int = recipe.get(DOUBLINGS, _USUAL_DOUBLINGS)
    return doublings


_SIDES = f"a list of two sides, 1 to {_LARGEST_SIDE}"
_CUT = kind(_is_cut, f"{' or '.join(_CUTS)}, or {_SIDES}")
KINDS: Mapping[str, Kind] = {
    "format": row_of(formats),
    "source": one_of(("f32", "f16", "bf16")),
    "any_source": one_of(("f64", "f32", "f16", "bf16")),
    "f32": one_of(("f32",)),
    "rounding": one_of(DETERMINISTIC_ROUNDINGS),
    "overflow": one_of(OVERFLOWS),
    "nan": one_of(NANS),
    "preset": one_of(encoding_profiles),
    "n_random_bits": number(1, 32),
    "metric": row_of(METRICS),
    "scaling": one_of(SCALINGS),
    "block": _CUT,
    "group": _CUT,
    "side": number(1, _LARGEST_SIDE),
    "policy": Kind(_is_policy, lambda: f"{row_of(POLICIES).wanted}, or the text of a policy"),
    "profile": row_of(PROFILES),
    "dot_profile": row_of(DOT_PROFILES),
    "record": one_of(RECORD_KINDS),
    "tile": kind(_is_pair, _SIDES),
    "scale_rule": row_of(SCALE_RULES),
    "block_format": kind(_is_block_format, "the text of a block format"),
    "amax": kind(_is_taken_by(given_amax), "a finite number of binary32 that is not negative"),
    "scale": kind(_is_taken_by(given_scale), "a positive, normal number of binary32"),
    RECIPE: kind(_is_recipe, f"a shape of at most {LARGEST_TENSOR} elements, seed and stream"),
}


def kinds(text: str, **own: Kind) -> dict[str, Kind]:
    """Return the parameters of a text such as "format block:side": names, maybe with a kind.

    `own` are kinds that no other chapter has, by the names of their parameters.
    """
    pairs = (word.partition(":") for word in text.split())
    return {name: own.get(name) or KINDS[kind_name or name] for name, _, kind_name in pairs}
