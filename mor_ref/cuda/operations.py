"""What the kernels compute: which of them, on which arrays, in which order.

All arrays are bit patterns on a device, which is a GPU or a CPU that stands for one; nothing that a
kernel finds comes to the host.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from mor_ref.block_recipes import PROFILES, TILES, Nvfp4Profile, ScaleRule
from mor_ref.catalogue import as_format
from mor_ref.conventions import Rounding, SpecialCases
from mor_ref.cuda import rows
from mor_ref.format import Format
from mor_ref.partition import Partition, partition
from mor_ref.recipes import (
    NVFP4,
    FitsRange,
    MeanRelativeError,
    NotWorseThan,
    Policy,
    Scaling,
    name_of,
    scaled_format,
)

Array = Any  # of the device
THREADS = 256
_MOST_BLOCKS = 1 << 16
_SCALINGS: tuple[Scaling, ...] = ("gam", "e8m0", "fp32")
_FINITE, _NOT_NAN, _ALL = (
    0x7F800000,
    0x7F800001,
    0x80000000,
)  # the first magnitudes that do not count


class Device(Protocol):
    """Where kernels run."""

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """An array whose contents nobody may rely on."""

    def full(self, shape: tuple[int, ...], dtype: Any, value: int) -> Array:
        """An array of one value."""

    def upload(self, array: np.ndarray) -> Array:
        """A small array of the host's."""

    def address(self, array: Array) -> int:
        """Where an array lies."""

    def launch(
        self, program: str, kernel: str, blocks: int, threads: int, arguments: Sequence[Any]
    ) -> None:
        """Run a kernel."""


class Bits(NamedTuple):
    """Numbers on a device: their bit patterns, and what they are of."""

    array: Array
    source: str

    @property
    def size(self) -> int:
        """How many there are."""
        return int(self.array.size)


class Sums(NamedTuple):
    """The error sums of units."""

    sum: Array
    nonzero: Array
    nonfinite: Array


