"""A quantizer from outside of the package: integers of 4 bits with a zero point for each row.

With the finite numbers of a row, and 0, from low to high: s = (high - low) / 15, and
z = min(rint(-low / s), 15). The code of x is rint(x / s) + z, from 0 to 15, and y = (code - z) * s.
If s is 0 or infinite, y is 0. NaN and infinities become NaN.
"""

import math
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from mor_ref.api.dequantization import values
from mor_ref.api.encoding import encode
from mor_ref.cuda.measuring import by_value
from mor_ref.exact.arithmetic import difference, product, quotient
from mor_ref.exact.quantization import Element
from mor_ref.operations.fields import expected, given
from mor_ref.operations.operation import Operation, PublicRecord
from mor_ref.operations.parameters import kinds, one_of
from mor_ref.operations.results import each
from mor_ref.representations import Asked

LARGEST = 15
NAN = np.uint32(0x7FFFFFFF).view(np.float32)  # of binary32 in results (notation.md)
DTYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}


@dataclass(frozen=True)
class Integers:
    """A representation (MOR-007): its protocol is `mor_ref.representations.Representation`."""

    name: str = "uint4_rows"
    bits: int = 4

    def stored_bits(self, scaling, parts):
        """Return the bits of codes and of scales: a row has a scale and a zero point."""
        del scaling
        return self.bits * parts.rows * parts.columns, (32 + self.bits) * parts.rows

    def rows_together(self, shape):
        """Return how many rows share a scale."""
        del shape
        return 1

    def asked(self, scaling, block, group):
        """Return the operation that has the fields."""
        del scaling, block, group
        return Asked(self.name, {"block": "row"})

    def exact(self, x, scaling, parts):
        del scaling, parts
        return [self.row(row) for row in x]

    @staticmethod
    def scale_and_zero(row):
        finite = [number for number in row if math.isfinite(number)]
        low, high = min([0.0, *finite]), max([0.0, *finite])
        scale = quotient(difference(high, low), float(LARGEST))
        if scale == 0 or math.isinf(scale):
            return scale, 0
        return scale, min(round(quotient(-low, scale)), LARGEST)

    def row(self, row):
        scale, zero = self.scale_and_zero(row)
        if scale == 0 or math.isinf(scale):
            return [Element(0.0, 0, 0.0 if math.isfinite(v) else math.nan) for v in row]
        found = []
        for number in row:
            if not math.isfinite(number):
                found.append(Element(number, 0, math.nan))
                continue
            xs = quotient(number, scale)
            code = min(max(round(xs) + zero, 0), LARGEST)
            found.append(Element(xs, code, product(float(code - zero), scale)))
        return found

    def engine(self, numbers, blocks, out, threads):
        x = numbers.bits.view(numbers.dtype).reshape(blocks.parts.rows, blocks.parts.columns)
        return values(numbers, y_of(single(x)), blocks, out, threads)

    def cuda(self, device, x, blocks):
        del blocks
        numbers = device.download(x.array).view(DTYPES[x.source])
        return by_value(device, device.upload(y_of(single(numbers)).view(np.uint32)))


def single(x):
    """Round numbers to binary32 (QNT-004)."""
    return encode(x, "f32", overflow="ieee").view(np.float32)


def y_of(x):
    """Return the y of rows of binary32 numbers."""
    return fields_of(x)["y"]


def fields_of(x):
    """Return the fields of rows of binary32 numbers, with the operations of NumPy."""
    with np.errstate(all="ignore"):
        finite = np.where(np.isfinite(x), x, np.float32(0))
        low = finite.min(axis=1, initial=0, keepdims=True)
        high = finite.max(axis=1, initial=0, keepdims=True)
        scale = (high - low) / np.float32(LARGEST)
        is_usable = (scale != 0) & np.isfinite(scale)
        usable = np.where(is_usable, scale, np.float32(1))
        zero = np.minimum(np.rint(-low / usable), np.float32(LARGEST)) * is_usable
        code = np.clip(np.rint(finite / usable) + zero, 0, LARGEST)
        y = np.where(is_usable, (code - zero) * usable, np.float32(0))
    is_coded = np.isfinite(x) & is_usable
    return {
        "scale": scale,
        "zero": zero.astype(np.uint8),
        "code": np.where(is_coded, code, 0).astype(np.uint8),
        "y": np.where(np.isfinite(x), y, NAN),
    }


def exact_fields(call):
    """Return the fields of a case, computed by the row in exact arithmetic."""
    rows = call.numbers("x")
    own = Integers()
    elements = [element for row in rows for element in own.row(row)]
    scales = [own.scale_and_zero(row) for row in rows]
    return {
        "scale": [scale for scale, _ in scales],
        "zero": [zero for _, zero in scales],
        **each(elements, "code", "y"),
    }


def engine_fields(call):
    """Return the fields of a case, computed with NumPy."""
    return fields_of(single(call.tensor("x")))


@dataclass(frozen=True, eq=False)
class Record:
    """The record of a public function of the user."""

    scale: np.ndarray
    zero: np.ndarray
    code: np.ndarray
    y: np.ndarray


def quantize_rows(x):
    """Return the record of a tensor of binary32 numbers."""
    return Record(**fields_of(single(x)))


OPERATION = Operation(
    "uint4_rows",
    kinds("block source", block=one_of(("row",))),
    (
        given("x source rc", "the numbers"),
        expected("scale f32 grid", "the scale of each block"),
        expected("zero u8 grid", "the code of zero"),
        expected("code u8 rc", "the code of each number"),
        expected("y f32 rc", "what each code stands for"),
    ),
    model=exact_fields,
    function=engine_fields,
    kernels=None,
    record=PublicRecord(lambda one: isinstance(one, Record), lambda _: {"block": "row"}),
)
