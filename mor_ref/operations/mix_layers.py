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
        own = {name: row_by_row(array) for name, array in _tensor(arrays, which).items()}
        rows = zip(*own.values(), strict=True)
        tensors.append([mixed_unit(x, list(ys)).squared_error for x, *ys in rows])
    sums = [layer_errors(list(errors)) for errors in zip(*tensors, strict=True)]
    return {
        **{name: np.array([one[k] for one in sums], np.uint64) for k, name in enumerate(_SUMS)},
        "choice": np.array([least(one) for one in sums], np.uint8),
    }


def engine(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Add the squared errors of both tensors."""
    from mor_ref.engine.mixed import least

    found = [mix_errors.engine(parameters, _tensor(arrays, which)) for which in ("", OTHER)]
    sums = {name: found[0][name] + found[1][name] for name in _SUMS}
    choice = least([sums[name].reshape(-1, 1) for name in _SUMS])[:, 0]
    return {**sums, "choice": choice}


def cuda(device: "Device", parameters: Parameters, arrays: DeviceArrays) -> DeviceArrays:
    """Add the squared errors of both tensors on a device."""
    from mor_ref.cuda.mixed import Squares, least

    del parameters
    found = [mix_errors.squares_of(device, _tensor(arrays, which))[1] for which in ("", OTHER)]
    sums = [
        Squares(*(a + b for a, b in zip(one, other, strict=True)))
        for one, other in zip(*found, strict=True)
    ]
    own = {name: one.joined[:, 0] for name, one in zip(_SUMS, sums, strict=True)}
    return {**own, "choice": least(device, sums)[:, 0]}


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
