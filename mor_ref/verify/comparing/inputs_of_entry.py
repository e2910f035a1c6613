"""The inputs of an entry of a field: a report shows them if the entry is wrong."""

import itertools
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.golden.model.suite import Case
from mor_ref.golden.model.views import DIGEST, DIGEST_TILE, sources, split
from mor_ref.operations import OPERATIONS
from mor_ref.operations.fields import INTEGERS, Fields, format_meant
from mor_ref.operations.shapes import shapes_of, sides_of

Index = tuple[int, ...]
_Part = tuple[slice, ...]
_FEW = 2  # numbers that are shown one by one, as those of a byte with two codes


class Input(NamedTuple):
    """A number that goes in: which one, its bits or its integer, and the format."""

    what: str
    bits: int
    format: str


def origins(
    operation: str, question: Case, suite_field: str, given: str, first_row: int = 0
) -> Callable[[Index], tuple[Input, ...]]:
    """Return a function from an entry of a field to its inputs; suite and answer name the field.

    An entry can be of a part of a tensor: a scale is of a block. Then the input is the name of the
    part with its largest number, because the scale follows from this number. The inputs are the
    rows of a tensor from the first row on.
    """
    declared, parameters = OPERATIONS[operation], question.parameters
    inputs, first = declared.inputs_for(parameters), declared.first_axes
    kind = declared.field(split(suite_field)[0]).axes
    shape = question.arrays[next(iter(inputs))].shape
    sides = sides_of(first, parameters, shape)[kind]
    views = split(suite_field)[1] or split(given)[1]
    of_digests = DIGEST_TILE if DIGEST in views else 1
    plain = shapes_of(first, parameters, shape)[kind]
    places = sources(plain, views, parameters)

    def inputs_of(index: Index) -> tuple[Input, ...]:
        found: list[Input] = []
        for place in (int(p[index]) for p in places):
            if place:
                at = (*map(int, np.unravel_index(place - 1, plain)), 0)
                part = tuple(
                    slice(i * side, i * side + side * of_digests)
                    for i, side in zip(at, sides, strict=False)
                )
                found += _of_part(question, inputs, part, first_row)
        return tuple(dict.fromkeys(found))

    return inputs_of


def _of_part(question: Case, inputs: Fields, part: _Part, first_row: int) -> Iterator[Input]:
    """Yield the numbers of each input that belong to a part of the first.

    Names count rows from the first row of the whole tensor.
    """
    for name, field in inputs.items():
        array, meant = question.arrays[name], format_meant(field.format, question.parameters)
        ends = [range(*s.indices(n)) for s, n in zip(part, array.shape, strict=False)]
        if math.prod(map(len, ends)) <= _FEW:
            for place in itertools.product(*ends):
                named = ", ".join(map(str, (place[0] + first_row, *place[1:])))
                yield Input(f"{name}[{named}]", field.number(int(array[place])), meant)
        elif meant not in INTEGERS:
            starts = (first_row, *(0 for _ in ends[1:]))
            where = ", ".join(
                f"{start + end.start}:{start + end.stop}"
                for start, end in zip(starts, ends, strict=True)
            )
            yield largest_of(f"{name}[{where}]", array[part[: array.ndim]], meant)


def largest_of(part: str, bits: NDArray[np.unsignedinteger], fmt: str) -> Input:
    """Return the finite number of the largest magnitude; the first one if none is finite."""
    ranks = _magnitudes(bits.reshape(-1), formats[fmt])
    others = int((ranks < 0).sum())
    what = (
        f"the largest finite number of {part} ({others} are not finite)"
        if others
        else (f"the largest of {part}")
    )
    return Input(what, int(bits.reshape(-1)[ranks.argmax()]), fmt)


def _magnitudes(bits: NDArray[np.unsignedinteger], fmt: Format) -> NDArray[np.int64]:
    """Return codes without their sign, which are in the order of magnitudes; -1 if not finite."""
    codes = (bits & bits.dtype.type(fmt.code_count - 1)).astype(np.int64)
    magnitudes = codes & ~fmt.sign_bit
    if fmt.sign == "twos-complement":
        magnitudes = np.minimum(codes, fmt.code_count - codes)
    is_finite = magnitudes != (-1 if fmt.infinity_code is None else fmt.infinity_code)
    for nans in fmt.nan_codes:
        is_finite &= (codes < nans.start) | (codes >= nans.stop)
    return np.where(is_finite, magnitudes, -1)
