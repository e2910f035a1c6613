"""Selections by rank and by column."""

from collections.abc import Iterator

import numpy as np

from mor_ref.golden.inputs.beyond_tiles import beyond_tiles
from mor_ref.golden.inputs.edges import bell, to_f16, upper_halves
from mor_ref.golden.inputs.tensors import Tensor, tensors
from mor_ref.golden.model.suite import Case, Size, suite
from mor_ref.golden.suites.tensor_cases import tensor_case

# 0.3 * 100 is 30 as rounded, and less before; 0.29 * 100 is below 29.
_SHARES = (0.0, 0.3, 0.29, 0.07, 0.9, 1.0)
_LIMITS = (6.0, 2.5, 0.1)
# A limit, and a source with a number that is below it and that it is rounded to.
_ROUNDED_IN = ((0.1, "f16", 0x2E66), (0.7, "bf16", 0x3F33))
_ROUNDS_DOWN = 0x3F333333  # 0.7 is above it
_SIX, _NAN, _INFINITY, _SIGN = 0x40C00000, 0x7FC00000, 0x7F800000, 0x80000000


def _of_shares(size: Size) -> Iterator[Tensor]:
    """Yield tensors of 100 numbers: distinct ones, some of equal magnitude, and some with NaN."""
    rows = [bell(100, size.seed, 400 + k).reshape(5, 20) for k in range(3)]
    rows[1][:, 10:] = rows[1][:, :10] ^ np.uint32(_SIGN)
    rows[2][1, 3:9] = _NAN
    rows[2][3, 4], rows[2][2, 2] = _INFINITY, _NAN | _SIGN
    for name, x in zip(("distinct", "signs", "nans"), rows, strict=True):
        yield Tensor(f"{name}.f32", "f32", x)
        yield Tensor(f"{name}.bf16", "bf16", upper_halves(x))


def _of_limits(size: Size) -> Iterator[Tensor]:
    """Yield a tensor with a number at the limit, next to it, or special, in each column."""
    x = bell(7 * 12, size.seed, 410).reshape(7, 12) & np.uint32(0xBFFFFFFF)
    placed = (_SIX, _SIX | _SIGN, _SIX - 1, _SIX + 1, _NAN, _INFINITY, _INFINITY | _SIGN, 0)
    for column, bits in enumerate(placed):
        x[(column * 3) % 7, column] = bits
    yield Tensor("limits.f32", "f32", x)
    yield Tensor("limits.bf16", "bf16", upper_halves(x))
    yield Tensor("limits.f16", "f16", to_f16(x))
    yield Tensor("last.f32", "f32", np.roll(x, 5, axis=1)[::-1].copy())


def _cases(size: Size) -> Iterator[Case]:
    for tensor in _of_shares(size):
        for share in _SHARES:
            yield tensor_case(tensor, by="rank", limit=share)
    for tensor in _of_limits(size):
        yield tensor_case(tensor, by="column", limit=_LIMITS[0])
    for k, tensor in enumerate(tensors(size)):
        yield tensor_case(tensor, by="rank", limit=_SHARES[k % len(_SHARES)])
        yield tensor_case(tensor, by="column", limit=_LIMITS[k % len(_LIMITS)])
    below = _ROUNDS_DOWN + np.array([[0, -1, 1, _SIGN], [0, 0, 0, -1]])
    tensor = Tensor("rounded_limit.f32", "f32", below.astype(np.uint32))
    yield tensor_case(tensor, by="column", limit=0.7)
    for limit, source, bits in _ROUNDED_IN:
        near = bits + np.array([[0, -1, 1, 0x8000], [0, 0, 0, -1]])
        tensor = Tensor(f"rounded_limit.{source}", source, near.astype(np.uint16))
        yield tensor_case(tensor, by="column", limit=limit)
    for tensor in beyond_tiles(size):
        yield tensor_case(tensor, by="rank", limit=0.3)
        yield tensor_case(tensor, by="column", limit=_LIMITS[0])


SELECTED = suite(
    "selections", "Numbers that are selected by rank and by column", "select", (), _cases
)
