"""shared: a tensor in blocks of 16 numbers that share an exponent."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.blocks import partition
from mor_ref.definitions.shared import (
    BLOCK,
    NAN_BLOCK,
    PAIR,
    shared_kind,
    shared_profile,
)
from mor_ref.operations.bits import bits32, f32_array, tensor_of
from mor_ref.operations.elements import listed, rows_of
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
    from mor_ref import Shared
    from mor_ref.cuda.launching import Device
    from mor_ref.exact.shared import SharedElement


def exact(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Quantize with the exact model."""
    from mor_ref.exact.shared import shared

    shape = arrays["x"].shape
    kind, profile = shared_kind(parameters["kind"]), shared_profile(parameters["profile"])
    tensor = shared(rows_of(arrays, parameters["source"]), kind, profile)
    blocks, pairs = (partition(shape, (1, side)).grid for side in (BLOCK, PAIR))
    return {
        "shared_exponent": np.array(listed(tensor.exponent, blocks), np.uint8).reshape(blocks),
        "tau": np.array(listed(tensor.tau, pairs), np.uint8).reshape(pairs),
        **element_fields([e for row in tensor.elements for e in row], shape),
    }


def element_fields(elements: "list[SharedElement]", shape: tuple[int, ...]) -> dict[str, Any]:
    """Return the fields of numbers."""
    small = {
        name: np.array([getattr(e, name) for e in elements], np.uint8).reshape(shape)
        for name in ("sign", "magnitude", "code")
    }
    return {**small, "y": f32_array(e.y for e in elements).reshape(shape)}


def engine(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Quantize with the public function."""
    from mor_ref import quantize_shared

    x = tensor_of(arrays["x"], parameters["source"])
    return stored(quantize_shared(x, parameters["kind"], profile=parameters["profile"]))


def stored(record: "Shared") -> Arrays:
    """Return the fields that a record has."""
    return {
        "shared_exponent": record.shared_exponent,
        "tau": record.tau,
        "sign": record.sign,
        "magnitude": record.magnitude,
        "code": record.codes,
        "y": bits32(record.y),
    }


def restore(parameters: Parameters, arrays: Arrays) -> NDArray[np.uint32]:
    """Return y of codes (SHX-006).

    Codes do not hold an infinity or a NaN that passed, nor the sign of zeros in two's complement.
    """
    kind, code = shared_kind(parameters["kind"]), arrays["code"].astype(np.int64)
    columns, half = code.shape[1], 1 << kind.magnitude_bits
    exponent = np.repeat(arrays["shared_exponent"].astype(np.int32), BLOCK, axis=1)[:, :columns]
    tau = np.repeat(arrays["tau"].astype(np.int32), PAIR, axis=1)[:, :columns]
    is_negative = code >= half
    size = np.where(is_negative, 2 * half - code if kind.carries else code - half, code)
    y = np.ldexp(size.astype(np.float64), exponent - 127 - tau + 1 - kind.magnitude_bits)
    signed = np.where(is_negative, -y, y)
    return bits32(np.where(exponent == NAN_BLOCK, np.nan, signed).astype(np.float32))


def codes(parameters: Parameters) -> tuple[int, int]:
    """Return the lowest and the highest code (SHX-005)."""
    return 0, (2 << shared_kind(parameters["kind"]).magnitude_bits) - 1


def coded(parameters: Parameters, arrays: Arrays) -> NDArray[np.uint8]:
    """Return the codes of numbers that have a shared exponent and a shift each (SHX-005)."""
    from mor_ref.arrays import numbers_from
    from mor_ref.engine.shared import quantize_with

    kind, profile = shared_kind(parameters["kind"]), shared_profile(parameters["profile"])
    numbers = numbers_from(tensor_of(arrays["x"], parameters["source"]), "x")
    exponent, tau = (
        np.ascontiguousarray(arrays[name], np.uint8).reshape(-1)
        for name in ("shared_exponent", "tau")
    )
    return quantize_with(numbers, exponent, tau, kind, profile).code.reshape(arrays["x"].shape)


def cuda(device: "Device", parameters: Parameters, arrays: DeviceArrays) -> DeviceArrays:
    """Quantize on a device."""
    from mor_ref.cuda.launching import Bits
    from mor_ref.cuda.shared import quantize_shared

    x = Bits(arrays["x"], parameters["source"])
    kind, profile = shared_kind(parameters["kind"]), shared_profile(parameters["profile"])
    return quantize_shared(device, x, kind, profile)._asdict()


def parameters_of(record: "Shared") -> Parameters:
    """Return the parameters that made a record."""
    return {"kind": record.kind, "profile": record.profile, "block": BLOCK}


SHARED = Operation(
    "shared",
    kinds("kind:shared_kind profile:shared_profile block:shared_block source"),
    inputs=fields("rc x source"),
    outputs=fields("grid shared_exponent u8; pair tau u8; rc sign,magnitude,code u8; rc y f32"),
    exact=exact,
    engine=engine,
    cuda=cuda,
    optional=kinds(RECIPE),
    way_back=WayBack(
        lambda _: (("code",), ("tau",), ("shared_exponent",)),
        restore,
        coded,
        {"tau": 0, "shared_exponent": 127},
    ),
    record=PublicRecord(instance_test("Shared"), parameters_of, stored),
    codes=codes,
)
