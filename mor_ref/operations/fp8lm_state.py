"""Steps of states of FP8-LM: windows, automatic scaling, rates of Adam, and the partition."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mor_ref.operations.bits import bits32, f32_array, numbers_of
from mor_ref.operations.fields import fields
from mor_ref.operations.fp8lm_scale import random_inputs as random_scales
from mor_ref.operations.operation import Arrays, DeviceArrays, Operation, Parameters, RandomInputs
from mor_ref.operations.parameters import kinds
from mor_ref.operations.random_numbers import Draws, bits_at, share

if TYPE_CHECKING:
    from mor_ref.cuda.launching import Device

Rows = NDArray[np.bool_]
_LARGEST, _ONE = 0x7F7FFFFF, 0x3F800000  # FLT_MAX and 1, as bits
_DRAWN_CODES, _MOST_CODES = 1 << 11, (1 << 31) - 1
_MOST_STEPS, _MOST_RANKS = 1 << 14, 255
_THRESHOLD = 1e-5


def exact_windows(_: Parameters, arrays: Arrays) -> Arrays:
    """Compute the windows with the exact model."""
    from mor_ref.exact.fp8lm import history, largest_after

    largest = []
    for first_window, steps in zip(arrays["window"], arrays["amax"], strict=True):
        window = tuple(numbers_of(first_window, "f32"))
        for amax in numbers_of(steps, "f32"):
            before, window = window, history(window, amax)
            largest.append(largest_after(before, window))
    return {"largest": f32_array(largest).reshape(arrays["amax"].shape)}


def engine_windows(_: Parameters, arrays: Arrays) -> Arrays:
    """Compute the windows with the public function."""
    from mor_ref import fp8lm

    window, amax = (arrays[name].view(np.float32) for name in ("window", "amax"))
    largest = np.empty(amax.shape, np.float32)
    for row in range(len(amax)):
        state = fp8lm.History(tuple(window[row].tolist()))
        for step in range(amax.shape[1]):
            state = fp8lm.history(state, float(amax[row, step]))
            largest[row, step] = max(state.window)
    return {"largest": bits32(largest)}


def cuda_windows(device: "Device", _: Parameters, arrays: DeviceArrays) -> DeviceArrays:
    """Compute the windows on a device."""
    from mor_ref.cuda.fp8lm_state import windows

    return {"largest": windows(device, arrays["amax"], arrays["window"])}


def exact_mu(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Compute mu with the exact model."""
    from mor_ref.exact.fp8lm import next_mu

    rules = parameters["automatic"], _THRESHOLD, parameters["steps"]
    return _mu(arrays, lambda mu, count, size: next_mu(mu, count, size, *rules))


