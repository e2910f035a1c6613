"""blocks: a tensor in a block format, which is given as its text."""

import functools
import math
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mor_ref
from mor_ref.arrays import code_dtype
from mor_ref.definitions.before_blocks import KeptColumns, Step, kept_by
from mor_ref.definitions.block_formats import (
    BlockFormat,
    block_format_of,
    element_rule,
    parameters_of_blocks,
    place_of_amax,
)
from mor_ref.definitions.blocks import partition
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.definitions.formulas import names_in, parsed
from mor_ref.definitions.scales import AmaxOrScale, GivenScales
from mor_ref.definitions.table_format import ElementFormat
from mor_ref.exact.block_formats import quantize
from mor_ref.operations.bits import (
    Unsigned,
    bits32,
    codes_array,
    f32_array,
    numbers_of,
    tensor_of,
)
from mor_ref.operations.call import Arrays, Call, Parameters, Results
from mor_ref.operations.fields import Field, FieldsOfEach, expected, given
from mor_ref.operations.nearest import Nearest, Operand, operand_in_blocks
from mor_ref.operations.operation import Operation, WayBack
from mor_ref.operations.parameters import RECIPE, as_cut, kinds
from mor_ref.operations.way_back import coded_with, restored


@functools.lru_cache
def block_format_in(text: str) -> BlockFormat:
    """Return the block format of a text (BLF-006)."""
    return block_format_of(tomllib.loads(text))


def factor_of(block_format: BlockFormat) -> str:
    """Return the name of the factor that leads from the numbers of codes to y (BLF-004)."""
    return "encode" if block_format.decode is None else "decode"


def exact(call: Call) -> Results:
    """Quantize with the exact model."""
    block_format = block_format_in(call["block_format"])
    blocks = quantize(call.flat(), call.shape, block_format, _given(call.parameters))
    outer, last = block_format.scales[0], block_format.scales[-1]
    aside = blocks.after_steps

    def codes(name: str, fmt: Format) -> Any:
        scale = blocks.scales[name]
        if fmt == formats["f32"]:
            return f32_array(scale.numbers[name])
        return np.array(scale.codes, np.uint32)

    return {
        "outer_scale": codes(outer.name, outer.fmt),
        "scale": codes(last.name, last.fmt),
        "factor": f32_array(blocks.scales[last.name].numbers[factor_of(block_format)]),
        "code": codes_array(blocks.codes, block_format.fmt),
        "y": f32_array(blocks.y),
        **({"selected": aside.selected, "kept": aside.kept} if tried(call.parameters) else {}),
    }


def _given(parameters: Parameters) -> GivenScales:
    """Return a given amax or scale of the outermost scale (BLF-008)."""
    amax, scale = parameters.get("amax"), parameters.get("scale")
    outermost = block_format_in(parameters["block_format"]).scales[0].name
    return {} if amax is scale is None else {outermost: AmaxOrScale(amax, scale)}


def _check_given(parameters: Parameters) -> None:
    """Refuse an amax or a scale that the block format does not take (BLF-008)."""
    amax, scale = parameters.get("amax"), parameters.get("scale")
    if scale is None:
        return
    block_format = block_format_in(parameters["block_format"])
    name, fmt = block_format.scales[0].name, block_format.scales[0].fmt
    if amax is not None:
        raise ValueError(f"amax and scale of {name!r} are both given; give one of them")
    if place := place_of_amax(block_format, name):
        raise ValueError(f"scale of {name!r} is given, but {place} has its amax; give amax")
    if fmt != formats["f32"] and all(fmt.value(code) != scale for code in range(fmt.code_count)):
        raise ValueError(f"scale is {scale!r}, which is not a number of {fmt.name}; give one of it")


def tried(parameters: Parameters) -> tuple[str, ...]:
    """Return the step of the block format that has fields of its own, if there is one (BLF-013)."""
    step = kept_by(block_format_in(parameters["block_format"]).before)
    return () if step is None else (step.name,)


def engine(call: Call) -> Results:
    """Quantize with the public function."""
    block_format = block_format_in(call["block_format"])
    record = mor_ref.quantize(call.tensor(), block_format, **call.arguments("amax scale"))

    def codes(name: str) -> Any:
        stored = record.scales[name]
        words = stored.view(np.uint32) if stored.dtype == np.float32 else stored
        return words.astype(np.uint32)

    return {
        "outer_scale": codes(block_format.scales[0].name),
        "scale": codes(block_format.scales[-1].name),
        "factor": bits32(record.factor),
        "code": record.codes,
        "y": record.dequantize(),
        **_kept(record, call.shape),
    }


