"""Products of matrices on a GPU: the public functions pair rows with columns, and run the kernels.

A kernel takes a row of A and a column of B for each entry. So rows of A are repeated for all
columns of B, and B for all of these rows: some rows at once.
"""

from contextlib import ExitStack
from typing import Any, Literal, NamedTuple

import numpy as np

from mor_ref.argument_checks import known_name
from mor_ref.cuda import dot_products, encoding
from mor_ref.cuda import matrix_products as kernels
from mor_ref.cuda.arrays import given, on_gpu_of
from mor_ref.cuda.device import Gpu, copying, in_order
from mor_ref.cuda.launching import Array, Bits
from mor_ref.cuda.matmul_operands import (
    Operand,
    array_of,
    is_record,
    length_of_blocks,
    operand_of,
)
from mor_ref.cuda.streams import after
from mor_ref.definitions.dot import DotProfile
from mor_ref.definitions.dot_arguments import dot_profile
from mor_ref.definitions.encoding import SpecialCases
from mor_ref.definitions.formats import formats
from mor_ref.definitions.matmul import BINARY32_FAMILIES, OUTPUTS
from mor_ref.records import Transposed

_MOST = 1 << 24  # numbers of an operand that are repeated at once
_ONE = np.full((1, 1), 0x3F800000, np.uint32)


def transposed(x: Any) -> Transposed:
    """Return the transpose of a record or an array on a GPU, for `matmul`."""
    return x.of if isinstance(x, Transposed) else Transposed(x)


def matmul(
    A: Any,  # noqa: N803  # as the host and NumPy name matrices
    B: Any,  # noqa: N803
    *,
    profile: str | DotProfile = "exact",
    out: Literal["f32", "bf16", "f16"] = "f32",
) -> Array:
    """Return A @ B as matrix instructions compute it, as `mor_ref.matmul` does.

    Operands are records of `quantize`, `quantize_mx` or `quantize_nvfp4` on the GPU, both of one
    kind, or arrays of float32, float16, bfloat16 or int8. Along K, the length of the
    blocks of one operand is a multiple of the length of the other's. Results of `mor` have no codes
    on a GPU: under f32_fma and f32_pairwise, their output is multiplied.
    """
    rule = dot_profile(profile)
    known_name("out", out, OUTPUTS)
    sides = [(x.of, True) if isinstance(x, Transposed) else (x, False) for x in (A, B)]
    arrays = [given(array_of(x), name) for (x, _), name in zip(sides, "AB", strict=True)]
    with ExitStack() as stack:
        gpu = stack.enter_context(on_gpu_of(*arrays))
        for x, _ in sides:
            if is_record(x):
                stack.enter_context(after(x._ready))  # noqa: SLF001  # of this package
        a, b = (
            operand_of(gpu, x, array, as_y=rule.family in BINARY32_FAMILIES)
            for (x, _), array in zip(sides, arrays, strict=True)
        )
        a, b = a.transposed if sides[0][1] else a, b if sides[1][1] else b.transposed
        bits = _product(gpu, a, b, rule)
        if out == "f32":
            return bits.view(np.float32)
        special = SpecialCases(overflow="ieee")
        return encoding.encode(gpu, Bits(bits, "f32"), formats[out], "rne", special)


class _Rows(NamedTuple):
    """Rows of an operand: codes, the scale of each block, and the scale of all blocks."""

    codes: Array
    scale: Array
    overall: Array


