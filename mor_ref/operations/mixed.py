"""mix: a tensor whose units take the candidate of the least squared error."""

from typing import TYPE_CHECKING

import numpy as np

from mor_ref.definitions.blocks import partition
from mor_ref.definitions.mixed import MIXTURES
from mor_ref.operations.bits import Unsigned, bits32, f32_array, tensor_of
from mor_ref.operations.elements import listed, rows_of
from mor_ref.operations.fields import Fields, LateFields, each_field, fields
from mor_ref.operations.operation import (
    Arrays,
    DeviceArrays,
    Operation,
    Parameters,
    PublicRecord,
    WayBack,
    instance_test,
)
from mor_ref.operations.parameters import RECIPE, as_cut, kinds
from mor_ref.operations.way_back import chosen_entries

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mor_ref import Mixed
    from mor_ref.cuda.launching import Device
    from mor_ref.exact.mixed import MixedUnit
    from mor_ref.representations.mixed import Candidates


def candidates_of(parameters: Parameters) -> "Candidates":
    """Return the candidates of a mixture."""
    from mor_ref.representations import mixture

    return mixture(parameters["mixture"]).candidates


def exact(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Quantize with the exact model."""
    from mor_ref.exact.mixed import mixed

    shape, candidates = arrays["x"].shape, candidates_of(parameters)
    cut = partition(shape, as_cut(parameters["block"]))
    tensor = mixed(rows_of(arrays, parameters["source"]), candidates, cut)
    units = listed(tensor.units, cut.grid)
    flat = [element for row in tensor.elements for element in row]
    return {
        **unit_fields(units, candidates, cut.grid),
        "code": np.array([e.code for e in flat], np.uint8).reshape(shape),
        "y": f32_array(e.y for e in flat).reshape(shape),
    }


def unit_fields(
    units: "list[MixedUnit]", candidates: "Candidates", shape: tuple[int, ...]
) -> dict[str, Unsigned]:
    """Return the fields of units."""
    squares = {
        f"{candidate.name}.squares": np.array([u.squared_error[k] for u in units], np.uint64)
        for k, candidate in enumerate(candidates)
    }
    return {
        "amax": f32_array(unit.amax for unit in units).reshape(shape),
        **{name: array.reshape(shape) for name, array in squares.items()},
        "choice": np.array([unit.choice for unit in units], np.uint8).reshape(shape),
    }


def engine(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Quantize with the public function."""
    from mor_ref import mix_formats

    x = tensor_of(arrays["x"], parameters["source"])
    block = as_cut(parameters["block"])
    return stored(mix_formats(x, MIXTURES[parameters["mixture"]].candidates, block=block))


def stored(record: "Mixed") -> Arrays:
    """Return the fields that a record has."""
    squares = {f"{name}.squares": errors for name, errors in record.squared_error.items()}
    codes = {} if record.codes is None else {"code": record.codes}
    return {
        "amax": bits32(record.amax),
        **squares,
        "choice": record.choice,
        **codes,
        "y": bits32(record.y),
    }


def cuda(device: "Device", parameters: Parameters, arrays: DeviceArrays) -> DeviceArrays:
    """Quantize on a device."""
    from mor_ref.cuda.launching import Bits
    from mor_ref.cuda.mixed import mix

    candidates = candidates_of(parameters)
    cut = partition(arrays["x"].shape, as_cut(parameters["block"]))
    tensor = mix(device, Bits(arrays["x"], parameters["source"]), candidates, cut)
    squares = {
        f"{candidate.name}.squares": errors
        for candidate, errors in zip(candidates, tensor.errors, strict=True)
    }
    return {
        "amax": tensor.amax,
        **squares,
        "choice": tensor.choice,
        "code": tensor.codes,
        "y": tensor.y,
    }


def restore(_: Parameters, arrays: Arrays) -> "NDArray[np.uint32]":
    """Return y."""
    return arrays["y"].astype(np.uint32)


def by_candidates(parameters: Parameters, arrays: Arrays, field: str) -> Arrays:
    """Return a field of numbers with each candidate, under the number of the candidate."""
    from mor_ref import mix_formats

    x, names = tensor_of(arrays["x"], parameters["source"]), candidates_of(parameters)
    quantized = mix_formats(x, names, block=as_cut(parameters["block"])).quantized
    return {
        f"{k}": bits32(record.dequantize()) if field == "y" else record.codes
        for k, record in enumerate(quantized.values())
    }


def names_of_candidates() -> list[str]:
    """Return the candidates of all mixtures, each once."""
    return list(dict.fromkeys(name for row in MIXTURES.values() for name in row.candidates))


def _outputs() -> Fields:
    """Return the fields of results, with the squared errors of every candidate."""
    squares = each_field(names_of_candidates(), "squares")
    return fields(f"grid amax f32; grid {squares} u64; grid choice u8; rc code u8; rc y f32")


def parameters_of(record: "Mixed") -> Parameters:
    """Return the parameters that made a record."""
    for name, row in MIXTURES.items():
        if row.candidates == record.candidates:
            return {"mixture": name, "block": list(record.units.block)}
    raise ValueError(
        f"candidates are {', '.join(record.candidates)}, which no mixture has; give those of one "
        f"of {', '.join(MIXTURES)}"
    )


MIX = Operation(
    "mix",
    kinds("mixture block source"),
    inputs=fields("rc x source"),
    outputs=LateFields(_outputs),
    exact=exact,
    engine=engine,
    cuda=cuda,
    optional=kinds(RECIPE),
    tried=lambda parameters: MIXTURES[parameters["mixture"]].candidates,
    way_back=WayBack(
        lambda _: (("y",),), restore, chosen_entries, known=by_candidates, chosen=("code", "y")
    ),
    record=PublicRecord(instance_test("Mixed"), parameters_of, stored),
)
