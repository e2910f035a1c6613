"""Products of matrices whose blocks have scales."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import in_order
from mor_ref.definitions.dot import DotProfile
from mor_ref.engine.dot import dot
from mor_ref.engine.dot_operands import Operand
from mor_ref.engine.dot_rounding import canonical_c, fused
from mor_ref.engine.kernel import Direct, kernel

_F = np.float32
_D = np.float64


class Piece(NamedTuple):
    """Some rows of an operand between two places of K, with a scale for each row."""

    operand: Operand
    scale: NDArray[np.float32]


@kernel
def add_scaled(partial, scale_a, scale_b, c):
    """GEM-003: c = RN32(RN32(scale_a * scale_b) * partial + c) of each pair of rows."""
    for i in range(scale_a.size):
        for j in range(scale_b.size):
            scale = _F(scale_a[i] * scale_b[j])
            c[i, j] = canonical_c(fused(_D(_D(scale) * _D(partial[i, j])), c[i, j]))


@kernel
def multiply_by_scales(c, scale_a, scale_b):
    """GEM-003: RN32(c * RN32(scale_a * scale_b)) of each pair of rows."""
    for i in range(scale_a.size):
        for j in range(scale_b.size):
            c[i, j] = canonical_c(_F(c[i, j] * _F(scale_a[i] * scale_b[j])))


@kernel
def reciprocals(scale, out):
    """GEM-003: RN32(1 / scale)."""
    own, results = scale.reshape(-1), out.reshape(-1)
    for i in range(own.size):
        results[i] = canonical_c(_F(_F(1) / own[i]))


def decode_scales(scale: NDArray[np.float32]) -> NDArray[np.float32]:
    """GEM-003: the factors of elements that were multiplied by a scale."""
    own = in_order(scale)
    reciprocal = np.empty(own.shape, _F)
    _reciprocals(own.ndim, own, reciprocal)
    return reciprocal


_reciprocals = Direct(reciprocals)


def product(
    a: Operand, b: Operand, profile: DotProfile, threads: int | None
) -> NDArray[np.float32]:
    """GEM-001: the dot product of each row of a with each row of b, from +0 on."""
    c = np.zeros((len(a.entries), len(b.entries)), _F)
    dot(a, b, c.reshape(-1), profile, crossed=True, threads=threads)
    return c


def add_segment(
    a: Piece, b: Piece, c: NDArray[np.float32], profile: DotProfile, threads: int | None
) -> None:
    """GEM-003: add the products of a segment of K, times both scales, to c."""
    partial = product(a.operand, b.operand, profile, threads)
    add_scaled(partial, a.scale, b.scale, c)
