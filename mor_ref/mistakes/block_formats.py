"""Mistakes of block formats, made from the record alone."""

import contextlib
import copy
import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import le
from typing import Any, TypeVar

from mor_ref.definitions.block_formats import (
    BlockFormat,
    BlockScale,
    percentiles_of,
    reads_amax,
)
from mor_ref.definitions.encoding import (
    DETERMINISTIC_ROUNDINGS,
    ElementRounding,
    Rounding,
    SpecialCases,
    rounding_for,
)
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.definitions.formulas import Formula, Name, parsed
from mor_ref.definitions.table_format import ElementFormat, TableFormat
from mor_ref.deviations.deviation import Change, Deviation
from mor_ref.exact import block_formats as exact
from mor_ref.exact.arithmetic import nearest_in
from mor_ref.exact.columns import Column, decoded, encoded, products, quotients
from mor_ref.exact.encoding import encode
from mor_ref.exact.step import replaced
from mor_ref.mistakes.formulas import wrong_formulas
from mor_ref.mistakes.mistake import Mistake, Operator, Site
from mor_ref.mistakes.percentiles import of_each_part, wrong_percentiles

_ROUNDED: dict[Rounding | ElementRounding, str] = {
    "rne": "to nearest, ties to even",
    "rna": "to nearest, ties away from zero",
    "rtz": "toward zero",
    "rtp": "up",
    "rtn": "down",
    "rto": "to odd",
}
_TOWARD_ZERO = "to nearest, ties toward zero"
_COUNTED = {
    "finite": "finite numbers alone",
    "not nan": "all but NaN",
    "all": "all numbers, so that a NaN makes a scale NaN",
}
_RECIPROCAL = parsed("1 / decode")
_FIRST = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
_LANES = 64  # of a block, that are left out one by one
_FEW = 7  # lanes of a row, a column or a tensor that are left out


@functools.lru_cache(maxsize=64)  # the FP8 of libraries and a user's own
def mistakes_of(block_format: BlockFormat) -> tuple[Deviation, ...]:
    """Return the mistakes of a block format, each once.

    >>> from mor_ref import BlockFormat, BlockScale
    >>> mine = BlockFormat("mine", "e4m3", (BlockScale("s", (1, 32), "amax / 448"),), decode="s")
    >>> mistakes_of(mine)[0].name, mistakes_of(mine)[0].summary
    ('s/quotient-truncated', 'The quotient `amax / 448` is rounded toward zero.')
    """
    return tuple(mistake.deviation for mistake in sites_and_operators(block_format))


def sites_and_operators(block_format: BlockFormat) -> Iterator[Mistake]:
    """Yield the mistakes of a block format as data: where they are, and what they do there."""
    yield from _of_formulas(block_format)
    yield from _of_scales(block_format)
    yield from _of_tries(block_format)
    yield from _of_amaxes(block_format)
    yield from _of_percentiles(block_format)
    yield from _of_elements(block_format)


def wrong_record(mistake: Mistake) -> BlockFormat | None:
    """Return the record with which a mistake computes; None if it is in a step of the model."""
    (site,) = mistake.sites
    return site.put(mistake.operator.wrong) if isinstance(site, _Part) else None


def mistakes_of_all(block_formats: Iterable[BlockFormat]) -> list[Deviation]:
    """Return the mistakes of several block formats; those of one name are made in all of them."""
    same: dict[str, Deviation] = {}
    for block_format in dict.fromkeys(block_formats):
        for one in mistakes_of(block_format):
            there = same.get(one.name, replace(one, changes=()))
            same[one.name] = replace(there, changes=(*there.changes, *one.changes))
    return list(same.values())


def _at(site: Site, name: str, words: str, wrong: object) -> Mistake:
    return Mistake((site,), Operator(name, words, wrong))


@dataclass(frozen=True)
class _Part:
    """A part of a record, which another record has in place of it."""

    at: str
    rule: str
    right: BlockFormat
    put: Callable[[Any], BlockFormat]
    noun: str = ""
    words: str = ""

    def change(self, operator: Operator) -> Change:
        """Return the change that computes with the other record."""
        return _in_place_of(self.right, self.put(operator.wrong))


