"""Integers with zero points on a device."""

from typing import NamedTuple

import numpy as np

from mor_ref.cuda import structures as rows
from mor_ref.cuda.errors import ErrorSums, no_errors
from mor_ref.cuda.launching import Array, Bits, Device, launch, run_team
from mor_ref.cuda.measuring import by_value, measure
from mor_ref.definitions.blocks import Partition, partition
from mor_ref.definitions.integer_grids import IntegerGrid
from mor_ref.schemes.affine.definition import SMALLEST_NORMAL, AffineProfile

_RULE = rows.structure(
    "u4 application,conversion,operations,stored,symmetric,stores_amax,early_zero,zero_scale,"
    "picks_sign; i4 lowest,highest,nan_code,middle; "
    "f4 steps,smallest,smallest_high,inverse_factor,factor"
)
_BLOCKS = rows.structure(
    "u8 minimum,maximum,scale,inverse_scale,zero_float,zero,zero_point,given_scale,given_zero,"
    "given_float_zero"
)
_PLACES = rows.structure("u8 rows,columns,block_rows,block_columns,across,place")
_FIELDS = rows.structure("u8 xs,code,y")
_APPLICATIONS = ("multiply", "divide", "fuse", "add")
_CONVERSIONS = ("saturate", "int64", "int32", "cast")
_ZERO_SCALES = ("limit", "one", "range of one")
_DTYPES = {"f32": 0, "bf16": 1, "f16": 2}


class Choices(NamedTuple):
    """The choices of all blocks: the profile, the grid, the symmetry, and the format of x."""

    profile: AffineProfile
    grid: IntegerGrid
    symmetric: bool
    source: str


class ScaleAndZero(NamedTuple):
    """A scale and a zero point of each block, if they are given (AFF-006, AFF-012)."""

    scale: Array | None = None
    zero: Array | None = None
    float_zero: Array | None = None


class AffineArrays(NamedTuple):
    """The fields of blocks."""

    minimum: Array
    maximum: Array
    scale: Array
    inverse_scale: Array
    zero_float: Array
    zero: Array
    zero_point: Array


class Affine(NamedTuple):
    """A tensor as integers."""

    blocks: AffineArrays
    xs: Array
    code: Array
    y: Array


class Ends(NamedTuple):
    """The keys of the smallest and the largest number of each block."""

    least: Array
    most: Array


class Order(NamedTuple):
    """The ranges of columns, the place of each column, and the column of each place."""

    range: Array
    place: Array
    order: Array


NOTHING_GIVEN = ScaleAndZero()


def quantize_affine(
    device: Device, x: Bits, choices: Choices, cut: Partition, given: ScaleAndZero = NOTHING_GIVEN
) -> Affine:
    """Quantize a tensor of rows and columns, block by block."""
    ends = _ends(device, x, cut)
    places = _places(cut.block, cut.grid, x.array.shape)
    return _quantized(device, x, choices, ends, cut.grid, places, given)


def quantize_groups(
    device: Device, x: Bits, choices: Choices, groups: int, given: ScaleAndZero = NOTHING_GIVEN
) -> tuple[Order, Affine, ErrorSums]:
    """Sort columns by their ranges, and quantize them in equal groups (AFF-010)."""
    height, width = x.array.shape
    columns, group_columns = partition((height, width), "column"), width // groups
    ends = _ends(device, x, columns)
    order = Order(*(device.empty((1, width), np.uint32) for _ in range(3)))
    launch(device, "affine", "affine_ranges", width, *ends, np.uint64(width), order.range)
    launch(device, "affine", "affine_order", width, order.range, np.uint64(width), *order[1:])
    ends_of_groups = Ends(*(device.empty((1, groups), np.uint32) for _ in range(2)))
    sides = np.uint64(groups), np.uint64(group_columns)
    launch(
        device, "affine", "affine_group_ends", groups, *ends, order.order, *sides, *ends_of_groups
    )
    places = _places(
        (height, group_columns), (1, groups), (height, width), device.address(order.place)
    )
    quantized = _quantized(device, x, choices, ends_of_groups, (1, groups), places, given)
    sums = no_errors(device, (1, groups))
    for column_sums, group_sums in zip(errors(device, x, quantized.y, columns), sums, strict=True):
        arguments = (column_sums, order.order, *sides, group_sums)
        launch(device, "affine", "affine_group_sums", groups, *arguments)
    return order, quantized, sums


