"""FP8-LM in vectorized NumPy: right steps, and copies with one mistake each."""

from functools import partial

import numpy as np

from wrong.kernel import Kernel
from wrong.microscaling import bits, f32, flushed

KERNELS = []
LARGEST = {"e4m3": 448.0, "e5m2": 57344.0, "f16": 65504.0}
CASTS = {"e4m3": (3, -6), "e5m2": (2, -14), "f16": (10, -14)}  # bits of a fraction, exponent


def register(operation, name, mistake="", where=lambda _: True, kernels=KERNELS):
    """Take a function of (inputs, parameters) that returns fields."""

    def take(function):
        def run(asked, parameters, inputs):
            if asked != operation or not where(parameters):
                return None
            with np.errstate(all="ignore"):
                return function(inputs, parameters)

        kernels.append(Kernel(f"{operation}.{name}", run, mistake))
        return function

    return take


def number(array):
    """Return the binary32 numbers with these bits."""
    return array.view(np.float32)


# ---------------------------------------------------------------------- scales


def is_msamp(parameters):
    return parameters["profile"] == "msamp"


def is_exact(parameters):
    return parameters["profile"] == "exact"


def rounded_log2(ratio):
    """Return RN32(log2(ratio)): binary64 has bits to spare, unless the result is an integer."""
    fraction, exponent = np.frexp(ratio.astype(np.longdouble))
    return (np.log2(fraction) + exponent).astype(np.float32)


def exponents(ratio, margin, log2=rounded_log2):
    """Return the exponents of msamp."""
    return np.where(np.isfinite(ratio) & (ratio != 0), np.floor(log2(ratio)) - margin,
                    np.where(ratio == 0, -np.inf, ratio)).astype(np.float32)  # fmt: skip


def powers(exponent):
    """Return 2^|e| in binary32: infinite above 127."""
    size = np.abs(exponent)
    plain = np.ldexp(f32(1), np.where(size <= 127, size, 0).astype(np.int32))
    return np.where(size <= 127, plain, np.inf).astype(np.float32)


def stored(ratio, exponent, scale):
    scale = scale.astype(np.float32)
    return {"ratio": bits(ratio), "exponent": bits(exponent.astype(np.float32)),
            "scale": bits(scale), "scale_inv": bits(f32(1) / scale)}  # fmt: skip


def by_msamp(inputs, parameters, log2=rounded_log2, ratio=None):
    amax, before = number(inputs["amax"]), number(inputs["previous"])
    ratio = f32(LARGEST[parameters["format"]]) * (f32(1) / amax) if ratio is None else ratio
    e = exponents(ratio, parameters["margin"], log2)
    found = np.where((amax > 0) & np.isfinite(amax), powers(e), before)
    return stored(ratio, e, np.where(e < 0, f32(1) / found, found))


def exactly(inputs, parameters, lowest=-126, margin=None):
    amax, before = number(inputs["amax"]), number(inputs["previous"])
    ratio = f32(LARGEST[parameters["format"]]) / amax
    usual = np.isfinite(amax) & (amax != 0)
    top = np.frexp(np.minimum(ratio, np.finfo(np.float32).max))[1] - 1
    e = np.clip(top - (parameters["margin"] if margin is None else margin), lowest, 127)
    scale = np.where(usual, np.ldexp(f32(1), e), before)
    return stored(ratio, np.where(usual, e, np.nan), scale)


@register("fp8lm_scale", "numpy")
def _scales(inputs, parameters):
    return (by_msamp if is_msamp(parameters) else exactly)(inputs, parameters)


@register("fp8lm_scale", "by_the_other_profile", "The profile is not looked at.")
def _by_the_other_profile(inputs, parameters):
    return (exactly if is_msamp(parameters) else by_msamp)(inputs, parameters)


@register("fp8lm_scale", "logarithm_in_binary64", "log2 is not rounded to binary32.", is_msamp)
def _logarithm_in_binary64(inputs, parameters):
    return by_msamp(inputs, parameters, lambda r: np.frexp(r)[1] - 1.0)


