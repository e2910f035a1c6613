"""levels: a matrix of weights as few levels, with an alpha for each row."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.levels import level_kind
from mor_ref.operations.bits import bits32, f32_array, tensor_of
from mor_ref.operations.elements import rows_of
from mor_ref.operations.fields import fields
from mor_ref.operations.operation import (
    Arrays,
    DeviceArrays,
    Operation,
    Parameters,
    PublicRecord,
    WayBack,
    instance_test,
)
from mor_ref.operations.parameters import RECIPE, kinds

if TYPE_CHECKING:
    from mor_ref import Levels
    from mor_ref.cuda.launching import Device
    from mor_ref.exact.levels import LevelElement

_NUMBERS = ("ratio", "clipped", "level", "y", "alpha_term")

_TERNARY = 3  # codes of a kind without a width in bits


def exact(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Quantize with the exact model."""
    from mor_ref.exact.levels import level_row

    kind = level_kind(parameters["kind"])
    rows = rows_of(arrays, parameters["source"])
    quantized = [level_row(row, kind, None, parameters["arithmetic"]) for row in rows]
    return {
        "alpha": f32_array(row.alpha for row in quantized).reshape(-1, 1),
        **element_fields([e for row in quantized for e in row.elements], arrays["x"].shape),
    }


def element_fields(elements: "list[LevelElement]", shape: tuple[int, ...]) -> dict[str, Any]:
    """Return the fields of weights."""
    numbers = {
        name: f32_array(getattr(e, name) for e in elements).reshape(shape) for name in _NUMBERS
    }
    small = {
        name: np.array([getattr(e, name) & 0xFF for e in elements], np.uint8).reshape(shape)
        for name in ("inside", "code")
    }
    return {**numbers, **small}


def engine(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Quantize with the public function."""
    from mor_ref import quantize_levels

    w = tensor_of(arrays["x"], parameters["source"])
    record = quantize_levels(w, parameters["kind"], arithmetic=parameters["arithmetic"])
    return stored(record)


def stored(record: "Levels") -> dict[str, Any]:
    """Return the fields that a record has."""
    numbers = {name: bits32(getattr(record, name)) for name in _NUMBERS}
    alpha = bits32(record.alpha).reshape(-1, 1)
    return {"alpha": alpha, **numbers, "inside": record.inside, "code": record.codes}


def restore(parameters: Parameters, arrays: Arrays) -> NDArray[np.uint32]:
    """Return y of codes (LVL-008); NaN and the sign of zeros are lost."""
    from mor_ref import encode

    kind, code = level_kind(parameters["kind"]), arrays["code"].astype(np.float32)
    if kind.grid == "integers":
        level = np.where(code > kind.highest, code - (1 << kind.bits), code)
    else:
        level = code - 1.5 if kind.grid == "quarters" else code - 1
    alpha, steps = arrays["alpha"].view(np.float32), np.float32(kind.steps)
    is_narrow = parameters["arithmetic"] == "bf16"

    def rounded(x: NDArray[np.float32]) -> NDArray[np.float32]:
        if not is_narrow:
            return x
        codes = encode(x, "bf16", overflow="ieee").astype(np.uint32)
        return (codes << np.uint32(16)).view(np.float32)

    with np.errstate(all="ignore"):
        ratio = rounded((level.astype(np.float32) / steps).astype(np.float32))
        return bits32(rounded(ratio * alpha))


def codes(parameters: Parameters) -> tuple[int, int]:
    """Return the lowest and the highest code (LVL-008)."""
    bits = level_kind(parameters["kind"]).bits
    return 0, (1 << bits if bits else _TERNARY) - 1


def coded(parameters: Parameters, arrays: Arrays) -> NDArray[np.uint8]:
    """Return the codes of weights that have an alpha each (LVL-004 to LVL-008)."""
    from mor_ref.arrays import numbers_from
    from mor_ref.engine import levels
    from mor_ref.engine.level_alphas import words_of

    kind, arithmetic = level_kind(parameters["kind"]), parameters["arithmetic"]
    numbers = numbers_from(tensor_of(arrays["x"], parameters["source"]), "x")
    words, shape = words_of(numbers, arithmetic), arrays["x"].shape
    alpha = np.ascontiguousarray(arrays["alpha"], np.uint32).reshape(-1)
    _, quantized = levels.quantize_levels(words, shape, kind, alpha, arithmetic, 1)
    return quantized.code.reshape(shape)


def cuda(device: "Device", parameters: Parameters, arrays: DeviceArrays) -> DeviceArrays:
    """Quantize on a device."""
    from mor_ref.cuda import levels
    from mor_ref.cuda.launching import Bits

    x, kind = Bits(arrays["x"], parameters["source"]), level_kind(parameters["kind"])
    alpha = levels.first_alphas(device, x, kind, parameters["arithmetic"])
    quantized = levels.quantize_levels(device, x, alpha, kind, parameters["arithmetic"])
    return {**quantized._asdict(), "alpha": quantized.alpha.reshape(-1, 1)}


def parameters_of(record: "Levels") -> Parameters:
    """Return the parameters that made a record."""
    return {"kind": record.kind, "arithmetic": record.arithmetic, "block": "row"}


LEVELS = Operation(
    "levels",
    kinds("kind:level_kind arithmetic block:level_block source"),
    inputs=fields("rc x source"),
    outputs=fields(
        "grid alpha f32; rc ratio,clipped,level f32; rc code u8; rc y,alpha_term f32; rc inside u8"
    ),
    exact=exact,
    engine=engine,
    cuda=cuda,
    optional=kinds(RECIPE),
    way_back=WayBack(lambda _: (("code",), ("alpha",)), restore, coded),
    record=PublicRecord(instance_test("Levels"), parameters_of, stored),
    codes=codes,
)
