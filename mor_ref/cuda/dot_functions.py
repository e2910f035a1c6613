"""Dot products on a GPU: the public functions check their arguments, and run the kernels."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mor_ref.arrays import code_dtype
from mor_ref.cuda import decoding
from mor_ref.cuda import dot_products as kernels
from mor_ref.cuda.arrays import GivenArray, codes_from, numbers_from, on_gpu_of
from mor_ref.cuda.arrays import given as on_gpu
from mor_ref.cuda.launching import Array, Device
from mor_ref.cuda.records import GpuRecord
from mor_ref.cuda.streams import Moment, now
from mor_ref.definitions import dot_arguments as checks
from mor_ref.definitions.blocks import rows_and_columns
from mor_ref.definitions.dot import WITHOUT_C, DotProfile
from mor_ref.definitions.dot_arguments import DotArguments, Formats, Shape
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats as known_formats

_STARTS = {"f32": "float32", "f16": "float16"}


@dataclass(frozen=True, eq=False, repr=False)
class DotChunks(GpuRecord):
    """The chunks of dot products on a GPU; its fields are named as in `mor_ref.DotChunks`."""

    _ENTRIES = "c"

    profile: DotProfile
    exponent: Array | None
    cut_sum: Array | None
    c: Array
    _ready: Moment


def dot(
    a: Any,
    b: Any,
    c: Any = None,
    *,
    formats: Formats = ("e4m3", "e4m3"),
    scales: Any = None,
    scale_format: str | Format | None = None,
    block: int | None = None,
    profile: str | DotProfile = "exact",
) -> Array:
    """Return c plus the products of rows of codes, as `mor_ref.dot` does.

    Codes are unsigned integers on the GPU. c has an entry for each row: float32, or float16 if the
    profile has results in f16. The host does not look at codes.
    """
    arguments = DotArguments(a, b, c, formats, scales, scale_format, block, profile)
    sums, shape, _ = _summed(arguments, keeps=False)
    return sums.result.view(np.float32).reshape(shape)


def dot_chunks(
    a: Any,
    b: Any,
    c: Any = None,
    *,
    formats: Formats = ("e4m3", "e4m3"),
    scales: Any = None,
    scale_format: str | Format | None = None,
    block: int | None = None,
    profile: str | DotProfile = "exact",
) -> DotChunks:
    """Return every chunk of dot products, with the arguments of `dot`."""
    arguments = DotArguments(a, b, c, formats, scales, scale_format, block, profile)
    chunks, rows, ready = _summed(arguments, keeps=True)
    rule, shape = arguments.rule, (*rows, chunks.c.shape[1])
    return DotChunks(
        rule,
        chunks.exponent.view(np.int32).reshape(shape) if rule.is_cut else None,
        chunks.cut_sum.view(np.int64).reshape(shape) if rule.has_sums else None,
        chunks.c.view(np.float32).reshape(shape),
        ready,
    )


def _summed(arguments: DotArguments, *, keeps: bool) -> tuple[kernels.Chunks, Shape, Moment]:
    """Return what the kernels find, the shape of the results of `dot`, and when they are there."""
    rule = arguments.rule
    fmts = checks.operand_formats(arguments.formats, rule)
    a, b = on_gpu(arguments.a, "a"), on_gpu(arguments.b, "b")
    shape = tuple(a.array.shape)
    checks.check_shapes(shape, tuple(b.array.shape))
    start = _start(arguments.c, shape[:-1], rule)
    scale_arrays = []
    if arguments.has_scales:
        scale_arrays = [on_gpu(x, f"scales[{n}]") for n, x in enumerate(arguments.scales)]
    with on_gpu_of(a, b, *start, *scale_arrays) as gpu:
        height, width = rows_and_columns(shape)
        codes = [
            codes_from(x, code_dtype(fmt)).reshape(height, width)
            for x, fmt in zip((a, b), fmts, strict=True)
        ]
        scales = _scales(arguments, scale_arrays, shape)
        checks.check_terms(rule, fmts, scales.fmt if scales else None)
        c = _first_c(gpu, start, height, rule)
        chunks = kernels.dot(gpu, codes[0], codes[1], c, rule, fmts, scales, keeps=keeps)
        ready = now()
    return chunks, shape[:-1], ready


def _start(c: Any, rows: Shape, profile: DotProfile) -> list[GivenArray]:
    """Return c as a list of one argument, which has the format of the result (DOT-001)."""
    if c is None:
        return []
    if profile.family in WITHOUT_C:
        raise ValueError(f"{profile.name} does not add to a given c; leave c out")
    start, wanted = on_gpu(c, "c"), _STARTS[profile.start]
    if start.dtype != wanted:
        raise TypeError(f"c has dtype {start.dtype}; give {wanted}, which {profile.name} adds to")
    if tuple(start.array.shape) != rows:
        raise ValueError(f"c has the shape {tuple(start.array.shape)}; give {rows}")
    return [start]


def _first_c(gpu: Device, start: list[GivenArray], rows: int, profile: DotProfile) -> Array:
    """Return the bits of c in binary32."""
    if not start:
        return gpu.filled((rows,), np.uint32, 0)
    fmt = known_formats[profile.start]
    bits = numbers_from(start[0]).bits.array.reshape(rows)
    return decoding.decode(gpu, bits, fmt)


def _scales(
    arguments: DotArguments, scale_arrays: list[GivenArray], shape: Shape
) -> kernels.Scales | None:
    """Return the codes of scales, if there are any."""
    if not scale_arrays:
        return None
    fmt = checks.scale_format_of(arguments.scale_format, arguments.rule)
    codes_a, codes_b = (codes_from(x, code_dtype(fmt)) for x in scale_arrays)
    checks.check_scale_shapes(tuple(codes_a.shape), tuple(codes_b.shape), shape[:-1])
    block = arguments.block_of(codes_a.shape[-1], fmt, shape[-1])
    whole = rows_and_columns(tuple(codes_a.shape))
    return kernels.Scales(codes_a.reshape(*whole), codes_b.reshape(*whole), fmt, block)
