"""Suites of large tensors: generated inputs, and a digest for each tile of the results."""

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from mor_ref.definitions.blocks import word_of
from mor_ref.golden.inputs.beyond_tiles import ENDS, SOURCE, STREAMS
from mor_ref.golden.inputs.generated import generated
from mor_ref.golden.inputs.placed import End, Entry, ends_of, regions_of
from mor_ref.golden.model.suite import Case, Size, Suite, suite
from mor_ref.golden.model.views import DIGEST, SEPARATOR
from mor_ref.operations import OPERATIONS
from mor_ref.operations.bits import Unsigned
from mor_ref.operations.parameters import LARGEST_TENSOR, LONGEST, PLACED

# Beyond the rows, columns, threads and 16-bit counts that a launch can have. The largest number is
# behind the first 1,024 rows or columns.
WIDER, TALLER = (2, 65600), (65600, 2)
# A stream whose largest number is behind 1,100 rows or columns, in both. In the tensor of squares,
# that of the first square of 128x128 is behind 64 rows and 64 columns.
LARGEST_LATE = 20
# Streams whose largest number is behind 2,048 columns of 66 rows, and 2,048 rows of 2 columns.
LAST_IN_WIDE, LAST_IN_TALL = 7, 8956
# The same for f16 and tensors of one scale; without those, each scale would be another.
LAST_IN_WIDE_F16, LAST_IN_TALL_F16 = 584, 23449
# Streams whose largest number is behind 2^16 columns, and behind 2^16 rows.
LAST_IN_WIDER, LAST_IN_TALLER = 291, 2091
# A stream whose largest number is in the last row, behind 2^16 numbers.
_LAST_IN_WHOLE = 2
_TALL, _SQUARES = (2100, 2), (130, 260)  # whole blocks of 128x128, the default of MoR
# Blocks beyond a warp and a thread block in both directions: a kernel of rows, one of columns, one
# of squares and one of whole tensors are four. All sources have units of more than 2^16 numbers.
_OF_EACH_KIND = (
    ("wide", "bf16", (34, 2101), LARGEST_LATE, "tensor"),
    ("wide", "f16", (34, 2100), LAST_IN_WIDE_F16, "tensor"),
    ("wide", "f32", (66, 2100), LAST_IN_WIDE, "row"),
    ("tall", "bf16", _TALL, LARGEST_LATE, "tensor"),
    ("tall", "f16", _TALL, LAST_IN_TALL_F16, "tensor"),
    ("tall", "f32", _TALL, LAST_IN_TALL, "column"),
    ("whole", "f32", (313, 256), _LAST_IN_WHOLE, "tensor"),
    ("squares", "bf16", _SQUARES, LARGEST_LATE, [128, 128]),
)


class LargeCase(NamedTuple):
    """A case of a large tensor: the recipe of its numbers, and the parameters of the operation.

    Few streams have zeros, an amax with scales of powers of two, which make numbers ties, or an
    amax at which orders of operations differ. The streams of the cases are among them.
    """

    name: str
    source: str
    shape: tuple[int, int]
    stream: int
    parameters: Mapping[str, Any]
    more: Mapping[str, int] = {}  # of the recipe
    ends: Sequence[End] = ()  # of each group, from the last element on
    placed: Sequence[Entry] = ()


def name_with(name: str, source: str) -> str:
    """Return the name of a case: bf16 is the usual source, and others are named."""
    return name if source == "bf16" else f"{name}.{source}"


def in_each_source(
    name: str,
    shape: tuple[int, int],
    stream: int,
    parameters: Mapping[str, Any],
    ends: Sequence[End] = (),
) -> Iterator[LargeCase]:
    """Yield a case for each source; many kernels take one alone."""
    for source in ("bf16", "f32", "f16"):
        yield LargeCase(name_with(name, source), source, shape, stream, parameters, ends=ends)


