"""The inputs of layers, by the names of their weights: arrays, or tensors of files."""

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mor_ref.analysis.layer_inputs import check_shapes, is_weight
from mor_ref.analysis.listing import Stored, list_tensors
from mor_ref.analysis.stored_tensors import NAMES, StoredTensor, name_shown
from mor_ref.arrays import numbers_from

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Given = Mapping[str, Stored]  # the inputs of each weight that has some


def inputs_named(
    given: "str | Iterable[str] | Mapping[str, ArrayLike]", weights: Sequence[Stored]
) -> Given:
    """Return the inputs of weights: arrays by the names of weights, or files of such tensors.

    The shapes are checked before a number is read.
    """
    names = {tensor.name for _, tensor in weights if is_weight(tensor.shape)}
    inputs = _arrays(given) if isinstance(given, Mapping) else _tensors(given, names)
    found = {name: stored for name, stored in inputs.items() if name in names}
    if not found:
        of_weights = _some(tensor.name for _, tensor in weights)
        raise ValueError(
            f"inputs has no tensor with the name of a weight, but {_some(inputs)}; name the input "
            f"of a weight as the weight is named, here {of_weights}"
        )
    for file, tensor in weights:
        if tensor.name in found and is_weight(tensor.shape):
            x = found[tensor.name]
            weight_name = f"{name_shown(tensor.name)} in {file}"
            check_shapes(tensor.shape, x[1].shape, input_name(x), weight_name)
    return found


def input_name(stored: Stored) -> str:
    """Return the name of inputs in a sentence."""
    file, tensor = stored
    return f"inputs[{tensor.name!r}]" if file == "" else f"{name_shown(tensor.name)} in {file}"


def _arrays(given: "Mapping[str, ArrayLike]") -> dict[str, Stored]:
    """Return arrays as tensors of no file."""
    return {name: ("", _stored(name, array)) for name, array in given.items()}


def _stored(name: str, array: Any) -> StoredTensor:
    numbers = numbers_from(array, f"inputs[{name!r}]", widest=np.float64)
    as_array = numbers.bits.view(numbers.dtype).reshape(numbers.shape)
    return StoredTensor(name, numbers.shape, NAMES[numbers.dtype], lambda: as_array)


def _tensors(given: "str | Iterable[str]", wanted: Container[str]) -> dict[str, Stored]:
    """Return the tensors of files; a name is that of one tensor, and those wanted are floats."""
    found: dict[str, Stored] = {}
    listed = list_tensors([given] if isinstance(given, str) else given)
    for file, skipped in listed.skipped:
        if skipped.name in wanted:
            raise ValueError(f"inputs has {skipped.said(f' in {file}')}; give floats")
    for file, tensor in listed.stored:
        if tensor.name in found:
            raise ValueError(
                f"inputs has {name_shown(tensor.name)} in {found[tensor.name][0]} and in {file}; "
                "give one file with the inputs of a weight"
            )
        found[tensor.name] = file, tensor
    return found


def _some(names: Iterable[str]) -> str:
    """Return the first names of a list."""
    first, *others = [name_shown(name) for name in names] or ["none"]
    return f"{first} and {len(others)} more" if others else first
