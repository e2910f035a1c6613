"""dot_integers: rows of int8, their products added up as int32, with the epilogue of SwitchBack."""

from typing import TYPE_CHECKING

import numpy as np

from mor_ref.definitions.dot import DOT_PROFILES, INT8
from mor_ref.definitions.formats import formats
from mor_ref.operations.bits import bits32, f32_array
from mor_ref.operations.fields import fields
from mor_ref.operations.operation import Arrays, DeviceArrays, Operation, Parameters, RandomInputs
from mor_ref.operations.parameters import kinds
from mor_ref.operations.random_numbers import Draws, Words, any_row, bits_at, share

if TYPE_CHECKING:
    from mor_ref.cuda.launching import Device

INTEGERS, SWITCHBACK = DOT_PROFILES["int32"], DOT_PROFILES["switchback"]
FORMATS = (INT8, INT8)
_U32 = 1 << 32
_U = np.uint64
_ENDS = np.array([0x7F, 0x80, 0x81], _U)
# Exponents of binary32, of scales near 1, and of those whose products underflow or overflow.
_FIELDS = (120, 16), (1, 70), (184, 70)


def exact(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Add up with the exact model, row by row."""
    from mor_ref.exact.dot import Scales, dot_chunks

    del parameters
    plain, scaled = [], []
    rows = (arrays[name].tolist() for name in ("a", "b", "scale_a", "scale_b"))
    for a, b, x, w in zip(*rows, strict=True):
        plain += dot_chunks(a, b, 0.0, INTEGERS, FORMATS)
        scaled += dot_chunks(
            a, b, 0.0, SWITCHBACK, FORMATS, Scales([x], [w], formats["f32"], len(a))
        )
    return {
        "int32_sum": np.array([(chunk.cut_sum or 0) % _U32 for chunk in plain], np.uint32),
        "number": f32_array(chunk.c for chunk in plain),
        "result": f32_array(chunk.c for chunk in scaled),
    }


def engine(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Add up with the engine."""
    from mor_ref import dot, dot_chunks

    del parameters
    a, b, names = arrays["a"], arrays["b"], (INT8.name, INT8.name)
    plain = dot_chunks(a, b, formats=names, profile=INTEGERS)
    sums = np.zeros((len(a), 1), np.int64) if plain.cut_sum is None else plain.cut_sum
    scales = (arrays["scale_a"][:, np.newaxis], arrays["scale_b"][:, np.newaxis])
    return {
        "int32_sum": sums[:, 0].astype(np.int32).view(np.uint32),
        "number": bits32(plain.c[:, 0]),
        "result": bits32(dot(a, b, formats=names, scales=scales, profile=SWITCHBACK)),
    }


def cuda(device: "Device", parameters: Parameters, arrays: DeviceArrays) -> DeviceArrays:
    """Add up on a device."""
    from mor_ref.cuda.dot_products import Scales, dot

    del parameters
    a, b = arrays["a"], arrays["b"]
    rows, columns = a.shape
    zeros = device.filled((rows,), np.uint32, 0)
    plain = dot(device, a, b, zeros, INTEGERS, FORMATS, keeps=True)
    x, w = (arrays[f"scale_{name}"].reshape(rows, 1) for name in "ab")
    scaled = dot(device, a, b, zeros, SWITCHBACK, FORMATS, Scales(x, w, formats["f32"], columns))
    low = plain.cut_sum[:, 0].astype(np.uint32)
    return {"int32_sum": low, "number": plain.result, "result": scaled.result}


def random_inputs(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw rows of any integers or of those at both ends, some with large sums, and scales."""
    del parameters
    per_number, shape, choices = draws.per_number(), (draws.count, draws.width), draws.words(0)
    kind = bits_at(choices, 0, 2)[:, np.newaxis]
    drawn: dict[str, Words] = {}
    for stream, name in enumerate("ab", 1):
        words = per_number.words(stream).reshape(shape)
        ends = _ENDS[share(bits_at(words, 8, 16), 16, _ENDS.size)]
        is_end = (kind == 0) | (kind == 1) & (bits_at(words, 24, 2) != 0)
        drawn[name] = np.where(is_end, ends, words & _U(0xFF))
        drawn[f"scale_{name}"] = _scales(draws.words(stream + 2), choices)
    sign = np.where(bits_at(choices, 2, 1) == 0, _U(1), _U(0xFF))[:, np.newaxis]
    drawn["b"] = np.where(kind == 0, drawn["a"] * sign & _U(0xFF), drawn["b"])
    return drawn


def _scales(words: Words, choices: Words) -> Words:
    """Return numbers near 1, two whose product is at an end of binary32, or any bits."""
    kind = share(bits_at(choices, 16, 16), 16, 8)
    spans = [share(bits_at(words, 32, 16), 16, size) + _U(low) for low, size in _FIELDS]
    field = np.select([kind < 5, kind == 5], spans[:2], spans[2])
    near = field << _U(23) | words & _U(0x7FFFFF)
    scales: Words = np.where(kind == 7, words & _U(0xFFFFFFFF), near)
    return scales


DOT_INTEGERS = Operation(
    "dot_integers",
    kinds(""),
    inputs=fields("nk a,b u8; n scale_a,scale_b f32"),
    outputs=fields("n int32_sum u32; n number f32; n result f32"),
    exact=exact,
    engine=engine,
    cuda=cuda,
    random=RandomInputs(
        random_inputs, any_row, "every code is taken", answers=("int32_sum", "result")
    ),
)