def of_each_cut(name: str, ends: Sequence[End], **parameters: Any) -> Iterator[LargeCase]:
    """Yield cases of one kind of call with blocks of every shape."""
    for word, source, shape, stream, block in _OF_EACH_KIND:
        named, more = name_with(f"{word}.{name}", source), {**parameters, "block": block}
        # The streams of rows, columns and squares have the largest number of several blocks late.
        chosen = [end for end in ends if block == "tensor" or end is not End.LARGEST]
        yield LargeCase(named, source, shape, stream, more, ends=chosen)


def of_groups(name: str, **parameters: Any) -> LargeCase:
    """Return a case with 8,580 blocks; its groups have 18 rows and 132 columns of them."""
    cut = {"block": [4, 1], "group": [72, 132]}
    more = {**parameters, **cut}
    return LargeCase(f"groups.{name}.f16", "f16", _SQUARES, LARGEST_LATE, more, ends=(End.LARGEST,))


def largest_last(**parameters: Any) -> Iterator[LargeCase]:
    """Yield a case whose largest number is behind 2^16 columns, and one behind 2^16 rows."""
    yield LargeCase("wider.tensor", "bf16", WIDER, LAST_IN_WIDER, parameters)
    yield LargeCase("taller.tensor", "bf16", TALLER, LAST_IN_TALLER, parameters)


def large_beyond_tiles(word: str, parameters: Mapping[str, Any]) -> Iterator[LargeCase]:
    """Yield a case of 130x160 numbers, and one of 81."""
    for shape, stream in STREAMS.items():
        yield LargeCase(f"{word_of(shape)}.{word}", SOURCE, shape, stream, parameters, ends=ENDS)


def of_few(name: str, rows: list[list[int]], parameters: Mapping[str, Any]) -> LargeCase:
    """Return a case of a tensor whose numbers are all given; the parameters name the source."""
    placed = [[row, 0, *numbers] for row, numbers in enumerate(rows)]
    source, shape = parameters["source"], (len(rows), len(rows[0]))
    return LargeCase(name, source, shape, 0, parameters, placed=placed)


def digested(*names: str) -> tuple[str, ...]:
    """Return the names of the digests of the tiles of fields."""
    return tuple(f"{name}{SEPARATOR}{DIGEST}" for name in names)


def large_suite(
    name: str,
    title: str,
    operation: str,
    cases: Iterable[LargeCase],
    shown: tuple[str, ...] | None = None,
) -> Suite:
    """Return a suite of these cases, which shows digests of all fields if it is not said which."""
    questions = functools.partial(_questions, tuple(cases))
    names = digested(*OPERATIONS[operation].outputs) if shown is None else shown
    made = suite(name, title, operation, ("VEC-009",), questions, names)
    x, *others = made.fields
    x = replace(x, meaning=f"{x.meaning}, generated by the recipe of the case")
    return replace(made, fields=(x, *others))


def _questions(cases: tuple[LargeCase, ...], size: Size) -> Iterator[Case]:
    ends: dict[str, list[Entry]] = {}  # which cases of the same numbers share
    for case in cases:
        longest = min(LONGEST, LARGEST_TENSOR // case.shape[1])
        shape = [min(case.shape[0] * size.factor, longest), case.shape[1]]
        recipe: dict[str, Any] = {"shape": shape, "seed": size.seed, "stream": case.stream}
        recipe |= case.more
        alike = repr((recipe, case.source, case.parameters.get("group"), case.ends))
        if case.ends and alike not in ends:
            ends[alike] = _at_ends(case, generated(recipe, case.source))
        placed = [*case.placed, *ends.get(alike, ())]
        if placed:
            recipe[PLACED] = placed
        parameters = {**case.parameters, "source": case.source, "recipe": recipe}
        yield Case(case.name, parameters, {"x": generated(recipe, case.source)})


def _at_ends(case: LargeCase, x: Unsigned) -> list[Entry]:
    regions = regions_of(x.shape, case.parameters.get("group"))
    return [one for region in regions for one in ends_of(x, case.source, region, case.ends)]
