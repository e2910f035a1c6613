"""States of FP8-LM in NumPy and plain Python: right steps, and copies with a mistake each."""

import functools
from fractions import Fraction

import numpy as np

from wrong.fp8lm_steps import by_msamp, exactly, number, register
from wrong.kernel import Kernel
from wrong.microscaling import bits, f32

KERNELS: list[Kernel] = []


def variants(kernels, operation, function, mistakes):
    """Register a function of (inputs, parameters, **change): the right one, and each mistake.

    A mistake is a sentence, the change, and a function that says whether parameters have it.
    """
    register(operation, "numpy", kernels=kernels)(function)
    for name, (mistake, change, *where) in mistakes.items():
        wrong = functools.partial(function, **change)
        register(operation, name, mistake, *where or [lambda _: True], kernels)(wrong)


def nearest(value):
    """Return the binary32 number nearest to a fraction; at a tie, the even one."""
    near = f32(float(value))
    around = (np.nextafter(near, f32(-9)), near, np.nextafter(near, f32(9)))
    return min(around, key=lambda x: (abs(Fraction(float(x)) - value), int(x.view(np.uint32)) & 1))


# ---------------------------------------------------------------------- windows


def windows(inputs, _, drop=0, lost=0.0, of=lambda x: x.max(axis=1), *, late=False):
    """Drop an amax, append the new one, and take the largest."""
    amax, held = number(inputs["amax"]), number(inputs["window"]).copy()
    found = np.empty_like(amax)
    for step in range(amax.shape[1]):
        before = held
        new = np.where(np.isfinite(amax[:, step]), amax[:, step], f32(lost))
        held = np.column_stack([np.delete(held, drop, axis=1), new])
        found[:, step] = of(before if late else held)
    return {"largest": bits(found)}


variants(KERNELS, "fp8lm_window", windows, {
    "drops_the_newest": ("The newest amax is dropped.", {"drop": -1}),
    "one_for_lost": ("An amax that is not finite becomes 1.", {"lost": 1.0}),
    "newest": ("The newest amax decides.", {"of": lambda x: x[:, -1]}),
    "late": ("The window of the step before decides.", {"late": True}),
    "mean": ("The mean of the window decides.", {"of": lambda x: x.mean(axis=1)}),
})  # fmt: skip


# ---------------------------------------------------------------------- automatic scaling


def automatic(inputs, parameters, own=None, is_many=None, factor=None):
    """Return mu after each step."""
    rule = own or parameters["automatic"]
    window = 1000 if rule == "paper" else parameters["steps"]
    grows = nearest_root(window) if factor is None else factor(window)
    mu, size, found = number(inputs["mu"]), inputs["size"].astype(np.uint64), []
    for k in inputs["saturated"].T.astype(np.uint64):
        share = k.astype(np.float32) / size.astype(np.float32)
        many = k * np.uint64(100_000) > size if rule == "paper" else share > f32(1e-5)
        many = many if is_many is None else is_many(k, size)
        mu = np.where(many, mu / f32(2), (mu * grows).astype(np.float32))
        found.append(mu)
    return {"next_mu": bits(np.column_stack(found))}


def nearest_root(window):
    """Return RN32(2^(1/window)): the root in binary64 is not next to a tie for these windows."""
    return f32(2.0 ** (1.0 / window))


def signed(words):
    """Return the lowest 32 bits as a signed integer."""
    return words.astype(np.uint32).view(np.int32).astype(np.int64)


def by_paper(parameters):
    return parameters["automatic"] == "paper"


def of_seven_steps(parameters):
    return parameters["automatic"] == "msamp" and parameters["steps"] == 7


variants(KERNELS, "fp8lm_mu", automatic, {
    "as_paper": ("The window is 1,000 in the code, too.", {"own": "paper"}, of_seven_steps),
    "never_halved": ("mu only grows.", {"is_many": lambda k, _: k < 0}, of_seven_steps),
    "halved_from_two": ("One does not halve.", {"is_many": lambda k, _: k > 1}, of_seven_steps),
    "linear": ("mu grows by 1/window.", {"factor": lambda w: f32(1 + 1 / w)}, of_seven_steps),
    "twice": ("mu doubles in each step.", {"factor": lambda _: f32(2)}, of_seven_steps),
    "powf": ("1/window is rounded to binary32.",
             {"factor": lambda w: f32(2.0 ** float(f32(1) / f32(w)))},
             lambda p: p["automatic"] == "msamp" and p["steps"] == 600),
    "in_binary64": ("The factor is not rounded.",
                    {"factor": lambda w: np.float64(2.0 ** (1 / w))}, of_seven_steps),
    "in_uint32": ("100,000 * k is of 32 bits.",
                  {"is_many": lambda k, n: k * np.uint64(100_000) % 2**32 > n}, by_paper),
    "in_int32": ("100,000 * k is of 32 bits, with a sign.",
                 {"is_many": lambda k, n: signed(k * np.uint64(100_000)) > n.astype(np.int64)},
                 by_paper),
})  # fmt: skip


# ---------------------------------------------------------------------- rates of Adam


def rates(inputs, _, later=0, power=None, root=np.sqrt):
    """Return the rate and the root of each step."""
    lr, *betas = (number(inputs[name]) for name in ("lr", "beta1", "beta2"))
    steps = [int(step) + later for step in inputs["step"]]
    power = power or (lambda beta, t: nearest(1 - Fraction(float(beta)) ** t))
    one, two = (
        np.array([power(beta, t) for beta, t in zip(each, steps, strict=True)], np.float32)
        for each in betas
    )
    return {"rate": bits((lr / one).astype(np.float32)), "root": bits(f32(root(two)))}