@dataclass(frozen=True)
class _Step:
    """A step of the exact model of block formats."""

    at: str
    rule: str
    step: Callable[..., Any]
    noun: str = ""
    words: str = ""

    def change(self, operator: Operator) -> Change:
        """Return the change of the step."""
        return Change(self.step, operator.wrong)


# ---------------------------------------------------------------------- formulas

_Record = TypeVar("_Record")


def _with(record: _Record, **fields: object) -> _Record:
    """Return a copy of a record with other fields, which may be trees: they are not checked."""
    other = copy.copy(record)
    for name, value in fields.items():
        object.__setattr__(other, name, value)
    return other


def _in_place_of(right: BlockFormat, wrong: BlockFormat) -> Change:
    """Return the change that computes with another record."""

    def quantize(
        reference: Callable[..., Any], x: Any, shape: Any, record: Any, *given: Any
    ) -> Any:
        return reference(x, shape, wrong if record == right else record, *given)

    return Change(exact.quantize, quantize)


def _of_formulas(record: BlockFormat) -> Iterator[Mistake]:
    for place, text, rule, put in _places(record):
        for wrong in wrong_formulas(parsed(text)):
            yield _at(_Part(place, rule, record, put), *wrong)


_Put = Callable[[Any], BlockFormat]


def _places(record: BlockFormat) -> Iterator[tuple[str, str, str, _Put]]:
    """Yield each formula of a block format: a name, its text, its rule, where to put another."""
    for place, scale in enumerate(record.scales):
        yield scale.name, scale.number, "BLF-003", functools.partial(_with_number, record, place)
    if record.tries != ("t",):
        for place, text in enumerate(record.tries):
            yield f"try-{place + 1}", text, "BLF-005", functools.partial(_with_try, record, place)
    for name in ("decode", "encode"):
        text = getattr(record, name)
        if text is not None:
            yield name, text, "BLF-004", functools.partial(_with_field, record, name)
    if len(record.tries) > 1:
        yield "error", record.error, "BLF-005", functools.partial(_with_field, record, "error")


def _with_number(record: BlockFormat, place: int, formula: Formula) -> BlockFormat:
    return _with_scale(record, place, _with(record.scales[place], number=formula))


def _with_scale(record: BlockFormat, place: int, scale: BlockScale) -> BlockFormat:
    return _with(record, scales=_with_entry(record.scales, place, scale))


def _with_try(record: BlockFormat, place: int, formula: Formula) -> BlockFormat:
    return _with(record, tries=_with_entry(record.tries, place, formula))


def _with_field(record: BlockFormat, name: str, value: object) -> BlockFormat:
    return _with(record, **{name: value})


def _with_entry(entries: tuple[Any, ...], place: int, entry: object) -> tuple[Any, ...]:
    return (*entries[:place], entry, *entries[place + 1 :])


# ---------------------------------------------------------------------- scales


def _of_scales(record: BlockFormat) -> Iterator[Mistake]:
    for place, scale in enumerate(record.scales):
        if scale.fmt != formats["f32"]:
            yield from _of_stored_scale(record, place, scale)
    yield from _of_counted(record)


def _of_counted(record: BlockFormat) -> Iterator[Mistake]:
    statistics = {
        "amax": any(reads_amax(record, scale) for scale in record.scales),
        "percentile": any(percentiles_of(record, scale) for scale in record.scales),
    }
    read = [name for name, is_read in statistics.items() if is_read]
    if not read:
        return
    put = functools.partial(_with_field, record, "counted")
    site = _Part(read[0], "BLF-003" if "amax" in read else "BLF-007", record, put)
    subject = {"amax": "an amax counts", "percentile": "a percentile counts"}.get(
        "+".join(read), "amaxes and percentiles count"
    )
    for counted, words in _COUNTED.items():
        if counted != record.counted:
            yield _at(site, f"counts-{counted.replace(' ', '-')}", f"{subject} {words}", counted)


