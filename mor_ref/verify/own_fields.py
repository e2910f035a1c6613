"""The fields of an operation that is asked with one's own parameters."""

from dataclasses import replace

from mor_ref.golden.model.suite import Field, expected, given
from mor_ref.golden.suites import SUITES
from mor_ref.operations import OPERATIONS
from mor_ref.recipes import Asked


def fields_of_operation(asked: Asked) -> tuple[Field, ...]:
    """Return the fields of the first suite of the operation, for the representations tried.

    An operation of a user may have no suite: its declaration has the fields.
    """
    suite = next((one for one in SUITES.values() if one.operation == asked.operation), None)
    if suite is None:
        return _declared(asked.operation)
    tried = OPERATIONS[asked.operation].tried(asked.parameters)
    if not tried:
        return suite.fields
    at = next(n for n, one in enumerate(suite.fields) if "." in one.name)
    old = suite.fields[at].name.split(".")[0]
    under = [one for one in suite.fields if one.name.startswith(f"{old}.")]
    others = [one for one in suite.fields if "." not in one.name]
    own = [_under(one, old, name) for name in tried for one in under]
    return (*others[:at], *own, *others[at:])


def _under(field: Field, old: str, new: str) -> Field:
    """Return the field of another representation."""
    name, meaning = field.name.removeprefix(old), field.meaning.removesuffix(old)
    return replace(field, name=f"{new}{name}", meaning=f"{meaning}{new}")


def _declared(operation: str) -> tuple[Field, ...]:
    """Return the fields of a declaration, without a rule."""
    one, meaning = OPERATIONS[operation], f"as {operation} has it"
    return (
        *(given(name, fmt, meaning) for name, (fmt, _) in one.inputs.items()),
        *(expected(name, fmt, meaning) for name, (fmt, _) in one.outputs.items()),
    )
