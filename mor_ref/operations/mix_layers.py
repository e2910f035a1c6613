"""mix_layers: a choice for two tensors together, given y with each candidate; a row is a layer."""

from typing import TYPE_CHECKING

import numpy as np

from mor_ref.operations import mix_errors
from mor_ref.operations.elements import row_by_row
from mor_ref.operations.fields import fields
from mor_ref.operations.mix_errors import CANDIDATES
from mor_ref.operations.operation import Arrays, DeviceArrays, Operation, Parameters, RandomInputs
from mor_ref.operations.parameters import kinds
from mor_ref.operations.random_numbers import ANY_NUMBER, Draws, any_row

if TYPE_CHECKING:
    from mor_ref.cuda.launching import Device

OTHER = "other"  # the second tensor, and the beginning of its fields
_GIVEN = ("x", *CANDIDATES)
_SUMS = tuple(f"{name}_squares" for name in CANDIDATES)


def _tensor(arrays: Arrays, which: str) -> Arrays:
    """Return the arrays of a tensor by the names that `mix_errors` has."""
    prefix = f"{which}_" if which else ""
    return {name: arrays[f"{prefix}{name}"] for name in _GIVEN}


def exact(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Compute with the exact model."""
    from mor_ref.exact.mixed import layer_errors, least, mixed_unit

    del parameters
    tensors = []
    for which in ("", OTHER):
        rows_by_name = {name: row_by_row(array) for name, array in _tensor(arrays, which).items()}
        rows = zip(*rows_by_name.values(), strict=True)
        tensors.append([mixed_unit(x, list(ys)).squared_error for x, *ys in rows])
    sums = [layer_errors(list(errors)) for errors in zip(*tensors, strict=True)]
    return {
        **{name: np.array([layer[k] for layer in sums], np.uint64) for k, name in enumerate(_SUMS)},
        "choice": np.array([least(layer) for layer in sums], np.uint8),
    }


def engine(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Add the squared errors of both tensors."""
    from mor_ref.engine.mixed import least

    tensors = [mix_errors.engine(parameters, _tensor(arrays, which)) for which in ("", OTHER)]
    sums = {name: tensors[0][name] + tensors[1][name] for name in _SUMS}
    choice = least([sums[name].reshape(-1, 1) for name in _SUMS])[:, 0]
    return {**sums, "choice": choice}


def cuda(device: "Device", parameters: Parameters, arrays: DeviceArrays) -> DeviceArrays:
    """Add the squared errors of both tensors on a device."""
    from mor_ref.cuda.mixed import Squares, least

    del parameters
    tensors = [mix_errors.squares_of(device, _tensor(arrays, which))[1] for which in ("", OTHER)]
    sums = [
        Squares(*(a + b for a, b in zip(first, second, strict=True)))
        for first, second in zip(*tensors, strict=True)
    ]
    fields_of_squares = {
        name: squares.joined[:, 0] for name, squares in zip(_SUMS, sums, strict=True)
    }
    return {**fields_of_squares, "choice": least(device, sums)[:, 0]}


def random_inputs(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw two tensors for each layer."""
    first = mix_errors.random_inputs(parameters, draws)
    more = Draws(draws.first, draws.count, draws.seed + 1, draws.width)
    second = mix_errors.random_inputs(parameters, more)
    return {**first, **{f"{OTHER}_{name}": array for name, array in second.items()}}


MIX_LAYERS = Operation(
    "mix_layers",
    kinds("source:f32"),
    inputs=fields("nk x,first,second,other_x,other_first,other_second f32"),
    outputs=fields("n first_squares,second_squares u64; n choice u8"),
    exact=exact,
    engine=engine,
    cuda=cuda,
    random=RandomInputs(random_inputs, any_row, ANY_NUMBER),
)
