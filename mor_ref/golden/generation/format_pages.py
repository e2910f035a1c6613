"""The page of a block format: its rules with their formulas, a worked example, and its vectors.

The page lies next to the vectors, as HTML and as text, so that nobody needs the record of the
author, or this program, to implement the format.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from mor_ref.definitions.before_blocks import Hadamard, KeptColumns, Step, kept_by
from mor_ref.definitions.block_formats import BlockFormat, BlockScale, percentiles_of
from mor_ref.definitions.encoding import SpecialCases, rounding_for
from mor_ref.definitions.formats import formats
from mor_ref.definitions.formulas import words_in
from mor_ref.definitions.table_format import ElementFormat, TableFormat
from mor_ref.exact.before_blocks import factor_of
from mor_ref.exact.block_formats import InBlocks, block_errors, elements_of, quantize
from mor_ref.exact.columns import Column, products, quotients
from mor_ref.exact.encoding import encode
from mor_ref.exact.outliers import rounded_limit
from mor_ref.golden.generation.pages import (
    Code,
    Head,
    Piece,
    Table,
    shown_bits,
    shown_number,
    vectors_section,
)
from mor_ref.golden.model.suite import Case, Suite
from mor_ref.golden.suites.block_formats import format_in_words, part_in_words
from mor_ref.operations.bits import numbers_of

_ELEMENTS = 8  # of the worked example
_MOST_CODES = 16  # of a format whose numbers are all listed
_ROUNDINGS = {
    "rne": "to nearest, ties to even",
    "rna": "to nearest, ties away from zero",
    "rnz": "to nearest, ties toward zero",
    "rtz": "toward zero",
    "rtp": "up, toward +infinity",
    "rtn": "down, toward -infinity",
    "rto": "to odd",
}
_TOO_LARGE = {
    "ieee": "what is too large is an infinity, and so is an infinity",
    "fn": "what is too large, and an infinity, is NaN",
    "fnuz": "what is too large, and an infinity, is NaN",
    "none": "what is too large, and an infinity, is the largest number",
}
_COUNTED = {
    "finite": "finite numbers",
    "not nan": "numbers that are not NaN",
    "all": "numbers, and NaN if one of them is NaN",
}
_POW2 = (
    "a if it is 0, infinite or NaN; else the power of two of its exponent, or twice that if the "
    "significand of a is at least t, with the sign of a"
)
_PERCENTILE = (
    "of n magnitudes of a part that count, in ascending order, the one at place ceil(p n / 100), "
    "counted from 1; 0 if there are none, and NaN where amax is NaN (BLF-007)"
)
_WORDS = {
    "+": ("a + b", "the sum"),
    "-": ("a - b", "the difference"),
    "*": ("a * b", "the product"),
    "/": ("a / b", "the quotient"),
    "<": ("a < b", "1 if it holds, else 0"),
    ">": ("a > b", "1 if it holds, else 0"),
    "or": ("a or b", "b if a is 0, else a"),
    "if": ("a if c else b", "b if c is 0, else a"),
    "min": ("min(a, b)", "b if a > b, else a"),
    "max": ("max(a, b)", "b if a < b, else a"),
    "abs": ("abs(a)", "the magnitude of a"),
    "square": ("square(a)", "a * a"),
    "pow2": ("pow2(a, t)", _POW2),
}
# ---------------------------------------------------------------------- what is on the page


def page_of_block_format(
    block_format: BlockFormat, suite: Suite, cases: Sequence[Case]
) -> Iterator[Piece]:
    """Yield the page of a block format."""
    name = block_format.name
    yield Head(name, 1)
    yield (
        f"{name} is a block format of an author, and not of the specification of mor_ref: its "
        "vectors are not normative. Expected bits come from the exact model of mor_ref. The digest "
        f"of its record (BLF-006) is {block_format.digest}."
    )
    yield Head("Rules")
    yield from rules_of_block_format(block_format, name)
    yield Head("Formats")
    yield from section_of_formats(formats_of(block_format))
    yield Head("Worked example")
    yield from _example(block_format, cases)
    yield Head("Vectors")
    yield from vectors_section(suite, cases, ("scale", "code"))
    yield Head("Record")
    yield Code(block_format.text)


def rules_of_block_format(block_format: BlockFormat, name: str) -> Iterator[Piece]:
    """Yield the rules of a block format, with numbers after a name."""
    for number, (title, pieces) in enumerate(_rules(block_format), 1):
        yield Head(f"{name}-{number}  {title}", 3)
        yield from pieces


def _rules(block_format: BlockFormat) -> Iterator[tuple[str, list[Piece]]]:
    yield "Formulas", list(_of_formulas(block_format))
    if block_format.before:
        yield "Steps before the blocks", list(_of_steps(block_format.before))
    for scale in block_format.scales:
        yield f"Scale {scale.name}", list(_of_scale(block_format, scale))
    yield "Factors", list(_of_factors(block_format))
    yield "Elements", list(_of_elements(block_format))
    if len(block_format.tries) > 1:
        yield "Choice", list(_of_choice(block_format))
    if block_format.before:
        yield "The way back", list(_of_way_back(block_format.before))


def _formulas(block_format: BlockFormat) -> list[str]:
    factors = (block_format.decode, block_format.encode)
    is_chosen = len(block_format.tries) > 1
    return [
        *(scale.number for scale in block_format.scales),
        *(formula for formula in factors if formula is not None),
        *((*block_format.tries, block_format.error) if is_chosen else ()),
    ]


def _of_formulas(block_format: BlockFormat) -> Iterator[Piece]:
    yield (
        "Numbers are binary32. Each operation of a formula MUST be rounded to binary32, to "
        "nearest, ties to even, and so MUST each number that is written in it (BLF-002). Nothing "
        "is fused, subnormal numbers are kept, and a result that is NaN has the bits 0x7FFFFFFF. "
        "MAX is the largest number, (2 - 2^-23) * 2^127; 2**n is a power of two."
    )
    used = {word for formula in _formulas(block_format) for word in words_in(formula)}
    rows = [words for word, words in _WORDS.items() if word in used]
    rows += [
        (f"{word}(a)", f"the number of the code of a in {word}") for word in formats if word in used
    ]
    rows += [
        (f"{name}(...)", f"a function of the author, with the digest {digest}")
        for name, digest in block_format.functions.items()
    ]
    if any(percentiles_of(block_format, scale) for scale in block_format.scales):
        rows.append(("percentile(p)", _PERCENTILE))
    if rows:
        yield Table([("word", "meaning"), *rows])
    if block_format.functions:
        yield (
            f"The code of {' and '.join(block_format.functions)} is not here. Its results, rounded "
            "to binary32, come from one implementation, and nothing else says that they are right "
            "(BLF-010)."
        )


def _of_steps(before: Sequence[Step]) -> Iterator[Piece]:
    names = " and then ".join(step.name for step in before)
    yield (
        f"Before it is cut into blocks, a tensor goes through {names} (BLF-011). Everything else "
        "is about the numbers that come out. The last rule says how y goes back. Axes before the "
        "last one are folded into rows."
    )
    for step in before:
        yield from _of_hadamard(step) if isinstance(step, Hadamard) else _of_kept(step)


def _of_hadamard(step: Hadamard) -> Iterator[Piece]:
    size = step.size
    signs = f"Where bit i of 0x{step.signs:X} is 1, a[i] is negated first. " if step.signs else ""
    rounded = (
        ""
        if step.fmt == formats["f32"]
        else " The result MUST be rounded to bfloat16, to nearest, ties to even."
    )
    yield (
        f"{step.name} (BLF-012): from the left of each row on, {size} numbers a[0] to "
        f"a[{size - 1}] are a run. What is left of a row stays as it is. {signs}Then, for h = 1, "
        f"2, 4 and so on below {size}, and for each i whose bit h is 0, these two MUST be computed "
        "of the old numbers:"
    )
    yield Code("a[i]     = a[i] + a[i + h]\na[i + h] = a[i] - a[i + h]")
    factor = factor_of(size)
    yield (
        f"In the end each number of a run MUST be multiplied by {shown_number(factor)}, whose bits "
        f"are {shown_bits(factor)}.{rounded}"
    )


def _of_kept(step: KeptColumns) -> Iterator[Piece]:
    limit = rounded_limit(step.limit)
    stored = (
        "A number of such a column MUST be kept as it is, in binary32; its code is its bits."
        if step.fmt == formats["f32"]
        else f"A number of such a column MUST be stored as its code in {step.fmt.name}, rounded "
        f"{_ROUNDINGS['rne']}; {_TOO_LARGE[step.fmt.specials]}."
    )
    yield (
        f"{step.name} (BLF-013): a column is kept if it has a number whose magnitude is at least "
        f"{shown_number(limit)}, or an infinity; a NaN keeps no column. {stored} In the "
        "tensor, 0 MUST take its place."
    )


def _of_way_back(before: Sequence[Step]) -> Iterator[Piece]:
    yield "The numbers y of the elements go back through the steps, the last one first (BLF-011)."
    for step in reversed(before):
        if isinstance(step, Hadamard):
            negated = (
                f", and then each a[i] is negated for which bit i of 0x{step.signs:X} is 1"
                if step.signs
                else ""
            )
            rounded = "" if step.fmt == formats["f32"] else " Nothing is rounded to bfloat16."
            yield (
                f"{step.name}: each run goes through the same sums, differences and product, "
                f"without signs before it{negated}.{rounded}"
            )
        else:
            yield f"{step.name}: y of a kept column MUST be the number of its code."


def _of_scale(block_format: BlockFormat, scale: BlockScale) -> Iterator[Piece]:
    is_last = scale is block_format.scales[-1]
    parts = "the blocks; a block is " if is_last else ""
    at_end = "" if scale.over == "tensor" else ", or less where the tensor ends"
    yield (
        f"Scale {scale.name} is of {parts}{part_in_words(scale.over)}{at_end}. There amax, also "
        f"called amax_{scale.name}, MUST be the largest magnitude of the "
        f"{_COUNTED[block_format.counted]}; it is 0 if there are none (BLF-003). The number of the "
        "scale MUST be"
    )
    several = is_last and len(block_format.tries) > 1
    yield Code(f"t = {scale.number}" if several else scale.number)
    if several:
        yield "or one of these, of which a block takes one by the rule of the choice:"
        yield Code("\n".join(block_format.tries))
    if scale.fmt == formats["f32"]:
        yield f"It is kept in binary32. From then on, {scale.name} is this number."
    else:
        yield (
            f"It MUST be stored as its code in {scale.fmt.name}, rounded "
            f"{_ROUNDINGS[str(scale.rounding)]}; what is too large is the largest number. From "
            f"then on, {scale.name} is the number of the code."
        )


def _of_factors(block_format: BlockFormat) -> Iterator[Piece]:
    yield "The factors of a block follow from its scales (BLF-004):"
    lines = [
        f"{name} = {formula}"
        for name in ("decode", "encode")
        if (formula := getattr(block_format, name)) is not None
    ]
    yield Code("\n".join(lines))
    yield "A tensor with a block whose factor is negative or -0 MUST be refused."


def _of_elements(block_format: BlockFormat) -> Iterator[Piece]:
    xs = "x / decode" if block_format.encode is None else "x * encode"
    rounding = _ROUNDINGS[block_format.rounding]
    rounded = f"rounded {rounding}; what is too large is the largest number"
    if isinstance(block_format.fmt, TableFormat):
        rounded = "as the limits of the table have it"
    y = "v / encode" if block_format.decode is None else "v * decode"
    yield (
        f"The code of a number x MUST be that of xs in {block_format.fmt.name}, {rounded}. It "
        "stands for y, where v is the number of the code (BLF-004):"
    )
    yield Code(f"xs = {xs}\ny  = {y}")
    if block_format.drops_sign_of_zero:
        yield "If xs is 0 or -0, the code MUST be 0."
    if not block_format.has_negative_zero:
        yield "If v is -0, the code MUST be 0 (BLF-014)."


def _of_choice(block_format: BlockFormat) -> Iterator[Piece]:
    yield "Each formula of the number of the last scale leads to elements, which have the errors"
    yield Code(block_format.error)
    yield (
        "The errors of a row of a block MUST be added up in binary32 from the left, beginning with "
        "0. Of several rows, sum i of the first half MUST become the sum of itself and sum i of "
        "the second half, until one is left; rows up to a power of two count as 0. The first "
        "formula MUST be taken, and then each later one whose sum is less than that of the formula "
        "taken so far (BLF-005). No sum is less than NaN."
    )


def formats_of(block_format: BlockFormat) -> list[ElementFormat]:
    """Return the formats that a block format names, but for binary32."""
    named = (
        formats[word]
        for formula in _formulas(block_format)
        for word in words_in(formula)
        if word in formats
    )
    kept = kept_by(block_format.before)
    found = (
        block_format.fmt,
        *(scale.fmt for scale in block_format.scales),
        *named,
        *([] if kept is None else [kept.fmt]),
    )
    return [fmt for fmt in dict.fromkeys(found) if fmt != formats["f32"]]


def section_of_formats(named: Iterable[ElementFormat]) -> Iterator[Piece]:
    """Yield the numbers of formats, each once."""
    for fmt in dict.fromkeys(named):
        yield from _format(fmt)


def _table(fmt: TableFormat) -> Iterator[Piece]:
    largest = f"0x{fmt.largest_code:X}"
    yield (
        "A number takes the last value, in ascending order, whose limit is below it, or the first "
        "one if it is above no limit; 0 and -0 are alike. An infinity is a number, and a NaN takes "
        f"the code {largest} (BLF-009)."
    )
    limits = ["none", *map(_exactly, fmt.exact_limits)]
    rows = [
        (f"0x{code:X}", shown_number(fmt.value(code)), limit)
        for code, limit in zip(fmt.order, limits, strict=True)
    ]
    yield Table([("code", "value", "above"), *rows])


def _exactly(limit: Fraction) -> str:
    """Return a limit, which may have more bits than binary64."""
    sign = "-" if limit < 0 else ""
    return f"{sign}{abs(limit.numerator)} / 2^{limit.denominator.bit_length() - 1}"


def _format(fmt: ElementFormat) -> Iterator[Piece]:
    yield f"{format_in_words(fmt)}."
    if isinstance(fmt, TableFormat):
        yield from _table(fmt)
        return
    if fmt.code_count <= _MOST_CODES:
        rows = [(f"0x{code:X}", shown_number(fmt.value(code))) for code in range(fmt.code_count)]
        yield Table([("code", "number"), *rows])
    elif fmt.is_power_of_two:
        yield f"A code E of a number stands for 2^(E - {fmt.bias})."
    elif fmt.exponent_bits:
        fraction = f"M / 2^{fmt.mantissa_bits}"
        yield (
            f"Exponent E and mantissa M of a number stand for 2^(E - {fmt.bias}) * (1 + "
            f"{fraction}), and for 2^{fmt.smallest_exponent} * {fraction} if E is 0."
        )
    rounding = rounding_for(fmt, None, SpecialCases())
    codes = [
        (name, shown_number(number), f"0x{encode(number, fmt, rounding):X}")
        for name, number in (("largest", fmt.largest), ("infinity", math.inf), ("NaN", math.nan))
    ]
    yield Table([("what is rounded", "number", "code"), *codes])


# ---------------------------------------------------------------------- the example


def _example(block_format: BlockFormat, cases: Sequence[Case]) -> Iterator[Piece]:
    """Yield the first block of a small tensor, step by step."""
    case = _case_of_example(block_format, cases)
    x, shape = numbers_of(case.arrays["x"], case.parameters["source"]), case.arrays["x"].shape
    last = block_format.scales[-1]
    whole = quantize(x, shape, block_format)
    found, x = whole.scales[last.name], list(whole.after_steps.z)
    formulas = replace(block_format, before=())
    order, numbers = InBlocks(found.parts), found.numbers
    rows, columns = found.parts.block
    block = next(iter(order.blocks(order.taken(x))))
    of_steps = " after the steps" if block_format.before else ""
    yield (
        f"The first block of case {case.name}, a tensor of {shape[0]} x {shape[1]} numbers"
        f"{of_steps}: rows 0 to {rows - 1}, columns 0 to {columns - 1}."
    )
    lines: list[tuple[str, ...]] = []
    for scale in block_format.scales:
        amax = f"amax_{scale.name}"
        lines.append((amax, shown_number(numbers[amax][0]), shown_bits(numbers[amax][0])))
        if scale is not last:
            number = numbers[scale.name][0]
            lines.append((scale.name, shown_number(number), shown_bits(number)))
    yield Table([("", "number", "bits"), *lines])
    yield Table(_tried(formulas, x, shape, order))
    code = f"0x{found.codes[0]:X}" if found.codes else shown_bits(numbers[last.name][0])
    yield (
        f"The block takes {last.name} = {shown_number(numbers[last.name][0])}, stored as {code}. "
        "Its first numbers:"
    )
    yield Table(_elements(block_format, block[:_ELEMENTS], numbers, case))
    if block_format.before:
        yield "The same places of the tensor, before the steps, and behind the way back:"
        yield Table(_behind_steps(case))


def _case_of_example(block_format: BlockFormat, cases: Sequence[Case]) -> Case:
    """Return the smallest tensor of binary32 that has two blocks and is finite, if there is one."""
    name = block_format.scales[-1].name

    def suits(case: Case) -> bool:
        x, source = case.arrays["x"], case.parameters["source"]
        numbers = numbers_of(x, source)
        if source != "f32" or not all(map(math.isfinite, numbers)) or x.size < _ELEMENTS:
            return False
        found = quantize(numbers, x.shape, block_format).scales[name]
        return len(InBlocks(found.parts).lengths) > 1

    ordered = sorted(cases, key=lambda case: case.arrays["x"].size)
    return next(filter(suits, ordered), cases[0])


def _tried(
    block_format: BlockFormat, x: Column, shape: tuple[int, int], order: InBlocks
) -> list[tuple[str, ...]]:
    """Return the scale of the first block, by each formula that is tried."""
    last = block_format.scales[-1]
    factors = [name for name in ("decode", "encode") if getattr(block_format, name) is not None]
    head = ("formula", last.name, "code", *factors, "sum of errors")
    table = []
    for formula in block_format.tries:
        one = replace(block_format, tries=(formula,))
        scale = quantize(x, shape, one).scales[last.name]
        code = f"0x{scale.codes[0]:X}" if scale.codes else "-"
        own = [shown_number(scale.numbers[name][0]) for name in (last.name, *factors)]
        of_block = block_format, order.taken(x), order, scale.numbers
        error = block_errors(*of_block, elements_of(*of_block))[0]
        table.append((formula, own[0], code, *own[1:], shown_number(error)))
    if len(table) == 1:
        return [head[:-1], (last.number, *table[0][1:-1])]
    return [head, *table]


def _elements(
    block_format: BlockFormat, x: Column, numbers: Any, case: Case
) -> list[tuple[str, ...]]:
    factors = {
        name: [numbers[name][0]] * len(x) for name in ("decode", "encode") if name in numbers
    }
    xs = products(x, factors["encode"]) if "encode" in factors else quotients(x, factors["decode"])
    codes = case.arrays["code"][0, : len(x)].tolist()
    v = list(map(block_format.fmt.value, codes))
    ys = products(v, factors["decode"]) if "decode" in factors else quotients(v, factors["encode"])
    rows = [
        (
            shown_bits(number),
            *map(shown_number, (number, scaled)),
            f"0x{code:X}",
            *map(shown_number, (block_format.fmt.value(code), y)),
            shown_bits(y),
        )
        for number, scaled, code, y in zip(x, xs, codes, ys, strict=False)
    ]
    return [("bits of x", "x", "xs", "code", "v", "y", "bits of y"), *rows]


def _behind_steps(case: Case) -> list[tuple[str, ...]]:
    """Return x and y of the first numbers of a tensor."""
    pairs = zip(
        numbers_of(case.arrays["x"][0, :_ELEMENTS], case.parameters["source"]),
        numbers_of(case.arrays["y"][0, :_ELEMENTS], "f32"),
        strict=True,
    )
    rows = [(shown_bits(x), shown_number(x), shown_number(y), shown_bits(y)) for x, y in pairs]
    return [("bits of x", "x", "y", "bits of y"), *rows]
