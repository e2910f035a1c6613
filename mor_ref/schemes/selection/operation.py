"""select: which numbers of a tensor keep more bits."""

import mor_ref
from mor_ref.operations.call import Call, DeviceArrays, DeviceCall, Parameters, Results
from mor_ref.operations.fields import expected, given
from mor_ref.operations.operation import Operation
from mor_ref.operations.parameters import kind, kinds, one_of
from mor_ref.schemes.selection.definition import SELECTIONS, check_limit
from mor_ref.schemes.selection.exact import selected


def exact(call: Call) -> Results:
    """Select with the exact model."""
    return {"selected": selected(call.numbers(), call["by"], call["limit"])}


def engine(call: Call) -> Results:
    """Select with the public function."""
    return {"selected": mor_ref.select(call.tensor(), call["by"], call["limit"])}


def cuda(call: DeviceCall) -> DeviceArrays:
    """Select on a device."""
    from mor_ref.schemes.selection.cuda import by_column, by_rank

    select = by_rank if call["by"] == "rank" else by_column
    return {"selected": select(call.device, call.bits(), call["limit"])}


def admit(parameters: Parameters) -> None:
    """Refuse a share or a limit that the selection does not have."""
    check_limit(parameters["by"], parameters["limit"])


_LIMIT = kind(lambda value: isinstance(value, float), "a share, or a positive number")
SELECT = Operation(
    "select",
    kinds("by limit source", by=one_of(SELECTIONS), limit=_LIMIT),
    (
        given("x source rc", "the tensor"),
        expected("selected u8 rc", "1 for a number that is selected", "SEL-001 SEL-002"),
    ),
    model=exact,
    function=engine,
    kernels=cuda,
    admit=admit,
)
