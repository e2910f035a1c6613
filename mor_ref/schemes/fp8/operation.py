"""fp8: a tensor in the FP8 of a library."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.block_formats import BlockFormat, parameters_of_blocks
from mor_ref.operations import block_formats
from mor_ref.operations.call import Arrays, Call, Parameters, Results
from mor_ref.operations.fields import expected, given
from mor_ref.operations.nearest import Nearest, Operand, operand_in_blocks
from mor_ref.operations.operation import Implementation, Operation, WayBack
from mor_ref.operations.parameters import RECIPE, as_cut, kinds, row_of
from mor_ref.schemes.fp8.definition import FP8_PROFILES, fp8_formulas


def formulas(parameters: Parameters) -> BlockFormat:
    """Return the block format of a call."""
    return fp8_formulas(FP8_PROFILES[parameters["profile"]], as_cut(parameters["block"]))


def _as_blocks(parameters: Parameters) -> Parameters:
    return {**parameters, **parameters_of_blocks(formulas(parameters))}


def _computed_by(implementation: Implementation, call: Call) -> Results:
    """Return the fields that a tensor has in its block format."""
    results = implementation(replace(call, parameters=_as_blocks(call.parameters)))
    return {name: results[name] for name in ("scale", "code", "y")}


def exact(call: Call) -> Results:
    """Quantize with the exact model."""
    return _computed_by(block_formats.exact, call)


def engine(call: Call) -> Results:
    """Quantize with the public function."""
    return _computed_by(block_formats.engine, call)


def restore(parameters: Parameters, arrays: Arrays) -> NDArray[np.uint32]:
    """Return y: the numbers of codes times the scale of their block."""
    return block_formats.restore(_as_blocks(parameters), arrays)


def operand(call: Call) -> Operand:
    """Return the scaled numbers (BLF-004)."""
    return operand_in_blocks(call, formulas(call.parameters))


def coded(parameters: Parameters, arrays: Arrays) -> NDArray[np.uint8]:
    """Return the codes of numbers that have a scale each."""
    return block_formats.coded(_as_blocks(parameters), arrays)


def admit(parameters: Parameters) -> None:
    """Refuse formats that are not those of the profile."""
    profile = FP8_PROFILES[parameters["profile"]]
    for name, own in (("format", profile.element), ("scale_format", profile.stored)):
        if parameters[name] != own:
            raise ValueError(
                f"{name} is {parameters[name]!r}, and profile {profile.name!r} has {own!r}; give "
                "that"
            )


FP8 = Operation(
    "fp8",
    kinds("profile format scale_format:format block source", profile=row_of(FP8_PROFILES)),
    (
        given("x source rc", "the tensor"),
        expected(
            "scale scale_format grid",
            "s of each block, which multiplies the numbers of codes",
            "FPL-001 FPL-002 BLF-003",
            views="transposed padded_4 mn_major mn_major_packed",
        ),
        expected(
            "code format rc",
            "the code of each number",
            "FPL-001 FPL-003 BLF-004",
            views="transposed shuffled_16x32",
        ),
        expected("y f32 rc", "what it stands for", "BLF-004"),
    ),
    model=exact,
    function=engine,
    kernels=None,
    admit=admit,
    optional=kinds(RECIPE),
    rounded=None,
    way_back=WayBack(lambda _: (("code",), ("scale",)), restore, coded),
    formulas=formulas,
    nearest=Nearest(operand, restore),
)
