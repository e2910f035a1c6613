"""A suite for a block format, made from its record alone."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

from mor_ref.definitions.before_blocks import Hadamard, kept_by
from mor_ref.definitions.block_formats import (
    BlockFormat,
    BlockScale,
    formulas_of,
    parameters_of_blocks,
)
from mor_ref.definitions.formats import formats
from mor_ref.definitions.formulas import words_in
from mor_ref.definitions.table_format import ElementFormat, TableFormat
from mor_ref.golden.inputs.before_steps import before_steps, in_runs, next_to_limits
from mor_ref.golden.inputs.formula_blocks import next_to_choices, next_to_turns, of_each_rank
from mor_ref.golden.inputs.shapes_of_blocks import (
    in_each_shape,
    parts_of,
    with_lanes,
    with_specials,
)
from mor_ref.golden.model.suite import Case, Size, Suite, suite
from mor_ref.operations.block_formats import block_format_in, factor_of
from mor_ref.operations.fields import Field

OPERATION = "blocks"
_NIBBLE, _BYTE = 4, 8  # bits of codes that two of, or one, are in a byte
_SPECIALS = {
    "ieee": "the largest exponent is infinity with a mantissa of 0, and else NaN",
    "fn": "all ones is NaN, with either sign if there is one",
    "fnuz": "negative zero is NaN",
    "none": "each code is a number",
}


def suite_of(block_format: BlockFormat) -> Suite:
    """Return the suite of a block format, with its name; its fields say what their codes mean."""
    _refuse_formats_of_rows(block_format)
    aside = () if kept_by(block_format.before) is None else ("selected", "kept")
    has_outer, calls_functions = len(block_format.scales) > 1, bool(block_format.functions)
    of_functions = ", whose functions have one implementation" if calls_functions else ""
    made = suite(
        block_format.name,
        f"Tensors in the block format {block_format.name}{of_functions}",
        OPERATION,
        ("BLF-002", *(["BLF-010"] if calls_functions else []), *_rules_of_steps(block_format)),
        partial(_cases, block_format),
        (*(["outer_scale"] if has_outer else []), "scale", "factor", "code", *aside, "y"),
        normative=False,
    )
    fields = tuple(_described(block_format, field) for field in made.fields)
    return replace(made, fields=fields)


def _rules_of_steps(block_format: BlockFormat) -> list[str]:
    """Return the rules of the steps before the blocks (BLF-011), other than those of fields."""
    is_turned = any(isinstance(step, Hadamard) for step in block_format.before)
    return ["BLF-012"] if is_turned else []


def block_format_of_suite(name: str, entry: Mapping[str, Any]) -> BlockFormat | None:
    """Return the block format whose suite an entry of a manifest is about, if there is one."""
    if entry["operation"] != OPERATION:
        return None
    texts = {parameters["block_format"] for parameters in entry["cases"].values()}
    block_format = block_format_in(texts.pop()) if len(texts) == 1 else None
    return block_format if block_format is not None and block_format.name == name else None


def format_in_words(fmt: ElementFormat) -> str:
    """Return a format in words: its fields from the highest bit, and the codes that are no numbers.

    >>> format_in_words(formats["e2m1"])
    'e2m1 (4 bits: sign, 2 of exponent with bias 1, 1 of mantissa; each code is a number)'
    """
    if isinstance(fmt, TableFormat):
        return f"{fmt.name} (a table of {fmt.code_count} values, {fmt.bits} bits)"
    if fmt == formats["f32"]:
        return "binary32"
    parts = [] if fmt.sign == "none" else ["sign"]
    if fmt.exponent_bits:
        parts.append(f"{fmt.exponent_bits} of exponent with bias {fmt.bias}")
    if fmt.mantissa_bits:
        parts.append(f"{fmt.mantissa_bits} of mantissa")
    if fmt.sign == "twos-complement":
        parts = [f"an integer in two's complement, times 2^{-fmt.mantissa_bits}"]
    layout, specials = ", ".join(parts), _SPECIALS[fmt.specials]
    return f"{fmt.name} ({fmt.bits} bits: {layout}; {specials})"


def part_in_words(over: Any) -> str:
    """Return the numbers that share a scale, in words."""
    if isinstance(over, str):
        return f"the whole {over}" if over == "tensor" else f"a {over}"
    return f"{over[0]} x {over[1]} numbers"


def _described(block_format: BlockFormat, field: Field) -> Field:
    """Return a field with the words of the block format, and the layouts of its codes."""
    scales = block_format.scales
    if field.name == "outer_scale":
        return replace(field, meaning=_of_scale(scales[0]))
    if field.name == "scale":
        is_byte = scales[-1].fmt.bits == _BYTE
        views = _without(field.views, mn_major_packed=is_byte, shuffled_32x8=is_byte)
        return replace(field, meaning=_of_scale(scales[-1]), views=views)
    if field.name == "factor":
        verb = "divides" if block_format.decode is None else "multiplies"
        name = factor_of(block_format)
        meaning = f"{name} of each block, which {verb} the numbers of codes"
        return replace(field, meaning=f"{meaning}: {getattr(block_format, name)}")
    if field.name == "code":
        bits = block_format.fmt.bits
        views = _without(field.views, packed=bits == _NIBBLE, shuffled_16x32=bits == _BYTE)
        of_steps = ", after the steps before the blocks," if block_format.before else ""
        meaning = f"the code of each number{of_steps} in {format_in_words(block_format.fmt)}"
        return replace(field, meaning=meaning, views=views)
    step = kept_by(block_format.before)
    if field.name == "kept" and step is not None:
        meaning = f"the code of a kept number in {format_in_words(step.fmt)}, and 0 for any other"
        return replace(field, meaning=meaning)
    return field


def _without(views: tuple[str, ...], **are_suited: bool) -> tuple[str, ...]:
    return tuple(view for view in views if are_suited.get(view, True))


def _of_scale(scale: BlockScale) -> str:
    what = "the bits" if scale.fmt == formats["f32"] else "the code"
    place = f"scale {scale.name} of {part_in_words(scale.over)}"
    return f"{what} of {place}, in {format_in_words(scale.fmt)}"


def _refuse_formats_of_rows(block_format: BlockFormat) -> None:
    """Refuse a formula that names a format of a user: a text carries those of its fields alone."""
    for formula in formulas_of(block_format):
        for word in words_in(formula):
            if word in formats and word not in formats.specified:
                raise ValueError(
                    f"block format {block_format.name!r} has a formula {formula!r} that rounds to "
                    f"{word!r}, a format of --rows, which no text carries; give a scale that is "
                    "stored in it, or a format of the specification"
                )


def _cases(block_format: BlockFormat, size: Size) -> Iterator[Case]:
    parameters, before = parameters_of_blocks(block_format), block_format.before
    formulas, parts = replace(block_format, before=()), parts_of(block_format)
    tensors = (
        before_steps(tensor, before, keeps=keeps)
        for keeps, made in (
            (False, next_to_turns(formulas, size)),
            (False, next_to_choices(formulas, size)),
            (False, of_each_rank(formulas, size)),
            (True, in_each_shape(parts, size)),
            (True, with_specials(parts, size)),
            (False, with_lanes(parts, size)),
        )
        for tensor in made
    )
    for tensor in chain(tensors, in_runs(before, size), next_to_limits(before, size)):
        own = {**parameters, "source": tensor.source}
        yield Case(tensor.name, own, {"x": tensor.x})
