"""Checks of the fields and cases of a manifest, and of the arrays of a file, by their operation.

The content of a file reaches the engine, the model or a view only after these checks.
"""

from collections.abc import Collection, Mapping
from typing import Any

from mor_ref.golden.model.views import DIGEST, SEPARATOR, axes_of, digests_shape
from mor_ref.operations import OPERATIONS, Operation
from mor_ref.operations.call import Arrays, Parameters
from mor_ref.operations.fields import Fields, bytes_of, format_meant
from mor_ref.operations.parameters import RECIPE
from mor_ref.operations.shapes import Shape, shapes_of

_OF_TWO_AXES = (
    "nk", "rc", "grid", "group", "unit", "columns", "groups", "order", "pair", "pairs",
)  # fmt: skip


class OperationError(ValueError):
    """A part of a suite that does not suit its operation; the message ends a sentence."""


def check_fields(
    operation: str, fields: list[Mapping[str, Any]], cases: Collection[Parameters]
) -> None:
    """Refuse fields that an operation does not have with the parameters of any case, or not so."""
    declaration = OPERATIONS[operation]
    tried = {name for parameters in cases for name in declaration.tried(parameters)}
    if not cases:  # none is made yet
        tried = {field["name"].rpartition(".")[0] for field in fields}
    outputs = {**declaration.outputs, **declaration.outputs_with(sorted(tried))}
    bases = [field["name"].partition(SEPARATOR)[0] for field in fields]
    twice = [base for base in bases if bases.count(base) > 1]
    if twice:
        raise OperationError(f"lists the field {twice[0]} twice")
    inputs = {field["name"] for field in fields if field["role"] == "input"}
    can_be = declaration.inputs_for(declaration.optional)
    if not set(declaration.inputs) <= inputs <= set(can_be):
        raise OperationError(
            f"has the inputs {_listed(inputs)}; {operation} takes {_listed(can_be)}"
        )
    for field in fields:
        _check_field(operation, declaration, outputs, field)


def _check_field(
    operation: str, declaration: Operation, outputs: Fields, field: Mapping[str, Any]
) -> None:
    base, *own = field["name"].split(SEPARATOR)
    is_input = field["role"] == "input"
    known = declaration.inputs_for(declaration.optional) if is_input else outputs
    if base not in known or own not in ([], [DIGEST]):
        raise OperationError(f"has the field {field['name']}, which {operation} does not have")
    declared = known[base]
    if own and declared.axes not in _OF_TWO_AXES:
        raise OperationError(f"has the field {field['name']}, but {base} has no rows and columns")
    if field["format"] != (right := "u8" if own else declared.format):
        raise OperationError(
            f"has {field['name']} in the format {field['format']}; its format is {right}"
        )
    _check_axes(operation, field)
    can_be = views_of(operation, base) if field["role"] == "expected" and not own else ()
    strange = [view for view in field["views"] if view not in can_be]
    if strange:
        raise OperationError(f"has a view {strange[0]}, which {field['name']} cannot have")


def _check_axes(operation: str, field: Mapping[str, Any]) -> None:
    axes = axes_of(operation, field["name"])
    for key, right in (("shape", list(axes.names)), ("layout", axes.layout)):
        if field[key] != right:
            raise OperationError(f"has {field['name']} with another {key} than {right}")


def views_of(operation: str, field: str) -> list[str]:
    """Return the layouts that a field of an operation can be given in."""
    declaration = OPERATIONS[operation]
    declared = declaration.field(field)
    fmt, axes = declared.format, declared.axes
    is_of_blocks = "block_format" in declaration.parameters  # whose text says the formats
    is_code = fmt in ("format", "e2m1", "e4m3", "e8m0", "scale_format") or is_of_blocks
    is_of_elements = fmt in ("format", "e2m1") or (is_of_blocks and field == "code")
    can_be = {
        "transposed": axes in _OF_TWO_AXES,
        "packed": axes in _OF_TWO_AXES and is_of_elements,
        "reciprocal": fmt == "f32",
        "replicated": "tile" in declaration.parameters and axes == "grid",
        "swizzled_128x4": axes == "grid" and is_code,
        "padded_4": axes == "grid",
        "mn_major": axes == "grid",
        "mn_major_packed": axes == "grid" and is_code,
        "shuffled_32x8": axes == "grid" and is_code,
        "shuffled_16x32": axes == "rc" and is_of_elements,
    }
    return [view for view, can in can_be.items() if can]


def check_parameters(operation: str, parameters: Parameters) -> None:
    """Refuse parameters that an operation does not take."""
    declaration = OPERATIONS[operation]
    missing = [name for name in declaration.parameters if name not in parameters]
    if missing:
        raise OperationError(f"has no parameter {missing[0]}, which {operation} takes")
    for name, value in parameters.items():
        kind = declaration.parameters.get(name) or declaration.optional.get(name)
        if kind is None:
            raise OperationError(f"has the parameter {name!a:.60}, which {operation} does not take")
        if not kind.holds(value):
            raise OperationError(f"has another parameter {name} than {kind.wanted}")
    try:
        declaration.admit(parameters)
    except ValueError as error:
        raise OperationError(f"has parameters that do not go together ({error})") from error


def check_arrays(operation: str, parameters: Parameters, arrays: Arrays) -> None:
    """Refuse arrays of a case that are not of the format, the shape or the range they should be."""
    declaration = OPERATIONS[operation]
    missing = [name for name in declaration.inputs_for(parameters) if name not in arrays]
    if missing:
        raise OperationError(f"has no {missing[0]}, which its parameters ask for")
    x = arrays[next(iter(declaration.inputs))]
    shapes = _shapes(declaration, parameters, x.shape)
    for name, array in arrays.items():
        base, *own = name.split(SEPARATOR)
        field = declaration.field(base)
        shape, size = shapes[field.axes], bytes_of(format_meant(field.format, parameters))
        if own:
            shape, size = digests_shape(shape), 1
        if array.shape != shape or array.itemsize != size:
            raise OperationError(
                f"has {name} of the shape {_sides(array.shape)} and {array.itemsize} bytes an "
                f"entry, but {_sides(shape)} and {size} are expected"
            )
    if declaration.random is not None:
        inside = declaration.random.inside(parameters, arrays)
        if not inside.all():
            raise OperationError(
                f"has inputs at {int(inside.argmin())} that are not taken: "
                f"{declaration.random.takes}"
            )
    if RECIPE in parameters and not x.size:
        raise OperationError("has no numbers")


def _shapes(declaration: Operation, parameters: Parameters, shape: Shape) -> dict[str, Shape]:
    """Return the shape of each kind of axes, for a first input of this shape."""
    first = declaration.first_axes
    if len(shape) != (1 if first == "n" else 2) or not all(shape):
        wanted = "entries in one column" if first == "n" else "rows and columns of entries"
        raise OperationError(
            f"has a first input of the shape {_sides(shape)}; {wanted} are expected"
        )
    if declaration.widths is not None:
        fewest, most = declaration.widths
        if not fewest <= shape[1] <= most:
            wanted = f"{fewest}" if fewest == most else f"{fewest} to {most}"
            raise OperationError(f"has rows of {shape[1]} numbers; {wanted} are expected")
    try:
        return shapes_of(first, parameters, shape)
    except (ValueError, TypeError) as error:
        raise OperationError(f"cannot be cut into blocks ({error})") from error


def _sides(shape: Shape) -> str:
    return "x".join(map(str, shape)) or "of one entry"


def _listed(names: Any) -> str:
    return ", ".join(sorted(names))
