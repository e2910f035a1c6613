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
from mor_ref.definitions import dot_arguments as checks
from mor_ref.definitions.blocks import rows_and_columns
from mor_ref.definitions.dot import WITHOUT_C, DotProfile
from mor_ref.definitions.dot_arguments import DotArguments, Formats, Shape
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats as known_formats

_STARTS = {"f32": "float32", "f16": "float16"}


@dataclass(frozen=True, eq=False)
class DotChunks:
    """The chunks of dot products on a GPU; its fields are named as in `mor_ref.DotChunks`."""

    profile: DotProfile
    exponent: Array | None
    cut_sum: Array | None
    c: Array


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
    given = DotArguments(a, b, c, formats, scales, scale_format, block, profile)
    found, shape = _summed(given, keeps=False)
    return found.result.view(np.float32).reshape(shape)


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
    given = DotArguments(a, b, c, formats, scales, scale_format, block, profile)
    found, rows = _summed(given, keeps=True)
    rule, shape = given.rule, (*rows, found.c.shape[1])
    return DotChunks(
        rule,
        found.exponent.view(np.int32).reshape(shape) if rule.is_cut else None,
        found.cut_sum.view(np.int64).reshape(shape) if rule.has_sums else None,
        found.c.view(np.float32).reshape(shape),
    )


def _summed(arguments: DotArguments, *, keeps: bool) -> tuple[kernels.Chunks, Shape]:
    """Return what the kernels find, and the shape of the results of `dot`."""
    rule = arguments.rule
    of = checks.operand_formats(arguments.formats, rule)
    a, b = on_gpu(arguments.a, "a"), on_gpu(arguments.b, "b")
    shape = tuple(a.array.shape)
    checks.check_shapes(shape, tuple(b.array.shape))
    start = _start(arguments.c, shape[:-1], rule)
    two = []
    if arguments.has_scales:
        two = [on_gpu(x, f"scales[{n}]") for n, x in enumerate(arguments.scales)]
    with on_gpu_of(a, b, *start, *two) as gpu:
        height, width = rows_and_columns(shape)
        codes = [
            codes_from(x, code_dtype(fmt)).reshape(height, width)
            for x, fmt in zip((a, b), of, strict=True)
        ]
        own = _scales(arguments, two, shape)
        checks.check_terms(rule, of, own.fmt if own else None)
        c = _first_c(gpu, start, height, rule)
        found = kernels.dot(gpu, codes[0], codes[1], c, rule, of, own, keeps=keeps)
    return found, shape[:-1]


def _start(c: Any, rows: Shape, profile: DotProfile) -> list[GivenArray]:
    """Return c as a list of one argument, which has the format of the result (DOT-001)."""
    if c is None:
        return []
    if profile.family in WITHOUT_C:
        raise ValueError(f"{profile.name} does not add to a given c; leave c out")
    found, wanted = on_gpu(c, "c"), _STARTS[profile.start]
    if found.dtype != wanted:
        raise TypeError(f"c has dtype {found.dtype}; give {wanted}, which {profile.name} adds to")
    if tuple(found.array.shape) != rows:
        raise ValueError(f"c has the shape {tuple(found.array.shape)}; give {rows}")
    return [found]


def _first_c(gpu: Device, start: list[GivenArray], rows: int, profile: DotProfile) -> Array:
    """Return the bits of c in binary32."""
    if not start:
        return gpu.filled((rows,), np.uint32, 0)
    fmt = known_formats[profile.start]
    bits = numbers_from(start[0]).bits.array.reshape(rows)
    return decoding.decode(gpu, bits, fmt)


def _scales(arguments: DotArguments, two: list[GivenArray], shape: Shape) -> kernels.Scales | None:
    """Return the codes of scales, if there are any."""
    if not two:
        return None
    fmt = checks.scale_format_of(arguments.scale_format, arguments.rule)
    one, other = (codes_from(x, code_dtype(fmt)) for x in two)
    checks.check_scale_shapes(tuple(one.shape), tuple(other.shape), shape[:-1])
    block = arguments.block_of(one.shape[-1], fmt, shape[-1])
    whole = rows_and_columns(tuple(one.shape))
    return kernels.Scales(one.reshape(*whole), other.reshape(*whole), fmt, block)
