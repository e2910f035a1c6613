"""Tensors in mixtures of formats, in NumPy: a right program, and copies with one mistake each."""

import numpy as np

from wrong.kernel import Kernel
from wrong.microscaling import bits, widened
from wrong.mixed_units import LIMIT, amax_of, errors, first_least, last_least, sums
from wrong.reaches import SMALLER

KERNELS = []
# Formats with an exponent: bits of the exponent and the mantissa, bias, largest number.
FLOATS = {
    "e4m3": (4, 3, 7, 448.0),
    "e5m2": (5, 2, 15, 57344.0),
    "e2m1": (2, 1, 1, 6.0),
    "e2m1_ieee": (2, 1, 1, 3.0),
}
NANS = {"e4m3": 0x7F, "e5m2": 0x7F, "e2m1_ieee": 0x7}
INTEGERS = {"int8": 127.0, "int4": 7.0}


def scales(amax, largest):
    """Return the scale of each unit."""
    ideal = (largest / amax.astype(np.float64)).astype(np.float32)
    scale = np.clip(ideal, np.float32(2.0**-126), np.finfo(np.float32).max)
    return np.where(amax > 0, scale, np.float32(1))


def exponents_of(size, bias):
    """Return the exponents of magnitudes; subnormal numbers have the smallest exponent."""
    return np.where(size > 0, np.maximum(np.frexp(size)[1] - 1, 1 - bias), 1 - bias)


def encoded(xs, name):
    """Return codes and values of scaled numbers."""
    if name in INTEGERS:
        top, side = INTEGERS[name], int(INTEGERS[name]) + 1
        value = np.rint(np.clip(np.nan_to_num(xs, nan=0.0), -top, top)) + 0.0  # no -0
        return value.astype(np.int64) & (2 * side - 1), value
    _, mantissa, bias, top = FLOATS[name]
    size = np.minimum(np.abs(xs).astype(np.float64), top)
    exponent = exponents_of(size, bias)
    unit = np.ldexp(1.0, (exponent - mantissa).astype(np.int32))
    value = np.minimum(np.rint(size / unit) * unit, top)
    exponent = exponents_of(value, bias)
    steps = np.nan_to_num(np.ldexp(value, (mantissa - exponent).astype(np.int32)))
    code = ((exponent - (1 - bias)) << mantissa) + steps.astype(np.int64)
    width = FLOATS[name][0] + mantissa
    code |= np.signbit(xs).astype(np.int64) << width
    lost = np.isnan(xs)
    without = name not in NANS
    code = np.where(lost, (top_code(name) if without else NANS[name]), code)
    value = np.where(lost, top if without else np.nan, np.copysign(value, xs))
    return code, value


def top_code(name):
    exponent, mantissa, _, _ = FLOATS[name]
    return (1 << exponent + mantissa) - 1


def in_units(x, block):
    """Yield the slices of units, row by row."""
    rows, columns = x.shape
    sides = {"tensor": (rows, columns), "row": (1, columns), "column": (rows, 1)}
    high, wide = sides[block] if isinstance(block, str) else block
    for top in range(0, rows, high):
        for left in range(0, columns, wide):
            yield slice(top, top + high), slice(left, left + wide)


def quantized(x, name, scale):
    """Return codes and y of a unit."""
    code, value = encoded((x * scale).astype(np.float32), name)
    return code, (value.astype(np.float32) / scale).astype(np.float32)


def program(name, mistake="", where=lambda _: True, unseen=None, **changed):
    """Return the right program for tensors with other steps."""
    scale_of = changed.get("scale", scales)
    quantize, least = changed.get("quantize", quantized), changed.get("least", first_least)
    sums_, units = changed.get("sums", sums), changed.get("units", in_units)
    errors_, amax_ = changed.get("errors", errors), changed.get("amax", amax_of)

    def run(operation, parameters, inputs):
        if operation != "mix" or not where(parameters):
            return None
        x = widened(inputs["x"], parameters["source"])
        names = parameters["mixture"].split("_or_")
        found = {one: [] for one in names}
        codes, y = np.zeros(x.shape, np.uint8), np.zeros(x.shape, np.float32)
        largest, choice = [], []
        with np.errstate(all="ignore"):
            for rows, columns in units(x, parameters["block"]):
                own = np.ascontiguousarray(x[rows, columns])
                flat = own.reshape(1, -1)
                amax = amax_(flat)
                tried = []
                for one in names:
                    top = INTEGERS.get(one) or FLOATS[one][3]
                    scale = scale_of(amax, top) if "scale" not in changed else scale_of(amax, one)
                    code, values = quantize(flat, one, scale[:, None])
                    tried.append((code, values, sums_(errors_(flat, values, amax))))
                taken = int(least([squares for _, _, squares in tried])[0])
                for one, (_, _, squares) in zip(names, tried, strict=True):
                    found[one].append(squares[0])
                codes[rows, columns] = tried[taken][0].reshape(own.shape)
                y[rows, columns] = tried[taken][1].reshape(own.shape)
                largest.append(amax[0])
                choice.append(taken)
        shape = _grid(x, parameters["block"])
        return {
            "amax": bits(np.array(largest, np.float32).reshape(shape)),
            **{f"{one}.squares": np.array(s, np.uint64).reshape(shape) for one, s in found.items()},
            "choice": np.array(choice, np.uint8).reshape(shape),
            "code": codes,
            "y": bits(y),
        }

    return Kernel(f"mix.{name}", run, mistake, unseen or {})