def engine_mu(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Compute mu with the public function."""
    from mor_ref.fp8lm import next_mu

    rules = parameters["automatic"], _THRESHOLD, parameters["steps"]
    return _mu(arrays, lambda mu, count, size: next_mu(mu, count, size, *rules))


def cuda_mu(device: "Device", parameters: Parameters, arrays: DeviceArrays) -> DeviceArrays:
    """Compute mu on a device."""
    from mor_ref.cuda.fp8lm_state import mus

    saturated, size, mu = (arrays[name] for name in ("saturated", "size", "mu"))
    rules = parameters["automatic"], _THRESHOLD, parameters["steps"]
    return {"next_mu": mus(device, saturated, size, mu, *rules)}


def _mu(arrays: Arrays, next_mu: Callable[[float, int, int], float]) -> Arrays:
    """Return mu after each step; a gradient has so many codes, and so many of them saturate."""
    mus = []
    columns = (
        numbers_of(arrays["mu"], "f32"),
        *(arrays[n].tolist() for n in ("size", "saturated")),
    )
    for first, size, steps in zip(*columns, strict=True):
        mu = first
        for count in steps:
            mu = next_mu(mu, count, size)
            mus.append(mu)
    return {"next_mu": f32_array(mus).reshape(arrays["saturated"].shape)}


def exact_rates(_: Parameters, arrays: Arrays) -> Arrays:
    """Compute the numbers of Adam with the exact model."""
    from mor_ref.exact.arithmetic import quotient
    from mor_ref.exact.fp8lm import square_root
    from mor_ref.exact.fp8lm_adam import correction

    numbers = [numbers_of(arrays[name], "f32") for name in ("lr", "beta1", "beta2")]
    rates, roots = [], []
    for lr, beta1, beta2, step in zip(*numbers, arrays["step"].tolist(), strict=True):
        rates.append(quotient(lr, correction(beta1, step)))
        roots.append(square_root(correction(beta2, step)))
    return {"rate": f32_array(rates), "root": f32_array(roots)}


def engine_rates(_: Parameters, arrays: Arrays) -> Arrays:
    """Compute the numbers of Adam as its steps do."""
    from mor_ref.engine.fp8lm import rate_and_root

    numbers = [arrays[name].view(np.float32).tolist() for name in ("lr", "beta1", "beta2")]
    rows = zip(*numbers, arrays["step"].tolist(), strict=True)
    rates = np.array([rate_and_root(*row) for row in rows], np.float32)
    return {"rate": bits32(rates[:, 0]), "root": bits32(rates[:, 1])}


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


# ---------------------------------------------------------------------- random inputs


def random_windows(_: Parameters, draws: Draws) -> Arrays:
    """Draw amaxes, some of them infinite or NaN, and windows of finite numbers."""
    per_number = draws.per_number()
    amax = random_scales({"format": "e4m3"}, per_number)["amax"]
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


def random_rates(_: Parameters, draws: Draws) -> Arrays:
    """Draw numbers of training, and steps."""
    words = [draws.words(k) for k in range(3)]
    near_one = np.uint64(_ONE) - share(bits_at(words[0], 0, 20), 20, 1 << 23)
    return {
        "lr": bits_at(words[1], 0, 30),
        "beta1": near_one - np.uint64(1),
        "beta2": share(bits_at(words[1], 32, 30), 30, _ONE),
        "step": share(bits_at(words[2], 0, 16), 16, 2000) + np.uint64(1),
    }


def _is_rate(_: Parameters, arrays: Arrays) -> Rows:
    betas = (arrays["beta1"] < _ONE) & (arrays["beta2"] < _ONE)
    steps = (arrays["step"] > 0) & (arrays["step"] <= _MOST_STEPS)
    return betas & steps & (arrays["lr"] <= _LARGEST)


def random_ranks(_: Parameters, draws: Draws) -> Arrays:
    """Draw sizes of tensors, many of them equal, and numbers of ranks."""
    per_tensor = draws.per_number().words(0).reshape(-1, draws.width)
    numel = bits_at(per_tensor, 0, 3) << (bits_at(per_tensor, 8, 2) * np.uint64(4))
    return {"numel": numel, "ranks": share(bits_at(draws.words(1), 0, 8), 8, 16) + np.uint64(1)}


def _is_partition(_: Parameters, arrays: Arrays) -> Rows:
    return (arrays["ranks"] > 0) & (arrays["ranks"] <= _MOST_RANKS)


_WINDOW_TAKES = "an amax has no sign bit, and a window is finite"
_MU_TAKES = f"a gradient has 1 to {_MOST_CODES} codes, and mu is finite and has no sign bit"
_RATE_TAKES = f"numbers are finite, betas are below 1, and step is 1 to {_MOST_STEPS}"


FP8LM_WINDOW = Operation(
    "fp8lm_window",
    {},
    inputs=fields("nk amax,window f32"),
    outputs=fields("nk largest f32"),
    exact=exact_windows,
    engine=engine_windows,
    cuda=cuda_windows,
    random=RandomInputs(random_windows, _is_window, _WINDOW_TAKES),
)
FP8LM_MU = Operation(
    "fp8lm_mu",
    kinds("automatic steps"),
    inputs=fields("nk saturated u32; n size u32; n mu f32"),
    outputs=fields("nk next_mu f32"),
    exact=exact_mu,
    engine=engine_mu,
    cuda=cuda_mu,
    random=RandomInputs(random_mu, _is_mu, _MU_TAKES),
)
FP8LM_RATE = Operation(
    "fp8lm_rate",
    {},
    inputs=fields("n lr,beta1,beta2 f32; n step u32"),
    outputs=fields("n rate,root f32"),
    exact=exact_rates,
    engine=engine_rates,
    cuda=None,
    random=RandomInputs(random_rates, _is_rate, _RATE_TAKES),
)
FP8LM_PARTITION = Operation(
    "fp8lm_partition",
    {},
    inputs=fields("nk numel u32; n ranks u32"),
    outputs=fields("nk rank u8"),
    exact=exact_ranks,
    engine=engine_ranks,
    cuda=None,
    random=RandomInputs(random_ranks, _is_partition, f"there are 1 to {_MOST_RANKS} ranks"),
)
