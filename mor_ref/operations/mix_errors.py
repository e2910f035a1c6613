"""mix_errors: squared errors and a choice, given y with each candidate; a row is a unit."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mor_ref.operations.bits import f32_array
from mor_ref.operations.elements import row_by_row
from mor_ref.operations.fields import fields
from mor_ref.operations.operation import Arrays, DeviceArrays, Operation, Parameters, RandomInputs
from mor_ref.operations.parameters import kinds
from mor_ref.operations.random_blocks import amaxes_at, with_a_special
from mor_ref.operations.random_numbers import ANY_NUMBER, LAYOUTS, Draws, any_row, bits_at, share

if TYPE_CHECKING:
    from mor_ref.cuda.launching import Array, Device
    from mor_ref.cuda.mixed import Squares

CANDIDATES = ("first", "second")
_U = np.uint64
_F32 = LAYOUTS["f32"]
_SIGN = _U(1 << 31)
_FRACTIONS = (0x400000, 0x2AAAAB, 0x555555)


def exact(_: Parameters, arrays: Arrays) -> Arrays:
    """Compute with the exact model, with the error of every number."""
    from mor_ref.exact.mixed import error_in_units, mixed_unit

    x = row_by_row(arrays["x"])
    ys = [row_by_row(arrays[name]) for name in CANDIDATES]
    units = [mixed_unit(row, list(rows)) for row, *rows in zip(x, *ys, strict=True)]
    errors = {
        f"{name}_u": np.array(
            [
                [error_in_units(*pair, unit.amax) for pair in zip(row, y_row, strict=True)]
                for row, y_row, unit in zip(x, y, units, strict=True)
            ],
            np.uint32,
        )
        for name, y in zip(CANDIDATES, ys, strict=True)
    }
    squares = {
        f"{name}_squares": np.array([unit.squared_error[k] for unit in units], np.uint64)
        for k, name in enumerate(CANDIDATES)
    }
    return {
        "amax": f32_array(unit.amax for unit in units),
        **{name: array.reshape(arrays["x"].shape) for name, array in errors.items()},
        **squares,
        "choice": np.array([unit.choice for unit in units], np.uint8),
    }


def engine(_: Parameters, arrays: Arrays) -> Arrays:
    """Compute with the loops of tensors; a row of a tensor is a unit."""
    from mor_ref.arrays import numbers_from
    from mor_ref.definitions.blocks import partition
    from mor_ref.engine.mixed import joined, least, squared_errors
    from mor_ref.engine.scales import amax_of_blocks
    from mor_ref.engine.unrounded_y import from_numbers

    numbers = numbers_from(arrays["x"].view(np.float32), "x")
    units = partition(numbers.shape, "row")
    amax = amax_of_blocks(numbers, units, None)
    every = np.zeros(units.grid, np.uint8)
    squares = []
    for name in CANDIDATES:
        y = numbers_from(arrays[name].view(np.float32), name)
        fill = from_numbers(y, units, every, 0, rounds=False)
        squares.append(joined(squared_errors(numbers, units, amax, fill, None)))
    return {
        "amax": amax[:, 0],
        **{
            f"{name}_squares": squared[:, 0]
            for name, squared in zip(CANDIDATES, squares, strict=True)
        },
        "choice": least(squares)[:, 0],
    }


def squares_of(device: "Device", arrays: DeviceArrays) -> "tuple[Array, list[Squares]]":
    """Return amax of each unit, and its squared error with each candidate."""
    from mor_ref.cuda.launching import Bits
    from mor_ref.cuda.measuring import by_value
    from mor_ref.cuda.mixed import squared_errors
    from mor_ref.cuda.scales import extremes
    from mor_ref.definitions.blocks import partition

    x = Bits(arrays["x"], "f32")
    units = partition(x.array.shape, "row")
    amax = extremes(device, x, units).amax
    rules = [by_value(device, arrays[name]) for name in CANDIDATES]
    return amax, [squared_errors(device, x, units, rule, amax) for rule in rules]


def cuda(device: "Device", _: Parameters, arrays: DeviceArrays) -> DeviceArrays:
    """Compute on a device; a row of a tensor is a unit."""
    from mor_ref.cuda.mixed import least

    amax, errors = squares_of(device, arrays)
    squares = {
        f"{name}_squares": squared.joined[:, 0]
        for name, squared in zip(CANDIDATES, errors, strict=True)
    }
    return {"amax": amax[:, 0], **squares, "choice": least(device, errors)[:, 0]}


def random_inputs(_: Parameters, draws: Draws) -> Arrays:
    """Draw rows below an amax, a y next to x or far from it, and a second y that is near a tie."""
    per_number, amaxes = draws.per_number(), amaxes_at(draws, 0, _FRACTIONS, 1.0)
    shape = (draws.count, draws.width)
    words, more = (per_number.words(stream).reshape(shape) for stream in (3, 4))
    tops = np.broadcast_to(amaxes[:, np.newaxis], shape)
    depth = share(bits_at(words, 0, 8), 8, 24).astype(_U) << _U(23)
    x = np.where(tops > depth, tops - depth, tops >> _U(1)) ^ bits_at(words, 8, 20)
    x = np.minimum(x, tops)
    place = share(bits_at(draws.words(5), 0, 16), 16, draws.width)
    x[np.arange(draws.count), place] = amaxes
    first = _near(x, words, 28)
    second = np.where(bits_at(more, 0, 2) == 0, _near(x, more, 28), _mirrored(x, first))
    few = bits_at(more, 3, 5) == 0
    second = np.where(few, more >> _U(32) & _U(0x7FFFFFFF), second)
    signs = bits_at(words, 63, 1) << _U(31)
    signed = [magnitudes | signs for magnitudes in (x, first, second)]
    special = with_a_special(draws, 6, signed[0], amaxes)
    return {"x": special, "first": signed[1], "second": signed[2]}


def _near(x: NDArray[np.uint64], words: NDArray[np.uint64], lowest: int) -> NDArray[np.uint64]:
    """Return magnitudes some steps away, or 0."""
    steps = _U(1) << share(bits_at(words, lowest, 8), 8, 22)
    is_below = bits_at(words, lowest + 8, 1) != 0
    near = np.where(is_below, np.maximum(x, steps) - steps, x + steps)
    near = np.where(bits_at(words, lowest + 9, 3) == 0, _U(0), near)
    return np.minimum(near, _U(_F32.largest))


def _mirrored(x: NDArray[np.uint64], y: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return magnitudes as far from x as y on the other side, in steps."""
    return np.minimum(np.where(x + x >= y, x + x - y, _U(0)), _U(_F32.largest))


MIX_ERRORS = Operation(
    "mix_errors",
    kinds("source:f32"),
    inputs=fields("nk x,first,second f32"),
    outputs=fields(
        "n amax f32; nk first_u,second_u u32; n first_squares,second_squares u64; n choice u8"
    ),
    exact=exact,
    engine=engine,
    cuda=cuda,
    random=RandomInputs(
        random_inputs, any_row, ANY_NUMBER, answers=("first_squares", "second_squares", "choice")
    ),
)
