"""select: which numbers of a tensor keep more bits."""

from typing import TYPE_CHECKING

import numpy as np

from mor_ref.definitions.selection import check_limit
from mor_ref.operations.bits import tensor_of
from mor_ref.operations.elements import rows_of
from mor_ref.operations.fields import fields
from mor_ref.operations.operation import Arrays, DeviceArrays, Operation, Parameters
from mor_ref.operations.parameters import kinds

if TYPE_CHECKING:
    from mor_ref.cuda.launching import Device


def exact(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Select with the exact model."""
    from mor_ref.exact.selection import selected

    rows = rows_of(arrays, parameters["source"])
    return {"selected": np.array(selected(rows, parameters["by"], parameters["limit"]), np.uint8)}


def engine(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Select with the public function."""
    from mor_ref import select

    x = tensor_of(arrays["x"], parameters["source"])
    return {"selected": select(x, parameters["by"], parameters["limit"]).astype(np.uint8)}


def cuda(device: "Device", parameters: Parameters, arrays: DeviceArrays) -> DeviceArrays:
    """Select on a device."""
    from mor_ref.cuda.launching import Bits
    from mor_ref.cuda.selection import by_column, by_rank

    select = by_rank if parameters["by"] == "rank" else by_column
    x = Bits(arrays["x"], parameters["source"])
    return {"selected": select(device, x, parameters["limit"])}


def admit(parameters: Parameters) -> None:
    """Refuse a share or a limit that the selection does not have."""
    check_limit(parameters["by"], parameters["limit"])


SELECT = Operation(
    "select",
    kinds("by limit source"),
    inputs=fields("rc x source"),
    outputs=fields("rc selected u8"),
    exact=exact,
    engine=engine,
    cuda=cuda,
    admit=admit,
)
