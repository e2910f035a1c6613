"""fp8lm_adam: the moments and the weight of one parameter after a step of Adam."""

from typing import TYPE_CHECKING

import numpy as np

from mor_ref.definitions.formats import formats
from mor_ref.definitions.fp8lm import FIRST_MOMENT, MASTER, SECOND_MOMENT, Adam
from mor_ref.operations.bits import bits32, f32_array, numbers_of, tensor_of
from mor_ref.operations.fields import fields
from mor_ref.operations.operation import Arrays, DeviceArrays, Operation, Parameters, RandomInputs
from mor_ref.operations.random_numbers import (
    ANY_NUMBER,
    LAYOUTS,
    Draws,
    any_row,
    bits_at,
    magnitudes_of,
    share,
)

if TYPE_CHECKING:
    from mor_ref.cuda.launching import Device

_CODES = {"first": FIRST_MOMENT, "second": SECOND_MOMENT, "master": MASTER}
_INVERSES = ("first_inverse", "second_inverse", "master_inverse")
_NUMBERS = ("lr", "beta1", "beta2", "eps", "weight_decay")
_STEP_NUMBERS = ("rate", "root")
_UPDATED = ("new_first", "new_second", "new_master")
_F32 = LAYOUTS["f32"]
BETAS = np.array([0.9, 0.95, 0.99, 0.999, 0.98, 0.0, 0.5, 0.9999], np.float32).view(np.uint32)
SMALL = np.array([1e-3, 1e-8, 3e-4, 0.0, 0.1, 0.01, 1e-6, 6e-5], np.float32).view(np.uint32)


def exact(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Compute with the exact model."""
    from mor_ref.exact.fp8lm_adam import parameter_after

    del parameters
    moments: dict[str, list[float]] = {name: [] for name in _UPDATED}
    values = [[formats[f].value(c) for c in arrays[n].tolist()] for n, f in _CODES.items()]
    names = ("gradient", *_INVERSES, *_NUMBERS, *_STEP_NUMBERS)
    columns = [numbers_of(arrays[name], "f32") for name in names]
    for state, row in zip(zip(*values, strict=True), zip(*columns, strict=True), strict=True):
        g, *inverses = row[:4]
        after = parameter_after(state, inverses, g, Adam(*row[4:9]), *row[9:])
        for name, number in zip(_UPDATED, after, strict=True):
            moments[name].append(number)
    return {name: f32_array(numbers) for name, numbers in moments.items()}


def engine(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Compute each parameter as a tensor of its own."""
    from mor_ref.engine.fp8lm_adam import after_step

    del parameters
    by_name = {
        name: tensor_of(array, "f32") for name, array in arrays.items() if name not in _CODES
    }
    inverses = np.stack([by_name[name] for name in _INVERSES], axis=1)
    states = []
    for k, inverse in enumerate(inverses):
        numbers = Adam(*(by_name[name][k] for name in _NUMBERS))
        state = [arrays[name][k : k + 1] for name in _CODES]
        gradient, last = by_name["gradient"][k : k + 1], (by_name["rate"][k], by_name["root"][k])
        states.append(after_step(gradient, state, inverse, numbers, *last)[0])
    updated = np.array(states, np.float32).reshape(-1, len(_UPDATED))
    return {name: bits32(updated[:, k].copy()) for k, name in enumerate(_UPDATED)}


def cuda(device: "Device", parameters: Parameters, arrays: DeviceArrays) -> DeviceArrays:
    """Compute on a device."""
    from mor_ref.cuda.fp8lm import adam

    del parameters
    return adam(device, arrays)


def random_inputs(_: Parameters, draws: Draws) -> Arrays:
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


FP8LM_ADAM = Operation(
    "fp8lm_adam",
    {},
    inputs=fields(
        "n first e4m3; n second,master f16; n gradient,first_inverse,second_inverse,"
        "master_inverse,lr,beta1,beta2,eps,weight_decay,rate,root f32"
    ),
    outputs=fields("n new_first,new_second,new_master f32"),
    exact=exact,
    engine=engine,
    cuda=cuda,
    random=RandomInputs(random_inputs, any_row, ANY_NUMBER),
)
