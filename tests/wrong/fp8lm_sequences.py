"""Sequences of Adam of FP8-LM in NumPy: right ones, and copies with a mistake each."""

import numpy as np

from wrong.fp8lm_states import rates, scales_of, variants
from wrong.fp8lm_steps import decoded, encoded, number, stepped
from wrong.kernel import Kernel
from wrong.microscaling import bits, f32

KERNELS: list[Kernel] = []
KINDS = {"first": "e4m3", "second": "f16", "master": "f16"}
NUMBERS = ("lr", "beta1", "beta2", "eps", "weight_decay")


def counted(x):
    """Return amaxes in which NaN does not count."""
    return np.fmax.reduce(np.abs(x), axis=1, initial=0)


def whole(x):
    """Return amaxes; an amax is NaN if a number is NaN."""
    return np.abs(x).max(axis=1)


def stored(numbers, scales):
    """Return codes of both moments and of weights."""
    return {
        name: encoded(numbers[name] * scales[name][:, None], fmt) for name, fmt in KINDS.items()
    }


def restored(codes, scales, name):
    return decoded(codes[name], KINDS[name]) * (f32(1) / scales[name])[:, None]


def of_step(inputs, codes, scales, gradient, count, later, power, **parts):
    """Return both moments and the weights after a step, before they are stored."""
    shape = gradient.shape
    flat = {name: np.broadcast_to(inputs[name][:, None], shape).ravel() for name in NUMBERS}
    at = rates(
        {**inputs, "step": np.full(len(gradient), count)}, None, later=later(count), power=power
    )
    flat |= {name: np.broadcast_to(one[:, None], shape).ravel() for name, one in at.items()}
    inverses = {f"{name}_inverse": bits(f32(1) / one) for name, one in scales.items()}
    flat |= {name: np.broadcast_to(one[:, None], shape).ravel() for name, one in inverses.items()}
    flat |= {name: one.ravel() for name, one in codes.items()} | {
        "gradient": bits(gradient).ravel()
    }
    found = stepped(flat, **parts)
    return {name: number(found[f"new_{name}"]).reshape(shape) for name in KINDS}, flat


def sequence(
    inputs, _, *, later=lambda _: 0, power=None, in_gradient=None, rounded=(), codes_by="new",
    keep="new", amax_of=None, **parts,
):  # fmt: skip
    """Return the states of all steps; the keyword arguments are mistakes."""
    amax_of = {"first": counted, "second": counted, "master": whole} | (amax_of or {})
    weight = number(inputs["weight"])
    ones = np.ones(len(weight), np.float32)
    held = {"first": ones, "second": ones, "master": scales_of(whole(weight), "f16", "msamp", ones)}
    codes = stored({"first": np.zeros_like(weight),
                    "second": np.zeros_like(weight), "master": weight}, held)  # fmt: skip
    found = {"master_0": codes["master"], "master_scale_0": bits(held["master"])}
    for k in range(1, 5):
        gradient, asked = number(inputs[f"gradient_{k}"]), inputs
        if in_gradient:
            gradient = in_gradient(inputs, gradient, restored(codes, held, "master"))
            asked = {**inputs, "weight_decay": np.zeros_like(inputs["weight_decay"])}
        new, flat = of_step(asked, codes, held, gradient, k, later, power, **parts)
        before = {"first": ones, "second": ones, "master": held["master"]}
        if rounded:
            own = {n: scales_of(counted(new[n]), KINDS[n], "msamp", ones) for n in rounded}
            y = {n: restored(stored(new, {**before, **own}), own, n) for n in rounded}
            new["master"] = by_moments(flat, {**new, **y}, weight.shape)
        next_held = {
            name: scales_of(amax_of[name](new[name]), fmt, "msamp", before[name])
            for name, fmt in KINDS.items()
        }
        codes = stored(new, next_held if codes_by == "new" else held)
        held = next_held if keep == "new" else held
        for name in KINDS:
            found |= {f"{name}_{k}": codes[name], f"{name}_scale_{k}": bits(held[name])}
    return found


def by_moments(flat, new, shape):
    """Return weights after a step, computed from given moments."""
    n = {name: number(array).reshape(shape) for name, array in flat.items() if array.itemsize == 4}
    w = decoded(flat["master"], "f16").reshape(shape) * n["master_inverse"]
    w = np.where(n["weight_decay"] != 0, w * (f32(1) - n["lr"] * n["weight_decay"]), w)
    return w - n["rate"] * (new["first"] / (np.sqrt(new["second"]) / n["root"] + n["eps"]))


def decay(inputs, gradient, weight):
    """Add decay times the weight to the gradient, as in torch's class Adam."""
    rate = number(inputs["weight_decay"])[:, None]
    return np.where(rate != 0, gradient + rate * weight, gradient)


def decay_always(inputs, gradient, weight):
    return gradient + number(inputs["weight_decay"])[:, None] * weight


variants(KERNELS, "fp8lm_steps", sequence, {
    "codes_by_the_old_scale": ("Codes are of the scale before the step.", {"codes_by": "old"}),
    "keeps_the_old_scale": ("The old scale stays with codes of the new one.", {"keep": "old"}),
    "first_scales": ("Scales never change.", {"codes_by": "old", "keep": "old"}),
    "steps_from_zero": ("The first step is step 0.", {"later": lambda _: -1}),
    "steps_from_two": ("The first step is step 2.", {"later": lambda _: 1}),
    "always_step_one": ("Each step is step 1.", {"later": lambda k: 1 - k}),
    "corrections_in_binary64": ("1 - beta^t is of binary64, rounded at last.",
                                {"power": lambda b, t: f32(1 - float(b) ** t)}),
    "decay_in_the_gradient": ("Weights decay as in Adam, not AdamW.", {"in_gradient": decay}),
    "decay_always": ("decay * w is added to g, also if it is 0.", {"in_gradient": decay_always}),
    "no_decay": ("Weights do not decay.", {"decay": lambda _, w: w}),
    "rounded_first": ("W follows from the stored first moment.", {"rounded": ("first",)}),
    "rounded_both": ("W follows from both stored moments.", {"rounded": ("first", "second")}),
    "nan_counts": ("NaN counts in the scales of moments.",
                   {"amax_of": {"first": whole, "second": whole}}),
    "nan_skipped": ("NaN does not count in the scale of the weights.",
                    {"amax_of": {"master": counted}}),
    "largest": ("The scale of the first moment is of its largest number, with its sign.",
                {"amax_of": {"first": lambda x: np.fmax(np.fmax.reduce(x, axis=1), 0)}}),
    "inverse_first": ("beta multiplies m * inverse.",
                      {"moment_of": lambda b, s, i, t: b * (s * i) + (f32(1) - b) * t}),
    "rate_first": ("The rate multiplies M before the division.",
                   {"change": lambda n, m, under: n["rate"] * m / under}),
    "by_a_reciprocal": ("M is multiplied by a reciprocal.",
                        {"change": lambda n, m, under: n["rate"] * (m * (f32(1) / under))}),
    "eps_inside": ("eps is added to V, under the root.",
                   {"below": lambda n, v: np.sqrt(v + n["eps"]) / n["root"]}),
})  # fmt: skip
