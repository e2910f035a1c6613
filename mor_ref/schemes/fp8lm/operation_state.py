"""fp8lm_window and fp8lm_mu: what scales of FP8-LM are made from, step by step."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import mor_ref
from mor_ref.operations.bits import bits32
from mor_ref.operations.call import Arrays, Call, DeviceArrays, DeviceCall, Parameters, Results
from mor_ref.operations.fields import expected, given
from mor_ref.operations.operation import Operation, RandomInputs
from mor_ref.operations.parameters import kinds, number, one_of
from mor_ref.operations.random_numbers import LAYOUTS, Draws, bits_at, share
from mor_ref.schemes.fp8lm import exact as fp8lm
from mor_ref.schemes.fp8lm.definition import AUTOMATIC
from mor_ref.schemes.fp8lm.operation import random_scale

Rows = NDArray[np.bool_]
_LARGEST = LAYOUTS["f32"].largest
_DRAWN_CODES, _MOST_CODES = 1 << 11, (1 << 31) - 1
_THRESHOLD = 1e-5


def exact_windows(call: Call) -> Results:
    """Compute the windows with the exact model."""
    largest = []
    for first_window, steps in call.together("window", "amax"):
        window = tuple(first_window)
        for amax in steps:
            before, window = window, fp8lm.history(window, amax)
            largest.append(fp8lm.largest_after(before, window))
    return {"largest": largest}


def engine_windows(call: Call) -> Results:
    """Compute the windows with the public function."""
    largest = np.empty(call.shape, np.float32)
    rows = zip(call.tensor("window"), call.tensor("amax"), largest, strict=True)
    for window, steps, results in rows:
        state = mor_ref.fp8lm.History(tuple(window.tolist()))
        for step, amax in enumerate(steps):
            state = mor_ref.fp8lm.history(state, float(amax))
            results[step] = max(state.window)
    return {"largest": bits32(largest)}


def cuda_windows(call: DeviceCall) -> DeviceArrays:
    """Compute the windows on a device."""
    from mor_ref.schemes.fp8lm.cuda_state import windows

    return {"largest": windows(call.device, call.arrays["amax"], call.arrays["window"])}


def exact_mu(call: Call) -> Results:
    """Compute mu with the exact model."""
    return _mu(call, fp8lm.next_mu)


def engine_mu(call: Call) -> Results:
    """Compute mu with the public function."""
    return _mu(call, mor_ref.fp8lm.next_mu)


def _mu(call: Call, next_mu: Callable[..., float]) -> Results:
    """Return mu after each step; a gradient has so many codes, and so many of them saturate."""
    mus = []
    for first, size, steps in call.together("mu", "size", "saturated"):
        mu = first
        for count in steps:
            mu = next_mu(mu, count, size, call["automatic"], _THRESHOLD, call["steps"])
            mus.append(mu)
    return {"next_mu": mus}


def cuda_mu(call: DeviceCall) -> DeviceArrays:
    """Compute mu on a device."""
    from mor_ref.schemes.fp8lm.cuda_state import mus

    saturated, size, mu = (call.arrays[name] for name in ("saturated", "size", "mu"))
    rules = call["automatic"], _THRESHOLD, call["steps"]
    return {"next_mu": mus(call.device, saturated, size, mu, *rules)}


def random_windows(_: Parameters, draws: Draws) -> Arrays:
    """Draw amaxes, some of them infinite or NaN, and windows of finite numbers."""
    per_number = draws.per_number()
    amax = random_scale({"format": "e4m3"}, per_number)["amax"]
    window = np.minimum(bits_at(per_number.words(4), 0, 31), np.uint64(_LARGEST))
    return {name: x.reshape(-1, draws.width) for name, x in (("amax", amax), ("window", window))}


def _is_window(_: Parameters, arrays: Arrays) -> Rows:
    is_taken = (arrays["amax"] < 1 << 31) & (arrays["window"] <= _LARGEST)
    inside: Rows = np.all(is_taken, axis=1)
    return inside


def random_mu(_: Parameters, draws: Draws) -> Arrays:
    """Draw sizes of gradients, and how many codes saturate: few, and none in most steps."""
    words, per_step = draws.words(0), draws.per_number().words(1).reshape(-1, draws.width)
    size = share(bits_at(words, 0, 16), 16, _DRAWN_CODES) + np.uint64(1)
    count = np.where(bits_at(per_step, 8, 2) == 0, bits_at(per_step, 0, 2), 0)
    saturated = np.minimum(count, size[:, np.newaxis])
    return {"saturated": saturated, "size": size, "mu": bits_at(words, 32, 30)}


def _is_mu(_: Parameters, arrays: Arrays) -> Rows:
    size = arrays["size"]
    fits = (arrays["saturated"] <= size[:, np.newaxis]).all(axis=1)
    return fits & (size > 0) & (size <= _MOST_CODES) & (arrays["mu"] <= _LARGEST)


_WINDOW_TAKES = "an amax has no sign bit, and a window is finite"
_MU_TAKES = f"a gradient has 1 to {_MOST_CODES} codes, and mu is finite and has no sign bit"
FP8LM_WINDOW = Operation(
    "fp8lm_window",
    {},
    (
        given("amax f32 nk", "the amax of each step"),
        given("window f32 nk", "the window before the first step"),
        expected("largest f32 nk", "the largest number of the window", "FLM-006"),
    ),
    model=exact_windows,
    function=engine_windows,
    kernels=cuda_windows,
    random=RandomInputs(random_windows, _is_window, _WINDOW_TAKES),
)
FP8LM_MU = Operation(
    "fp8lm_mu",
    kinds("automatic steps", automatic=one_of(AUTOMATIC), steps=number(1, 1 << 16)),
    (
        given("saturated u32 nk", "the saturated codes of each step"),
        given("size u32 n", "the codes of each step"),
        given("mu f32 n", "mu before the first step"),
        expected("next_mu f32 nk", "mu after each step", "FLM-010"),
    ),
    model=exact_mu,
    function=engine_mu,
    kernels=cuda_mu,
    random=RandomInputs(random_mu, _is_mu, _MU_TAKES),
)
