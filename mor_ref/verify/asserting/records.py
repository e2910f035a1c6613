"""Records of the public functions as cases, with the parameters that they were made with."""

from collections.abc import Mapping
from typing import Any

from mor_ref import Affine, Levels, Mixed, MorResult, Mx, Nvfp4, Quantized, Shared
from mor_ref.arrays import numbers_from
from mor_ref.definitions.blocks import rows_and_columns
from mor_ref.definitions.mixed import MIXTURES
from mor_ref.definitions.shared import BLOCK
from mor_ref.golden.inputs.own_tensors import SOURCES
from mor_ref.golden.model.suite import Case
from mor_ref.operations import OPERATIONS, affine, levels, mixed, mor, mx, nvfp4, quantize, shared
from mor_ref.operations.operation import Arrays
from mor_ref.treatments import Asked
from mor_ref.verify.asserting.suite_case import SuiteCase
from mor_ref.verify.own_tensors import fields_of_operation

KINDS = (Quantized, Mx, Nvfp4, Shared, Levels, Affine, Mixed, MorResult)
Record = Quantized | Mx | Nvfp4 | Shared | Levels | Affine | Mixed | MorResult
_OF_ELEMENTS = ("rc", "pairs")


def case_of(record: Record, x: Any) -> SuiteCase:
    """Return a record as the expected fields of a case; the input is x, if it is not None."""
    asked = _asked(record)
    parameters = dict(asked.parameters)
    arrays = dict(in_rows(asked.operation, fields_in(record)))
    if x is not None:
        numbers = numbers_from(x, "x")
        source = SOURCES.get(numbers.dtype.name)
        if source is None:
            raise ValueError(f"x has dtype {numbers.dtype}; give float32, float16 or bfloat16")
        shape = rows_and_columns(numbers.shape)
        own = arrays["output" if isinstance(record, MorResult) else "code"].shape
        if shape != own:
            raise ValueError(f"x has {shape} rows and columns, and the record {own}; give its x")
        parameters["source"] = source
        arrays["x"] = numbers.bits.reshape(shape)
    case = Case("expected", parameters, arrays)
    return SuiteCase("", asked.operation, case, list(fields_of_operation(asked)))


def fields_in(record: Record) -> Arrays:
    """Return the fields that a record has, as bit patterns."""
    if isinstance(record, Quantized):
        return quantize.stored(record)
    if isinstance(record, Mx):
        return mx.stored(record)
    if isinstance(record, Shared):
        return shared.stored(record)
    if isinstance(record, Levels):
        return levels.stored(record)
    if isinstance(record, Affine):
        return affine.stored(record)
    if isinstance(record, Mixed):
        return mixed.stored(record)
    return nvfp4.stored(record) if isinstance(record, Nvfp4) else mor.stored(record)


def in_rows(operation: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields of elements as rows and columns: records have the shape of x."""
    return {
        name: array.reshape(rows_and_columns(array.shape))
        if OPERATIONS[operation].outputs.get(name, ("", ""))[1] in _OF_ELEMENTS
        and hasattr(array, "reshape")
        else array
        for name, array in fields.items()
    }


def _asked(record: Record) -> Asked:
    """Return the operation and the parameters that gave a record, but for the source."""
    if isinstance(record, Quantized):
        cut = record.partition
        return Asked(
            "quantize",
            {
                "format": record.fmt.name,
                "scaling": record.scaling,
                "block": list(cut.block),
                "group": list(cut.group),
            },
        )
    if isinstance(record, Mx):
        given = {"format": record.fmt.name, "scale_rule": record.scale_rule}
        return Asked("mx", {**given, "block": record.tile[1]})
    if isinstance(record, Shared):
        given = {"kind": record.kind, "profile": record.profile}
        return Asked("shared", {**given, "block": BLOCK})
    if isinstance(record, Levels):
        given = {"kind": record.kind, "arithmetic": record.arithmetic}
        return Asked("levels", {**given, "block": "row"})
    if isinstance(record, Affine):
        return _of_affine(record)
    if isinstance(record, Mixed):
        return Asked("mix", {"mixture": _mixture(record), "block": list(record.units.block)})
    if isinstance(record, Nvfp4):
        return Asked("nvfp4", {"profile": record.profile.name, "tile": list(record.tile)})
    scaled = [one for one in record.quantized.values() if isinstance(one, Quantized)]
    block = list(scaled[0].partition.block) if scaled else "tensor"
    scaling = scaled[0].scaling if scaled else "gam"
    return Asked("mor", {"policy": record.policy, "scaling": scaling, "block": block})


def _of_affine(record: Affine) -> Asked:
    choices = {name: getattr(record, name) for name in ("grid", "profile", "symmetric")}
    if record.permutation is not None:
        return Asked("affine_groups", {**choices, "groups": record.scale.size})
    return Asked("affine", {**choices, "block": list(record.partition.block)})


def _mixture(record: Mixed) -> str:
    """Return the name of the mixture that has the candidates of a record."""
    for name, row in MIXTURES.items():
        if row.candidates == record.candidates:
            return name
    raise ValueError(
        f"candidates are {', '.join(record.candidates)}, which no mixture has; give those of one "
        f"of {', '.join(MIXTURES)}"
    )