def _of_stored_scale(record: BlockFormat, place: int, scale: BlockScale) -> Iterator[Mistake]:
    own = rounding_for(scale.fmt, scale.rounding, SpecialCases())
    part = _Part(scale.name, "BLF-003", record, functools.partial(_with_scale, record, place))
    for rounding in _roundings_of(scale.fmt):
        if rounding != own:
            words = f"scale {scale.name} is rounded {_ROUNDED[rounding]}"
            yield _at(part, f"stored-{rounding}", words, replace(scale, rounding=rounding))
    unrounded = _stored_as(scale.fmt, lambda numbers, codes, _: (codes, numbers))
    yield _at(
        _Step(scale.name, "BLF-004", exact.stored),
        "unrounded-factor",
        f"scale {scale.name} is stored, but factors come from its number before it is rounded",
        unrounded,
    )
    if scale is record.scales[-1] and len(record.tries) == 1 and not record.before:
        yield _at(
            _Step(scale.name, "BLF-004", exact.quantize),
            "rounded-late",
            f"scale {scale.name} is rounded after the codes were made: they are those of its "
            "number before",
            functools.partial(_with_codes_before, record, unrounded),
        )
    if not scale.fmt.is_power_of_two:
        site = _Step(scale.name, "BLF-003", exact.stored)
        for name, words, code in _other_codes(scale):
            wrong = _stored_as(scale.fmt, functools.partial(_with_codes, scale.fmt, code))
            yield _at(site, f"stored-{name}", f"scale {scale.name} {words}", wrong)


def _with_codes_before(
    record: BlockFormat,
    unrounded: Callable[..., Any],
    reference: Callable[..., exact.Blocks],
    x: Any,
    shape: Any,
    formulas: BlockFormat,
    *given: Any,
) -> exact.Blocks:
    """Return codes under factors that are not rounded, with the scales and the way back as is."""
    right = reference(x, shape, formulas, *given)
    if formulas != record:
        return right
    with replaced([(exact.stored, unrounded)]):
        codes = reference(x, shape, formulas, *given).codes
    last = right.scales[record.scales[-1].name]
    order = exact.InBlocks(last.parts)
    name, back = ("encode", quotients) if record.decode is None else ("decode", products)
    factors = order.put_back(order.spread(last.numbers[name]))
    return replace(right, codes=codes, y=back(decoded(codes, record.fmt), factors))


def _roundings_of(fmt: Format) -> Iterator[Rounding]:
    for rounding in DETERMINISTIC_ROUNDINGS:
        with contextlib.suppress(ValueError):  # a format of powers of two has few
            if rounding_for(fmt, rounding, SpecialCases()) == rounding:
                yield rounding


_Stored = tuple[list[int], Column]
_Code = Callable[[float, int, float], int]  # of a number, its code, and the number of the code


def _stored_as(
    own: Format, change: Callable[[Column, list[int], Column], _Stored]
) -> Callable[..., _Stored]:
    """Return the step that stores the numbers of a format otherwise."""

    def stored(
        reference: Callable[..., _Stored], numbers: Column, fmt: Format, rounding: object
    ) -> _Stored:
        codes, column = reference(numbers, fmt, rounding)
        return change(numbers, codes, column) if fmt == own else (codes, column)

    return stored


def _with_codes(
    fmt: Format, code: _Code, numbers: Column, codes: list[int], column: Column
) -> _Stored:
    changed = list(map(code, numbers, codes, column))
    return changed, decoded(changed, fmt)


def _other_codes(scale: BlockScale) -> Iterator[tuple[str, str, _Code]]:
    """Yield other codes of a scale: a name, words, and the code."""
    fmt, normal = scale.fmt, scale.fmt.smallest_normal or 0.0
    ieee, rounding = SpecialCases(overflow="ieee"), scale.rounding or "rne"
    yield (
        "flushed",
        "is 0 where its stored number is subnormal",
        lambda _, code, stored: 0 if stored < normal else code,
    )
    yield (
        "not-zero",
        f"is the smallest number {fmt.value(1):g} where it is 0",
        lambda _, code, stored: 1 if stored == 0 else code,
    )
    yield (
        "overflows",
        f"overflows where it is above the largest number {fmt.largest:g}",
        lambda x, code, _: encode(x, fmt, rounding, ieee) if x > fmt.largest else code,
    )


# ---------------------------------------------------------------------- tries


