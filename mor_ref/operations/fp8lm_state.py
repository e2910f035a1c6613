"""Steps of states of FP8-LM: windows, automatic scaling, rates of Adam, and the partition."""

from collections.abc import Callable

import numpy as np

from mor_ref.operations.bits import bits32, f32_array, numbers_of
from mor_ref.operations.fields import fields
from mor_ref.operations.operation import Arrays, Operation, Parameters
from mor_ref.operations.parameters import kinds

_SATURATED, _OTHER = 0x7E, 0xFD
_THRESHOLD = 1e-5


def exact_windows(_: Parameters, arrays: Arrays) -> Arrays:
    """Compute the windows with the exact model."""
    from mor_ref.exact.fp8lm import history

    found = []
    for own, steps in zip(arrays["window"], arrays["amax"], strict=True):
        window = tuple(numbers_of(own, "f32"))
        for amax in numbers_of(steps, "f32"):
            window = history(window, amax)
            found.append(max(window))
    return {"largest": f32_array(found).reshape(arrays["amax"].shape)}


def engine_windows(_: Parameters, arrays: Arrays) -> Arrays:
    """Compute the windows with the public function."""
    from mor_ref import fp8lm

    window, amax = (arrays[name].view(np.float32) for name in ("window", "amax"))
    found = np.empty(amax.shape, np.float32)
    for row in range(len(amax)):
        state = fp8lm.History(tuple(window[row].tolist()))
        for step in range(amax.shape[1]):
            state = fp8lm.history(state, float(amax[row, step]))
            found[row, step] = max(state.window)
    return {"largest": bits32(found)}


def exact_mu(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Compute mu with the exact model."""
    from mor_ref.exact.fp8lm import auto_scale

    given = parameters["automatic"], _THRESHOLD, parameters["steps"]
    return _mu(arrays, lambda mu, codes: auto_scale(mu, codes, *given)[1])


def engine_mu(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Compute mu with the public function."""
    from mor_ref import fp8lm

    profile, window = parameters["automatic"], parameters["steps"]

    def next_mu(mu: float, codes: list[int]) -> float:
        given = np.array(codes, np.uint8)
        return fp8lm.auto_scale(fp8lm.AutoScale(mu), given, profile=profile, window=window).mu

    return _mu(arrays, next_mu)


def _mu(arrays: Arrays, next_mu: Callable[[float, list[int]], float]) -> Arrays:
    """Return mu after each step; a gradient has so many saturated codes, and other codes."""
    found = []
    given = (numbers_of(arrays["mu"], "f32"), *(arrays[n].tolist() for n in ("size", "saturated")))
    for first, size, steps in zip(*given, strict=True):
        mu = first
        for count in steps:
            mu = next_mu(mu, [_SATURATED] * count + [_OTHER] * (size - count))
            found.append(mu)
    return {"next_mu": f32_array(found).reshape(arrays["saturated"].shape)}


def exact_rates(_: Parameters, arrays: Arrays) -> Arrays:
    """Compute the numbers of Adam with the exact model."""
    from mor_ref.exact.arithmetic import quotient
    from mor_ref.exact.fp8lm import correction, square_root

    given = [numbers_of(arrays[name], "f32") for name in ("lr", "beta1", "beta2")]
    rates, roots = [], []
    for lr, beta1, beta2, step in zip(*given, arrays["step"].tolist(), strict=True):
        rates.append(quotient(lr, correction(beta1, step)))
        roots.append(square_root(correction(beta2, step)))
    return {"rate": f32_array(rates), "root": f32_array(roots)}


def engine_rates(_: Parameters, arrays: Arrays) -> Arrays:
    """Compute the numbers of Adam as its steps do."""
    from mor_ref.engine.fp8lm import rate_and_root

    given = [arrays[name].view(np.float32).tolist() for name in ("lr", "beta1", "beta2")]
    rows = zip(*given, arrays["step"].tolist(), strict=True)
    found = np.array([rate_and_root(*row) for row in rows], np.float32)
    return {"rate": bits32(found[:, 0]), "root": bits32(found[:, 1])}


def exact_ranks(_: Parameters, arrays: Arrays) -> Arrays:
    """Compute the partition with the exact model."""
    from mor_ref.exact.fp8lm import partition

    rows = zip(arrays["numel"].tolist(), arrays["ranks"].tolist(), strict=True)
    return {"rank": np.array([partition(*row) for row in rows], np.uint8)}


def engine_ranks(_: Parameters, arrays: Arrays) -> Arrays:
    """Compute the partition with the public function."""
    from mor_ref import fp8lm

    rows = zip(arrays["numel"].tolist(), arrays["ranks"].tolist(), strict=True)
    return {"rank": np.array([fp8lm.partition(*row) for row in rows], np.uint8)}


FP8LM_WINDOW = Operation(
    "fp8lm_window",
    {},
    inputs=fields("nk amax,window f32"),
    outputs=fields("nk largest f32"),
    exact=exact_windows,
    engine=engine_windows,
    cuda=None,
)
FP8LM_MU = Operation(
    "fp8lm_mu",
    kinds("automatic steps"),
    inputs=fields("nk saturated u32; n size u32; n mu f32"),
    outputs=fields("nk next_mu f32"),
    exact=exact_mu,
    engine=engine_mu,
    cuda=None,
)
FP8LM_RATE = Operation(
    "fp8lm_rate",
    {},
    inputs=fields("n lr,beta1,beta2 f32; n step u32"),
    outputs=fields("n rate,root f32"),
    exact=exact_rates,
    engine=engine_rates,
    cuda=None,
)
FP8LM_PARTITION = Operation(
    "fp8lm_partition",
    {},
    inputs=fields("nk numel u32; n ranks u32"),
    outputs=fields("nk rank u8"),
    exact=exact_ranks,
    engine=engine_ranks,
    cuda=None,
)
