"""fp8lm_steps: the states of Adam after each of its first steps, of tensors of their own."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.formats import formats
from mor_ref.definitions.fp8lm import FIRST_MOMENT, MASTER, SECOND_MOMENT, Adam
from mor_ref.operations.bits import bits32, codes_array, f32_array, numbers_of, tensor_of
from mor_ref.operations.fields import fields
from mor_ref.operations.fp8lm_adam import BETAS, SMALL
from mor_ref.operations.operation import Arrays, Operation, Parameters, RandomInputs
from mor_ref.operations.random_numbers import (
    LAYOUTS,
    Draws,
    Words,
    bits_at,
    magnitudes_of,
    share,
)

STEPS = 4
KINDS = {"first": FIRST_MOMENT, "second": SECOND_MOMENT, "master": MASTER}
_F32, _ONE = LAYOUTS["f32"], 0x3F800000
_MOST_PARAMETERS = 4096
_GRADIENTS = tuple(f"gradient_{k}" for k in range(1, STEPS + 1))
_LOST = np.array([_F32.infinity, 0x7FC00000, 0, 1], np.uint64)
_CODES = "; ".join(
    f"n first_scale_{k},second_scale_{k},master_scale_{k} f32; nk first_{k} e4m3; "
    f"nk second_{k},master_{k} f16"
    for k in range(1, STEPS + 1)
)


def exact(_: Parameters, arrays: Arrays) -> Arrays:
    """Compute with the exact model."""
    from mor_ref.exact.fp8lm_adam import Moments, adam, begun

    states: dict[int, list[Moments]] = {k: [] for k in range(STEPS + 1)}
    rates = zip(*(numbers_of(arrays[name], "f32") for name in Adam._fields), strict=True)
    for row, numbers in enumerate(rates):
        state = begun(numbers_of(arrays["weight"][row], "f32"))
        states[0].append(state)
        for k, name in enumerate(_GRADIENTS, 1):
            state = adam(state, numbers_of(arrays[name][row], "f32"), Adam(*numbers))
            states[k].append(state)
    shape, by_name = arrays["weight"].shape, {}
    for k, states_after in states.items():
        for place, (name, kind) in enumerate(KINDS.items()):
            codes = [code for moments in states_after for code in getattr(moments, name)]
            by_name[f"{name}_{k}"] = codes_array(codes, formats[kind]).reshape(shape)
            by_name[f"{name}_scale_{k}"] = f32_array(
                moments.scales[place] for moments in states_after
            )
    return _without_first_moments(by_name)


def engine(_: Parameters, arrays: Arrays) -> Arrays:
    """Compute with the public functions, a tensor at a time."""
    from mor_ref import fp8lm

    states: dict[int, list[fp8lm.AdamState]] = {k: [] for k in range(STEPS + 1)}
    names = ("weight", *_GRADIENTS, *Adam._fields)
    inputs = {name: tensor_of(arrays[name], "f32") for name in names}
    for row, weight in enumerate(inputs["weight"]):
        rates = {name: float(inputs[name][row]) for name in Adam._fields}
        state = fp8lm.begin_adam(weight)
        states[0].append(state)
        for k, name in enumerate(_GRADIENTS, 1):
            state = fp8lm.adam(state, inputs[name][row], **rates)
            states[k].append(state)
    by_name = {}
    for k, states_after in states.items():
        for name in KINDS:
            parts = [getattr(state_after, name) for state_after in states_after]
            by_name[f"{name}_{k}"] = np.array([part.codes for part in parts])
            by_name[f"{name}_scale_{k}"] = bits32(np.array([part.scale for part in parts]))
    return _without_first_moments(by_name)


def _without_first_moments(by_name: Mapping[str, NDArray[np.unsignedinteger]]) -> Arrays:
    """Return states without the moments before the first step, which are 0 with the scale 1."""
    zeros = {"first_0", "first_scale_0", "second_0", "second_scale_0"}
    return {name: array for name, array in by_name.items() if name not in zeros}


def random_inputs(_: Parameters, draws: Draws) -> Arrays:
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


def _is_training(_: Parameters, arrays: Arrays) -> NDArray[np.bool_]:
    betas = (arrays["beta1"] < _ONE) & (arrays["beta2"] < _ONE)
    inside: NDArray[np.bool_] = betas & np.all(
        [arrays[name] <= _F32.largest for name in ("lr", "eps", "weight_decay")], axis=0
    )
    return inside


FP8LM_STEPS = Operation(
    "fp8lm_steps",
    {},
    inputs=fields(f"nk weight,{','.join(_GRADIENTS)} f32; n {','.join(Adam._fields)} f32"),
    outputs=fields(f"n master_scale_0 f32; nk master_0 f16; {_CODES}"),
    exact=exact,
    engine=engine,
    cuda=None,
    random=RandomInputs(
        random_inputs, _is_training, "numbers of Adam are finite and not negative, betas below 1"
    ),
    widths=(1, _MOST_PARAMETERS),
)
