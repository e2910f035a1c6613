"""Properties of entries by their inputs, and by their expected bits."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.formats import formats
from mor_ref.golden.model.views import split
from mor_ref.operations import OPERATIONS
from mor_ref.operations.fields import INTEGERS, format_meant
from mor_ref.operations.shapes import sides_of
from mor_ref.verify.comparing.values import Floats, all_values, is_subnormal, values_of
from mor_ref.verify.diagnosing.entries import Entries, Integers, Marks
from mor_ref.verify.diagnosing.properties import Flag, Number, Property
from mor_ref.verify.diagnosing.sample import Sample

_WIDE = 8  # bits; values of wider codes are not listed
_LANES = (2, 4, 8, 16, 32)
_MODULI = (2, 4, 8, 16)  # moduli of codes, for their lowest bits
_SIGN = 1 << 7  # of codes of 8 bits
_PARTS = {"grid": "block", "n": "block", "unit": "unit", "group": "group", "ends": "tensor"}


@dataclass(frozen=True, eq=False)
class _Numbers:
    """Numbers of entries, marks of subnormal ones, and the largest number of their format."""

    values: Floats
    tiny: Marks
    largest: Floats


def of_inputs(e: Entries) -> Iterator[Property]:
    """Yield properties of the inputs at the places of entries, and of their blocks."""
    name, views = split(e.field)
    if views or e.noun != "entry":
        return
    operation = OPERATIONS[e.samples[0].operation]
    kind, first = operation.field(name).axes, operation.first_axes
    for given, field in operation.inputs.items():
        is_whole = field.axes == kind or (field.axes == first and kind in ("rc", "nk"))
        if is_whole and all(_is_shaped(one, given, e.field) for one in e.samples):
            yield from _of_numbers(given, _given(e, given, field.format), field.format)
    if first in ("rc", "nk"):
        yield from _of_parts(e, kind, first)


def of_expected(e: Entries) -> Iterator[Property]:
    """Yield properties of the expected bits, and of the other fields at the same place."""
    name, views = split(e.field)
    if views or e.noun != "entry":
        return
    operation = OPERATIONS[e.samples[0].operation]
    fmt = operation.field(name).format
    expected = [one.pairs[e.field].expected for one in e.samples]
    found = _numbers(e, expected, fmt)
    yield from _of_numbers(f"the expected {name}", found, fmt)
    if fmt not in INTEGERS:
        words = f"the expected {name} has the largest magnitude of its format"
        is_largest = np.abs(found.values) == found.largest
        yield Flag(words, words.replace(" has ", " does not have "), is_largest)
    yield from _of_code(f"the expected {name}", e.expected.astype(np.int64))
    yield from _of_ties(e)
    yield from _of_other_fields(e)


def _is_shaped(sample: Sample, given: str, field: str) -> bool:
    return sample.question.arrays[given].shape == sample.pairs[field].expected.shape


def _given(e: Entries, given: str, fmt: str) -> _Numbers:
    return _numbers(e, [one.question.arrays[given] for one in e.samples], fmt)


def _numbers(e: Entries, arrays: Sequence[NDArray[np.integer]], fmt: str) -> _Numbers:
    """Return the numbers of these bits, one array for each sample."""
    values, tiny, largest = [], [], []
    for one, array in zip(e.samples, arrays, strict=True):
        meant = format_meant(fmt, one.question.parameters)
        found = values_of(array.ravel(), meant)
        values.append(found)
        tiny.append(is_subnormal(found, meant))
        most = formats[meant].largest if meant in formats else np.nan
        largest.append(np.full(found.size, most))
    return _Numbers(*(np.concatenate(one) for one in (values, tiny, largest)))


def _of_numbers(words: str, found: _Numbers, fmt: str) -> Iterator[Property]:
    """Yield the properties of some numbers."""
    x = found.values
    if fmt in INTEGERS:
        yield Flag(f"{words} is 0", f"{words} is not 0", x == 0)
        yield Number(words, x, shown="{:,.0f}".format)
        return
    yield Flag(f"{words} is NaN", f"{words} is not NaN", np.isnan(x))
    yield Flag(f"{words} is infinite", f"{words} is not infinite", np.isinf(x))
    yield Flag(f"{words} is finite", f"{words} is not finite", np.isfinite(x))
    yield Flag(f"{words} is negative zero", f"{words} is not negative zero", _is_negative_zero(x))
    yield Flag(f"{words} is zero", f"{words} is not zero", x == 0)
    yield Flag(f"{words} is subnormal", f"{words} is not subnormal", found.tiny)
    yield Flag(f"{words} is negative", f"{words} is not negative", np.signbit(x))
    mantissa = np.frexp(np.where(np.isfinite(x), x, 0))[0]
    yield Flag(
        f"{words} is a power of two", f"{words} is not a power of two", np.abs(mantissa) == 1 / 2
    )
    yield Number(f"the magnitude of {words}", np.abs(x), shown="{:.9g}".format, bits=32.0)


def _is_negative_zero(x: Floats) -> Marks:
    found: Marks = (x == 0) & np.signbit(x)
    return found


# ---------------------------------------------------------------- blocks and other parts


def _of_parts(e: Entries, kind: str, first: str) -> Iterator[Property]:
    """Yield properties of the numbers in the block of each entry."""
    operation = OPERATIONS[e.samples[0].operation]
    given, field = next(iter(operation.inputs.items()))
    x = _given(e, given, field.format)
    is_of_elements = kind in ("rc", "nk")
    part = ("n" if first == "nk" else "grid") if is_of_elements else kind
    if part not in _PARTS:
        return
    found = _parts(e, given, part, first)
    at = found.part if is_of_elements else np.arange(found.count)
    noun = ("its " if is_of_elements else "the ") + _PARTS[part]
    yield from _of_each_part(x, found, noun, at)
    if is_of_elements:
        is_largest = np.abs(x.values) == _largest(x.values, found)[found.part]
        yield Flag(
            f"{given} is the largest of its block",
            f"{given} is not the largest of its block",
            is_largest,
        )


@dataclass(frozen=True, eq=False)
class _Parts:
    """The part of each element, counted over all cases, and its place there, row by row."""

    part: Integers
    count: int
    place: Integers


def _parts(e: Entries, given: str, part: str, first: str) -> _Parts:
    found, places, count = [], [], 0
    for one in e.samples:
        shape = one.question.arrays[given].shape
        high, wide = (
            (1, shape[1])
            if first == "nk"
            else sides_of(first, one.question.parameters, shape)[part]
        )
        row, column = np.indices(shape)
        across = -(-shape[1] // wide)
        own = row // high * across + column // wide
        found.append((own + count).ravel())
        places.append((row % high * min(wide, shape[1]) + column % wide).ravel())
        count += -(-shape[0] // high) * across
    return _Parts(np.concatenate(found), count, np.concatenate(places))


def _largest(x: Floats, parts: _Parts) -> Floats:
    """Return the largest finite magnitude of each part; -1 if it has none."""
    found = np.full(parts.count, -1.0)
    np.maximum.at(found, parts.part, np.where(np.isfinite(x), np.abs(x), -1.0))
    return found


def _of_each_part(x: _Numbers, parts: _Parts, noun: str, at: Integers) -> Iterator[Property]:
    def has(marks: Marks) -> Marks:
        found = np.bincount(parts.part, marks, parts.count) > 0
        return found[at]

    for words, marks in (
        ("a NaN", np.isnan(x.values)),
        ("an infinity", np.isinf(x.values)),
        ("a number that is not finite", ~np.isfinite(x.values)),
        ("a zero", x.values == 0),
        ("a negative zero", _is_negative_zero(x.values)),
        ("a subnormal number", x.tiny),
        ("a number that is not zero", x.values != 0),
    ):
        yield Flag(f"{noun} has {words}", f"{noun} does not have {words}", has(marks))
    largest = _largest(x.values, parts)
    is_largest = np.abs(x.values) == largest[parts.part]
    ties = np.bincount(parts.part, is_largest, parts.count)
    words = f"{noun} has its largest magnitude"
    yield Flag(f"{words} more than once", f"{words} once", (ties > 1)[at])
    first = np.full(parts.count, 1 << 40)
    np.minimum.at(first, parts.part, np.where(is_largest, parts.place, 1 << 40))
    first = np.where(first == 1 << 40, -1, first)
    place = f"the place of the largest magnitude in {noun}, row by row,"
    yield Number(place, first[at])
    for m in _LANES:
        yield Number(f"{place} mod {m}", np.where(first < 0, -1, first % m)[at], has_order=False)
    tiny = np.bincount(parts.part, is_largest & x.tiny, parts.count) > 0
    words = f"the largest magnitude of {noun}"
    yield Flag(f"{words} is subnormal", f"{words} is not subnormal", tiny[at])
    yield Number(words, largest[at], shown="{:.9g}".format, bits=32.0)


# ---------------------------------------------------------------- other expected fields


def _of_ties(e: Entries) -> Iterator[Property]:
    """Yield whether the rounded number is halfway between two numbers of the format."""
    operation = OPERATIONS[e.samples[0].operation]
    name = operation.rounded
    if "code" not in operation.outputs or name is None:
        return
    halfway = []
    for one in e.samples:
        meant = format_meant(operation.outputs["code"].format, one.question.parameters)
        array = (
            one.question.arrays["x"]
            if name == "x"
            else getattr(one.pairs.get(name), "expected", None)
        )
        if array is None or array.shape != one.pairs[e.field].expected.shape:
            return
        if meant not in formats or formats[meant].bits > _WIDE:
            return
        fmt = one.question.parameters["source"] if name == "x" else "f32"
        halfway.append(np.isin(values_of(array.ravel(), fmt), _halves(meant)))
    words = f"{name} is halfway between two numbers of the format"
    yield Flag(words, words.replace(" is ", " is not "), np.concatenate(halfway))


@cache
def _halves(fmt: str) -> Floats:
    values = all_values(fmt)
    values = np.unique(values[np.isfinite(values)])
    return (values[:-1] + values[1:]) / 2


def _of_other_fields(e: Entries) -> Iterator[Property]:
    """Yield properties of other fields with the same axes, and of fields of blocks for elements."""
    operation = OPERATIONS[e.samples[0].operation]
    kind, first = operation.field(e.field).axes, operation.first_axes
    for name in e.samples[0].pairs:
        other, views = split(name)
        if name == e.field or views or operation.field(other).format in ("f32", "u64"):
            continue
        axes = operation.field(other).axes
        if not all(name in one.pairs for one in e.samples):
            continue
        arrays = [one.pairs[name].expected.ravel() for one in e.samples]
        values = np.concatenate(arrays).astype(np.int64)
        if axes == kind and len(values) == e.size:
            yield from _of_code(f"the expected {name}", values)
        elif kind in ("rc", "nk") and axes == ("n" if first == "nk" else "grid"):
            given = next(iter(operation.inputs))
            part = _parts(e, given, axes, first).part
            yield from _of_code(f"the expected {name}", values[part])


def _of_code(words: str, codes: Integers) -> Iterator[Property]:
    """Yield the properties of codes; codes without a sign have the order of their values."""
    has_order = bool((codes < _SIGN).all())
    yield Number(words, codes, has_order=has_order, shown="{:#x}".format)
    for m in _MODULI:
        yield Number(f"{words} mod {m}", codes % m, has_order=False)