def _kept(record: mor_ref.BlockQuantized, shape: tuple[int, int]) -> dict[str, Any]:
    """Return the fields of a step that keeps columns, if the block format has one (BLF-013)."""
    if not record.kept:
        return {}
    selected, kept = np.zeros(shape, np.uint8), np.zeros(shape, np.uint32)
    selected[:, record.kept["columns"]] = 1
    kept[:, record.kept["columns"]] = record.kept["codes"]
    return {"selected": selected, "kept": kept}


# ---------------------------------------------------------------------- the way back


def fields_of_scales(block_format: BlockFormat) -> dict[str, str]:
    """Return the names of the scales that are fields, each with the name of its field."""
    return {
        block_format.scales[0].name: "outer_scale",
        block_format.scales[-1].name: "scale",
    }


def format_of_codes(block_format: BlockFormat, field: str) -> ElementFormat | None:
    """Return the format of the codes in a field; None if they are of none."""
    scales = {"outer_scale": block_format.scales[0].fmt, "scale": block_format.scales[-1].fmt}
    return block_format.fmt if field == "code" else scales.get(field)


def _needed_for_y(parameters: Parameters) -> tuple[tuple[str, ...], ...]:
    """Return the fields that y follows from: the factor stands for the scales that it names."""
    block_format = block_format_in(parameters["block_format"])
    aside = (("selected",), ("kept",)) if tried(parameters) else ()
    known = fields_of_scales(block_format)
    named = dict.fromkeys(names_in(parsed(_formula_of_factor(block_format))))
    if any(name not in known for name in named):
        return ("code",), ("factor",), *aside
    return ("code",), *((known[name], "factor") for name in named), *aside


def _formula_of_factor(block_format: BlockFormat) -> str:
    return block_format.decode or block_format.encode or ""


def restore(parameters: Parameters, arrays: Arrays) -> NDArray[np.uint32]:
    """Return y: the numbers of codes with the factor of their block (BLF-004, BLF-011)."""
    block_format, code = block_format_in(parameters["block_format"]), arrays["code"]
    tile = partition(code.shape, as_cut(parameters["block"])).block
    factor = _factors(block_format, parameters, arrays, code.shape)[factor_of(block_format)]
    both = (factor, None) if block_format.decode is None else (None, factor)
    y = restored(code, block_format.fmt, tile, *both)
    before = block_format.before
    if not before:
        return y
    from mor_ref.engine.before_blocks import undone

    places, codes = None, None
    if "kept" in arrays:
        places = np.flatnonzero(arrays["selected"].any(axis=0))
        codes = _kept_codes(arrays["kept"][:, places], before)
    back: NDArray[np.uint32] = undone(y.view(np.float32), before, places, codes).view(np.uint32)
    return back


def _kept_codes(codes: Unsigned, before: Sequence[Step]) -> Unsigned:
    """Return the codes of kept columns; refuse those that their format does not have."""
    step = kept_by(before)
    largest = int(codes.max(initial=0))
    if step is None:
        return codes
    if largest >= step.fmt.code_count:
        raise ValueError(
            f"kept has {largest}; codes of {step.fmt.name} are 0 to {step.fmt.code_count - 1}; "
            "give the recipe that made them"
        )
    return codes.astype(code_dtype(step.fmt))


def operand(call: Call) -> Operand:
    """Return the scaled numbers (BLF-004)."""
    given = AmaxOrScale(call.get("amax"), call.get("scale"))
    return operand_in_blocks(call, block_format_in(call["block_format"]), given)


def coded(parameters: Parameters, arrays: Arrays) -> NDArray[np.uint8]:
    """Return the codes of numbers that have scales, or a factor, each (BLF-004)."""
    block_format, x = block_format_in(parameters["block_format"]), arrays["x"]
    factors = _factors(block_format, parameters, arrays, x.shape)
    return coded_with(
        tensor_of(x, parameters["source"]),
        element_rule(block_format),
        factors.get("encode"),
        factors.get("decode"),
    )