def errors(device: Device, x: Bits, y: Array, cut: Partition) -> ErrorSums:
    """Return the error sums of each block."""
    sums = no_errors(device, cut.grid)
    measure(device, x, cut, by_value(device, y), sums, by_block=True)
    return sums


def _ends(device: Device, x: Bits, cut: Partition) -> Ends:
    least, most = (device.filled(cut.grid, np.uint32, byte) for byte in (0xFF, 0))
    run_team(device, "affine", "affine_extremes", x, cut, least, most)
    return Ends(least, most)


def _quantized(
    device: Device,
    x: Bits,
    choices: Choices,
    ends: Ends,
    grid: tuple[int, int],
    places: rows.Row,
    given: ScaleAndZero,
) -> Affine:
    rule, count = _rule(choices), np.uint64(grid[0] * grid[1])
    is_signed = device.filled((1,), np.uint32, 0)
    if choices.profile.sign_by_numbers and choices.symmetric:
        launch(device, "affine", "affine_sign", int(count), *ends, count, is_signed)
    words = [device.empty(grid, np.uint32) for _ in range(6)]
    blocks = AffineArrays._make([*words, device.empty(grid, np.int32)])
    addresses = {name: device.address(array) for name, array in blocks._asdict().items()}
    for name, array in given._asdict().items():
        addresses[f"given_{name}"] = 0 if array is None else device.address(array)
    block_addresses = rows.row(_BLOCKS, **addresses)
    block_arguments = (*ends, count, rule, is_signed, block_addresses)
    launch(device, "affine", "affine_blocks", int(count), *block_arguments)
    shape = x.array.shape
    numbers = [device.empty(shape, dtype) for dtype in (np.uint32, np.int32, np.uint32)]
    arrays = dict(zip(("xs", "code", "y"), numbers, strict=True))
    fields = rows.row(_FIELDS, **{name: device.address(array) for name, array in arrays.items()})
    kernel = "affine_fused" if choices.profile.application == "fuse" else "affine_numbers"
    kernel = "affine_fused_zeros" if choices.profile.float_zeros else kernel
    number_arguments = (places, rule, is_signed, block_addresses, fields)
    launch(device, "affine", f"{kernel}_{x.source}", x.size, x.array, *number_arguments)
    return Affine(blocks, **arrays)


def _places(
    block: tuple[int, int], grid: tuple[int, int], shape: tuple[int, int], place: int = 0
) -> rows.Row:
    return rows.row(
        _PLACES,
        rows=shape[0],
        columns=shape[1],
        block_rows=block[0],
        block_columns=block[1],
        across=grid[1],
        place=place,
    )


def _rule(choices: Choices) -> rows.Row:
    profile, grid, symmetric, source = choices
    picks_sign = profile.sign_by_numbers and symmetric
    operations = source if profile.in_own_dtype else "f32"
    half = 1 << grid.bits - 1
    lowest, highest = (-half, half - 1) if picks_sign else (grid.lowest, grid.highest)
    steps = highest if profile.divisor == "highest" else (highest - lowest) / 2
    codes = {"lowest": lowest, "highest": highest, "zero": 0}
    middle = 0 if lowest < 0 or profile.sign_by_numbers else half - (
        grid.bits in profile.low_middle
    )  # fmt: skip
    application = "add" if profile.adds_first else profile.application
    return rows.row(
        _RULE,
        application=_APPLICATIONS.index(application),
        conversion=_CONVERSIONS.index(profile.conversion),
        operations=_DTYPES[operations],
        stored=_DTYPES[source],
        symmetric=symmetric,
        stores_amax=profile.stores_amax,
        early_zero=profile.early_zero,
        zero_scale=_ZERO_SCALES.index(profile.zero_scale),
        picks_sign=picks_sign,
        lowest=lowest,
        highest=highest,
        nan_code=codes[profile.nan_code],
        middle=middle,
        steps=steps if symmetric else highest - lowest,
        smallest=SMALLEST_NORMAL[operations] if profile.smallest is None else profile.smallest,
        smallest_high=profile.smallest_high,
        inverse_factor=profile.inverse_factor,
        factor=profile.factor,
    )
