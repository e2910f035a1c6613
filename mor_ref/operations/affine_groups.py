"""affine_groups: a tensor whose columns are groups of integers, in the order of their ranges."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.operations import affine
from mor_ref.operations.bits import f32_array, tensor_of
from mor_ref.operations.elements import listed, rows_of, sums
from mor_ref.operations.fields import fields
from mor_ref.operations.operation import (
    Arrays,
    DeviceArrays,
    Operation,
    Parameters,
    PublicRecord,
    WayBack,
)
from mor_ref.operations.parameters import kinds

if TYPE_CHECKING:
    from mor_ref import Affine
    from mor_ref.cuda.launching import Device

_NAMES = {"minimum": "group_min", "maximum": "group_max"}


def exact(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Quantize with the exact model."""
    from mor_ref.exact.affine_groups import affine_groups

    x, count = rows_of(arrays, parameters["source"]), parameters["groups"]
    groups = affine_groups(x, affine.exact_choices(parameters), count)
    elements = [e for row in groups.elements for e in row]
    return {
        "range": f32_array(groups.ranges).reshape(1, -1),
        "permutation": affine.words_of(groups.order).reshape(1, -1),
        **with_group_names(affine.block_fields(groups.tensor, (1, count))),
        **affine.element_fields(elements, arrays["x"].shape),
        **sums(listed(groups.tensor.error, (1, count)), (1, count)),
    }


def engine(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Quantize with the public function."""
    from mor_ref import quantize_affine

    x, count = tensor_of(arrays["x"], parameters["source"]), parameters["groups"]
    record = quantize_affine(x, groups=count, permute="range", **affine.choices(parameters))
    return stored(record)


def with_group_names(by_name: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of blocks that are groups, with PEG's names for their ends."""
    return {_NAMES.get(name, name): field for name, field in by_name.items()}


def stored(record: "Affine") -> dict[str, Any]:
    """Return the fields of a record."""
    return with_group_names(affine.stored(record))


def cuda(device: "Device", parameters: Parameters, arrays: DeviceArrays) -> DeviceArrays:
    """Quantize on a device."""
    from mor_ref.cuda.affine import quantize_groups
    from mor_ref.cuda.launching import Bits

    x, choices = Bits(arrays["x"], parameters["source"]), affine.kernel_choices(parameters)
    order, quantized, sums = quantize_groups(device, x, choices, parameters["groups"])
    fields_of_order = {"range": order.range, "permutation": order.order}
    return {**fields_of_order, **with_group_names(affine.on_device(quantized)), **sums._asdict()}


def restore(parameters: Parameters, arrays: Arrays) -> NDArray[np.uint32]:
    """Return y of codes (AFF-009): each column has the scale and the zero point of its group.

    Without a permutation, each number has its own.
    """
    if "permutation" not in arrays:
        return affine.restore({**parameters, "block": [1, 1]}, arrays)
    order = arrays["permutation"].reshape(-1)
    if not np.array_equal(np.sort(order), np.arange(order.size)):
        raise ValueError(
            "permutation does not have each column once; give the columns in the order of groups"
        )
    group = groups_of_columns(np.argsort(order), parameters)
    per_column = {n: arrays[n][:, group] for n in ("scale", "zero_point") if n in arrays}
    return affine.restore({**parameters, "block": "column"}, {**arrays, **per_column})


def groups_of_columns(place: NDArray[Any], parameters: Parameters) -> NDArray[Any]:
    """Return the group of each column, given its place in the order of ranges (AFF-010)."""
    group: NDArray[Any] = place // (place.size // parameters["groups"])
    return group


def needed_for_y(parameters: Parameters) -> tuple[tuple[str, ...], ...]:
    """Return the fields that y follows from."""
    return (*affine.needed_for_y(parameters), ("permutation",))


def parameters_of(record: "Affine") -> Parameters:
    """Return the parameters that made a record."""
    return {**affine.choices(vars(record)), "groups": record.scale.size}


def is_record(value: Any) -> bool:
    """Return whether a value is a record of this operation."""
    from mor_ref import Affine

    return isinstance(value, Affine) and value.permutation is not None


AFFINE_GROUPS = Operation(
    "affine_groups",
    kinds("grid:integer_grid profile:affine_profile symmetric groups source"),
    inputs=fields("rc x source"),
    outputs=fields(
        "columns range f32; order permutation u32; "
        "groups group_min,group_max,scale,inverse_scale,zero_float f32; groups zero_point u32; "
        "rc xs f32; rc code u32; rc y f32; groups sum,nonzero,nonfinite u64"
    ),
    exact=exact,
    engine=engine,
    cuda=cuda,
    admit=affine.admit,
    way_back=WayBack(needed_for_y, restore, affine.coded, {"zero_point": 0}),
    record=PublicRecord(is_record, parameters_of, stored),
    codes=affine.codes,
)