def _launch(device: Device, program: str, kernel: str, threads: int, *arguments: Any) -> None:
    """Run a kernel on enough blocks for so many threads; it goes on for more by itself."""
    blocks = min(max(1, -(-threads // THREADS)), _MOST_BLOCKS)
    device.launch(program, kernel, blocks, THREADS, arguments)


def _run_team(
    device: Device, program: str, kernel: str, x: Bits, parts: Partition, *arguments: Any
) -> None:
    """Run a kernel that gives each piece of a block to a team of threads."""
    cut = rows.cut(parts)
    team = rows.team(parts)
    count = parts.grid[0] * parts.grid[1] * int(cut["pieces_down"][0] * cut["pieces_across"][0])
    name = f"{kernel}_{x.source}_{team}"
    _launch(device, program, name, count * team, x.array, cut, *arguments)


# ---------------------------------------------------------------------- conversions


@dataclass(frozen=True)
class RandomBits:
    """A word for each number, and how many bits of it count."""

    words: Array
    count: int


def encode(
    device: Device,
    x: Bits,
    fmt: Format,
    rounding: Rounding,
    special: SpecialCases,
    random: RandomBits | None = None,
) -> Array:
    """Numbers to codes."""
    width = 1 if fmt.bits <= 8 else 2 if fmt.bits <= 16 else 4
    codes = device.empty(x.array.shape, f"u{width}")
    count = np.uint64(x.size)
    if fmt.is_power_of_two:
        to = rows.power_encoding(fmt, rounding, special)
        _launch(
            device, "conversions", f"encode_as_powers_{x.source}", x.size, x.array, count, to, codes
        )
        return codes
    to = rows.encoding(fmt, rounding, special)
    name = f"{x.source}_u{8 * width}"
    if random is None:
        _launch(device, "conversions", f"encode_{name}", x.size, x.array, count, to, codes)
    else:
        bits = np.int32(random.count)
        arguments = (x.array, random.words, bits, count, to, codes)
        _launch(device, "conversions", f"encode_at_random_{name}", x.size, *arguments)
    return codes


def decode(device: Device, codes: Array, fmt: Format) -> Array:
    """Codes to binary32 bits."""
    found = device.empty(codes.shape, np.uint32)
    name = f"decode_u{8 * codes.itemsize}"
    arguments = (codes, np.uint64(codes.size), rows.decoding(fmt), found)
    _launch(device, "conversions", name, codes.size, *arguments)
    return found


# ---------------------------------------------------------------------- scales


class Extremes(NamedTuple):
    """The largest and the smallest magnitude but zero of each block."""

    amax: Array
    amin: Array


def extremes(device: Device, x: Bits, parts: Partition, end: int = _FINITE) -> Extremes:
    """Those of the magnitudes below `end`."""
    amax = device.full(parts.grid, np.uint32, 0)
    amin = device.full(parts.grid, np.uint32, 0xFFFFFFFF)
    _run_team(device, "scales", "extremes", x, parts, np.uint32(end), amax, amin)
    count = parts.grid[0] * parts.grid[1]
    _launch(device, "scales", "add_one", count, amin, np.uint64(count))
    return Extremes(amax, amin)


class Scales(NamedTuple):
    """The scale of each block, what is stored of it, and the mantissa of each group."""

    scale: Array
    exponent: Array
    mantissa: Array


def _over_groups(device: Device, amax: Array, parts: Partition) -> Array:
    """The amax of each group: that of the amaxes of its blocks, which are numbers themselves."""
    sides = tuple(-(-group // block) for group, block in zip(parts.group, parts.block, strict=True))
    blocks = partition(parts.grid, (sides[0], sides[1]))
    return extremes(device, Bits(amax, "f32"), blocks).amax


def scales(device: Device, kind: Scaling, amax: Array, fmt: Format, parts: Partition) -> Scales:
    """The scale of each block from its amax."""
    largest = np.uint32(rows.bits_of(fmt.largest))
    mantissa = device.full(parts.group_grid, np.uint32, 0)
    if kind == "gam":
        groups = np.uint64(parts.group_grid[0] * parts.group_grid[1])
        group_amax = _over_groups(device, amax, parts)
        _launch(
            device, "scales", "shared_mantissas", int(groups), group_amax, groups, largest, mantissa
        )
    scale, exponent = device.empty(parts.grid, np.uint32), device.empty(parts.grid, np.uint8)
    arguments = (amax, mantissa, rows.cut(parts), _scaling(kind), largest, scale, exponent)
    _launch(device, "scales", "scales", parts.grid[0] * parts.grid[1], *arguments)
    return Scales(scale, exponent, mantissa)


def _scaling(kind: Scaling) -> np.uint32:
    return np.uint32(_SCALINGS.index(kind))


# ---------------------------------------------------------------------- quantization


class Quantized(NamedTuple):
    """A quantized tensor."""

    codes: Array
    amax: Array
    scales: Scales
    error: Sums


def quantize(device: Device, x: Bits, fmt: Format, kind: Scaling, parts: Partition) -> Quantized:
    """A tensor with scales."""
    amax = extremes(device, x, parts).amax
    found = scales(device, kind, amax, fmt, parts)
    codes = device.empty(x.array.shape, np.uint8)
    error = _no_errors(device, parts.grid)
    arguments = (found.scale, rows.scaled(fmt), codes, *error)
    _run_team(device, "quantization", "quantize", x, parts, *arguments)
    return Quantized(codes, amax, found, error)


def _no_errors(device: Device, shape: tuple[int, ...]) -> Sums:
    return Sums(*(device.full(shape, np.uint64, 0) for _ in range(3)))


def dequantize(device: Device, found: Quantized, fmt: Format, parts: Partition) -> Array:
    """What the codes stand for: binary32 bits."""
    y = device.empty(found.codes.shape, np.uint32)
    cut, team = rows.cut(parts), rows.team(parts)
    threads = parts.rows * parts.columns
    arguments = (found.codes, cut, found.scales.scale, rows.decoding(fmt), y)
    _launch(device, "quantization", f"dequantize_{team}", threads, *arguments)
    return y


# ---------------------------------------------------------------------- NVFP4


class GlobalScales(NamedTuple):
    """The scales of the tensor, or of each row, and the amax that they follow from."""

    amax: Array
    encode: Array
    decode: Array


class TileScales(NamedTuple):
    """The stored scale of each tile, and what elements and codes are multiplied by."""

    codes: Array
    encode: Array
    decode: Array


class Nvfp4(NamedTuple):
    """A tensor in NVFP4."""

    codes: Array
    packed: Array
    y: Array
    tiles: TileScales
    whole: GlobalScales


def global_scales(device: Device, x: Bits, profile: Nvfp4Profile) -> GlobalScales:
    """Those of the tensor, or of each row."""
    parts = partition(x.array.shape, "row" if profile.per_row else "tensor")
    return scales_of_amaxes(device, extremes(device, x, parts, _NOT_NAN).amax, profile)


def scales_of_amaxes(device: Device, amax: Array, profile: Nvfp4Profile) -> GlobalScales:
    """The global scales that follow from amaxes."""
    encode, decode = (device.empty(amax.shape, np.uint32) for _ in range(2))
    arguments = (amax, np.uint64(amax.size), rows.profile(profile), encode, decode)
    _launch(device, "nvfp4", "nvfp4_global_scales", amax.size, *arguments)
    return GlobalScales(amax, encode, decode)


def tile_scales(
    device: Device, x: Bits, profile: Nvfp4Profile, tile: tuple[int, int], whole: GlobalScales
) -> TileScales:
    """The scale of each tile."""
    down, across = partition(x.array.shape, tile).grid
    codes = device.empty((down, across), np.uint8)
    encode, decode = (device.empty((down, across), np.uint32) for _ in range(2))
    name = f"nvfp4_tile_scales_{x.source}_{tile[0]}"
    tiles = _tiles(x, tile, per_row=whole.amax.size > 1)
    arguments = (x.array, tiles, rows.profile(profile), *whole, codes, encode, decode)
    _launch(device, "nvfp4", name, down * across * tile[0], *arguments)
    return TileScales(codes, encode, decode)


def _tiles(x: Bits, tile: tuple[int, int], *, per_row: bool) -> rows.Row:
    down, across = partition(x.array.shape, tile).grid
    count, columns = x.array.shape
    return rows.row(
        rows.TILES, rows=count, columns=columns, down=down, across=across, scales_per_row=per_row
    )


def _by_tile(
    device: Device, x: Bits, tile: tuple[int, int], profile: Nvfp4Profile, found: TileScales
) -> rows.Row:
    return rows.row(
        rows.BY_TILE,
        encodes=device.address(found.encode),
        decodes=device.address(found.decode),
        columns=x.array.shape[1],
        tile_rows=tile[0],
        tiles_across=partition(x.array.shape, tile).grid[1],
        profile=rows.profile(profile),
    )


def nvfp4(
    device: Device,
    x: Bits,
    profile: Nvfp4Profile,
    tile: tuple[int, int],
    whole: GlobalScales | None = None,
) -> Nvfp4:
    """A tensor in NVFP4; under the global scales that are given, or its own."""
    whole = whole or global_scales(device, x, profile)
    found = tile_scales(device, x, profile, tile, whole)
    count, columns = x.array.shape
    codes, y = device.empty((count, columns), np.uint8), device.empty((count, columns), np.uint32)
    packed = device.empty((count, -(-columns // 2)), np.uint8)
    tiles, by_tile = _tiles(x, tile, per_row=False), _by_tile(device, x, tile, profile, found)
    arguments = (x.array, tiles, by_tile, codes, packed, y)
    _launch(device, "nvfp4", f"nvfp4_elements_{x.source}", packed.size, *arguments)
    return Nvfp4(codes, packed, y, found, whole)


# ---------------------------------------------------------------------- MX


class Mx(NamedTuple):
    """A tensor in MX."""

    codes: Array
    scale: Array
    y: Array


def mx(device: Device, x: Bits, fmt: Format, rule: ScaleRule, block: int) -> Mx:
    """A tensor in MX."""
    parts = partition(x.array.shape, (1, block))
    amax = extremes(device, x, parts, _ALL).amax
    scale, to = device.empty(parts.grid, np.uint8), rows.mx_format(fmt, rule)
    _launch(device, "mx", "mx_scales", amax.size, amax, np.uint64(amax.size), to, scale)
    codes = device.empty(x.array.shape, np.uint8)
    y = device.empty(x.array.shape, np.uint32)
    _run_team(device, "mx", "mx_elements", x, parts, scale, to, codes, y)
    return Mx(codes, scale, y)


# ---------------------------------------------------------------------- policies


class Mixed(NamedTuple):
    """A tensor under a policy."""

    choice: Array
    output: Array
    extremes: Extremes
    error: dict[str, Sums]


class _Tried(NamedTuple):
    """A representation, how it is measured and written, and the structure that kernels take."""

    suffix: str
    rule: rows.Row
    kept: Any  # arrays that the structure points into


def mor(device: Device, x: Bits, policy: Policy, kind: Scaling, parts: Partition) -> Mixed:
    """A tensor under a policy, in the scaling blocks of `parts`."""
    by_block = policy.unit == "block"
    units = parts if by_block else partition(x.array.shape, "tensor")
    per_block = np.uint64(by_block)
    of_blocks = extremes(device, x, parts)
    of_units = of_blocks if by_block else extremes(device, x, units)
    names = [name_of(one) for one in policy.tried]
    tried = [_tried(device, x, one, kind, of_blocks.amax, parts) for one in policy.tried]
    errors = Sums(*(device.full((len(tried), *units.grid), np.uint64, 0) for _ in range(3)))
    for k, one in enumerate(tried):
        sums = rows.row(rows.ERROR_SUMS, **{
            field: device.address(array[k]) for field, array in errors._asdict().items()
        })  # fmt: skip
        _run_team(device, "policies", f"measure{one.suffix}", x, parts, one.rule, per_block, sums)
    choice = device.empty(units.grid, np.uint8)
    count = units.grid[0] * units.grid[1]
    rungs = np.concatenate([_rung(rung, names) for rung in policy.ladder])
    ladder = device.upload(rungs.view(np.uint8))
    arguments = (
        ladder,
        np.uint32(len(policy.ladder)),
        *errors,
        *of_units,
        np.uint64(count),
        choice,
    )
    _launch(device, "policies", "choose", count, *arguments)
    output = device.empty(x.array.shape, np.uint16)
    for k, rung in enumerate(policy.ladder):
        one = tried[names.index(name_of(rung.representation))]
        arguments = (choice, per_block, np.uint32(k), one.rule, rows.BF16, output)
        _run_team(device, "policies", f"write{one.suffix}", x, parts, *arguments)
    fallback = np.uint32(len(policy.ladder))
    _run_team(
        device, "policies", "write_kept", x, parts, choice, per_block, fallback, rows.BF16, output
    )
    error = {name: Sums(*(array[k] for array in errors)) for k, name in enumerate(names)}
    return Mixed(choice, output, of_units, error)


def _tried(
    device: Device, x: Bits, representation: Any, kind: Scaling, amax: Array, parts: Partition
) -> _Tried:
    if representation == NVFP4:
        profile, tile = PROFILES["te"], TILES[0]
        found = tile_scales(device, x, profile, tile, global_scales(device, x, profile))
        return _Tried("_tiles", _by_tile(device, x, tile, profile, found), found)
    fmt = scaled_format(representation)
    own = scales(device, kind, amax, fmt, parts)
    rule = rows.row(rows.BY_SCALE, scales=device.address(own.scale), to=rows.scaled(fmt))
    return _Tried("", rule, own)


def _rung(rung: Any, names: list[str]) -> rows.Row:
    """A rung as the device has it."""
    own = names.index(name_of(rung.representation))
    match rung.metric:
        case MeanRelativeError():
            return rows.rung("mean_relative_error", own=own, limit=rung.metric.limit)
        case NotWorseThan(yardstick):
            return rows.rung("not_worse_than", own=own, yardstick=names.index(name_of(yardstick)))
        case FitsRange(fmt):
            return rows.rung("fits_range", own=own, fmt=as_format(fmt))
    raise TypeError(f"metric is {rung.metric!r}, which the kernels do not have")


# ---------------------------------------------------------------------- single steps


def scale_steps(
    device: Device, kind: Scaling, fmt: Format, group_amax: Array, block_amax: Array
) -> dict[str, Array]:
    """A scale from the amax of a group and of a block in it."""
    count = block_amax.size
    found = {
        "mantissa": device.empty((count,), np.uint32),
        "exponent": device.empty((count,), np.uint8),
        "scale": device.empty((count,), np.uint32),
    }
    largest = np.uint32(rows.bits_of(fmt.largest))
    arguments = (group_amax, block_amax, np.uint64(count), _scaling(kind), largest)
    _launch(device, "scales", "scale_steps", count, *arguments, *found.values())
    return found


def quantize_steps(device: Device, fmt: Format, x: Array, scale: Array) -> dict[str, Array]:
    """One number with a scale of its own."""
    dtypes = {"xs": np.uint32, "code": np.uint8, "y": np.uint32}
    found = {name: device.empty(x.shape, dtype) for name, dtype in dtypes.items()}
    arguments = (x, scale, np.uint64(x.size), rows.scaled(fmt))
    _launch(device, "quantization", "quantize_steps", x.size, *arguments, *found.values())
    return found


def error_steps(device: Device, x: Array, y: Array) -> dict[str, Array]:
    """The error of one number."""
    found = {name: device.empty(x.shape, np.uint32) for name in ("d", "r", "u")}
    arguments = (x, y, np.uint64(x.size))
    _launch(device, "quantization", "error_steps", x.size, *arguments, *found.values())
    return found


def decision_steps(
    device: Device, metric: rows.Metric, fmt: Format | None, numbers: dict[str, Array]
) -> Array:
    """Whether a metric accepts each unit of these numbers."""
    names = ("sum", "nonzero", "nonfinite", "limit", "yardstick_sum", "amax", "amin")
    count = numbers["sum"].size
    accepted = device.empty((count,), np.uint8)
    columns = [numbers[name] for name in names]
    arguments = (*columns, np.uint64(count), rows.rung(metric, fmt=fmt), accepted)
    _launch(device, "policies", "decision_steps", count, *arguments)
    return accepted