@register("fp8lm_scale", "one_division", "ratio is Q / amax, in one division.", is_msamp)
def _one_division(inputs, parameters):
    ratio = f32(LARGEST[parameters["format"]]) / number(inputs["amax"])
    return by_msamp(inputs, parameters, ratio=ratio)


@register("fp8lm_scale", "two_roundings", "ratio is Q times a rounded reciprocal.", is_exact)
def _two_roundings(inputs, parameters):
    found = exactly(inputs, parameters)
    ratio = f32(LARGEST[parameters["format"]]) * (f32(1) / number(inputs["amax"]))
    return {**found, "ratio": bits(ratio)}


@register("fp8lm_scale", "stays", "The scale that stays is not inverted.", is_msamp)
def _stays(inputs, parameters):
    found = by_msamp(inputs, parameters)
    amax, before = number(inputs["amax"]), number(inputs["previous"])
    scale = np.where((amax > 0) & np.isfinite(amax), number(found["scale"]), before)
    return stored(number(found["ratio"]), number(found["exponent"]), scale)


@register("fp8lm_scale", "one_for_zero", "A tensor of zeros has the scale 1.")
def _one_for_zero(inputs, parameters):
    found = _scales(inputs, parameters)
    scale = np.where(number(inputs["amax"]) == 0, f32(1), number(found["scale"]))
    return stored(number(found["ratio"]), number(found["exponent"]), scale)


@register("fp8lm_scale", "margin_divides", "The scale is divided by 2^margin, and e is not.",
          lambda p: p["margin"] > 0)  # fmt: skip
def _margin_divides(inputs, parameters):
    plain = _scales(inputs, {**parameters, "margin": 0})
    scale = number(plain["scale"]) / f32(2 ** parameters["margin"])
    return stored(number(plain["ratio"]), number(plain["exponent"]), scale)


@register("fp8lm_scale", "powers_limited", "2^|e| is at most 2^126, which is finite.", is_msamp)
def _powers_limited(inputs, parameters):
    found = by_msamp(inputs, parameters)
    amax, before = number(inputs["amax"]), number(inputs["previous"])
    e = number(found["exponent"])
    power = powers(np.clip(e, -126, 126))
    kept = np.where((amax > 0) & np.isfinite(amax), power, before)
    return stored(number(found["ratio"]), e, np.where(e < 0, f32(1) / kept, kept))


@register("fp8lm_scale", "exponents_not_limited", "e below -126 makes a subnormal scale.", is_exact)
def _exponents_not_limited(inputs, parameters):
    return exactly(inputs, parameters, lowest=-149)


@register("fp8lm_scale", "nan_is_a_number", "NaN has the exponent 0 and the scale 1.")
def _nan_is_a_number(inputs, parameters):
    found = _scales(inputs, parameters)
    lost = np.isnan(number(inputs["amax"]))
    scale = np.where(lost, f32(1), number(found["scale"]))
    e = np.where(lost, f32(0), number(found["exponent"]))
    return stored(number(found["ratio"]), e, scale)


# ---------------------------------------------------------------------- casts


def encoded(x, fmt, rounded=np.rint):
    """Return the codes of numbers of binary32 or binary64."""
    fraction, smallest = CASTS[fmt]
    wide = np.abs(x.astype(np.float64))
    e = np.maximum(np.frexp(np.where(np.isfinite(wide) & (wide > 0), wide, 1e-30))[1] - 1, smallest)
    steps = rounded(np.ldexp(np.minimum(wide, LARGEST[fmt] * 2.0), fraction - e))
    magnitude = (e - smallest).astype(np.int64) * 2**fraction + steps.astype(np.int64)
    largest = encoded_largest(fmt)
    magnitude = np.where(np.isinf(wide), largest, np.minimum(magnitude, largest))
    sign = np.signbit(x).astype(np.int64) << (15 if fmt == "f16" else 7)
    nan = 0x7FFF if fmt == "f16" else 0x7F
    found = np.where(np.isnan(x), nan, magnitude | sign)
    return found.astype(np.uint16 if fmt == "f16" else np.uint8)


