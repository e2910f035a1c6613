"""Levels of ParetoQ: single weights, matrices and large matrices, in both arithmetics."""

import itertools
from collections.abc import Iterator

from mor_ref.definitions.levels import ARITHMETICS, LEVEL_KINDS
from mor_ref.golden.inputs.beyond_tiles import beyond_tiles
from mor_ref.golden.inputs.late_blocks import in_rows, rows_of_weights
from mor_ref.golden.inputs.placed import End
from mor_ref.golden.inputs.tensors import Tensor, tensors
from mor_ref.golden.inputs.weights import elements, matrices
from mor_ref.golden.model.suite import Case, Size, Suite, expected, given
from mor_ref.golden.suites.large import LargeCase, digests, large_beyond_tiles, large_suite
from mor_ref.golden.suites.tensor_cases import tensor_case

_ROWS = 1101  # more than a thread block has threads
_SOURCES = {"lsq4.f32": "f16", "lsq4.bf16": "bf16"}  # of many rows; others are binary32
_RANDOM = 500  # weights of a case
_OF_EVERY_PAIR = ("5x37", "nan.f16")  # tensors, by the beginning of their names
_PAIRS = tuple(itertools.product(LEVEL_KINDS.specified, ARITHMETICS))


def _element_cases(size: Size) -> Iterator[Case]:
    for kind, arithmetic in _PAIRS:
        parameters = {"kind": kind, "arithmetic": arithmetic, "source": "f32"}
        arrays = elements(LEVEL_KINDS[kind], arithmetic, size, _RANDOM)
        yield Case(f"{kind}.{arithmetic}", parameters, arrays)


def _matrix_cases(size: Size) -> Iterator[Case]:
    for k, tensor in enumerate(tensors(size)):
        for n, (kind, arithmetic) in enumerate(_PAIRS):
            if tensor.name.startswith(_OF_EVERY_PAIR) or (k + n) % 7 == 0:
                yield _case(tensor, kind, arithmetic)
    for kind, arithmetic in _PAIRS:
        for tensor in matrices(LEVEL_KINDS[kind], size):
            yield _case(tensor, kind, arithmetic)
    for tensor in beyond_tiles(size):
        yield _case(tensor, "lsq4", "f32")


def _case(tensor: Tensor, kind: str, arithmetic: str) -> Case:
    case = tensor_case(tensor, kind=kind, arithmetic=arithmetic, block="row")
    return Case(f"{tensor.name}.{kind}.{arithmetic}", case.parameters, case.arrays)


def _large_cases() -> Iterator[LargeCase]:
    """Yield rows beyond a thread block, with the largest weight at the end, and many rows.

    The last of the many rows have special and tiny weights.
    """
    for n, (kind, arithmetic) in enumerate(_PAIRS):
        of = {"kind": kind, "arithmetic": arithmetic, "block": "row"}
        source = ("bf16", "f32", "f16")[n % 3]
        name = f"{kind}.{arithmetic}"
        ends = (End.LARGEST,)
        yield LargeCase(f"wide.{name}", source, (1, 2101), 340 + n, of, ends=ends)
        last, source = rows_of_weights(kind, arithmetic), _SOURCES.get(name, "f32")
        placed = tuple(in_rows(last, _ROWS - len(last), source))
        shape = (_ROWS, len(last[0]))
        yield LargeCase(f"tall.{name}", source, shape, 360 + n, of, placed=placed)
    of = {"kind": "lsq4", "arithmetic": "f32", "block": "row"}
    yield from large_beyond_tiles("lsq4.f32", of)


_OF_WEIGHTS = (
    expected("ratio", "f32", "w / alpha", "LVL-001", "LVL-004", "LVL-005"),
    expected("clipped", "f32", "the ratio within its limits", "LVL-004", "LVL-005", "LVL-006"),
    expected("level", "f32", "the level", "LVL-004", "LVL-005", "LVL-006"),
    expected("code", "u8", "the code of the level", "LVL-008"),
    expected("y", "f32", "what the level stands for", "LVL-004", "LVL-005", "LVL-006"),
    expected("alpha_term", "f32", "the factor in the gradient of alpha", "LVL-007"),
    expected("inside", "u8", "the factor in the gradient of the weight", "LVL-007"),
)
STEPS = Suite(
    "levels_steps",
    "Single weights as levels, with an alpha that is given",
    "levels_element",
    ("LVL-001",),
    (
        given("x", "f32", "the weights"),
        given("alpha", "f32", "an alpha for each"),
        expected("used_alpha", "f32", "alpha, or the smallest one", "LVL-003"),
        *_OF_WEIGHTS,
    ),
    _element_cases,
)
TENSORS = Suite(
    "levels",
    "Matrices of weights as levels",
    "levels",
    ("LVL-001",),
    (
        given("x", "source", "the weights"),
        expected("alpha", "f32", "the alpha of each row", "LVL-002", "LVL-003"),
        *_OF_WEIGHTS,
    ),
    _matrix_cases,
)
LARGE = large_suite(
    "levels_large",
    "Larger matrices of weights as levels",
    "levels",
    (
        digests("alpha", "the alphas", "LVL-002"),
        *(digests(field.name, field.meaning, *field.rules) for field in _OF_WEIGHTS),
    ),
    tuple(_large_cases()),
)
