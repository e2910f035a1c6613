"""Small tensors in block formats: what follows from a record and sides is made once.

The kernels are those of all tensors, and are told the same in each call.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import Bits, Numbers, RandomWords, code_dtype
from mor_ref.definitions.block_formats import (
    BlockFormat,
    check_rows,
    negative_factor,
    percentiles_of,
)
from mor_ref.definitions.blocks import Partition, partition
from mor_ref.engine.amaxes import find_extremes, largest_of_groups
from mor_ref.engine.block_formats import FACTORS, kernel_of, tries_together
from mor_ref.engine.blocks import WIDENED, Part, Place, Sides, only_part, row_bounds, words_of
from mor_ref.engine.kernel import compiled_for
from mor_ref.engine.nearest import elements_of
from mor_ref.engine.quantization import quantize_part, quantize_part_at_random, rule_at_random
from mor_ref.engine.scales import blocks_in, told_of
from mor_ref.engine.strips import TileScales

_WORD, _NUMBER, _SUM = np.dtype(np.uint32), np.dtype(np.float32), np.dtype(np.uint64)
_LARGEST = 1 << 18  # elements: more are worth threads
_new = tuple.__new__  # of a named tuple: its own has the same arguments, and takes longer


class InBlocks(NamedTuple):
    """A tensor in a block format: its scales, codes, error sums of units, and amaxes of blocks.

    The codes of the scales are by name, and the factors of blocks as the loops take them.
    """

    stored: dict[str, Bits]
    scales: TileScales
    codes: NDArray[Any]
    sums: NDArray[np.uint64]
    amaxes: NDArray[np.uint32]


class _Kernels:
    """The kernels of a record, and what they are told of it whatever the sides of a tensor are."""

    def __init__(self, record: BlockFormat) -> None:
        self.grid = elements_of(record.fmt, drops_sign_of_zero=record.drops_sign_of_zero)
        self.dtype = code_dtype(record.fmt)
        self.rules = [kernel_of(record, at) for at in range(len(record.scales))]
        self.has_percentiles = any(percentiles_of(record, scale) for scale in record.scales)
        self._fmt, self._drops = record.fmt, record.drops_sign_of_zero
        # By which scales blocks share, and by the kinds of arrays that are given.
        self.compiled: dict[tuple[bool, ...], dict[Any, Sequence[Callable[..., Any]]]] = {}

    def at_random(self, n_random_bits: int) -> Any:
        """Return what stochastic rounding takes."""
        return rule_at_random(self._fmt, n_random_bits, self._drops)


class _Scale(NamedTuple):
    """A scale: the arguments that are the same in each call, and whether blocks share it.

    Each of its parts has so many rows and columns of blocks. `above` has how many rows and columns
    of its parts share one of each scale above.
    """

    name: str
    dtype: np.dtype[Any]
    grid: tuple[int, int]
    first: tuple[Any, ...]
    of_blocks: tuple[int, int]
    is_shared: bool
    above: tuple[int, ...]


class _Step:
    """A kernel whose compiled function the arguments of its first call show."""

    def __init__(self, kernel: Any, given: Sequence[Any]) -> None:
        self.kernel, self.given = kernel, given
        self.compiled: Any = None

    def __call__(self, *arguments: Any) -> Any:
        self.compiled = compiled_for(self.kernel, arguments, self.given)
        return self.compiled(*arguments)


class SmallTensor:
    """A tensor that is one part, in the blocks of a record and in units."""

    def __init__(self, record: BlockFormat, units: Partition, part: Part) -> None:
        kernels = self.kernels = _kernels_of(record)
        cut = partition((units.rows, units.columns), record.block)
        block, unit = Sides(*cut.block), Sides(*units.block)
        place, bounds = Place(0, 0, units.columns), row_bounds(part, block.rows)
        self.record, self.part, self.columns, self.block = record, part, units.columns, block
        self.sums = (*units.grid, 3)
        self.has_decode, self.has_encode = record.decode is not None, record.encode is not None
        parts = [cut.regrouped(scale.over).groups for scale in record.scales[:-1]]
        sides = [*(own.block for own in parts), cut.block]
        scales = [
            _Scale(
                scale.name,
                code_dtype(scale.fmt),
                own.grid,
                (None, 0, own.grid[0], rule.constants, rule.rows),
                blocks_in(own.block, cut.block),
                own.grid != cut.grid,
                tuple(side for outer in sides[:at] for side in blocks_in(outer, own.block)),
            )
            for at, (own, scale, rule) in enumerate(
                zip([*parts, cut], record.scales, kernels.rules, strict=True)
            )
        ]
        self.outer, self.last = scales[:-1], scales[-1]
        self.find = told_of(part, cut, record.counted)
        self.rows = place, part, bounds, row_bounds(part, unit.rows), units.columns, unit
        self.tries: tuple[Any, ...] | None = None
        if len(record.tries) > 1:
            check_rows(record, block.rows)
            together, height, nan = tries_together(record, block)
            across = 0, cut.grid[1], block, units.rows, units.columns
            self.tries = place, *across, together, height, kernels.grid, nan
        shared = tuple(scale.is_shared for scale in self.outer)
        self.compiled = kernels.compiled.setdefault(shared, {})

    def steps(self, last: Any, given: Sequence[Any], *, has_amaxes: bool) -> list[_Step]:
        """Return the steps of a call, which are compiled for its arguments."""
        kernels: list[Any] = [] if has_amaxes else [find_extremes]
        for scale, rule in zip([*self.outer, self.last], self.kernels.rules, strict=True):
            kernels += [largest_of_groups, rule.run] if scale.is_shared else [rule.run]
        return [_Step(kernel, given) for kernel in (*kernels, last)]


@lru_cache(maxsize=256)
def _kernels_of(record: BlockFormat) -> _Kernels:
    return _Kernels(record)


@lru_cache(maxsize=1024)
def small_tensor(record: BlockFormat, units: Partition) -> SmallTensor | None:
    """Return a tensor in units; None if it is empty or not small, or has percentiles."""
    part = only_part(units)
    if part is None or units.rows * units.columns > _LARGEST:
        return None
    return None if _kernels_of(record).has_percentiles else SmallTensor(record, units, part)


def in_steps(
    numbers: Numbers,
    small: SmallTensor,
    out: Bits | None,
    room: Bits | None,
    amaxes: NDArray[np.uint32] | None,
    random: RandomWords | None,
) -> InBlocks:
    """Quantize a small tensor; `out` takes y as bfloat16, `room` codes.

    With random words, codes are rounded at random, and there is no `out`. All other arrays are made
    here, of dtypes that follow from the record. What is given lies in order.
    """
    (x, dtype, _), kernels, last = numbers, small.kernels, small.last
    if dtype in WIDENED:
        x = words_of(numbers, small.columns, small.part).bits
    if room is None:
        room = np.empty(x.size, kernels.dtype)
    rule, more, last_step = kernels.grid, out, quantize_part
    given: tuple[Bits, ...] = (x,)
    kind: tuple[Any, ...] = (x.dtype, out is None, amaxes is None)
    if random is not None:
        more, n = random
        rule, last_step, given = kernels.at_random(n), quantize_part_at_random, (x, more)
        kind = *kind, more.dtype
    steps = small.compiled.get(kind)
    first = [] if steps else small.steps(last_step, given, has_amaxes=amaxes is not None)
    run: Callable[[], Any] = iter(steps or first).__next__
    if amaxes is None:
        amaxes = np.zeros(last.grid, _WORD)
        run()(x, *small.find[x.dtype], amaxes, None)
    codes: dict[str, Bits] = {}
    above: tuple[NDArray[Any], ...] = ()  # the numbers of each scale, and its amaxes
    for scale in small.outer:
        words = amaxes
        if scale.is_shared:
            words = np.zeros(scale.grid, _WORD)
            run()(amaxes, *scale.of_blocks, words)
        stored = codes[scale.name] = np.empty(scale.grid, scale.dtype)
        own = np.empty(scale.grid, _NUMBER)
        run()(words, *scale.first, *above, *scale.above, stored, own, None, None)
        above += (own, words)
    stored = codes[last.name] = np.empty(last.grid, last.dtype)
    decode = np.empty(last.grid, _WORD) if small.has_decode else None
    encode = np.empty(last.grid, _WORD) if small.has_encode else None
    tried = () if small.tries is None else (x, *small.tries)
    factors = decode, encode
    signs = run()(amaxes, *last.first, *above, *last.above, stored, None, *factors, *tried)
    if signs != _NOT_NEGATIVE:
        _refuse_negative(small.record, signs)
    blocks, sums = _new(TileScales, (small.block, encode, decode)), np.zeros(small.sums, _SUM)
    run()(x, *small.rows, blocks, rule, room, more, sums)
    if first:
        small.compiled[kind] = [step.compiled for step in first]
    return _new(InBlocks, (codes, blocks, room, sums, amaxes))


_NOT_NEGATIVE = (0, 0)


def _refuse_negative(record: BlockFormat, signs: Sequence[int]) -> None:
    for factor, sign in zip(FACTORS, signs, strict=True):
        if sign:
            raise ValueError(negative_factor(record, factor))
