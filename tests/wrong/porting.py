"""Right functions that a code base of kernels shares: views of bits, tables, tiles."""

from dataclasses import dataclass, replace

import ml_dtypes
import numpy as np

NAN = 0x7FFFFFFF
LARGEST = {"e4m3": 448.0, "e5m2": 57344.0, "e2m1": 6.0, "e2m3": 7.5, "e3m2": 28.0}
CASTS = {
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "e2m1": ml_dtypes.float4_e2m1fn,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e3m2": ml_dtypes.float6_e3m2fn,
}
_NAN_CODE = {"e4m3": 0x7F, "e5m2": 0x7F, "e2m1": 0x7, "e2m3": 0x1F, "e3m2": 0x1F}


def dispatch(**operations):
    """Return the entry of a kernel: each operation has a function of parameters and inputs."""

    def run(operation, parameters, inputs):
        function = operations.get(operation)
        if function is None:  # most operations, of most kernels
            return None
        with np.errstate(all="ignore"):
            return function(parameters, inputs)

    return run


def floats(bits):
    return np.ascontiguousarray(bits, np.uint32).view(np.float32)


def pattern(x):
    """Return the bits of binary32 numbers, with the one NaN."""
    x = np.ascontiguousarray(x, np.float32)
    return np.where(np.isnan(x), np.uint32(NAN), x.view(np.uint32))


def widened(bits, source):
    """Return the bits of a tensor as binary32 numbers."""
    if source == "bf16":
        return floats(bits.astype(np.uint32) << 16)
    return bits.view(np.float16).astype(np.float32) if source == "f16" else floats(bits)


def to_code(xs, name):
    """Return right codes of binary32 numbers: nearest, saturated, with the canonical NaN."""
    codes = np.clip(xs, -LARGEST[name], LARGEST[name]).astype(CASTS[name]).view(np.uint8)
    return np.where(np.isnan(xs), np.uint8(_NAN_CODE[name]), codes)


def from_code(codes, name):
    """Return the binary32 numbers of codes."""
    return codes.view(CASTS[name]).astype(np.float32)


def by(parameter, values, kernel):
    """Return a kernel for each single value of a parameter, as if compiled for it."""

    def only(value):
        def run(operation, parameters, inputs):
            if parameters.get(parameter) != value:
                return None
            return kernel.run(operation, parameters, inputs)

        return replace(kernel, name=f"{kernel.name}_{value}", run=run)

    return [only(value) for value in values]


def by_format(kernel, formats=tuple(CASTS)):
    """Return a kernel for each single element format, because thresholds differ."""
    return by("format", formats, kernel)


@dataclass(frozen=True)
class Grid:
    """The places where the tiles of a matrix begin, and the shape of the matrix."""

    rows: np.ndarray
    columns: np.ndarray
    shape: tuple

    @classmethod
    def of(cls, shape, cut):
        named = {"tensor": shape, "row": (1, shape[1]), "column": (shape[0], 1)}
        sides = named[cut] if isinstance(cut, str) else cut
        starts = [np.arange(0, n, side) for n, side in zip(shape, sides, strict=True)]
        return cls(*starts, shape)

    def reduce(self, ufunc, array):
        """Reduce each tile, in the type of the array."""
        rows = ufunc.reduceat(array, self.rows, axis=0, dtype=array.dtype)
        return ufunc.reduceat(rows, self.columns, axis=1, dtype=array.dtype)

    def spread(self, tiles):
        """Repeat entries for each element, or for each smaller tile that begins in a tile."""
        rows = np.diff([*self.rows, self.shape[0]])
        return tiles.repeat(rows, axis=0).repeat(np.diff([*self.columns, self.shape[1]]), axis=1)


@dataclass(frozen=True)
class Task:
    """A tensor to quantize: its numbers, its blocks, and its groups or their amax."""

    x: np.ndarray
    name: str
    scaling: str
    blocks: Grid
    groups: Grid | None
    group_amax: np.ndarray | None
    source: str

    @classmethod
    def of(cls, parameters, inputs):
        x = widened(inputs["x"], parameters["source"])
        what = x, parameters["format"], parameters["scaling"]
        if "block" not in parameters:
            given = floats(inputs["group_amax"])[:, None]
            return cls(*what, Grid.of(x.shape, "row"), None, given, parameters["source"])
        cuts = (Grid.of(x.shape, parameters[cut]) for cut in ("block", "group"))
        return cls(*what, *cuts, None, parameters["source"])

    @property
    def largest(self):
        return np.float32(LARGEST[self.name])

    def amax(self):
        magnitudes = np.abs(self.x)
        return self.blocks.reduce(np.maximum, np.where(magnitudes < np.inf, magnitudes, 0))

    def amax_of_groups(self, amax):
        """Return the amax of each group, from the amax of the blocks."""
        if self.groups is None:
            return self.group_amax
        return self.groups.reduce(np.maximum, self.blocks.spread(amax))

    def of_blocks(self, groups):
        """Return, for each block, the value of its group."""
        if self.groups is None:
            return groups
        return self.groups.spread(groups)[np.ix_(self.blocks.rows, self.blocks.columns)]

    def of_elements(self, blocks):
        return self.blocks.spread(blocks)

    def answer(self, **fields):
        """Return results in the expected shapes and widths."""
        widths = {"exponent": np.uint8, "code": np.uint8, "mantissa": np.uint32, "u": np.uint32}
        answer = {}
        for name, array in fields.items():
            bits = pattern(array) if array.dtype == np.float32 else array
            wide = np.uint64 if name in {"sum", "nonzero", "nonfinite"} else bits.dtype
            bits = bits.astype(widths.get(name, wide))
            flat = self.groups is None and name not in {"xs", "code", "y", "d", "r", "u"}
            answer[name] = bits[:, 0] if flat else bits
        return answer


def two_to(exponent):
    """Return 2^exponent in binary32, for exponents in its range."""
    return np.ldexp(np.float32(1), exponent).astype(np.float32)


def errors(x, y):
    """Return right d, r and u of each element, and which elements count."""
    counts = np.isfinite(x) & (x != 0)
    d = np.where(counts, np.abs(x - y), np.float32(0))
    r = np.where(counts, np.minimum(d / np.abs(x), np.float32(1)), np.float32(0))
    r = np.where(counts & ~np.isfinite(y), np.float32(1), r)
    u = (np.float32(1) + r).view(np.uint32) - np.uint32(0x3F800000)
    return d, r, u, counts


def lost(x, y):
    """Return the elements that are infinite or NaN, in x or later in bfloat16."""
    return ~np.isfinite(x) | (np.abs(y).view(np.uint32) >= 0x7F7F8000)


def finished(task, scale, **fields):
    """Return the results of a task whose scales are known."""
    x = task.x
    spread = task.of_elements(scale)
    xs = x * spread
    code = to_code(xs, task.name)
    y = from_code(code, task.name) / spread
    _, _, u, counts = errors(x, y)
    sums = {
        "sum": task.blocks.reduce(np.add, u.astype(np.uint64)),
        "nonzero": task.blocks.reduce(np.add, counts.astype(np.uint64)),
        "nonfinite": task.blocks.reduce(np.add, lost(x, y).astype(np.uint64)),
    }
    return task.answer(**fields, scale=scale, code=code, y=y, **sums)
