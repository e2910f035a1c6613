"""The fields of an operation that is asked with one's own parameters."""

from mor_ref.operations import OPERATIONS
from mor_ref.operations.fields import Field
from mor_ref.recipes import Asked


def fields_of_operation(asked: Asked) -> tuple[Field, ...]:
    """Return the fields of the operation, with those of the representations tried."""
    operation = OPERATIONS[asked.operation]
    return tuple(operation.fields_with(operation.tried(asked.parameters)).values())
