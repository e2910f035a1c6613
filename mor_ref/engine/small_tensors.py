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
from mor_ref.engine.amaxes import find_extremes, largest_of_groups, pattern_of
from mor_ref.engine.block_formats import FACTORS, FormatScales, kernel_of, tries_together
from mor_ref.engine.blocks import WIDENED, Part, Place, Sides, only_part, row_bounds, words_of
from mor_ref.engine.kernel import compiled_for
from mor_ref.engine.nearest import elements_of
from mor_ref.engine.quantization import quantize_part, quantize_part_at_random, rule_at_random
from mor_ref.engine.scales import blocks_in
from mor_ref.engine.strips import TileScales

_WORD, _NUMBER, _SUM = np.dtype(np.uint32), np.dtype(np.float32), np.dtype(np.uint64)
_LARGEST = 1 << 18  # elements: more are worth threads
_WORDS = (np.dtype(np.uint16), _WORD)  # of bfloat16, and of all other numbers


class InBlocks(NamedTuple):
    """A tensor in a block format: its scales, codes, error sums of units, and amaxes of blocks."""

    scales: FormatScales
    codes: NDArray[Any]
    sums: NDArray[np.uint64]
    amaxes: NDArray[np.uint32]


class _Kernels:
    """The kernels of a record, and what they are told of it whatever the sides of a tensor are."""

    def __init__(self, record: BlockFormat) -> None:
        self.patterns = {dtype: pattern_of(dtype, record.counted) for dtype in _WORDS}
        self.grid = elements_of(record.fmt, drops_sign_of_zero=record.drops_sign_of_zero)
        self.dtype = code_dtype(record.fmt)
        self.rules = [kernel_of(record, at) for at in range(len(record.scales))]
        self.has_percentiles = any(percentiles_of(record, scale) for scale in record.scales)
        self._fmt, self._drops = record.fmt, record.drops_sign_of_zero
        # By what is not told of each call: the kinds of arrays, and which steps there are.
        self.compiled: dict[Any, tuple[Callable[..., Any], ...]] = {}

    def at_random(self, n_random_bits: int) -> Any:
        """Return what stochastic rounding takes."""
        return rule_at_random(self._fmt, n_random_bits, self._drops)


class _Scale(NamedTuple):
    """A scale: the arguments that are the same in each call, and whether blocks share it.

    Each of its parts has so many rows and columns of blocks. Of each scale above, so many rows and
    columns of its own parts share one.
    """

    name: str
    dtype: np.dtype[Any]
    grid: tuple[int, int]
    first: tuple[Any, ...]
    of_blocks: tuple[int, int]
    is_shared: bool
    above: tuple[tuple[int, int], ...]


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
                tuple(blocks_in(outer, own.block) for outer in sides[:at]),
            )
            for at, (own, scale, rule) in enumerate(
                zip([*parts, cut], record.scales, kernels.rules, strict=True)
            )
        ]
        self.outer, self.last = scales[:-1], scales[-1]
        self.places = place, part, bounds, block
        self.rows = place, part, bounds, row_bounds(part, unit.rows), units.columns, unit
        self.tries: tuple[Any, ...] | None = None
        if len(record.tries) > 1:
            check_rows(record, block.rows)
            together, height, nan = tries_together(record, block)
            across = 0, cut.grid[1], block, units.rows, units.columns
            self.tries = place, *across, together, height, kernels.grid, nan
        self.which = tuple(scale.is_shared for scale in self.outer)

    def compile(
        self,
        steps: Sequence[tuple[Any, ...]],
        last_step: Any,
        given: Sequence[Any],
        *,
        has_amaxes: bool,
    ) -> tuple[Callable[..., Any], ...]:
        """Return a function for each step, which the arguments of a call show."""
        kernels: list[Any] = [] if has_amaxes else [find_extremes]
        for scale, rule in zip([*self.outer, self.last], self.kernels.rules, strict=True):
            kernels += [largest_of_groups, rule.run] if scale.is_shared else [rule.run]
        kernels.append(last_step)
        pairs = zip(kernels, steps, strict=True)
        return tuple(compiled_for(kernel, step, given) for kernel, step in pairs)


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
    here, of dtypes that follow from the record.
    """
    kernels, last = small.kernels, small.last
    is_wide = numbers.dtype in WIDENED
    x = words_of(numbers, small.columns, small.part).bits if is_wide else numbers.bits
    if room is None:
        room = np.empty(numbers.bits.size, kernels.dtype)
    steps: list[tuple[Any, ...]] = []
    given = None if out is None else out.flags.num, None if amaxes is None else amaxes.flags.num
    if amaxes is None:
        amaxes = np.zeros(last.grid, _WORD)
        steps.append((x, *small.places, kernels.patterns[x.dtype], amaxes, None))
    codes: dict[str, Bits] = {}
    above: list[tuple[Any, Any]] = []
    for scale in small.outer:
        words = amaxes
        if scale.is_shared:
            words = np.zeros(scale.grid, _WORD)
            steps.append((amaxes, *scale.of_blocks, words))
        stored = codes[scale.name] = np.empty(scale.grid, scale.dtype)
        own = np.empty(scale.grid, _NUMBER)
        steps.append((words, *scale.first, *_read(above, scale), stored, own, None, None))
        above.append((own, words))
    stored = codes[last.name] = np.empty(last.grid, last.dtype)
    decode = np.empty(last.grid, _WORD) if small.has_decode else None
    encode = np.empty(last.grid, _WORD) if small.has_encode else None
    tried = () if small.tries is None else (x, *small.tries)
    steps.append((amaxes, *last.first, *_read(above, last), stored, None, decode, encode, *tried))
    blocks, sums = TileScales(small.block, encode, decode), np.zeros(small.sums, _SUM)
    rule, more, word = kernels.grid, out, None
    if random is not None:
        rule, more = kernels.at_random(random.n), random.words
        word = random.words.dtype, random.words.flags.num
    steps.append((x, *small.rows, blocks, rule, room, more, sums))
    kind = x.dtype, x.flags.num, room.dtype, room.flags.num, given, small.which, word
    functions = kernels.compiled.get(kind)
    if functions is None:
        last_step = quantize_part if random is None else quantize_part_at_random
        read = (x,) if random is None else (x, random.words)
        functions = small.compile(steps, last_step, read, has_amaxes=given[1] is not None)
        kernels.compiled[kind] = functions
    for function, arguments in zip(functions, steps, strict=True):
        signs = function(*arguments)
        if signs is not None and signs != _NOT_NEGATIVE:
            _refuse_negative(small.record, signs)
    return InBlocks(FormatScales(codes, blocks), room, sums, amaxes)


_NOT_NEGATIVE = (0, 0)


def _refuse_negative(record: BlockFormat, signs: Sequence[int]) -> None:
    for factor, sign in zip(FACTORS, signs, strict=True):
        if sign:
            raise ValueError(negative_factor(record, factor))


def _read(above: list[tuple[Any, Any]], scale: _Scale) -> list[Any]:
    """Return for each scale above the numbers, the amaxes, and how many parts share one."""
    arguments: list[Any] = []
    for outer, counts in zip(above, scale.above, strict=True):
        arguments += outer
        arguments += counts
    return arguments
