"""Whole tensors: quantized with scales, mixed by a policy, in NVFP4 and in MX."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.blocks import partition
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import as_format, formats
from mor_ref.definitions.nvfp4 import PROFILES
from mor_ref.definitions.policies import as_policy
from mor_ref.exact import mx as exact_mx
from mor_ref.exact import nvfp4 as exact_nvfp4
from mor_ref.exact import policies, quantization
from mor_ref.exact.blocks import Rows, in_rows
from mor_ref.exact.errors import ErrorSum, error_sum, error_term
from mor_ref.exact.policies import Decision
from mor_ref.exact.quantization import Element
from mor_ref.golden.expected.operation import Operation
from mor_ref.golden.model.bits import Unsigned, codes_array, f32_array, numbers_of
from mor_ref.golden.model.suite import Arrays, Parameters, as_cut

Grid = tuple[int, int]
E2M1 = formats["e2m1"]
MANY = 1 << 22  # elements of a tensor that is made from the numbers that differ


def rows_of(arrays: Arrays, source: str) -> Rows:
    """The numbers of the input."""
    rows, columns = arrays["x"].shape
    return in_rows(numbers_of(arrays["x"], source), rows, columns)


def listed(found: dict[Grid, Any], grid: Grid) -> list[Any]:
    """What was found for each place of a grid, row by row."""
    return [found[i, j] for i in range(grid[0]) for j in range(grid[1])]


def sums(found: Iterable[ErrorSum], shape: tuple[int, ...]) -> dict[str, NDArray[np.uint64]]:
    """The three sums of each unit."""
    units = list(found)
    return {
        name: np.array([getattr(unit, name) for unit in units], np.uint64).reshape(shape)
        for name in ("sum", "nonzero", "nonfinite")
    }


def element_fields(
    elements: list[list[Element]], fmt: Format, shape: tuple[int, ...]
) -> dict[str, Unsigned]:
    """What each element was scaled to, its code, and what that stands for."""
    flat = [element for row in elements for element in row]
    return {
        "xs": f32_array(e.xs for e in flat).reshape(shape),
        "code": codes_array([e.code for e in flat], fmt).reshape(shape),
        "y": f32_array(e.y for e in flat).reshape(shape),
    }


def error_fields(
    x: Rows, elements: list[list[Element]], shape: tuple[int, ...]
) -> dict[str, Unsigned]:
    """The error of each element; 0 for those that do not count."""
    terms = [
        error_term(number, element.y) if math.isfinite(number) and number != 0 else None
        for numbers, row in zip(x, elements, strict=True)
        for number, element in zip(numbers, row, strict=True)
    ]
    return {
        "d": f32_array(0.0 if term is None else term.d for term in terms).reshape(shape),
        "r": f32_array(0.0 if term is None else term.r for term in terms).reshape(shape),
        "u": np.array([0 if term is None else term.u for term in terms], np.uint32).reshape(shape),
    }


def quantize(parameters: Parameters, arrays: Arrays) -> Arrays:
    """A tensor with scales."""
    shape = arrays["x"].shape
    cut = partition(shape, as_cut(parameters["block"]), as_cut(parameters["group"]))
    fmt, is_gam = as_format(parameters["format"]), parameters["scaling"] == "gam"
    x = rows_of(arrays, parameters["source"])
    found = quantization.quantize(x, fmt, parameters["scaling"], cut)
    scales = listed(found.scale, cut.grid)
    mantissas = [m if is_gam else 0 for m in listed(found.mantissa, cut.group_grid)]
    return {
        "amax": f32_array(listed(found.amax, cut.grid)).reshape(cut.grid),
        "mantissa": np.array(mantissas, np.uint32).reshape(cut.group_grid),
        "exponent": np.array([s.exponent_code or 0 for s in scales], np.uint8).reshape(cut.grid),
        "scale": f32_array(s.value for s in scales).reshape(cut.grid),
        **element_fields(found.elements, fmt, shape),
        **error_fields(x, found.elements, shape),
        **sums(listed(found.error, cut.grid), cut.grid),
    }


def mor(parameters: Parameters, arrays: Arrays) -> Arrays:
    """A tensor under a policy."""
    if arrays["x"].size >= MANY:
        return _one_unit_of_many(parameters, arrays["x"])
    policy, own = as_policy(parameters["policy"]), arrays["x"].tolist()
    cut = partition(arrays["x"].shape, as_cut(parameters["block"]))
    x = rows_of(arrays, parameters["source"])
    kept = (lambda i, j: int(own[i][j])) if parameters["source"] == "bf16" else None
    found = policies.mix(x, policy, parameters["scaling"], cut, kept)
    grid = cut.grid if policy.unit == "block" else cut.group_grid
    decisions = listed(found.decisions, grid)
    output = np.array(found.output, np.uint16).reshape(arrays["x"].shape)
    return {**_decided(found.tried, decisions, grid), "output": output}


def _decided(tried: Iterable[str], decisions: list[Decision], grid: Grid) -> dict[str, Unsigned]:
    """What was decided for each unit, and from what."""
    errors = {
        f"{name}.{field}": array
        for name in tried
        for field, array in sums((d.errors[name] for d in decisions), grid).items()
    }
    return {
        "amax": f32_array(d.amax for d in decisions).reshape(grid),
        "amin": f32_array(d.amin for d in decisions).reshape(grid),
        **errors,
        "choice": np.array([d.choice for d in decisions], np.uint8).reshape(grid),
    }


def _one_unit_of_many(parameters: Parameters, x: Unsigned) -> Arrays:
    """A tensor that is one block and one unit: the same number becomes the same everywhere."""
    policy = as_policy(parameters["policy"])
    if policy.unit != "tensor" or parameters["block"] != "tensor":
        raise ValueError(f"{MANY} or more numbers are one block and one unit")
    distinct, places, counts = np.unique(x, return_inverse=True, return_counts=True)
    numbers = rows_of({"x": distinct.reshape(1, -1)}, parameters["source"])
    parts = partition((1, distinct.size), "tensor")
    found = policies.mix(numbers, policy, parameters["scaling"], parts)
    errors = {
        name: _counted(zip(numbers[0], elements[0], counts.tolist(), strict=True))
        for name, elements in found.tried.items()
    }
    extremes = found.decisions[0, 0]
    decision = policies.decide(policy, errors, extremes.amax, extremes.amin)
    taken = found.tried.get(policy.names[decision.choice])
    if taken is None:
        raise ValueError("a unit of so many numbers is one that a representation is accepted for")
    output = np.array([quantization.to_bf16(element.y) for element in taken[0]], np.uint16)
    return {**_decided(errors, [decision], (1, 1)), "output": output[places].reshape(x.shape)}


def _counted(found: Iterable[tuple[float, Element, int]]) -> ErrorSum:
    """The error sum of numbers that come so many times each."""
    total = ErrorSum()
    for number, element, count in found:
        one = error_sum([(number, element.y)])
        total += ErrorSum(one.sum * count, one.nonzero * count, one.nonfinite * count)
    return total


def nvfp4(parameters: Parameters, arrays: Arrays) -> Arrays:
    """A tensor in NVFP4."""
    rows, columns = parameters["tile"]
    profile = PROFILES[parameters["profile"]]
    shape = arrays["x"].shape
    found = exact_nvfp4.nvfp4(rows_of(arrays, parameters["source"]), profile, (rows, columns))
    cut = partition(shape, (rows, columns))
    tiles = listed(found.scale, cut.grid)
    elements = element_fields(found.elements, E2M1, shape)
    return {
        "global_encode_scale": f32_array(s.encode for s in found.global_scale),
        "global_decode_scale": f32_array(s.decode for s in found.global_scale),
        "block_scale": np.array([tile.code for tile in tiles], np.uint8).reshape(cut.grid),
        **elements,
        "packed": pairs_packed(elements["code"]),
    }


def pairs_packed(codes: Unsigned) -> Unsigned:
    """Two codes in a byte, pair by pair (NVF-011)."""
    rows = [
        [
            exact_nvfp4.packed(low, high)
            for low, high in zip(row[::2], [*row[1::2], 0], strict=False)
        ]
        for row in codes.tolist()
    ]
    return np.array(rows, np.uint8)


def mx(parameters: Parameters, arrays: Arrays) -> Arrays:
    """A tensor in an MX format."""
    fmt, block, shape = as_format(parameters["format"]), parameters["block"], arrays["x"].shape
    x = rows_of(arrays, parameters["source"])
    found = exact_mx.mx(x, fmt, parameters["scale_rule"], block)
    cut = partition(shape, (1, block))
    return {
        "scale": np.array(listed(found.scale, cut.grid), np.uint8).reshape(cut.grid),
        **element_fields(found.elements, fmt, shape),
    }


OPERATIONS = tuple(Operation(function, by_row=False) for function in (quantize, mor, nvfp4, mx))
