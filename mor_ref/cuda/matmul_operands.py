"""Operands of products of matrices on a GPU: rows of codes along K, and the scales of blocks."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mor_ref.cuda import decoding
from mor_ref.cuda.arrays import GivenArray
from mor_ref.cuda.device import Gpu, in_order
from mor_ref.cuda.functions import MorResult, Mx, Nvfp4, Quantized
from mor_ref.cuda.launching import Array
from mor_ref.definitions.dot import INT8, DotProfile
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.definitions.matmul import RECORD_KINDS, TO_QUANTIZE, RecordKind

_ARRAYS = {
    "float32": formats["f32"],
    "float16": formats["f16"],
    "bfloat16": formats["bf16"],
    "int8": INT8,
}


@dataclass(frozen=True, eq=False)
class Operand:
    """Rows of codes; a record has the scale of each block of `tile`, as bits of binary32.

    `overall` has one scale of all blocks, or one for each row of the record, which are columns
    here if it `is_flipped`.
    """

    argument: str
    codes: Array
    fmt: Format
    kind: RecordKind | None = None
    tile: tuple[int, int] = (1, 1)
    scale: Array | None = None
    overall: Array | None = None
    is_flipped: bool = False

    @property
    def transposed(self) -> "Operand":
        """The operand of the transposed matrix."""
        return replace(
            self,
            codes=in_order(self.codes.T, self.argument),
            tile=self.tile[::-1],
            scale=None if self.scale is None else in_order(self.scale.T, self.argument),
            is_flipped=not self.is_flipped,
        )


def is_record(x: Any) -> bool:
    """Return whether something is a record on a GPU; tensors of torch have no moment."""
    return hasattr(x, "dequantize") and hasattr(x, "_ready")


def array_of(x: Any) -> Any:
    """Return the array of an operand that has its shape: codes, the output of mor, or itself."""
    if isinstance(x, MorResult):
        return x.output
    return x.codes if is_record(x) else x


def operand_of(gpu: Gpu, x: Any, array: GivenArray, *, as_y: bool) -> Operand:
    """Return an operand; `as_y` asks for the numbers of a record instead (GEM-002)."""
    shape = tuple(array.array.shape)
    if len(shape) != 2:
        raise ValueError(f"{array.argument} has the shape {shape}; give a matrix, rows and columns")
    if isinstance(x, MorResult) and as_y:
        return Operand(array.argument, x.output, formats["bf16"])
    if is_record(x) and as_y:
        return Operand(array.argument, x.dequantize().view(np.uint32), formats["f32"])
    if isinstance(x, MorResult) or is_record(x):
        return _record_operand(gpu, x, array.argument)
    if array.dtype not in _ARRAYS:
        raise TypeError(
            f"{array.argument} has dtype {array.dtype}; give {', '.join(_ARRAYS)}, or a record of "
            "quantize, quantize_mx or quantize_nvfp4"
        )
    fmt = _ARRAYS[array.dtype]
    words = in_order(array.array, array.argument).view(f"u{-(-fmt.bits // 8)}")
    return Operand(array.argument, words.reshape(shape), fmt)


def _record_operand(gpu: Gpu, x: Any, argument: str) -> Operand:
    """Return the codes and scales of a record (GEM-003)."""
    if isinstance(x, Quantized):
        scale = x.scale.view(np.uint32).reshape(x.partition.grid)
        return Operand(argument, x.codes, x.fmt, RECORD_KINDS["scaled"], x.partition.block, scale)
    if isinstance(x, Mx):
        scale = decoding.decode(gpu, x.scale, formats["e8m0"])
        tile = 1, x._block  # noqa: SLF001  # of this package
        return Operand(argument, x.codes, x.fmt, RECORD_KINDS["mx"], tile, scale)
    if isinstance(x, Nvfp4):
        scale = decoding.decode(gpu, x.block_scale, formats["e4m3"])
        whole = x.global_decode_scale.reshape(-1).view(np.uint32)
        kind, tile = RECORD_KINDS["nvfp4"], x._tile  # noqa: SLF001  # of this package
        return Operand(argument, x.codes, formats["e2m1"], kind, tile, scale, whole)
    raise ValueError(
        f"{argument} is a {type(x).__name__}, whose codes and scales no kernel multiplies; give a "
        "record of quantize, quantize_mx or quantize_nvfp4, or a profile of binary32, which takes y"
    )


def length_of_blocks(a: Operand, b: Operand, profile: DotProfile) -> int:
    """Return the length of blocks along K, or refuse operands that no kernel multiplies."""
    for operand in (a, b):
        if profile.formats and operand.fmt.name not in profile.formats:
            raise ValueError(
                f"{operand.argument} is of {operand.fmt.name}, which {profile.name} does not take; "
                f"give one of {' or '.join(profile.formats)}"
            )
    if profile.family == "switchback":
        raise ValueError("switchback has scales of its own, which no record has; use dot")
    _check_kinds(a, b, profile)
    width = max(int(a.codes.shape[1]), 1)
    sizes = [min(operand.tile[1] if operand.kind else width, width) for operand in (a, b)]
    block: int = min(sizes)
    if any(size < width and size % block for size in sizes):
        raise ValueError(
            f"blocks of A and B have {sizes[0]} and {sizes[1]} elements along K, and a GPU takes "
            "those of one as a multiple of the other; quantize in other blocks, or use "
            "mor_ref.matmul"
        )
    for operand in (a, b):
        is_each = operand.overall is not None and operand.overall.size > 1 and operand.is_flipped
        is_single = operand.kind and operand.tile[1] == 1 < width and profile.family != "exact"
        if is_each or is_single:
            raise ValueError(
                f"{operand.argument} has a scale for each place of K, which no instruction takes; "
                f"{TO_QUANTIZE}"
            )
    _check_instruction(a, b, block, profile)
    return block


def _check_kinds(a: Operand, b: Operand, profile: DotProfile) -> None:
    """Refuse records of two kinds, and arrays where an instruction takes scales."""
    names = [operand.kind.name if operand.kind else "" for operand in (a, b)]
    if all(names) and names[0] != names[1]:
        raise ValueError(
            f"A and B are records of two kinds, {names[0]} and {names[1]}, which a GPU does not "
            "multiply; quantize both alike, or use mor_ref.matmul"
        )
    if profile.needs_scales and not all(names):
        raise ValueError(f"{profile.name} needs scales, which arrays lack; give records of them")


def _check_instruction(a: Operand, b: Operand, block: int, profile: DotProfile) -> None:
    """Refuse scales that an instruction does not take, if it takes any."""
    if not profile.needs_scales or a.kind is None:
        return
    width = max(a.codes.shape[1], 1)
    known = {(name, min(size, width)) for name, size in profile.scales}
    if (a.kind.scale_format, block) not in known or a.tile[1] != b.tile[1]:
        wanted = " or ".join(f"{name} for {size} elements" for name, size in profile.scales)
        raise ValueError(
            f"records have scales in {a.kind.scale_format} for {a.tile[1]} and {b.tile[1]} "
            f"elements along K, and {profile.name} takes {wanted}; quantize both so"
        )
