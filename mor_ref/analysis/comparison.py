"""Recipes compared on the tensors of a user: errors, and the bits that they take."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.analysis.recipes import USUAL, Recipe, recipes_from
from mor_ref.analysis.storage import stored_bits
from mor_ref.analysis.tensors import counts_of, shares_of
from mor_ref.api.dequantization import Tried
from mor_ref.api.measures import Measures, measures, signal_of
from mor_ref.api.policies import cuts_of, decided
from mor_ref.arrays import Numbers, numbers_from
from mor_ref.definitions.blocks import Partition, partition
from mor_ref.metrics import Always
from mor_ref.treatments import Situation, Treatment

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Compared:
    """The measures of one tensor under one recipe, or of many tensors.

    `taken` counts the numbers in each representation, and `bits` all bits that they take: codes,
    scales and decisions.
    """

    recipe: str
    measures: Measures
    taken: Mapping[str, int]
    bits: int

    @property
    def bits_per_number(self) -> float:
        """The bits of a number, scales included; 0 if there are none."""
        return self.bits / max(self.measures.elements, 1)

    @property
    def shares(self) -> dict[str, float]:
        """The share of numbers in each representation."""
        return shares_of(dict(self.taken))


@dataclass(frozen=True)
class TensorComparison:
    """A tensor under each recipe."""

    file: str
    name: str
    shape: tuple[int, ...]
    dtype: str
    under: tuple[Compared, ...]


def compare(
    x: "ArrayLike",
    recipes: Iterable[str | Treatment] = USUAL,
    *,
    threads: int | None = None,
) -> dict[str, Compared]:
    """Return the measures of a tensor under each recipe; x is any input that `mor` takes.

    >>> x = np.random.default_rng(0).standard_normal((64, 64), dtype=np.float32)
    >>> found = compare(x, ["mxfp8:rceil", "nvfp4"])
    >>> [(name, round(one.measures.sqnr, 1), one.bits_per_number) for name, one in found.items()]
    [('mxfp8:rceil', 31.7, 8.25), ('nvfp4', 20.4, 4.5078125)]
    """
    under = under_recipes(numbers_from(x, "x"), recipes_from(recipes), threads)
    return {one.recipe: one for one in under}


def under_recipes(
    numbers: Numbers, recipes: Sequence[Recipe], threads: int | None
) -> Iterator[Compared]:
    """Yield the measures of a tensor under each recipe."""
    signal = signal_of(numbers, threads)
    for recipe in recipes:
        found = _quantized(numbers, recipe.treatment, threads)
        _, taken = counts_of(found.choice, found.units, found.names)
        yield Compared(
            recipe.name,
            measures(numbers, found.rungs, found.units, found.choice, signal, threads),
            taken,
            stored_bits(
                recipe.treatment.policy_in(Situation()),
                taken,
                found.choice.size if found.is_decided else 0,
                numbers.shape,
                recipe.treatment.cut,
                recipe.treatment.scales,
            ),
        )


class _Quantized(NamedTuple):
    """A tensor under a treatment: the rung of each unit, and the tensor under each rung."""

    names: tuple[str, ...]
    rungs: tuple[Tried, ...]
    units: Partition
    choice: NDArray[np.uint8]
    is_decided: bool


def _quantized(numbers: Numbers, treatment: Treatment, threads: int | None) -> _Quantized:
    """Quantize a tensor; a representation without a decision has all of it (ERR-008)."""
    policy = treatment.policy_in(Situation())
    if policy is None:
        whole = partition(numbers.shape, "tensor")
        return _Quantized(("bf16",), (), whole, np.zeros(whole.grid, np.uint8), is_decided=False)
    cuts = cuts_of(numbers.shape, treatment.cut, policy.group, policy.unit, treatment.scales)
    found = decided(numbers, policy, treatment.scales, cuts, threads)
    rungs = tuple(found.tried[rung.name] for rung in policy.ladder)
    is_alone = len(rungs) == 1 and isinstance(policy.ladder[0].metric, Always)
    choice = np.zeros_like(found.choice) if is_alone else found.choice
    return _Quantized(policy.names, rungs, cuts.units, choice, is_decided=not is_alone)


def total(recipe: str, rows: Iterable[Compared]) -> Compared:
    """Return the totals of many tensors: every number counts once."""
    found = list(rows)
    names = dict.fromkeys(name for one in found for name in one.taken)
    return Compared(
        recipe,
        sum((one.measures for one in found), Measures()),
        {name: sum(one.taken.get(name, 0) for one in found) for name in names},
        sum(one.bits for one in found),
    )


def is_matrix(shape: tuple[int, ...]) -> bool:
    """Return whether a tensor has two sides or more: no vector, whatever its axes.

    >>> is_matrix((3, 4)), is_matrix((1, 512)), is_matrix((8, 1, 3, 3))
    (True, False, True)
    """
    return sum(side > 1 for side in shape) >= 2 and math.prod(shape) > 0