def _factors(
    block_format: BlockFormat, parameters: Parameters, arrays: Arrays, shape: tuple[int, ...]
) -> Mapping[str, NDArray[np.uint32]]:
    """Return the factors of blocks as bits of binary32, given the scales or the factor of each.

    The factor that is given stands for its formula. A factor that follows from anything else is
    NaN.
    """
    from mor_ref.exact.block_formats import evaluated

    cut = partition(shape, as_cut(parameters["block"]), as_cut(parameters["group"]))
    grid = cut.grid
    numbers: dict[str, Any] = {}
    for scale in (block_format.scales[0], block_format.scales[-1]):
        field = fields_of_scales(block_format)[scale.name]
        if field in arrays:
            bits = arrays[field]
            whole = bits if bits.shape == grid else _block_entries(bits, cut.block, cut.group, grid)
            numbers[scale.name] = _numbers_of(field, whole, scale.fmt)
    if "factor" in arrays:
        numbers[factor_of(block_format)] = numbers_of(arrays["factor"], "f32")
    count = math.prod(grid)
    for name in ("decode", "encode"):
        formula = getattr(block_format, name)
        if formula is not None and name not in numbers:
            unknown = dict.fromkeys(names_in(parsed(formula)), [math.nan] * count)
            numbers[name] = evaluated(formula, unknown | numbers, count)
    return {
        name: f32_array(numbers[name]).reshape(grid)
        for name in ("decode", "encode")
        if name in numbers
    }


def _block_entries(
    bits: Unsigned, block: tuple[int, int], group: tuple[int, int], grid: tuple[int, ...]
) -> Unsigned:
    """Return for each block the entry of the part of the outermost scale that it lies in."""
    rows, columns = (
        np.arange(count) * side // above
        for count, side, above in zip(grid, block, group, strict=True)
    )
    return bits[np.ix_(rows, columns)]


def _numbers_of(field: str, bits: Unsigned, fmt: Format) -> list[float]:
    """Return the numbers of the codes of a scale; refuse codes that its format does not have."""
    from mor_ref.exact.columns import decoded

    if fmt == formats["f32"]:
        return numbers_of(bits.astype(np.uint32), "f32")
    largest = int(bits.max(initial=0))
    if largest >= fmt.code_count:
        raise ValueError(
            f"{field} has {largest}; codes of {fmt.name} are 0 to {fmt.code_count - 1}; give the "
            "recipe that made them"
        )
    return decoded(bits.ravel().tolist(), fmt)


def codes(parameters: Parameters) -> tuple[int, int]:
    """Return the lowest and the highest code of an element."""
    return 0, block_format_in(parameters["block_format"]).fmt.code_count - 1


def admit(parameters: Parameters) -> None:
    """Refuse sides that are not those of the block format, and numbers that it does not take."""
    _check_given(parameters)
    wanted = parameters_of_blocks(block_format_in(parameters["block_format"]))
    for name in ("block", "group"):
        if parameters[name] != wanted[name]:
            raise ValueError(
                f"{name} is {parameters[name]!r}, and the block format has {wanted[name]!r}; give "
                "that"
            )


def needs_all(parameters: Parameters) -> bool:
    """Return whether rows share a scale above those of their blocks, or decide about columns."""
    return bool(tried(parameters)) or parameters["group"] not in ("row", parameters["block"])


def _has_no_steps(parameters: Parameters) -> bool:
    return not block_format_in(parameters["block_format"]).before


def _fields_of_step(_: str) -> tuple[Field, ...]:
    """Return the fields of a step that keeps columns."""
    return (
        expected("selected u8 rc", "1 for a number of a column that is kept aside", "BLF-013"),
        expected("kept u32 rc", "the code of such a number, and 0 for any other", "BLF-013"),
    )


BLOCKS = Operation(
    "blocks",
    kinds("block_format block group source"),
    (
        given("x source rc", "the tensor"),
        expected("outer_scale u32 group", "the code of each outermost scale", "BLF-003"),
        expected(
            "scale u32 grid",
            "the code of the scale of each block",
            "BLF-003 BLF-005",
            views="transposed swizzled_128x4 padded_4 mn_major mn_major_packed shuffled_32x8",
        ),
        expected(
            "factor f32 grid",
            "the factor of the numbers of codes of each block, which divides them if the block "
            "format has no decode",
            "BLF-004",
        ),
        expected("code u32 rc", "the code", "BLF-004", views="transposed packed shuffled_16x32"),
        expected("y f32 rc", "what it stands for", "BLF-004 BLF-011"),
        FieldsOfEach(lambda: (KeptColumns.name,), _fields_of_step),
    ),
    model=exact,
    function=engine,
    kernels=None,
    admit=admit,
    optional=kinds(f"{RECIPE} amax scale"),
    needs_all=needs_all,
    rounded=None,
    way_back=WayBack(_needed_for_y, restore, coded, is_by_number=_has_no_steps),
    tried=tried,
    codes=codes,
    formulas=lambda parameters: block_format_in(parameters["block_format"]),
    nearest=Nearest(operand, restore),
)