def _product(gpu: Gpu, a: Operand, b: Operand, profile: DotProfile) -> Array:
    """Return the bits of the product."""
    (height, width), (columns, depth) = a.codes.shape, b.codes.shape
    if width != depth:
        raise ValueError(
            f"A has {width} columns and B has {depth} rows; give the same number, or "
            "transposed(...) of B"
        )
    block = length_of_blocks(a, b, profile)
    rows_a, rows_b = (_rows(gpu, side, block) for side in (a, b))
    bits = gpu.empty((height, columns), np.uint32)
    count = max(1, _MOST // max(width * columns, 1))
    for first in range(0, height, count):
        part = _Rows(*(array[first : first + count] for array in rows_a))
        entries = _entries(gpu, (a, part), (b, rows_b), block, profile)
        with copying("the product"):
            bits[first : first + count] = entries.reshape(len(part.codes), columns)
    return bits


def _rows(gpu: Gpu, operand: Operand, block: int) -> _Rows:
    """Return the scales of each row, in blocks of this length; those of an array are 1."""
    (height, width), one_as_bits = operand.codes.shape, gpu.upload(_ONE)
    blocks = -(-width // block)
    scale, tile = operand.scale, operand.tile
    if scale is None:
        scale, tile = one_as_bits, (height, width)
    overall = one_as_bits if operand.overall is None else operand.overall.reshape(-1, 1)
    shared = height if len(overall) == 1 else 1
    return _Rows(
        operand.codes,
        _spread(gpu, scale, min(tile[0], height), -(-min(tile[1], width) // block), height, blocks),
        _spread(gpu, overall, shared, 1, height, 1),
    )


def _spread(gpu: Gpu, grid: Array, down: int, across: int, rows: int, columns: int) -> Array:
    """Return a grid whose entries are repeated, cut to rows and columns."""
    whole = gpu.empty((grid.shape[0], down, grid.shape[1], across), np.uint32)
    with copying("scales"):
        whole[...] = grid[:, None, :, None]
    sides = grid.shape[0] * down, grid.shape[1] * across
    return in_order(whole.reshape(*sides)[:rows, :columns], "scales")


Side = tuple[Operand, _Rows]


def _entries(gpu: Gpu, a: Side, b: Side, block: int, profile: DotProfile) -> Array:
    """Return the bits of the entry of each row of A with each column of B."""
    fmt_a, fmt_b = a[0].fmt, b[0].fmt
    kind = a[0].kind or b[0].kind
    counts = len(b[1].codes), len(a[1].codes)
    size = counts[0] * counts[1]
    if kind is None:
        codes_a, codes_b = (_paired(gpu, s[1].codes, counts[n], n) for n, s in enumerate((a, b)))
        c = gpu.filled((size,), np.uint32, 0)
        return dot_products.dot(gpu, codes_a, codes_b, c, profile, (fmt_a, fmt_b)).result
    rows, columns = (_side(gpu, s[1], counts[n], n) for n, s in enumerate((a, b)))
    scale_format = None if kind.divides else formats[kind.scale_format]
    choices = fmt_a, fmt_b, fmt_a, formats["bf16"]
    blocks = kernels.Blocks(choices, block, kind.divides, kind.has_overall, scale_format)
    return kernels.entries(gpu, rows, columns, profile, blocks)


def _side(gpu: Gpu, rows: _Rows, others: int, n: int) -> kernels.Side:
    """Return an operand as kernels take it: all of its blocks have choice n."""
    codes, scale, overall = (_paired(gpu, x, others, n, np.uint32) for x in rows)
    choice = gpu.filled(scale.shape, np.uint8, n)
    return kernels.Side(codes, codes, choice, scale, overall)


def _paired(gpu: Gpu, x: Array, others: int, axis: int, words: Any = None) -> Array:
    """Return rows of A each with all columns of B, or these with each row, as words or as it is."""
    dtype, (rows, width) = np.dtype(words or x.dtype), x.shape
    shape = (rows, others) if axis == 0 else (others, rows)
    whole = gpu.filled((*shape, width, dtype.itemsize), np.uint8, 0)
    bytes_of = x.view(np.uint8).reshape(rows, width, x.itemsize)
    with copying("rows"):
        whole[..., : x.itemsize] = bytes_of[:, None] if axis == 0 else bytes_of[None]
    return whole.reshape(-1).view(dtype).reshape(rows * others, width)
