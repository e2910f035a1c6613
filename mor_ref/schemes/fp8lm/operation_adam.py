"""fp8lm_adam, fp8lm_steps, fp8lm_stored, fp8lm_rate and fp8lm_partition: the optimizer of FP8-LM.

`fp8lm_adam` is a step of one parameter, and `fp8lm_steps` are the first steps of tensors.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mor_ref
from mor_ref.definitions.formats import formats
from mor_ref.exact.arithmetic import quotient
from mor_ref.operations.bits import bits32, codes_array
from mor_ref.operations.call import Arrays, Call, DeviceArrays, DeviceCall, Parameters, Results
from mor_ref.operations.fields import Field, expected, given
from mor_ref.operations.operation import Operation, RandomInputs
from mor_ref.operations.random_numbers import (
    ANY_NUMBER,
    LAYOUTS,
    Draws,
    Words,
    any_row,
    bits_at,
    magnitudes_of,
    share,
)
from mor_ref.schemes.fp8lm import exact as fp8lm
from mor_ref.schemes.fp8lm.definition import FIRST_MOMENT, MASTER, SECOND_MOMENT, Adam
from mor_ref.schemes.fp8lm.exact_adam import (
    Moments,
    adam,
    begun,
    correction,
    parameter_after,
    stored_scales,
)
from mor_ref.schemes.fp8lm.operation import random_scale

Rows = NDArray[np.bool_]
STATE = {"first": FIRST_MOMENT, "second": SECOND_MOMENT, "master": MASTER}  # and its formats
_INVERSES = ("first_inverse", "second_inverse", "master_inverse")
_STEP_NUMBERS = ("rate", "root")
_UPDATED = ("new_first", "new_second", "new_master")
_AMAXES = ("first_amax", "second_amax", "master_amax")
_SCALES = ("first_scale", "second_scale", "master_scale")
STEPS = 4
_GRADIENTS = tuple(f"gradient_{k}" for k in range(1, STEPS + 1))
_TENSORS = {"first": "first moment", "second": "second moment", "master": "weights"}
_RATES = ("the learning rate", "beta1", "beta2", "eps", "the weight decay")
_F32, _ONE = LAYOUTS["f32"], 0x3F800000
_MOST_PARAMETERS = 4096
_MOST_STEPS, _MOST_RANKS = 1 << 14, 255
_LOST = np.array([_F32.infinity, 0x7FC00000, 0, 1], np.uint64)
BETAS = np.array([0.9, 0.95, 0.99, 0.999, 0.98, 0.0, 0.5, 0.9999], np.float32).view(np.uint32)
SMALL = np.array([1e-3, 1e-8, 3e-4, 0.0, 0.1, 0.01, 1e-6, 6e-5], np.float32).view(np.uint32)


def exact_adam(call: Call) -> Results:
    """Compute with the exact model."""
    values = [[formats[f].value(c) for c in call.numbers(n)] for n, f in STATE.items()]
    names = ("gradient", *_INVERSES, *Adam._fields, *_STEP_NUMBERS)
    updated = []
    for state, row in zip(zip(*values, strict=True), call.together(*names), strict=True):
        g, *inverses = row[:4]
        updated.append(parameter_after(state, inverses, g, Adam(*row[4:9]), *row[9:]))
    return dict(zip(_UPDATED, zip(*updated, strict=True), strict=True))


def engine_adam(call: Call) -> Results:
    """Compute each parameter as a tensor of its own."""
    from mor_ref.schemes.fp8lm.engine_adam import after_step

    by_name = {name: call.tensor(name) for name in call.inputs if name not in STATE}
    inverses = np.stack([by_name[name] for name in _INVERSES], axis=1)
    states = []
    for k, inverse in enumerate(inverses):
        numbers = Adam(*(by_name[name][k] for name in Adam._fields))
        state = [call.arrays[name][k : k + 1] for name in STATE]
        gradient, last = by_name["gradient"][k : k + 1], (by_name["rate"][k], by_name["root"][k])
        states.append(after_step(gradient, state, inverse, numbers, *last)[0])
    updated = np.array(states, np.float32).reshape(-1, len(_UPDATED))
    return {name: bits32(updated[:, k].copy()) for k, name in enumerate(_UPDATED)}


def cuda_adam(call: DeviceCall) -> DeviceArrays:
    """Compute on a device."""
    from mor_ref.schemes.fp8lm.cuda import adam

    return adam(call.device, call.arrays)


def random_adam(_: Parameters, draws: Draws) -> Arrays:
    """Draw states and numbers of training, most of them as in use, some of any kind."""
    words = [draws.words(k) for k in range(6)]
    is_any = bits_at(words[0], 60, 4) == 0

    def powers(word: int, place: int, center: int, spread: int) -> np.ndarray:
        fields_drawn = share(bits_at(words[word], place, 16), 16, spread) + np.uint64(
            center - spread // 2
        )
        return fields_drawn << np.uint64(23)

    def numbers(word: int, center: int) -> np.ndarray:
        fields_drawn = share(bits_at(words[word], 32, 16), 16, 40).astype(np.int64) + center - 20
        return magnitudes_of(fields_drawn, words[word], _F32) | (words[word] >> np.uint64(63)) << (
            np.uint64(31)
        )

    def chosen(table: np.ndarray, place: int) -> np.ndarray:
        usual = table[bits_at(words[5], place, 3).astype(np.int64)].astype(np.uint64)
        return np.where(bits_at(words[5], place + 3, 4) == 0, bits_at(words[4], place, 31), usual)

    second = bits_at(words[1], 0, 15)
    return {
        "first": bits_at(words[0], 0, 8),
        "second": np.where(is_any, bits_at(words[1], 0, 16), second % np.uint64(0x7C00)),
        "master": bits_at(words[1], 16, 16),
        "gradient": np.where(is_any, numbers(2, 120) & np.uint64(0x81FFFFFF), numbers(2, 120)),
        "first_inverse": powers(0, 16, 115, 24),
        "second_inverse": powers(0, 32, 105, 24),
        "master_inverse": powers(3, 0, 112, 8),
        "lr": chosen(SMALL, 0),
        "beta1": chosen(BETAS, 8),
        "beta2": chosen(BETAS, 16),
        "eps": chosen(SMALL, 24),
        "weight_decay": chosen(SMALL, 32),
        "rate": numbers(3, 118) & np.uint64(0x7FFFFFFF),
        "root": numbers(4, 124) & np.uint64(0x7FFFFFFF),
    }


def exact_steps(call: Call) -> Results:
    """Compute with the exact model."""
    states: dict[int, list[Moments]] = {k: [] for k in range(STEPS + 1)}
    names = ("weight", *_GRADIENTS, *Adam._fields)
    for weight, *row in call.together(*names):
        state, numbers = begun(weight), Adam(*row[STEPS:])
        states[0].append(state)
        for k, gradient in enumerate(row[:STEPS], 1):
            state = adam(state, gradient, numbers)
            states[k].append(state)
    by_name: dict[str, Any] = {}
    for k, states_after in states.items():
        for place, (name, fmt) in enumerate(STATE.items()):
            codes = [code for moments in states_after for code in getattr(moments, name)]
            by_name[f"{name}_{k}"] = codes_array(codes, formats[fmt])
            by_name[f"{name}_scale_{k}"] = [moments.scales[place] for moments in states_after]
    return _without_first_moments(by_name)


def engine_steps(call: Call) -> Results:
    """Compute with the public functions, a tensor at a time."""
    states: dict[int, list[mor_ref.fp8lm.AdamState]] = {k: [] for k in range(STEPS + 1)}
    rates = {name: call.tensor(name).tolist() for name in Adam._fields}
    for row, weight in enumerate(call.tensor("weight")):
        numbers = {name: column[row] for name, column in rates.items()}
        state = mor_ref.fp8lm.begin_adam(weight)
        states[0].append(state)
        for k, name in enumerate(_GRADIENTS, 1):
            state = mor_ref.fp8lm.adam(state, call.tensor(name)[row], **numbers)
            states[k].append(state)
    by_name = {}
    for k, states_after in states.items():
        for name in STATE:
            parts = [getattr(state_after, name) for state_after in states_after]
            by_name[f"{name}_{k}"] = np.array([part.codes for part in parts])
            by_name[f"{name}_scale_{k}"] = bits32(np.array([part.scale for part in parts]))
    return _without_first_moments(by_name)


def _without_first_moments(by_name: Mapping[str, Any]) -> Results:
    """Return states without the moments before the first step, which are 0 with the scale 1."""
    zeros = {"first_0", "first_scale_0", "second_0", "second_scale_0"}
    return {name: result for name, result in by_name.items() if name not in zeros}


def random_steps(_: Parameters, draws: Draws) -> Arrays:
    """Draw tensors, gradients near a magnitude of each step, and the numbers of training."""
    per_number, words = draws.per_number(), [draws.words(k) for k in range(8, 14)]

    def tensor(stream: int, center: Words, spread: int) -> Words:
        bits = per_number.words(stream)
        steps = share(bits_at(bits, 32, 12), 12, spread).astype(np.int64).reshape(-1, draws.width)
        rows = bits.reshape(-1, draws.width)
        magnitudes = magnitudes_of(center[:, np.newaxis].astype(np.int64) - steps, rows, _F32)
        is_lost = bits_at(rows, 44, 8) == 0
        lost = _LOST[bits_at(rows, 52, 2).astype(np.int64)]
        signed: Words = np.where(is_lost, lost, magnitudes) | rows >> np.uint64(63) << np.uint64(31)
        return signed

    def center(k: int) -> Words:
        """Return an exponent field: usual, or of any magnitude."""
        usual = share(bits_at(words[k], 0, 16), 16, 24) + np.uint64(108)
        any_field = share(bits_at(words[k], 16, 16), 16, 255)
        return np.where(bits_at(words[k], 32, 4) == 0, any_field, usual)

    def chosen(table: NDArray[np.uint32], place: int, most: int) -> Words:
        usual = table[bits_at(words[5], place, 3).astype(np.int64)].astype(np.uint64)
        drawn = share(bits_at(words[5] >> np.uint64(1), place, 24), 24, most)
        return np.where(bits_at(words[5], place + 3, 4) == 0, drawn, usual)

    return {
        "weight": tensor(0, center(0), 10),
        **{name: tensor(k, center(k), 12) for k, name in enumerate(_GRADIENTS, 1)},
        "lr": chosen(SMALL, 0, _ONE),
        "beta1": chosen(BETAS, 8, _ONE),
        "beta2": chosen(BETAS, 16, _ONE),
        "eps": chosen(SMALL, 24, _ONE),
        "weight_decay": chosen(SMALL, 32, _ONE),
    }


def _is_training(_: Parameters, arrays: Arrays) -> Rows:
    betas = (arrays["beta1"] < _ONE) & (arrays["beta2"] < _ONE)
    inside: Rows = betas & np.all(
        [arrays[name] <= _F32.largest for name in ("lr", "eps", "weight_decay")], axis=0
    )
    return inside


def _state_after(step: int, name: str) -> tuple[Field, Field]:
    """Return the scale and the codes of a tensor of the state."""
    words = f"of the {_TENSORS[name]} after step {step}"
    scale = expected(f"{name}_scale_{step} f32 n", f"the scale {words}", "FLM-014")
    return scale, expected(
        f"{name}_{step} {STATE[name]} nk", f"the codes {words}", "FLM-012 FLM-013"
    )


def exact_stored(call: Call) -> Results:
    """Compute the scales of a state with the exact model."""
    scales = [stored_scales(row[:3], row[3]) for row in call.together(*_AMAXES, "previous")]
    return dict(zip(_SCALES, zip(*scales, strict=True), strict=True))


def engine_stored(call: Call) -> Results:
    """Compute the scales of a state as a step of Adam does."""
    from mor_ref.fp8lm import stored_scales

    columns = [call.tensor(name).tolist() for name in (*_AMAXES, "previous")]
    scales = [stored_scales(row[:3], row[3]) for row in zip(*columns, strict=True)]
    table = np.array(scales, np.float32).reshape(-1, len(_SCALES))
    return {name: bits32(table[:, k]) for k, name in enumerate(_SCALES)}


def cuda_stored(call: DeviceCall) -> DeviceArrays:
    """Compute the scales of a state on a device."""
    from mor_ref.schemes.fp8lm.cuda_state import stored_scales

    amaxes = [call.arrays[name] for name in _AMAXES]
    return stored_scales(call.device, amaxes, call.arrays["previous"])


def random_stored(_: Parameters, draws: Draws) -> Arrays:
    """Draw amaxes of both moments and of the weights, and scales of the weights before."""
    wider = Draws(draws.first * len(_AMAXES), draws.count * len(_AMAXES), draws.seed)
    drawn = {fmt: random_scale({"format": fmt}, wider) for fmt in ("e4m3", "f16")}
    first, second, master = (drawn[fmt] for fmt in ("e4m3", "f16", "f16"))
    return {
        "first_amax": first["amax"][0::3],
        "second_amax": second["amax"][1::3],
        "master_amax": master["amax"][2::3],
        "previous": master["previous"][2::3],
    }


def _are_amaxes(_: Parameters, arrays: Arrays) -> NDArray[np.bool_]:
    bits = [array.reshape(len(array), math.prod(array.shape[1:])) for array in arrays.values()]
    inside: NDArray[np.bool_] = np.all(np.concatenate(bits, axis=1) >> 31 == 0, axis=1)
    return inside


def exact_rates(call: Call) -> Results:
    """Compute the numbers of Adam with the exact model."""
    rows = list(call.together("lr", "beta1", "beta2", "step"))
    return {
        "rate": [quotient(lr, correction(beta1, step)) for lr, beta1, _, step in rows],
        "root": [fp8lm.square_root(correction(beta2, step)) for _, _, beta2, step in rows],
    }


def engine_rates(call: Call) -> Results:
    """Compute the numbers of Adam as its steps do."""
    from mor_ref.schemes.fp8lm.engine import rate_and_root

    numbers = [call.tensor(name).tolist() for name in ("lr", "beta1", "beta2")]
    rows = zip(*numbers, call.numbers("step"), strict=True)
    rates = np.array([rate_and_root(*row) for row in rows], np.float32)
    return {"rate": bits32(rates[:, 0]), "root": bits32(rates[:, 1])}


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
    return betas & steps & (arrays["lr"] <= _F32.largest)


def exact_ranks(call: Call) -> Results:
    """Compute the partition with the exact model."""
    return {"rank": [list(fp8lm.partition(*row)) for row in call.together("numel", "ranks")]}


def engine_ranks(call: Call) -> Results:
    """Compute the partition with the public function."""
    rows = call.together("numel", "ranks")
    return {"rank": [list(mor_ref.fp8lm.partition(*row)) for row in rows]}


def random_ranks(_: Parameters, draws: Draws) -> Arrays:
    """Draw sizes of tensors, many of them equal, and numbers of ranks."""
    per_tensor = draws.per_number().words(0).reshape(-1, draws.width)
    numel = bits_at(per_tensor, 0, 3) << (bits_at(per_tensor, 8, 2) * np.uint64(4))
    return {"numel": numel, "ranks": share(bits_at(draws.words(1), 0, 8), 8, 16) + np.uint64(1)}


def _is_partition(_: Parameters, arrays: Arrays) -> Rows:
    return (arrays["ranks"] > 0) & (arrays["ranks"] <= _MOST_RANKS)


FP8LM_ADAM = Operation(
    "fp8lm_adam",
    {},
    (
        given("first e4m3 n", "the code of the first moment"),
        given("second f16 n", "the code of the second moment"),
        given("master f16 n", "the code of the weight"),
        given("gradient f32 n", "the gradient"),
        given("first_inverse f32 n", "the inverse of the scale of the first moment"),
        given("second_inverse f32 n", "that of the second moment"),
        given("master_inverse f32 n", "that of the weight"),
        given("lr f32 n", "the learning rate, for the decay alone"),
        given("beta1 f32 n", "beta1"),
        given("beta2 f32 n", "beta2"),
        given("eps f32 n", "eps"),
        given("weight_decay f32 n", "the weight decay"),
        given("rate f32 n", "the rate of the step"),
        given("root f32 n", "the root of the second correction"),
        expected("new_first f32 n", "the first moment, before its cast", "FLM-012"),
        expected("new_second f32 n", "the second moment, before its cast", "FLM-012"),
        expected("new_master f32 n", "the weight, before its cast", "FLM-013"),
    ),
    model=exact_adam,
    function=engine_adam,
    kernels=cuda_adam,
    random=RandomInputs(random_adam, any_row, ANY_NUMBER),
)
FP8LM_STEPS = Operation(
    "fp8lm_steps",
    {},
    (
        given("weight f32 nk", "the parameters before the first step"),
        *(
            given(f"{name} f32 nk", f"the gradient of step {k}")
            for k, name in enumerate(_GRADIENTS, 1)
        ),
        *(given(f"{name} f32 n", words) for name, words in zip(Adam._fields, _RATES, strict=True)),
        expected("master_scale_0 f32 n", "the first scale of the weights", "FLM-014"),
        expected("master_0 f16 nk", "the first codes of the weights", "FLM-014"),
        *(field for k in range(1, STEPS + 1) for name in STATE for field in _state_after(k, name)),
    ),
    model=exact_steps,
    function=engine_steps,
    kernels=None,
    random=RandomInputs(
        random_steps, _is_training, "numbers of Adam are finite and not negative, betas below 1"
    ),
    widths=(1, _MOST_PARAMETERS),
)
FP8LM_STORED = Operation(
    "fp8lm_stored",
    {},
    (
        given("first_amax f32 n", "the amax of the first moment"),
        given("second_amax f32 n", "the amax of the second moment"),
        given("master_amax f32 n", "the amax of the weights"),
        given("previous f32 n", "the scale of the weights before"),
        expected("first_scale f32 n", "the scale of the first moment, in e4m3", "FLM-014"),
        expected("second_scale f32 n", "the scale of the second moment, in f16", "FLM-014"),
        expected("master_scale f32 n", "the scale of the weights, in f16", "FLM-014"),
    ),
    model=exact_stored,
    function=engine_stored,
    kernels=cuda_stored,
    random=RandomInputs(random_stored, _are_amaxes, "an amax has no sign bit"),
)
_RATE_TAKES = f"numbers are finite, betas are below 1, and step is 1 to {_MOST_STEPS}"
FP8LM_RATE = Operation(
    "fp8lm_rate",
    {},
    (
        given("lr f32 n", "the learning rate"),
        given("beta1 f32 n", "beta1"),
        given("beta2 f32 n", "beta2"),
        given("step u32 n", "the step, from 1 on"),
        expected("rate f32 n", "the rate", "FLM-011"),
        expected("root f32 n", "the root", "FLM-011"),
    ),
    model=exact_rates,
    function=engine_rates,
    kernels=None,
    random=RandomInputs(random_rates, _is_rate, _RATE_TAKES),
)
FP8LM_PARTITION = Operation(
    "fp8lm_partition",
    {},
    (
        given("numel u32 nk", "the elements of each tensor"),
        given("ranks u32 n", "how many ranks there are"),
        expected("rank u8 nk", "the rank of each tensor", "FLM-015"),
    ),
    model=exact_ranks,
    function=engine_ranks,
    kernels=None,
    random=RandomInputs(random_ranks, _is_partition, f"there are 1 to {_MOST_RANKS} ranks"),
)