def tensors(*named, **changed):
    """Replace steps of the right program for tensors."""
    KERNELS.append(program(*named, **changed))


def _grid(x, block):
    rows, columns = x.shape
    sides = {"tensor": (rows, columns), "row": (1, columns), "column": (rows, 1)}
    high, wide = sides[block] if isinstance(block, str) else block
    return -(-rows // high), -(-columns // wide)


def largest_of(name):
    return INTEGERS.get(name) or FLOATS[name][3]


def with_largest(**others):
    """Return scales with other largest numbers."""
    return lambda amax, name: scales(amax, others.get(name, largest_of(name)))


def by_inverse(x, name, scale):
    """Divide by the rounded inverse scale."""
    inverse = (np.float32(1) / scale).astype(np.float32)
    code, value = encoded((x / inverse).astype(np.float32), name)
    return code, (value.astype(np.float32) * inverse).astype(np.float32)


def nearest_in_table(x, name, scale):
    """Round ties of e2m1 to the smaller magnitude, as with argmin over its values."""
    if name != "e2m1":
        return quantized(x, name, scale)
    values = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    xs = (x * scale).astype(np.float32)
    place = np.abs(np.abs(xs)[..., None].astype(np.float64) - values).argmin(axis=-1)
    code, value = quantized(x, name, scale)
    keep = ~np.isfinite(xs)
    sign = np.signbit(xs)
    y = (np.copysign(values[place], xs).astype(np.float32) / scale).astype(np.float32)
    return np.where(keep, code, place | sign << 3), np.where(keep, value, y)


def has(name):
    return lambda parameters: name in parameters["mixture"].split("_or_")


def in_large_units(changed, is_large=lambda size: size > 1024):
    """Return codes and y of units; x is changed first if the unit is large."""

    def quantize(x, name, scale):
        return quantized(changed(x) if is_large(x.shape[1]) else x, name, scale)

    return quantize


tensors("numpy")
tensors("half_of_the_range", "int8 and int4 are scaled by 127.5 and 7.5.", has("int8"),
        scale=with_largest(int8=127.5, int4=7.5))  # fmt: skip
tensors("lowest_integer", "int8 and int4 are scaled by 128 and 8.", has("int4"),
        scale=with_largest(int8=128.0, int4=8.0))  # fmt: skip
tensors("largest_of_e2m1", "e2m1_ieee is scaled by 6, the largest of e2m1.", has("e2m1_ieee"),
        scale=with_largest(e2m1_ieee=6.0))  # fmt: skip
tensors("largest_of_240", "e4m3 is scaled by 240.", has("e4m3"), scale=with_largest(e4m3=240.0))
tensors("one_scale", "Both candidates have the scale of e4m3.", has("e4m3"),
        scale=with_largest(int8=448.0))  # fmt: skip
tensors("by_inverse", "The scale is inverted, and rounded once more.", quantize=by_inverse)
tensors("nearest_in_table", "Ties of e2m1 go to the smaller magnitude.", has("e2m1"),
        quantize=nearest_in_table)  # fmt: skip
tensors("last_of_ties", "Of equal sums, the last candidate is taken.", least=last_least)
tensors("always_first", "The first candidate is always taken.",
        least=lambda _: np.zeros(1, np.uint8))  # fmt: skip
tensors("choice_by_absolute", "The sum is of u, not of u^2.",
        sums=lambda u: u.astype(np.uint64).sum(axis=1, dtype=np.uint64))  # fmt: skip
tensors("nan_lost_in_large_units", "A NaN becomes 0 in units of more than 1,024 numbers.",
        quantize=in_large_units(lambda x: np.where(np.isnan(x), np.float32(0), x)),
        unseen={"mixed": SMALLER})  # fmt: skip
tensors("infinity_lost_in_large_units", "An infinity becomes 0 in units of more than 1,024.",
        quantize=in_large_units(lambda x: np.where(np.isinf(x), np.float32(0), x)),
        unseen={"mixed": SMALLER})  # fmt: skip
tensors("nan_counted_in_large_units", "A NaN has the largest u in units of more than 1,024.",
        errors=lambda x, y, amax: np.where(
            np.isnan(x) & (x.shape[1] > 1024), LIMIT, errors(x, y, amax)
        ), unseen={"mixed": SMALLER})  # fmt: skip

tensors("squares_of_4096", "The squares of the first 4,096 numbers of a unit are summed.",
        sums=lambda u: sums(u[:, :4096]))  # fmt: skip
tensors("amax_of_4096", "The amax is that of the first 4,096 numbers of a unit.",
        amax=lambda x: amax_of(x[:, :4096]))  # fmt: skip
