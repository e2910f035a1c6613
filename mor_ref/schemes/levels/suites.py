"""Levels of ParetoQ: single weights, matrices and large matrices, in both arithmetics."""

import itertools
from collections.abc import Iterator

from mor_ref.golden.inputs.beyond_tiles import beyond_tiles
from mor_ref.golden.inputs.late_blocks import in_rows, rows_of_weights
from mor_ref.golden.inputs.placed import End
from mor_ref.golden.inputs.tensors import Tensor, tensors
from mor_ref.golden.model.suite import Case, Size, suite
from mor_ref.golden.suites.large import LargeCase, large_beyond_tiles, large_suite
from mor_ref.golden.suites.tensor_cases import tensor_case
from mor_ref.operations.random_numbers import Draws
from mor_ref.schemes.levels.definition import ARITHMETICS, LEVEL_KINDS
from mor_ref.schemes.levels.inputs import elements, matrices
from mor_ref.schemes.levels.operation import random_packed

_PACKED = 24  # rows of a case of packed codes
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


STEPS = suite(
    "levels_steps",
    "Single weights as levels, with an alpha that is given",
    "levels_element",
    ("LVL-001",),
    _element_cases,
)
TENSORS = suite("levels", "Matrices of weights as levels", "levels", ("LVL-001",), _matrix_cases)
LARGE = large_suite(
    "levels_large", "Larger matrices of weights as levels", "levels", tuple(_large_cases())
)


def _packed_cases(size: Size) -> Iterator[Case]:
    for kind in LEVEL_KINDS.specified:
        for width in (1, 2, 3, 4, 5, 7, 8, 16, 41):
            drawn = random_packed({"kind": kind}, Draws(0, _PACKED * size.factor, size.seed, width))
            yield Case(f"{kind}.{width}", {"kind": kind}, {"code": drawn["code"].astype("u1")})


PACKED = suite("levels_packed", "Packed rows of levels", "levels_packed", (), _packed_cases)
