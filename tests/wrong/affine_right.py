"""Integers with zero points in vectorized NumPy: a right program, whose methods copies override."""

from collections.abc import Mapping
from typing import ClassVar

import ml_dtypes
import numpy as np

from wrong.kernel import Kernel
from wrong.microscaling import bits, f32, widened

OF_127 = ("bnb_int8_row", "switchback_row", "switchback_tensor")
DIVIDING = ("onnx", "onnxruntime", "switchback_row", "peg")
EARLY = ("torch_quantize", "torch_quantize_channel")  # the zero point is in xs
TORCH = ("torch_fake_tensor", "torch_fake_channel_2_13", *EARLY)
NARROW = {"bf16": ml_dtypes.bfloat16, "f16": np.float16}
WORD = np.uint64(0xFFFFFFFF)


def ends_of(grid):
    """Return the lowest and the highest integer of a grid."""
    width = int(grid.removeprefix("u").removeprefix("int"))
    return (0, (1 << width) - 1) if grid[0] == "u" else (-(1 << width - 1), (1 << width - 1) - 1)


def fused(a, b, c):
    """Return a * b + c, rounded once: a sum of binary64 that is made odd has bits to spare."""
    p, c = a.astype(np.float64) * b, np.asarray(c, np.float64)
    s = p + c
    t = s - p
    rest = (p - (s - t)) + (c - t)
    word = s.view(np.int64)
    odd = np.where((rest != 0) & np.isfinite(s) & (word % 2 == 0),
                   word + np.where((rest > 0) == (s > 0), 1, -1), word)  # fmt: skip
    return odd.view(np.float64).astype(np.float32)


def within(w, low, high):
    """Return numbers within a grid; NaN stays."""
    return np.clip(w, f32(low), f32(high))


def to_int32(v):
    """Return the integers to which x86-64 converts v: -2^31 if v does not fit."""
    fits = np.abs(v) < f32(2.0**31)
    return np.where(fits, np.where(fits, v, 0).astype(np.int64), -(2**31))