def encoded_largest(fmt):
    return {"e4m3": 0x7E, "e5m2": 0x7B, "f16": 0x7BFF}[fmt]


def decoded(codes, fmt):
    """Return the numbers of codes, by a table of every code."""
    fraction, smallest = CASTS[fmt]
    top = 15 if fmt == "f16" else 7
    every = np.arange(1 << top + 1)
    magnitude = every & (1 << top) - 1
    field, rest = magnitude >> fraction, magnitude & (1 << fraction) - 1
    unit = np.maximum(field, 1) - 1 + smallest - fraction
    value = np.ldexp(np.where(field == 0, rest, rest + 2**fraction) * 1.0, unit)
    if fmt == "e4m3":
        value = np.where(magnitude == 0x7F, np.nan, value)
    else:
        infinite = (1 << top) - (1 << fraction)
        value = np.where(
            magnitude > infinite, np.nan, np.where(magnitude == infinite, np.inf, value)
        )
    table = np.where(every >> top, -value, value).astype(np.float32)
    return table[codes]


def casted(inputs, parameters, codes=None, inverse=None, y=None):
    x, scale = number(inputs["x"]), number(inputs["scale"])
    fmt = parameters["format"]
    codes = encoded(x * scale, fmt) if codes is None else codes
    inverse = f32(1) / scale if inverse is None else inverse
    y = decoded(codes, fmt) * inverse if y is None else y
    return {"scale_inv": bits(inverse), "code": codes, "y": bits(y)}


register("fp8lm_cast", "numpy")(casted)


@register("fp8lm_cast", "y_by_division", "y is v / s.")
def _y_by_division(inputs, parameters):
    codes = encoded(number(inputs["x"]) * number(inputs["scale"]), parameters["format"])
    return casted(
        inputs, parameters, y=decoded(codes, parameters["format"]) / number(inputs["scale"])
    )


@register("fp8lm_cast", "divided_by_the_inverse", "The quotient x / scale_inv is encoded.")
def _divided_by_the_inverse(inputs, parameters):
    xs = number(inputs["x"]) / (f32(1) / number(inputs["scale"]))
    return casted(inputs, parameters, codes=encoded(xs, parameters["format"]))


@register("fp8lm_cast", "product_not_rounded", "x * s is not rounded before it is encoded.")
def _product_not_rounded(inputs, parameters):
    xs = number(inputs["x"]).astype(np.float64) * number(inputs["scale"])
    return casted(inputs, parameters, codes=encoded(xs, parameters["format"]))


@register("fp8lm_cast", "ties_away", "Ties go away from zero.")
def _ties_away(inputs, parameters):
    xs = number(inputs["x"]) * number(inputs["scale"])
    codes = encoded(xs, parameters["format"], lambda v: np.floor(v + 0.5))
    return casted(inputs, parameters, codes=codes)


@register("fp8lm_cast", "overflows", "Numbers above the largest become NaN or infinite.")
def _overflows(inputs, parameters):
    fmt = parameters["format"]
    xs = number(inputs["x"]) * number(inputs["scale"])
    codes = encoded(xs, fmt)
    over = np.abs(xs) > f32(LARGEST[fmt])
    return casted(inputs, parameters, codes=np.where(over, codes + 1, codes).astype(codes.dtype))


@register("fp8lm_cast", "inverse_flushed", "A subnormal inverse is 0.")
def _inverse_flushed(inputs, parameters):
    return casted(inputs, parameters, inverse=flushed(f32(1) / number(inputs["scale"])))


def flushed_x(inputs, parameters):
    return casted({**inputs, "x": bits(flushed(number(inputs["x"])))}, parameters)


def flushed_y(inputs, parameters):
    found = casted(inputs, parameters)
    return {**found, "y": bits(flushed(number(found["y"])))}


register("fp8lm_cast", "x_flushed", "A subnormal x is 0.")(flushed_x)
register("fp8lm_cast", "y_flushed", "A subnormal y is 0.")(flushed_y)