def _of_tries(record: BlockFormat) -> Iterator[Mistake]:
    if len(record.tries) == 1:
        return
    for name, words, compare in (
        ("last-of-equals", "of tries with equal errors, the last is taken", le),
        ("nan-loses", "a try is taken in place of one whose error is NaN", _is_less_than_nan),
    ):
        site = _Step("tries", "BLF-005", exact.less_errors)
        yield _at(site, name, words, functools.partial(_compared, compare))
    put = functools.partial(_with_field, record, "tries")
    for place, text in enumerate(record.tries):
        part = _Part(f"try-{place + 1}", "BLF-005", record, put)
        tries = (*record.tries[:place], *record.tries[place + 1 :])
        yield _at(part, "left-out", f"the try `{text}` is left out", tries)
    whole = _Part("tries", "BLF-005", record, put)
    yield _at(whole, "reversed", "the tries are made in the reverse order", record.tries[::-1])


def _compared(
    compare: Callable[[float, float], bool],
    reference: Callable[..., list[bool]],
    errors: Column,
    least: Column,
) -> list[bool]:
    del reference
    return list(map(compare, errors, least))


def _is_less_than_nan(error: float, least: float) -> bool:
    return error < least or (math.isnan(least) and not math.isnan(error))


# ---------------------------------------------------------------------- amaxes


def _of_amaxes(record: BlockFormat) -> Iterator[Mistake]:
    for scale in filter(functools.partial(reads_amax, record), record.scales):
        site = _Step(scale.name, "BLF-003", exact.measured)
        for name, words, seen in _reaches(scale):
            wrong = functools.partial(_measured, scale.name, seen)
            yield _at(site, f"amax-{name}", f"the amax of scale {scale.name} {words}", wrong)


_Block = Sequence[float]
_Seen = Callable[[list[_Block]], list[_Block]]  # what each part of a tensor sees


def _measured(
    name: str,
    seen: _Seen,
    reference: Callable[..., Any],
    formulas: BlockFormat,
    scale: BlockScale,
    x: Any,
    order: exact.InBlocks,
    above: Any,
) -> Any:
    """Return what a scale measures if its amax sees other numbers than those of its part."""
    numbers = reference(formulas, scale, x, order, above)
    if scale.name != name:
        return numbers
    blocks = seen(list(order.blocks(x)))
    amaxes = of_each_part(blocks, lambda block: exact.amax_of(block, formulas.counted))
    return {**numbers, "amax": amaxes, f"amax_{name}": amaxes}