class Integers:
    """A program that quantizes to integers as specified."""

    operations = ("affine", "affine_groups", "affine_element")
    profiles: ClassVar[tuple[str, ...] | None] = None
    unseen: ClassVar[Mapping[str, str]] = {}

    def __init__(self, parameters):
        self.profile, self.source = parameters["profile"], parameters["source"]
        self.symmetric = parameters.get("symmetric", self.profile in OF_127)
        self.grid = parameters["grid"]
        self.low, self.high = ends_of(self.grid)
        self.parameters = parameters
        own = self.source if self.profile == "torchao_0_18" else "f32"
        self.dtype = NARROW.get(own, np.float32)

    @classmethod
    def takes(cls, operation, parameters):
        """Return whether the program has an answer for this operation and its parameters."""
        return operation in cls.operations and parameters["profile"] in (
            cls.profiles or (parameters["profile"],)
        )

    def rn(self, x):
        """Round to the dtype of operations."""
        return np.asarray(x, np.float32).astype(self.dtype).astype(np.float32)

    # ------------------------------------------------------------------ blocks

    def sides(self, shape):
        """Return the rows and the columns of a block."""
        block = self.parameters["block"]
        named = {"tensor": shape, "row": (1, shape[1]), "column": (shape[0], 1)}
        return named.get(block) if isinstance(block, str) else block

    def places(self, shape):
        """Return the index of the block of each number, and the shape of the grid of blocks."""
        high, wide = self.sides(shape)
        grid = -(-shape[0] // high), -(-shape[1] // wide)
        i, j = np.indices(shape)
        return i // high * grid[1] + j // wide, grid

    def extremes(self, x, place, count):
        """Return the minimum and the maximum of each block."""
        least, most = np.full(count, np.inf, np.float32), np.full(count, -np.inf, np.float32)
        np.minimum.at(least, place, x)
        np.maximum.at(most, place, x)
        lost = np.isnan(least) | np.isnan(most)
        return np.where(lost, f32(np.nan), least) + f32(0), np.where(lost, f32(np.nan), most) + f32(
            0
        )

    def reaches(self, least, most):
        """Return how far the range of each block reaches below zero and above zero."""
        top = f32(1e-8) if self.profile == "peg" else f32(0)
        return np.maximum(f32(0), -least) + f32(0), np.maximum(top, most) + f32(0)

    def choose_grid(self, least):
        """Let a symmetric grid of PEG have a sign if a number is negative."""
        if self.profile == "peg" and self.symmetric:
            width = self.grid.removeprefix("u")
            self.grid = width if (least < 0).any() else f"u{width}"
            self.low, self.high = ends_of(self.grid)

    def width(self, below, above):
        """Return the range of each block."""
        return np.maximum(below, above) if self.symmetric else self.rn(above + below)

    def steps(self):
        """Return the divisor of a range."""
        if self.symmetric:
            return f32(self.high) if self.profile == "peg" else f32((self.high - self.low) / 2)
        return f32(self.high - self.low)

    def scale_of(self, width):
        """Return the scale of each block before it is limited."""
        if self.profile in OF_127:
            return width
        found = self.rn(width / self.steps())
        if self.profile == "onnx":
            return np.where(width == 0, f32(1) / self.steps(), found)
        return np.where(width == 0, f32(1), found) if self.profile == "onnxruntime" else found

    def least(self):
        """Return the smallest scale."""
        if self.profile in TORCH:
            return f32(2.0**-23)
        if self.profile == "torchao_0_18":
            return f32(2.0**-14 if self.source == "f16" else 2.0**-126)
        return f32(1e-8) if self.profile == "peg" else f32(0)

    def limited(self, scale):
        """Return the scales that are stored."""
        return np.maximum(scale, self.least())

    def zero_float(self, below, delta, scale):
        """Return zero points before they are rounded."""
        if self.symmetric:
            return np.zeros_like(below)
        return self.rn(below / (delta if self.profile == "peg" else scale))

    def zero_point(self, exact):
        """Return zero points."""
        if self.symmetric:
            return np.full(exact.shape, self.middle(), np.int64)
        found = within(self.rn(f32(self.low) + np.rint(exact)), self.low, self.high)
        return np.where(np.isnan(found), self.high, found).astype(np.int64)

    def middle(self):
        """Return the zero point of a symmetric grid."""
        if self.low < 0 or self.profile == "peg":
            return 0
        is_odd = self.profile in TORCH and self.high not in (255, 65535)
        return (self.high + 1) // 2 - is_odd

    # ------------------------------------------------------------------ numbers

    def inverse(self, scale):
        """Return the factor of numbers."""
        found = self.rn(f32(1) / scale)
        return f32(127) * found if self.profile == "bnb_int8_row" else found

    def scaled(self, x, scale, inverse, zero):
        """Return xs."""
        if self.profile == "torch_quantize":
            return fused(x, inverse, zero)
        found = self.rn(x / scale if self.profile in DIVIDING else x * inverse)
        if self.profile == "torch_quantize_channel":
            return found + zero.astype(np.float32)
        return f32(127) * found if self.profile.startswith("switchback") else found

    def codes(self, xs, zero):
        """Return integers."""
        whole = np.rint(xs)
        if self.profile in OF_127:
            fits = np.abs(whole) < f32(2.0**31)
            return np.where(fits, whole, 0).astype(np.int64).astype(np.int8).astype(np.int64)
        if self.profile == "onnx":
            wrapped = (to_int32(whole) + zero).astype(np.int32).astype(np.int64)
            return np.clip(wrapped, self.low, self.high)
        moved = whole
        if self.profile not in EARLY:
            moved = self.rn(whole + self.rn(zero))
        found = within(moved, self.low, self.high)
        if self.profile == "torch_fake_channel_2_13":
            found = np.where(moved >= f32(2.0**63), f32(self.low), found)
        return np.where(np.isnan(found), self.of_nan(), found).astype(np.int64)

    def of_nan(self):
        """Return the code of NaN."""
        if self.profile in ("torchao_0_18", "peg", "torch_quantize_channel"):
            return 0
        return self.high if self.profile == "torch_quantize" else self.low

    def back(self, code, scale, zero):
        """Return y before it is rounded to the dtype of x."""
        if self.profile in OF_127:
            return scale * code.astype(np.float32) * (f32(1) / f32(127))
        return self.rn(self.rn(self.rn(code) - self.rn(zero)) * scale)

    def stored_y(self, y):
        """Return y in the dtype of x."""
        return y.astype(NARROW.get(self.source, np.float32)).astype(np.float32)

    def terms(self, x, y):
        """Return the errors of numbers, in units of 2^-23."""
        d = np.abs(x - y)
        r = np.where(np.isnan(d), f32(1), np.minimum(f32(1), d / np.abs(x)))
        return (f32(1) + r).view(np.uint32) - np.uint32(0x3F800000)

    def sums(self, x, y, place, count):
        """Return the error sums of blocks."""
        counts = np.isfinite(x) & (x != 0)
        lost = ~np.isfinite(x) | ~(np.abs(y) < np.uint32(0x7F7F8000).view(np.float32))
        u = np.where(counts, self.terms(x, y), 0)
        found = [np.zeros(count, np.uint64) for _ in range(3)]
        for sums, part in zip(found, (u, counts, lost), strict=True):
            np.add.at(sums, place, part.astype(np.uint64))
        return found

    # ------------------------------------------------------------------ whole tensors

    def tensor(self, x):
        """Return all fields of a tensor."""
        place, grid = self.places(x.shape)
        least, most = self.extremes(x, place, grid[0] * grid[1])
        self.choose_grid(least)
        below, above = self.reaches(least, most)
        delta = self.scale_of(self.width(below, above))
        scale = self.limited(delta)
        exact = self.zero_float(below, delta, scale)
        zero = self.zero_point(exact)
        inverse = self.inverse(scale)
        names = ("minimum", "maximum", "scale", "inverse_scale", "zero_float", "zero_point")
        blocks = dict(zip(names, (least, most, scale, inverse, exact, zero), strict=True))
        numbers = self.numbers(x, *(field[place] for field in (scale, inverse, zero)))
        sums = self.sums(x, numbers["y"], place, grid[0] * grid[1])
        blocks |= dict(zip(("sum", "nonzero", "nonfinite"), sums, strict=True))
        return {**{name: field.reshape(grid) for name, field in blocks.items()}, **numbers}

    def numbers(self, x, scale, inverse, zero):
        """Return the fields of numbers."""
        xs = self.scaled(x, scale, inverse, zero)
        code = self.codes(xs, zero)
        return {"xs": xs, "code": code, "y": self.stored_y(self.back(code, scale, zero))}

    def ranges(self, x):
        """Return the range of each dimension."""
        return x.max(axis=0) - x.min(axis=0)

    def order(self, ranges):
        """Return the dimensions in the order of the groups."""
        return np.argsort(ranges, kind="stable")

    def groups(self, x):
        """Return all fields of groups of dimensions."""
        ranges = self.ranges(x)
        order = self.order(ranges)
        each = x.shape[1] // self.parameters["groups"]
        self.parameters = {**self.parameters, "block": [len(x), each]}
        found = self.tensor(np.ascontiguousarray(x[:, order]))
        for name in ("xs", "code", "y"):
            there = np.empty_like(found[name])
            there[:, order] = found[name]
            found[name] = there
        ends = {"group_min": found.pop("minimum"), "group_max": found.pop("maximum")}
        return {"range": ranges[None], "permutation": order[None], **ends, **found}

    def element(self, inputs):
        """Return the fields of single numbers."""
        scale = inputs["scale"].view(np.float32)
        zero, inverse = inputs["zero_point"].view(np.int32).astype(np.int64), self.inverse(scale)
        found = self.numbers(inputs["x"].view(np.float32), scale, inverse, zero)
        return {"inverse_scale": inverse, **found}

    def run(self, operation, inputs):
        """Return the answer to a case."""
        with np.errstate(all="ignore"):
            if operation in ("affine_element", "affine_float_zero"):
                found = self.element(inputs)
            else:
                x = widened(inputs["x"], self.source)
                found = (self.tensor if operation == "affine" else self.groups)(x)
            return {name: _words(field) for name, field in found.items()}


def _words(field):
    field = np.ascontiguousarray(field)
    if field.dtype == np.uint64:
        return field
    if field.dtype.kind in "iu":
        return (field.astype(np.int64).view(np.uint64) & WORD).astype(np.uint32)
    return bits(field.astype(np.float32))


def kernel_of(program, name, mistake=""):
    """Return a program as a kernel; a right one has no mistake."""

    def run(operation, parameters, inputs):
        if not operation.startswith("affine") or not program.takes(operation, parameters):
            return None
        return program(parameters).run(operation, inputs)

    return Kernel(f"affine.{name}", run, mistake, program.unseen)


class Register(list):
    """The kernels of a module."""

    def wrong(self, program):
        """Take a wrong program; its name is the name of the class, in snake case."""
        name = "".join(f"_{c.lower()}" if c.isupper() else c for c in program.__name__)
        self.append(kernel_of(program, name.strip("_"), program.__doc__))
        return program


KERNELS = [kernel_of(Integers, "numpy")]
