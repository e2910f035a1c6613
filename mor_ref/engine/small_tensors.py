"""Small tensors in block formats: what follows from a record and sides is made once.

The kernels are those of all tensors, and are told the same in each call. The function that calls
them is text, made of a record and of what is given.
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
    element_rule,
    negative_factor,
    percentiles_of,
)
from mor_ref.definitions.blocks import Partition, partition
from mor_ref.engine.amaxes import find_extremes, largest_of_groups
from mor_ref.engine.block_formats import (
    FACTORS,
    InAnySides,
    in_any_sides,
    kernel_of,
    tries_together,
)
from mor_ref.engine.blocks import WIDENED, Part, Place, Sides, only_part, row_bounds, words_of
from mor_ref.engine.kernel import compiled_for
from mor_ref.engine.nearest import elements_of
from mor_ref.engine.quantization import quantize_part, quantize_part_at_random, rule_at_random
from mor_ref.engine.scales import blocks_in, told_of
from mor_ref.engine.strips import TileScales

_WORD = np.dtype(np.uint32)
_LARGEST = 1 << 18  # elements: more are worth threads


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
        self.grid = elements_of(element_rule(record))
        self.dtype = code_dtype(record.fmt)
        self.rules = [kernel_of(record, at) for at in range(len(record.scales))]
        self.has_percentiles = any(percentiles_of(record, scale) for scale in record.scales)
        self._elements = element_rule(record)
        # By which scales blocks share, and by the kinds of arrays that are given.
        self.compiled: dict[tuple[bool, ...], dict[Any, list[Any]]] = {}

    def at_random(self, n_random_bits: int) -> Any:
        """Return what stochastic rounding takes."""
        return rule_at_random(self._elements, n_random_bits)


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
    """A kernel whose compiled function the arguments of its first call show; it takes its place."""

    def __init__(self, kernel: Any, reads: Sequence[int], at: int, *lists: list[Any]) -> None:
        """`reads` are the places of arguments that are given, `at` is the place in the lists."""
        self._kernel, self._reads, self._at, self._lists = kernel, reads, at, lists

    def __call__(self, *arguments: Any) -> Any:
        given = [arguments[n] for n in self._reads]
        function = compiled_for(self._kernel, arguments, given)
        for functions in self._lists:
            functions[self._at] = function
        return function(*arguments)


_GIVEN = ("x", "words")  # names of arrays that kernels only read


class _Text:
    """The text of a function that calls kernels one after the other, and what it is told.

    Tensors whose scales have the same places have the same text. Written out, the calls take two
    thirds of the time of loops over scales.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.kernels: list[tuple[Any, list[int]]] = []  # and which of their arguments are given
        self.told: dict[str, Any] = {}

    def let(self, name: str, value: Any) -> str:
        """Return the name of a value that the function is told."""
        self.told[name] = value
        return name

    def each(self, name: str, values: Sequence[Any]) -> list[str]:
        """Return the names of several such values."""
        return [self.let(f"{name}_{n}", value) for n, value in enumerate(values)]

    def call(self, kernel: Any, *arguments: str) -> None:
        """Add a call of a kernel, whose results are signs, if it has any."""
        self.lines.append(f"signs = step_{len(self.kernels)}({', '.join(arguments)})")
        reads = [n for n, name in enumerate(arguments) if name in _GIVEN]
        self.kernels.append((kernel, reads))

    def make(self, name: str, how: str, shape: str, dtype: str) -> None:
        """Add an array, which is `empty` or `zeros`."""
        self.lines.append(f"{name} = {how}({shape}, {dtype})")

    @property
    def function(self) -> Callable[..., InBlocks]:
        """The function, whose first argument has the steps and what it is told."""
        steps = (f"step_{n}" for n in range(len(self.kernels)))
        names = ", ".join([*steps, *self.told])
        body = "\n    ".join([f"{names} = told", *self.lines])
        return _compiled(f"def quantize(told, x, room, out, words, rule, amaxes):\n    {body}\n")


@lru_cache(maxsize=256)
def _compiled(source: str) -> Callable[..., InBlocks]:
    """Return the function of a text, which has nothing but words of this module."""
    names = dict(_NAMES)
    exec(compile(source, "<small tensors>", "exec"), names)  # noqa: S102  # see above
    function: Callable[..., InBlocks] = names["quantize"]
    return function


_Call = tuple[Callable[..., InBlocks], list[Any]]  # a function, and what it is told