variants(KERNELS, "fp8lm_rate", rates, {
    "in_binary32": ("beta^t is rounded to binary32.", {"power": lambda b, t: f32(1) - f32(b**t)}),
    "in_binary64": ("1 - beta^t is of binary64, rounded at last.",
                    {"power": lambda b, t: f32(1 - float(b) ** t)}),
    "later": ("The first step is the second.", {"later": 1}),
    "no_root": ("The second correction has no root.", {"root": np.array}),
})  # fmt: skip


# ---------------------------------------------------------------------- the partition


def partitioned(inputs, _, key=None, last=False, load=int):
    """Put each tensor on the rank that has the fewest elements."""
    key = key or (lambda numel, i, n: (-numel, i % n, i))
    found = np.zeros(inputs["numel"].shape, np.uint8)
    for row, (numels, ranks) in enumerate(zip(inputs["numel"], inputs["ranks"], strict=True)):
        held, n = [0] * int(ranks), int(ranks)
        for i in sorted(range(len(numels)), key=lambda i: key(int(numels[i]), i, n)):
            order = range(n - 1, -1, -1) if last else range(n)
            rank = min(order, key=lambda r: held[r])
            found[row, i], held[rank] = rank, load(held[rank] + int(numels[i]))
    return {"rank": found}


variants(KERNELS, "fp8lm_partition", partitioned, {
    "by_index": ("Equal sizes are in the order of the index.", {"key": lambda n, i, _: (-n, i)}),
    "unsorted": ("Tensors go in their order.", {"key": lambda _numel, i, _ranks: i}),
    "last_rank": ("Of equal ranks, the last one is taken.", {"last": True}),
    "in_uint32": ("Loads are of 32 bits.", {"load": lambda n: n % 2**32}),
    "in_int32": ("Loads are of 32 bits, with a sign.",
                 {"load": lambda n: (n + 2**31) % 2**32 - 2**31}),
    "in_binary32": ("Loads are numbers of binary32.", {"load": lambda n: int(f32(n))}),
    "sorted_in_binary32": ("Sizes are sorted as numbers of binary32.",
                           {"key": lambda numel, i, n: (-f32(numel), i % n, i)}),
    "sorted_in_int32": ("Sizes are sorted as integers of 32 bits with a sign.",
                        {"key": lambda numel, i, n: (numel >= 2**31, -numel, i % n, i)}),
})  # fmt: skip


# ---------------------------------------------------------------------- scales of ranks, of a state


def scales_of(amax, fmt, profile, before=None):
    before = np.ones_like(amax) if before is None else before
    given = {"amax": bits(amax), "previous": bits(before)}
    made = by_msamp if profile == "msamp" else exactly
    return number(made(given, {"format": fmt, "margin": 0, "profile": profile})["scale"])


def shared(inputs, parameters, *, of=np.min, root=np.sqrt, mean=True, changes=None):
    """Return the scales of all ranks."""
    fmt, rule, profile = (parameters[name] for name in ("format", "reduction", "profile"))
    amax = number(inputs["amax"])
    count = f32(amax.shape[1])
    own = scales_of(amax.reshape(-1), fmt, profile).reshape(amax.shape)
    if rule == "msamp_max":
        scale = scales_of(amax.max(axis=1), fmt, profile) / root(count)
    elif rule == "msamp_0_4_max":
        scale = scales_of(amax.max(axis=1), fmt, profile) * f32(1 / np.sqrt(np.float64(count)))
    else:
        scale = of(own, axis=1)
    back = f32(1) / scale
    changed = own != scale[:, None] if (changes or rule) == "msamp_min" else np.ones(own.shape)
    return {"rank_scale": bits(own), "scale": bits(scale), "requantized": changed.astype(np.uint8),
            "scale_inv": bits(back / count if mean else back)}  # fmt: skip


def under(reduction):
    return lambda parameters: parameters["reduction"] == reduction


variants(KERNELS, "fp8lm_shared", shared, {
    "by_the_largest": ("The shared scale is the largest.", {"of": np.max}, under("paper")),
    "as_the_code": ("Ranks requantize as in the code.", {"changes": "msamp_min"}, under("paper")),
    "sums": ("The inverse is for a sum.", {"mean": False}, under("paper")),
    "by_the_count": ("The scale is divided by N, not its root.", {"root": f32}, under("msamp_max")),
    "all_requantized": ("Each rank requantizes.", {"changes": "paper"}, under("msamp_min")),
})  # fmt: skip


def stored(inputs, _, kinds=("e4m3", "f16", "f16"), before=(None, None, "previous")):
    """Return the scales of a state."""
    return {
        f"{name}_scale": bits(scales_of(
            number(inputs[f"{name}_amax"]), fmt, "msamp", number(inputs[one]) if one else None
        ))
        for name, fmt, one in zip(("first", "second", "master"), kinds, before, strict=True)
    }  # fmt: skip


variants(KERNELS, "fp8lm_stored", stored, {
    "alike": ("The second moment is in e4m3.", {"kinds": ("e4m3", "e4m3", "f16")}),
    "narrow_weights": ("Weights are in e5m2.", {"kinds": ("e4m3", "f16", "e5m2")}),
    "remembers": ("Moments keep the scale of the weights.", {"before": ("previous",) * 3}),
    "forgets": ("Weights begin with the scale 1 again.", {"before": (None,) * 3}),
})  # fmt: skip
