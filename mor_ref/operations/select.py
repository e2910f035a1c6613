"""select: which numbers of a tensor keep more bits."""

import numpy as np

from mor_ref.definitions.selection import check_limit
from mor_ref.operations.bits import tensor_of
from mor_ref.operations.elements import rows_of
from mor_ref.operations.fields import fields
from mor_ref.operations.operation import Arrays, Operation, Parameters
from mor_ref.operations.parameters import kinds


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
    cuda=None,
    admit=admit,
)