def recasted(inputs, parameters, at_once=False, cast=casted, recast=casted):
    x, scale, shared = (number(inputs[name]) for name in ("x", "scale", "shared"))
    first = cast({"x": bits(x), "scale": bits(scale)}, parameters)
    again = {"x": bits(x) if at_once else first["y"], "scale": bits(shared)}
    second = recast(again, parameters)
    return {"code": first["code"], "recast": second["code"], "y": second["y"]}


register("fp8lm_recast", "numpy")(recasted)


@register("fp8lm_recast", "at_once", "x is cast with the shared scale, not its code.")
def _at_once(inputs, parameters):
    return recasted(inputs, parameters, at_once=True)


for _name, _mistake, _casts in (
    ("x_flushed", "A subnormal x is 0 in the first cast.", {"cast": flushed_x}),
    ("between_flushed", "Subnormal numbers of the first codes become 0.", {"recast": flushed_x}),
    ("y_flushed", "A subnormal y of the second cast is 0.", {"recast": flushed_y}),
):
    register("fp8lm_recast", _name, _mistake)(partial(recasted, **_casts))


# ---------------------------------------------------------------------- sums


def exact_sums(values, fmt):
    total = values.astype(np.float64).sum(axis=1) + 0.0
    lost = ~np.isfinite(values).all(axis=1)
    return encoded(np.where(lost, np.nan, total), fmt)


def ranked_sums(values, fmt, start=0.0):
    total = np.full(len(values), start, np.float32)
    lost = ~np.isfinite(values).all(axis=1)
    for column in np.where(np.isfinite(values), values, 0).T:
        total = decoded(encoded(total.astype(np.float64) + column, fmt), fmt)
    return encoded(np.where(lost, np.nan, total), fmt)


def summed(values, parameters):
    how = exact_sums if parameters["sums"] == "exact" else ranked_sums
    return {"sum": how(values, parameters["format"])}


def of_values(change=lambda v: v):
    def run(inputs, parameters):
        return summed(change(decoded(inputs["code"], parameters["format"])), parameters)

    return run


register("fp8lm_sum", "numpy")(of_values())
register("fp8lm_sum", "ranks_backwards", "Ranks are added from the last one.",
         lambda p: p["sums"] == "by_rank")(of_values(lambda v: v[:, ::-1]))  # fmt: skip
register("fp8lm_sum", "nan_skipped", "A NaN or an infinity counts as 0.")(
    of_values(lambda v: np.where(np.isfinite(v), v, 0))
)
register("fp8lm_sum", "last_rank_left_out", "The last rank is not added.")(
    of_values(lambda v: v[:, :-1])
)


@register("fp8lm_sum", "exact_always", "Sums are exact, whichever is asked for.",
          lambda p: p["sums"] == "by_rank")  # fmt: skip
def _exact_always(inputs, parameters):
    return of_values()(inputs, {**parameters, "sums": "exact"})


@register("fp8lm_sum", "by_rank_always", "Each addition is rounded.",
          lambda p: p["sums"] == "exact")  # fmt: skip
def _by_rank_always(inputs, parameters):
    return of_values()(inputs, {**parameters, "sums": "by_rank"})


@register("fp8lm_sum", "in_a_tree", "Neighbours are added first.", lambda p: p["sums"] == "by_rank")
def _in_a_tree(inputs, parameters):
    fmt = parameters["format"]
    values = decoded(inputs["code"], fmt)
    while values.shape[1] > 1:
        if values.shape[1] % 2:
            values = np.pad(values, ((0, 0), (0, 1)))
        pairs = values[:, ::2].astype(np.float64) + values[:, 1::2]
        values = decoded(encoded(pairs, fmt), fmt)
    return {"sum": encoded(np.where(np.isfinite(values[:, 0]), values[:, 0], np.nan) + 0.0, fmt)}


@register("fp8lm_sum", "mean", "The sum is divided by the ranks before it is encoded.",
          lambda p: p["sums"] == "exact")  # fmt: skip
def _mean(inputs, parameters):
    values = decoded(inputs["code"], parameters["format"])
    return {"sum": exact_sums(values / f32(values.shape[1]), parameters["format"])}


# ---------------------------------------------------------------------- Adam


