"""Shared exponents: single blocks, tensors and large tensors of each kind and profile."""

import itertools
from collections.abc import Iterator

import numpy as np

from mor_ref.golden.inputs.beyond_tiles import beyond_tiles
from mor_ref.golden.inputs.placed import End
from mor_ref.golden.inputs.tensors import Tensor, tensors
from mor_ref.golden.model.suite import Case, Size, suite
from mor_ref.golden.suites.large import (
    TALLER,
    WIDER,
    LargeCase,
    large_beyond_tiles,
    large_suite,
)
from mor_ref.golden.suites.tensor_cases import tensor_case
from mor_ref.operations.random_numbers import Draws
from mor_ref.schemes.shared.definition import BLOCK, SHARED_KINDS, SHARED_PROFILES
from mor_ref.schemes.shared.inputs import edge_blocks, narrow_tensors, random_blocks
from mor_ref.schemes.shared.operation import random_packed

_RANDOM, _NARROW = 64, 12  # blocks
_PACKED = 24  # rows of a case of packed codes
_WIDTHS = (1, 2, 7, 15)
_OF_EVERY_PAIR = ("5x37", "nan.f16", "infinity.f16", "zeros")  # tensors, by the beginning
_PAIRS = tuple(itertools.product(SHARED_KINDS.specified, SHARED_PROFILES.specified))


def _block_cases(size: Size) -> Iterator[Case]:
    for name, profile in _PAIRS:
        kind = SHARED_KINDS[name]
        parameters = {"kind": name, "profile": profile, "source": "f32"}
        x = np.concatenate([edge_blocks(kind), random_blocks(kind, size, _RANDOM)])
        yield Case(f"{name}.{profile}", parameters, {"x": x})
        for width in _WIDTHS:
            some = random_blocks(kind, size, _NARROW, width)
            yield Case(f"{name}.{profile}.{width}", parameters, {"x": some})


def _tensor_cases(size: Size) -> Iterator[Case]:
    for k, tensor in enumerate(tensors(size)):
        for n, (kind, profile) in enumerate(_PAIRS):
            if tensor.name.startswith(_OF_EVERY_PAIR) or (k + n) % 5 == 0:
                yield _case(tensor, kind, profile)
    for name, profile in _PAIRS:
        of = SHARED_KINDS[name]
        edges = edge_blocks(of)
        whole = Tensor("ties.f32", "f32", edges[: len(edges) // 5 * 5].reshape(-1, 5 * BLOCK))
        for tensor in (whole, *narrow_tensors(of)):
            yield _case(tensor, name, profile)
    for tensor in beyond_tiles(size):
        yield _case(tensor, "mx9", "quark_torch")


def _case(tensor: Tensor, kind: str, profile: str) -> Case:
    case = tensor_case(tensor, kind=kind, block=BLOCK, profile=profile)
    return Case(f"{tensor.name}.{kind}.{profile}", case.parameters, case.arrays)


# The last three numbers of rows of 19 are a block: subnormal numbers and zeros of both signs, NaN
# with a sign, and numbers next to an infinity.
_LATE = {
    "mx9.quark_torch": ((0x0080, 0x807E, 0x007C), (0xFFFF, 0, 0)),
    "mx9.quark_onnx": ((0xF67FFFFE, 0, 0x80000000),),
    "bfp16_carry.quark_onnx": ((0xFF7F, 0, 0), (0, 0, 0x7F7F), (0xFFFF, 0, 0)),
}


def _large_cases() -> Iterator[LargeCase]:
    """Yield rows and columns beyond a launch, and each kind in tensors beyond a thread block."""
    for n, (kind, profile) in enumerate(_PAIRS):
        of = {"kind": kind, "profile": profile, "block": BLOCK}
        source = ("bf16", "f32", "f16")[n % 3]
        ends = (End.NAN, End.INFINITY)
        yield LargeCase(f"wide.{kind}.{profile}", source, (3, 2101), 300 + n, of, ends=ends)
        late = enumerate(_LATE.get(f"{kind}.{profile}", ()), 1000)
        placed = [[row, 16, *block] for row, block in late]
        name, shape = f"tall.{kind}.{profile}", (1101, 19)
        yield LargeCase(name, source, shape, 320 + n, of, ends=ends, placed=placed)
    of = {"kind": "mx6", "profile": "quark_onnx", "block": BLOCK}
    yield LargeCase("wider.mx6.quark_onnx", "bf16", WIDER, 11, of)
    yield LargeCase("taller.mx9.quark_torch", "bf16", TALLER, 12,
                    {**of, "kind": "mx9", "profile": "quark_torch"})  # fmt: skip
    yield from large_beyond_tiles("mx6.quark_onnx", of)


_EXPONENT = ("SHX-002", "SHX-004")
BLOCKS = suite(
    "shared_blocks",
    "Single blocks with a shared exponent",
    "shared_block",
    ("SHX-001",),
    _block_cases,
)
TENSORS = suite(
    "shared", "Tensors in blocks with a shared exponent", "shared", ("SHX-001",), _tensor_cases
)
LARGE = large_suite(
    "shared_large",
    "Larger tensors in blocks with a shared exponent",
    "shared",
    tuple(_large_cases()),
)


def _packed_cases(size: Size) -> Iterator[Case]:
    for kind in SHARED_KINDS.specified:
        for width in (1, 2, 7, BLOCK):
            drawn = random_packed({"kind": kind}, Draws(0, _PACKED * size.factor, size.seed, width))
            arrays = {name: array.astype("u1") for name, array in drawn.items()}
            yield Case(f"{kind}.{width}", {"kind": kind}, arrays)


PACKED = suite(
    "shared_packed", "Packed blocks with a shared exponent", "shared_packed", (), _packed_cases
)