class SmallTensor:
    """A tensor that is one part, in the blocks of a record and in units."""

    def __init__(self, record: BlockFormat, units: Partition, part: Part) -> None:
        kernels = self.kernels = _kernels_of(in_any_sides(record))
        cut = partition((units.rows, units.columns), record.block)
        block, unit = Sides(*cut.block), Sides(*units.block)
        place, bounds = Place(0, 0, units.columns), row_bounds(part, block.rows)
        self.record, self.part, self.columns, self.block = record, part, units.columns, block
        self.sums = (*units.grid, 3)
        parts = [cut.regrouped(scale.over).groups for scale in record.scales[:-1]]
        sides = [*(own.block for own in parts), cut.block]
        self.scales = [
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
        self.find = told_of(part, cut, record.counted)
        self.rows = place, part, bounds, row_bounds(part, unit.rows), units.columns, unit
        self.tries: tuple[Any, ...] = ()
        if len(record.tries) > 1:
            check_rows(record, block.rows)
            together, height, nan = tries_together(record, block)
            across = 0, cut.grid[1], block, units.rows, units.columns
            self.tries = place, *across, together, height, kernels.grid, nan
        shared = tuple(scale.is_shared for scale in self.scales)
        self._compiled = kernels.compiled.setdefault(shared, {})
        self.calls: dict[Any, _Call] = {}

    def call_of(self, kind: tuple[Any, ...], *, is_random: bool) -> _Call:
        """Return the function that quantizes arrays of a kind, and what it is told."""
        text = self._text(kind[0], is_random=is_random, has_amaxes=not kind[2])
        compiled = self._compiled.setdefault(kind, [None] * len(text.kernels))
        told = [*compiled, *text.told.values()]
        for at, (kernel, reads) in enumerate(text.kernels):
            if compiled[at] is None:
                told[at] = _Step(kernel, reads, at, compiled, told)
        call = self.calls[kind] = text.function, told
        return call

    def _text(self, dtype: np.dtype[Any], *, is_random: bool, has_amaxes: bool) -> _Text:
        """Return the text for words of a dtype: all arrays but those that are given are made."""
        text, record, last = _Text(), self.record, self.scales[-1]
        grid = text.let("grid", last.grid)
        if not has_amaxes:
            text.make("amaxes", "zeros", grid, "WORD")
            text.call(find_extremes, "x", *text.each("find", self.find[dtype]), "amaxes", "None")
        for name in FACTORS:
            has_factor = getattr(record, name) is not None
            text.lines.append(f"{name} = {f'empty({grid}, WORD)' if has_factor else None}")
        above: list[str] = []  # the numbers of each scale, and its amaxes
        stored: list[str] = []
        for n, (scale, rule) in enumerate(zip(self.scales, self.kernels.rules, strict=True)):
            own, words, codes = text.let(f"grid_{n}", scale.grid), "amaxes", f"codes_{n}"
            text.make(codes, "empty", own, text.let(f"dtype_{n}", scale.dtype))
            if scale.is_shared:
                words = f"amaxes_{n}"
                text.make(words, "zeros", own, "WORD")
                counts = text.each(f"shared_{n}", scale.of_blocks)
                text.call(largest_of_groups, "amaxes", *counts, words)
            told = [*text.each(f"first_{n}", scale.first), *above]
            told += text.each(f"above_{n}", scale.above)
            if scale is last:
                tries = ["x", *text.each("tries", self.tries)] if self.tries else []
                text.call(rule.run, words, *told, codes, "None", *FACTORS, *tries)
            else:
                numbers = f"numbers_{n}"
                text.make(numbers, "empty", own, "NUMBER")
                text.call(rule.run, words, *told, codes, numbers, "None", "None")
                above += numbers, words
            stored += [f"{scale.name!r}: {codes}"]
        text.lines += [
            f"if signs != (0, 0): refuse({text.let('record', record)}, signs)",
            f"scales = new(TileScales, ({text.let('block', self.block)}, encode, decode))",
        ]
        text.make("sums", "zeros", text.let("sides", self.sums), "SUM")
        rows = text.each("rows", self.rows)
        kernel, more = (quantize_part_at_random, "words") if is_random else (quantize_part, "out")
        text.call(kernel, "x", *rows, "scales", "rule", "room", more, "sums")
        stored_codes = f"{{{', '.join(stored)}}}"
        text.lines += [f"return new(InBlocks, ({stored_codes}, scales, room, sums, amaxes))"]
        return text


@lru_cache(maxsize=256)
def _kernels_of(some: InAnySides) -> _Kernels:
    return _Kernels(some.record)


@lru_cache(maxsize=1024)
def small_tensor(record: BlockFormat, units: Partition) -> SmallTensor | None:
    """Return a tensor in units; None if it is empty or not small, or has percentiles."""
    part = only_part(units)
    if part is None or units.rows * units.columns > _LARGEST:
        return None
    return (
        None
        if _kernels_of(in_any_sides(record)).has_percentiles
        else SmallTensor(record, units, part)
    )


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
    x, dtype, _ = numbers
    if dtype in WIDENED:
        x = words_of(numbers, small.columns, small.part).bits
    if room is None:
        room = np.empty(x.size, small.kernels.dtype)
    rule, words = small.kernels.grid, None
    kind: tuple[Any, ...] = x.dtype, out is None, amaxes is None
    if random is not None:
        words, n = random
        rule, kind = small.kernels.at_random(n), (*kind, words.dtype)
    quantize, told = small.calls.get(kind) or small.call_of(kind, is_random=random is not None)
    return quantize(told, x, room, out, words, rule, amaxes)


def _refuse_negative(record: BlockFormat, signs: Sequence[int]) -> None:
    for factor, sign in zip(FACTORS, signs, strict=True):
        if sign:
            raise ValueError(negative_factor(record, factor))


# The words of texts.
_NAMES: dict[str, Any] = {
    "zeros": np.zeros,
    "empty": np.empty,
    "new": tuple.__new__,  # of a named tuple, which takes longer by itself
    "WORD": _WORD,
    "NUMBER": np.dtype(np.float32),
    "SUM": np.dtype(np.uint64),
    "TileScales": TileScales,
    "InBlocks": InBlocks,
    "refuse": _refuse_negative,
}