def stepped(inputs, moment_of=None, square=None, decay=None, below=None, change=None,
            update=None):  # fmt: skip
    """Return a step of Adam; keyword arguments replace some of its functions of numbers."""
    n = {name: number(array) for name, array in inputs.items() if array.itemsize == 4}
    n["m"] = decoded(inputs["first"], "e4m3")
    n["v"], n["w"] = decoded(inputs["second"], "f16"), decoded(inputs["master"], "f16")
    moment_of = moment_of or (lambda b, s, i, t: (b * s) * i + (f32(1) - b) * t)
    g = n["gradient"]
    first = moment_of(n["beta1"], n["m"], n["first_inverse"], g)
    second = moment_of(n["beta2"], n["v"], n["second_inverse"],
                       g * g if square is None else square(g))  # fmt: skip
    w = n["w"] * n["master_inverse"]
    kept = w * (f32(1) - n["lr"] * n["weight_decay"])
    w = np.where(n["weight_decay"] != 0, kept if decay is None else decay(n, w), w)
    under = (np.sqrt(second) / n["root"] + n["eps"]) if below is None else below(n, second)
    step = n["rate"] * (first / under) if change is None else change(n, first, under)
    new = w - step if update is None else update(n, w, first, under)
    return {"new_first": bits(first), "new_second": bits(second), "new_master": bits(new)}


def adam(name, mistake="", **parts):
    register("fp8lm_adam", name, mistake)(lambda inputs, _: stepped(inputs, **parts))


def fused(a, b, c):
    """Return a * b + c, rounded once, nearly always."""
    return (a.astype(np.float64) * b + c).astype(np.float32)


adam("numpy")
adam("fused", "beta * m * inverse and the new term are a fused multiply-add.",
     moment_of=lambda b, s, i, t: fused(f32(1) - b, t, (b * s) * i))  # fmt: skip
adam("inverse_first", "beta multiplies m * inverse.",
     moment_of=lambda b, s, i, t: b * (s * i) + (f32(1) - b) * t)  # fmt: skip
adam("lerp", "A moment is m + (1 - beta) * (g - m).",
     moment_of=lambda b, s, i, t: s * i + (f32(1) - b) * (t - s * i))  # fmt: skip
adam("without_squares", "The second moment is of |g|.", square=np.abs)
adam("decay_added", "The decay is lr * decay * w, subtracted.",
     decay=lambda n, w: w - n["lr"] * n["weight_decay"] * w)  # fmt: skip
adam("no_decay", "The weight decay is left out.", decay=lambda _, w: w)
adam("eps_inside", "eps is added to V, under the root.",
     below=lambda n, v: np.sqrt(v + n["eps"]) / n["root"])  # fmt: skip
adam("eps_first", "eps is added before the correction.",
     below=lambda n, v: (np.sqrt(v) + n["eps"]) / n["root"])  # fmt: skip
adam(
    "no_correction", "The second correction is left out.", below=lambda n, v: np.sqrt(v) + n["eps"]
)
adam("rate_first", "The rate multiplies M before the division.",
     change=lambda n, m, under: n["rate"] * m / under)  # fmt: skip
adam("by_a_reciprocal", "M is multiplied by a reciprocal.",
     change=lambda n, m, under: n["rate"] * (m * (f32(1) / under)))  # fmt: skip
adam("lr_for_the_rate", "lr stands for the rate: no first correction.",
     change=lambda n, m, under: n["lr"] * (m / under))  # fmt: skip
adam("update_fused", "The change is subtracted by a fused multiply-add, as nvcc contracts it.",
     update=lambda n, w, m, under: fused(-n["rate"], m / under, w))  # fmt: skip
adam("decay_fused", "1 - lr * decay is a fused multiply-add.",
     decay=lambda n, w: w * fused(-n["lr"], n["weight_decay"], f32(1)))  # fmt: skip
adam("no_corrections", "Moments are not corrected.", below=lambda n, v: np.sqrt(v) + n["eps"],
     change=lambda n, m, under: n["lr"] * (m / under))  # fmt: skip
