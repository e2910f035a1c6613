"""Recipes compared on one tensor: errors, and the bits that it takes."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.analysis.analyze_tensor import counts_of, shares_of
from mor_ref.analysis.large_tensors import (
    How,
    OfTensor,
    amaxes_for,
    how_of,
    is_cut,
    of_tensor,
    rows_together,
    strips_of,
)
from mor_ref.analysis.layer_inputs import InputMeasures, LayerInputs, is_weight, layer_inputs
from mor_ref.analysis.recipes import USUAL, NamedRecipe, recipes_from
from mor_ref.analysis.storage import is_said_by_author, stored_bits
from mor_ref.api.border import public
from mor_ref.api.dequantization import Tried
from mor_ref.api.measures import Measures, fills_of_y, measures, sum_of_counts
from mor_ref.api.policies import chosen_for_all
from mor_ref.argument_checks import known_name
from mor_ref.arrays import Numbers, numbers_from
from mor_ref.definitions.blocks import Partition, partition
from mor_ref.definitions.roles import KINDS, Kind, Role
from mor_ref.definitions.scales import WHOLE, GivenAmaxes
from mor_ref.metrics import Always
from mor_ref.policies import Policy
from mor_ref.recipes import RecipeLike

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Compared:
    """The measures of one tensor with one recipe, or of many tensors.

    `taken` counts the numbers in each representation, and `bits` all bits that they take: codes,
    scales and decisions. They are None if a representation does not say how many. `bits_by_author`
    says whether some of them are what the author of a representation says. `on_inputs` has the
    measures under the inputs of a layer; their errors are NaN if no inputs are given.
    """

    recipe: str
    measures: Measures
    taken: Mapping[str, int]
    bits: int | None
    bits_by_author: bool = False
    on_inputs: InputMeasures = field(default_factory=InputMeasures)

    @property
    @public
    def bits_per_number(self) -> float:
        """The bits of a number, scales included; 0 if there are none, NaN if they are not known."""
        return math.nan if self.bits is None else self.bits / max(self.measures.elements, 1)

    @property
    def shares(self) -> dict[str, float]:
        """The share of numbers in each representation."""
        return shares_of(dict(self.taken))


@dataclass(frozen=True)
class TensorComparison:
    """A tensor with each recipe."""

    file: str
    name: str
    shape: tuple[int, ...]
    dtype: str
    under: tuple[Compared, ...]


@public
def compare(
    x: "ArrayLike",
    recipes: Iterable[RecipeLike] = USUAL,
    *,
    layer: str = "",
    kind: Kind = "weight",
    threads: int | None = None,
    inputs: "ArrayLike | None" = None,
) -> dict[str, Compared]:
    """Return the measures of a tensor with each recipe; x is any input that `mor` takes.

    Thresholds may depend on the name of its `layer` and on its `kind` (MOR-015).

    If x is the weight W of a layer, `inputs` are samples X of what the layer takes: a column for
    each column of W, and leading axes fold. Then `on_inputs` has the error of W weighted by the
    mean squares of the columns of X, and the error of X W^T. Both are in binary64 and not
    bit-exact. A vector has neither.

    >>> x = np.random.default_rng(0).standard_normal((64, 64), dtype=np.float32)
    >>> found = compare(x, ["mxfp8:rceil", "nvfp4"])
    >>> [(name, round(one.measures.sqnr, 1), one.bits_per_number) for name, one in found.items()]
    [('mxfp8:rceil', 31.7, 8.25), ('nvfp4', 20.4, 4.5078125)]
    >>> compare(np.eye(2), ["mxfp4"], inputs=[[1.0, 3.0]])["mxfp4"].on_inputs.output_error
    0.0
    """
    known_name("kind", kind, KINDS)
    role, numbers, chosen = Role(layer, kind), numbers_from(x, "x"), recipes_from(recipes)
    given = None
    if inputs is not None and is_weight(numbers.shape):
        samples = numbers_from(inputs, "inputs", widest=np.float64)
        given = layer_inputs(numbers, samples, "inputs", "x")
    under = under_recipes(numbers, chosen, role, threads, given)
    return {one.recipe: one for one in under}


def under_recipes(
    numbers: Numbers,
    recipes: Sequence[NamedRecipe],
    role: Role,
    threads: int | None,
    inputs: LayerInputs | None = None,
) -> Iterator[Compared]:
    """Yield the measures of a tensor with each recipe."""
    known = of_tensor(numbers, threads)
    for recipe in recipes:
        how = how_of(recipe.tensor_recipe, replace(role, memory={}))
        yield _under(numbers, recipe.name, how, known, threads, inputs)


def _under(
    numbers: Numbers,
    recipe: str,
    how: How,
    known: OfTensor,
    threads: int | None,
    inputs: LayerInputs | None,
) -> Compared:
    """Measure a tensor with a recipe, strip by strip."""
    policy = how.policy
    together = rows_together(how, numbers.shape)
    given = amaxes_for(how, known) if is_cut(numbers, together) else WHOLE
    rung = None
    if policy is not None and policy.unit == "tensor" and given is not WHOLE:
        strips = strips_of(numbers, together)
        tried = (how.decided(strip, policy, given, threads) for strip in strips)
        rung = 0 if _is_alone(policy) else chosen_for_all(policy, tried)
    measured, taken, units = Measures(signal=known.signal), Counter[str](), 0
    on_inputs = InputMeasures() if inputs is None else inputs.signals
    for strip in strips_of(numbers, together):
        found = _quantized(strip, how, given, threads)
        choice = found.choice if rung is None else np.full_like(found.choice, rung)
        measured += measures(strip, found.rungs, found.units, choice, 0, threads)
        if inputs is not None:
            fills = fills_of_y(strip, found.rungs, found.units, choice)
            on_inputs += inputs.noise(strip, fills)
            del fills
        taken.update(counts_of(choice, found.units, found.names)[1])
        units += choice.size if found.is_decided else 0
        del found  # before the next is made
    units = units if rung is None else min(units, 1)
    bits = stored_bits(policy, taken, units, numbers.shape, how.cut, how.scaling, numbers)
    by_author = bits is not None and is_said_by_author(policy, taken)
    return Compared(recipe, measured, dict(taken), bits, by_author, on_inputs)


def _is_alone(policy: Policy) -> bool:
    """Return whether a representation takes all of a tensor, without a decision (ERR-008)."""
    return len(policy.ladder) == 1 and isinstance(policy.ladder[0].metric, Always)


class _Quantized(NamedTuple):
    """A tensor with a recipe: the rung of each unit, and the tensor with each rung."""

    names: tuple[str, ...]
    rungs: tuple[Tried, ...]
    units: Partition
    choice: NDArray[np.uint8]
    is_decided: bool


def _quantized(numbers: Numbers, how: How, given: GivenAmaxes, threads: int | None) -> _Quantized:
    """Quantize a tensor; a representation without a decision has all of it (ERR-008)."""
    policy = how.policy
    if policy is None:
        whole = partition(numbers.shape, "tensor")
        return _Quantized(("bf16",), (), whole, np.zeros(whole.grid, np.uint8), is_decided=False)
    found = how.decided(numbers, policy, given, threads)
    rungs = tuple(found.tried[rung.name] for rung in policy.ladder)
    is_alone = _is_alone(policy)
    choice = np.zeros_like(found.choice) if is_alone else found.choice
    units = how.cuts(numbers, policy).units
    return _Quantized(policy.names, rungs, units, choice, is_decided=not is_alone)


def total(recipe: str, rows: Iterable[Compared]) -> Compared:
    """Return the totals of many tensors: every number counts once."""
    found = list(rows)
    bits = [one.bits for one in found]
    names = dict.fromkeys(name for one in found for name in one.taken)
    return Compared(
        recipe,
        sum((one.measures for one in found), Measures()),
        {name: sum(one.taken.get(name, 0) for one in found) for name in names},
        sum_of_counts(bits),
        any(one.bits_by_author for one in found),
        sum((one.on_inputs for one in found), InputMeasures()),
    )


def is_matrix(shape: tuple[int, ...]) -> bool:
    """Return whether a tensor has two sides or more: no vector, whatever its axes.

    >>> is_matrix((3, 4)), is_matrix((1, 512)), is_matrix((8, 1, 3, 3))
    (True, False, True)
    """
    return sum(side > 1 for side in shape) >= 2 and math.prod(shape) > 0
