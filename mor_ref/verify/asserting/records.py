"""Records of the public functions as cases, with the parameters that they were made with."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from mor_ref.arrays import numbers_from
from mor_ref.definitions.blocks import rows_and_columns
from mor_ref.golden.inputs.own_tensors import SOURCES
from mor_ref.golden.model.suite import Case
from mor_ref.operations import OPERATIONS
from mor_ref.operations.call import Arrays
from mor_ref.operations.operation import PublicRecord
from mor_ref.recipes import Asked
from mor_ref.verify.asserting.suite_case import SuiteCase
from mor_ref.verify.own_fields import fields_of_operation

_OF_NUMBERS = "rc"  # axes
_OF_ELEMENTS = (_OF_NUMBERS, "pairs")


class Recorded(NamedTuple):
    """A record, and the operation that declares it."""

    record: Any
    operation: str
    declared: PublicRecord

    @property
    def fields(self) -> Arrays:
        """The fields that the record has, as bit patterns."""
        return OPERATIONS[self.operation].stored(self.record)

    @property
    def format(self) -> str | None:
        """The format of its codes; None if no parameter names one."""
        found: str | None = self.declared.parameters(self.record).get("format")
        return found


def recorded(one: Any) -> Recorded | None:
    """Return a record with its operation; None if no operation has such records."""
    for operation in OPERATIONS.values():
        if operation.record is not None and operation.record.holds(one):
            return Recorded(one, operation.name, operation.record)
    return None


def case_of(found: Recorded, x: Any) -> SuiteCase:
    """Return a record as the expected fields of a case; the input is x, if it is not None."""
    asked = Asked(found.operation, found.declared.parameters(found.record))
    parameters = dict(asked.parameters)
    arrays = dict(in_rows(asked.operation, found.fields))
    if x is not None:
        numbers = numbers_from(x, "x")
        source = SOURCES.get(numbers.dtype.name)
        if source is None:
            raise ValueError(f"x has dtype {numbers.dtype}; give float32, float16 or bfloat16")
        shape = rows_and_columns(numbers.shape)
        own = next(
            array.shape
            for name, array in arrays.items()
            if _axes_of(asked.operation, name) == _OF_NUMBERS
        )
        if shape != own:
            raise ValueError(
                f"x has {shape} rows and columns, but the record has {own}; give the record's x"
            )
        parameters["source"] = source
        arrays["x"] = numbers.bits.reshape(shape)
    case = Case("expected", parameters, arrays)
    return SuiteCase("", asked.operation, case, list(fields_of_operation(asked)))


def in_rows(operation: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields of elements as rows and columns: records have the shape of x."""
    return {
        name: array.reshape(rows_and_columns(array.shape))
        if _axes_of(operation, name) in _OF_ELEMENTS and hasattr(array, "reshape")
        else array
        for name, array in fields.items()
    }


def _axes_of(operation: str, field: str) -> str | None:
    return OPERATIONS[operation].axes_of(field)
