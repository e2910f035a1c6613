"""Recipes compared on all tensors of files, one tensor in memory at a time."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mor_ref.analysis.analyze_tensor import role_of
from mor_ref.analysis.compare_tensor import (
    Compared,
    TensorComparison,
    total,
    under_recipes,
)
from mor_ref.analysis.inputs_by_name import Given, input_name, inputs_named
from mor_ref.analysis.large_tensors import how_of, rows_together
from mor_ref.analysis.layer_inputs import InputMeasures, is_weight, layer_inputs
from mor_ref.analysis.listing import Selection, Stored, list_tensors
from mor_ref.analysis.on_workers import NamedTensor, named_tensor, tensor_on_worker
from mor_ref.analysis.recipes import USUAL, NamedRecipe, recipes_from
from mor_ref.analysis.tensor_files import StoredTensor
from mor_ref.api.border import public
from mor_ref.argument_checks import known_name
from mor_ref.arrays import numbers_from
from mor_ref.definitions.blocks import CutError
from mor_ref.definitions.roles import KINDS, Kind
from mor_ref.recipes import RecipeLike
from mor_ref.workers.pools import Workers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike

Record = dict[str, Any]


@dataclass(frozen=True)
class Comparison:
    """Tensors with recipes, in the order of the files and of the recipes."""

    recipes: tuple[NamedRecipe, ...]
    tensors: tuple[TensorComparison, ...]

    @property
    def totals(self) -> tuple[Compared, ...]:
        """The totals of each recipe: every number counts once."""
        return tuple(
            total(recipe.name, (tensor.under[index] for tensor in self.tensors))
            for index, recipe in enumerate(self.recipes)
        )

    @property
    def unknown(self) -> tuple[Compared, ...]:
        """The totals whose bits are not known."""
        return tuple(one for one in self.totals if one.bits is None)

    @property
    def best(self) -> tuple[Compared, ...]:
        """The totals that no other recipe beats, from the fewest bits on.

        A recipe beats another if it is better in bits, in error or in SQNR, and worse in none of
        them, as they are printed. Recipes whose bits are not known are left out.
        """
        known = (one for one in self.totals if one.bits is not None)
        found = sorted(known, key=_as_printed)
        places = {_as_printed(one) for one in found}
        return tuple(one for one in found if not _is_beaten(_as_printed(one), places))

    @property
    def with_inputs(self) -> int:
        """How many of the tensors have inputs of their layer."""
        return sum(any(one.on_inputs.samples for one in tensor.under) for tensor in self.tensors)

    def to_records(self) -> list[Record]:
        """Return a flat record for each tensor and recipe, as `pandas.DataFrame` takes them.

        `signal` and `noise` are hexadecimal numbers in units of 2^-298. If a tensor has inputs,
        each record has `samples`, `weighted_error` and `output_error`, which are NaN without any.
        """
        with_inputs = self.with_inputs > 0
        return [
            {
                "file": tensor.file,
                "tensor": tensor.name,
                "shape": "x".join(map(str, tensor.shape)),
                "dtype": tensor.dtype,
                **record_of(one, with_inputs=with_inputs),
            }
            for tensor in self.tensors
            for one in tensor.under
        ]


def _as_printed(one: Compared) -> tuple[float, float, float]:
    """Return the bits of a number, the error and the noise in the digits of tables."""
    found = one.measures
    return round(one.bits_per_number, 2), float(f"{found.error:.3g}"), -round(found.sqnr, 1)


def _is_beaten(place: tuple[float, ...], places: Iterable[tuple[float, ...]]) -> bool:
    others = (other for other in places if other != place)
    return any(all(a <= b for a, b in zip(other, place, strict=True)) for other in others)


def _record_on_inputs(found: InputMeasures) -> Record:
    return {
        "samples": found.samples,
        "weighted_error": found.weighted_error,
        "output_error": found.output_error,
    }


def record_of(one: Compared, *, with_inputs: bool) -> Record:
    """Return the flat record of a tensor with a recipe, or of totals."""
    found = one.measures
    return {
        "recipe": one.recipe,
        "elements": found.elements,
        "bits": one.bits,
        "bits_per_number": one.bits_per_number,
        "bits_by_author": one.bits_by_author,
        "error": found.error,
        "sqnr": found.sqnr,
        "mse": found.mse,
        "largest_error": found.largest,
        "flushed_share": found.flushed_share,
        "saturated_share": found.saturated_share,
        "nonzero": found.nonzero,
        "nonfinite": found.nonfinite,
        "measured": found.measured,
        "flushed": found.flushed,
        "saturated": found.saturated,
        "error_sum": found.sum,
        "signal": hex(found.signal),
        "noise": hex(found.noise),
        **(_record_on_inputs(one.on_inputs) if with_inputs else {}),
    }


@public
def compare_files(
    files: str | Iterable[str],
    recipes: Iterable[RecipeLike] = USUAL,
    *,
    include: str | None = None,
    exclude: str | None = None,
    all_shapes: bool = False,
    kind: Kind = "weight",
    threads: int | None = None,
    inputs: "str | Iterable[str] | Mapping[str, ArrayLike] | None" = None,
) -> Comparison:
    """Return the measures of the tensors of files with each recipe.

    Tensors are those whose names `include` finds and `exclude` does not, as regular expressions.
    Without `all_shapes` they are matrices: two sides or more are longer than 1. Thresholds may
    depend on the name of a tensor, and on the `kind` of all of them (MOR-015).

    `inputs` are the inputs of layers, by the names of their weights: arrays, or files of tensors
    with these names. A tensor without any has no errors under inputs; `compare` says what they are.
    """
    known_name("kind", kind, KINDS)
    named = [files] if isinstance(files, str) else files
    chosen = recipes_from(recipes)
    listed = list_tensors(named, Selection(include, exclude, matrices_only=not all_shapes))
    given = None if inputs is None else inputs_named(inputs, listed.stored)
    return Comparison(chosen, tuple(compared(listed.stored, chosen, kind, threads, inputs=given)))


def without_misfits(
    recipes: Iterable[NamedRecipe], stored: Sequence[Stored]
) -> tuple[tuple[NamedRecipe, ...], dict[str, str]]:
    """Return the recipes that all tensors can take, and why each of the others is left out."""
    taken, left_out = [], {}
    for recipe in recipes:
        fault = _misfit(recipe, stored)
        if fault is None:
            taken.append(recipe)
        else:
            left_out[recipe.name] = fault
    return tuple(taken), left_out


def _misfit(recipe: NamedRecipe, stored: Sequence[Stored]) -> str | None:
    """Return why the first tensor that cannot take a recipe cannot; None if all can."""
    for file, tensor in stored:
        try:
            rows_together(how_of(recipe.tensor_recipe), tensor.shape)
        except CutError as error:
            return f"{tensor.name} in {file}: {str(error).partition(';')[0]}"
    return None


def compared(
    stored: Sequence[Stored],
    recipes: Sequence[NamedRecipe],
    kind: Kind,
    threads: int | None,
    workers: Workers | None = None,
    inputs: Given | None = None,
) -> Iterator[TensorComparison]:
    """Return each tensor with all recipes, computed here or by workers, in this order."""
    given = inputs or {}
    if workers is None:
        return (
            _compared(file, tensor, recipes, kind, threads, given.get(tensor.name))
            for file, tensor in stored
        )
    shards = [
        (
            named_tensor(file, tensor),
            recipes,
            kind,
            threads,
            named_tensor(*given[tensor.name]) if tensor.name in given else None,
        )
        for file, tensor in stored
    ]
    return workers.in_order(_compared_by_name, shards)


def _compared(
    file: str,
    tensor: StoredTensor,
    recipes: Sequence[NamedRecipe],
    kind: Kind,
    threads: int | None,
    inputs: Stored | None,
) -> TensorComparison:
    try:
        numbers = numbers_from(tensor.load(), tensor.name)
        given = None
        if inputs is not None and is_weight(tensor.shape):
            name = input_name(inputs)
            x = numbers_from(inputs[1].load(), name)
            given = layer_inputs(numbers, x, name, f"{tensor.name} in {file}")
        role = role_of(tensor.name, kind)
        under = tuple(under_recipes(numbers, recipes, role, threads, given))
    except CutError as error:
        raise ValueError(f"{tensor.name} in {file}: {error}") from error
    except MemoryError as error:
        raise MemoryError(
            f"{tensor.name} in {file}: {error}; its codes take up to two bytes an element"
        ) from error
    return TensorComparison(file, tensor.name, tensor.shape, tensor.dtype, under)


def _compared_by_name(
    one: NamedTensor,
    recipes: Sequence[NamedRecipe],
    kind: Kind,
    threads: int | None,
    inputs: NamedTensor | None,
) -> TensorComparison:
    """Compare recipes on a tensor of a file on a worker."""
    given = None if inputs is None else (inputs.file, tensor_on_worker(inputs))
    return _compared(one.file, tensor_on_worker(one), recipes, kind, threads, given)
