"""shared_packed and levels_packed: codes as bytes; each row is a block, or a row of weights."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from mor_ref.definitions.levels import level_kind
from mor_ref.definitions.shared import BLOCK, PAIR, shared_kind
from mor_ref.operations.fields import fields
from mor_ref.operations.operation import Arrays, DeviceArrays, Operation, Parameters, RandomInputs
from mor_ref.operations.parameters import kinds
from mor_ref.operations.random_numbers import Draws, any_row, bits_at, share

if TYPE_CHECKING:
    from mor_ref.cuda.launching import Device


def _bytes(rows: "list[bytes]") -> Arrays:
    return {"packed": np.array([list(row) for row in rows], np.uint8)}


def exact_blocks(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Pack blocks with the exact model."""
    from mor_ref.exact.shared import SharedBlock, SharedElement, packed

    kind = shared_kind(parameters["kind"])
    return _bytes(
        [
            packed(SharedBlock(e, tau, [SharedElement(0, 0, code, 0.0) for code in codes]), kind)
            for codes, tau, e in zip(
                arrays["code"].tolist(),
                arrays["tau"].tolist(),
                arrays["shared_exponent"].tolist(),
                strict=True,
            )
        ]
    )


def engine_blocks(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Pack blocks as records do."""
    from mor_ref import Shared

    code = arrays["code"].astype(np.uint8)
    y = np.zeros(code.shape, np.float32)
    exponent, tau = arrays["shared_exponent"].reshape(-1, 1), arrays["tau"]
    record = Shared(parameters["kind"], "quark_torch", exponent, tau, code, code, code, y)
    return {"packed": record.packed}


def cuda_blocks(device: "Device", parameters: Parameters, arrays: DeviceArrays) -> DeviceArrays:
    """Pack blocks on a device."""
    from mor_ref.cuda.packing import blocks

    code, tau, exponent = (arrays[name] for name in ("code", "tau", "shared_exponent"))
    return {"packed": blocks(device, code, tau, exponent, shared_kind(parameters["kind"]))}


def random_blocks(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw exponents, shifts and codes."""
    kind, per_number = shared_kind(parameters["kind"]), draws.per_number()
    shape = (draws.count, draws.width)
    codes = bits_at(per_number.words(0), 0, kind.code_bits).reshape(shape)
    tau = bits_at(per_number.words(1), 0, 1).reshape(shape)[:, ::PAIR] * np.uint64(kind.shifts)
    return {"code": codes, "tau": tau, "shared_exponent": bits_at(draws.words(2), 0, 8)}


def exact_rows(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Pack rows of levels with the exact model."""
    from mor_ref.exact.levels import packed_row

    kind = level_kind(parameters["kind"])
    return _bytes([packed_row(codes, kind) for codes in arrays["code"].tolist()])


def engine_rows(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Pack rows of levels as records do."""
    from mor_ref import quantize_levels

    code = arrays["code"].astype(np.uint8)
    record = quantize_levels(np.zeros(code.shape, np.float32), parameters["kind"])
    return {"packed": replace(record, codes=code).packed}


def cuda_rows(device: "Device", parameters: Parameters, arrays: DeviceArrays) -> DeviceArrays:
    """Pack rows of levels on a device."""
    from mor_ref.cuda.packing import levels

    return {"packed": levels(device, arrays["code"], level_kind(parameters["kind"]))}


def random_rows(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw codes."""
    kind, per_number = level_kind(parameters["kind"]), draws.per_number()
    count = 1 << kind.bits if kind.bits else 3
    return {"code": share(per_number.words(0) >> np.uint64(32), 32, count).reshape(-1, draws.width)}


SHARED_PACKED = Operation(
    "shared_packed",
    kinds("kind:shared_kind"),
    inputs=fields("nk code u8; pair tau u8; n shared_exponent u8"),
    outputs=fields("bytes packed u8"),
    exact=exact_blocks,
    engine=engine_blocks,
    cuda=cuda_blocks,
    random=RandomInputs(random_blocks, any_row, "a code has the bits of its kind"),
    widths=(1, BLOCK),
)
LEVELS_PACKED = Operation(
    "levels_packed",
    kinds("kind:level_kind"),
    inputs=fields("nk code u8"),
    outputs=fields("bytes packed u8"),
    exact=exact_rows,
    engine=engine_rows,
    cuda=cuda_rows,
    random=RandomInputs(random_rows, any_row, "a code has the values of its kind"),
)