def _reaches(scale: BlockScale) -> Iterator[tuple[str, str, _Seen]]:
    """Yield which numbers a wrong amax sees, of a block and of those around it."""
    most = math.prod(scale.over) if isinstance(scale.over, tuple) else 1 << 30

    def first(count: int) -> _Seen:
        return lambda blocks: [block[:count] for block in blocks]

    def without(lane: int) -> _Seen:
        return lambda blocks: [[*block[:lane], *block[lane + 1 :]] for block in blocks]

    def without_tail(modulus: int) -> _Seen:
        return lambda blocks: [block[: len(block) // modulus * modulus] for block in blocks]

    yield (
        "signed",
        "is the largest number, not the largest magnitude",
        lambda blocks: [[x for x in block if not x < 0] for block in blocks],
    )
    for count in _FIRST:
        if count < most:
            yield f"first-{count}", f"sees the first {count} numbers of a part alone", first(count)
    for lane in range(min(most, _LANES)) if isinstance(scale.over, tuple) else _FIRST[:_FEW]:
        yield f"without-{lane}", f"does not see number {lane} of a part", without(lane)
    words = "does not see the last number of a part"
    yield "without-last", words, lambda blocks: [block[:-1] for block in blocks]
    for modulus in (2, 4, 8, 16, 32):
        words = f"does not see the last size % {modulus} numbers of a part"
        yield f"without-tail-{modulus}", words, without_tail(modulus)
    if scale.over != "tensor":
        yield "of-next", "is that of the next part", lambda blocks: [*blocks[1:], *blocks[:1]]
        yield (
            "of-previous",
            "is that of the part before",
            lambda blocks: [*blocks[-1:], *blocks[:-1]],
        )
        yield "of-all", "is that of the whole tensor", _whole_tensor_for_each


def _whole_tensor_for_each(blocks: list[_Block]) -> list[_Block]:
    return [[x for block in blocks for x in block]] * len(blocks)


# ---------------------------------------------------------------------- percentiles


def _of_percentiles(record: BlockFormat) -> Iterator[Mistake]:
    for scale in record.scales:
        site = _Step(scale.name, "BLF-007", exact.measured)
        for percentile in percentiles_of(record, scale):
            percent = f"{float(percentile.percent):g}"
            subject = f"the percentile({percent}) of scale {scale.name}"
            for name, words, wrong in wrong_percentiles(record, scale, percentile):
                yield _at(site, f"percentile-{percent}-{name}", f"{subject} {words}", wrong)


# ---------------------------------------------------------------------- elements


def _of_elements(record: BlockFormat) -> Iterator[Mistake]:
    for name, words, codes in _element_codes(record.fmt, record.rounding):
        site = _Step("elements", "BLF-004", exact.element_codes)
        yield _at(site, name, words, functools.partial(_codes_of_elements, codes))
    factor = _Part("elements", "BLF-004", record, functools.partial(_with_field, record, "encode"))
    if record.encode is not None and record.decode is not None:
        words = "numbers are divided by decode, not multiplied by encode"
        yield _at(factor, "divided", words, None)
    elif record.decode is not None and not _is_power_of_two(record):  # whose reciprocal is exact
        words = "numbers are multiplied by 1 / decode, not divided by decode"
        yield _at(factor, "multiplied", words, _RECIPROCAL)
    if not record.has_negative_zero:
        put = functools.partial(_with_field, record, "has_negative_zero")
        part = _Part("elements", "BLF-014", record, put)
        yield _at(part, "sign-of-zero", "negative numbers that become zero keep their sign", True)
    elif isinstance(record.fmt, Format) and record.fmt.sign == "sign-magnitude":
        drops = not record.drops_sign_of_zero
        put = functools.partial(_with_field, record, "drops_sign_of_zero")
        words = "elements have no -0" if drops else "elements keep -0"
        yield _at(_Part("elements", "BLF-004", record, put), "sign-of-zero", words, drops)


def _is_power_of_two(record: BlockFormat) -> bool:
    """Return whether decode is the last scale alone, which is a power of two."""
    last = record.scales[-1]
    return last.fmt.is_power_of_two and parsed(record.decode or "") == Name(last.name)


_Codes = Callable[[Column], list[int]]


def _codes_of_elements(
    codes: _Codes, reference: Callable[..., list[int]], xs: Column, *of_elements: object
) -> list[int]:
    del reference, of_elements
    return codes(xs)


def _element_codes(fmt: ElementFormat, own: ElementRounding) -> Iterator[tuple[str, str, _Codes]]:
    """Yield other codes of scaled numbers: a name, words, and the codes."""
    for name, words in (("bf16", "bfloat16"), ("f16", "binary16")):
        codes = functools.partial(_codes_through, fmt, own, name)
        yield f"through-{name}", f"scaled numbers are rounded to {words} first", codes
    if isinstance(fmt, TableFormat):
        return
    others = [*_ROUNDED.items()]
    if own != "rne":  # vectors of ties to even are older than rnz
        others += [("rnz", _TOWARD_ZERO)]
    for rounding, words in others:
        if rounding != own:
            codes = functools.partial(encoded, fmt=fmt, rounding=rounding)
            yield rounding, f"elements are rounded {words}", codes
    ieee = SpecialCases(overflow="ieee")
    yield (
        "overflow",
        "elements above the largest number overflow",
        lambda xs: [
            encode(x, fmt, "rne", ieee) if abs(x) > fmt.largest else code
            for x, code in zip(xs, encoded(xs, fmt, own), strict=True)
        ],
    )
    if fmt.smallest_normal:
        yield "flushed", "subnormal elements are 0", functools.partial(_flushed, fmt, own)


def _codes_through(fmt: ElementFormat, own: ElementRounding, narrow: str, xs: Column) -> list[int]:
    return encoded([nearest_in(x, formats[narrow]) for x in xs], fmt, own)


def _flushed(fmt: Format, own: ElementRounding, xs: Column) -> list[int]:
    codes, zeros = encoded(xs, fmt, own), encoded([0.0, -0.0], fmt)
    normal = fmt.smallest_normal or 0.0
    return [
        zeros[math.copysign(1.0, value) < 0] if abs(value) < normal else code
        for code, value in zip(codes, decoded(codes, fmt), strict=True)
    ]
