"""The names by which an answer has the fields of a suite: plain, or in a layout (VEC-003)."""

from collections.abc import Mapping
from typing import Any

from mor_ref.golden.model.checks import views_of
from mor_ref.golden.model.views import DIGEST, SEPARATOR, split, unsuited
from mor_ref.operations import OPERATIONS
from mor_ref.operations.call import Parameters
from mor_ref.operations.fields import Field

NAME_SHOWN = 100  # characters of a name


def fields_of(entry: Mapping[str, Any]) -> list[Field]:
    """Return the fields that the manifest lists for a suite.

    A field of digests can be given in each layout that leads back to the plain array.
    """
    declared = OPERATIONS[entry["operation"]]
    return [
        Field(
            f["name"],
            f["role"],
            f["format"],
            declared.field(f["name"].partition(SEPARATOR)[0]).axes,
            f["meaning"],
            tuple(f["rules"]),
            tuple(f["views"]) or _of_digests(entry["operation"], f["name"]),
        )
        for f in entry["fields"]
    ]


def _of_digests(operation: str, name: str) -> tuple[str, ...]:
    """Return the layouts that lead back to the array that a field has the digests of."""
    base, *views = name.split(SEPARATOR)
    if views != [DIGEST]:
        return ()
    return tuple(view for view in views_of(operation, base) if view != "reciprocal")


def names_given(fields: list[Field], answer: Mapping[str, Any]) -> dict[str, list[str]]:
    """Map each field that an answer has to the names by which the answer has it.

    An answer may have a view of a field (VEC-003), or several, and may omit fields.
    """
    by_name = {split(field.name)[0]: field for field in fields}
    names: dict[str, list[str]] = {}
    for name in answer:
        field = by_name.get(name.split(SEPARATOR)[0])
        if field is not None and field.role == "expected":
            names.setdefault(field.name, []).append(name)
    return names


def given_as(fields: list[Field], answer: Mapping[str, Any]) -> dict[str, str]:
    """Map each field that an answer has to the first name by which the answer has it."""
    return {field: names[0] for field, names in names_given(fields, answer).items()}


def misnamed(field: Field, name: str, parameters: Parameters) -> str | None:
    """Return why a field cannot be compared as an answer names it, or None."""
    if name == field.name:
        return None
    base, *views = name.split(SEPARATOR)
    unknown = [view for view in views if view not in field.views]
    if unknown:
        known = ", ".join(field.views) or "none"
        return f"is given, but {base} has no view {unknown[0][:NAME_SHOWN]!r}; it has {known}"
    if len(set(views)) < len(views):  # replicated so often, it would fill the memory
        return f"is a view of a view of the same name; give a view of {base} once"
    reason = unsuited(views, parameters)
    return None if reason is None else f"is given, but {reason}"
