"""Inverse scales: numbers are divided by them, not multiplied."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.formats import formats
from mor_ref.golden.model.views import split
from mor_ref.operations import OPERATIONS
from mor_ref.operations.parameters import RECIPE
from mor_ref.verify.diagnosing.alternative import LEAST_BITS, Alternative
from mor_ref.verify.diagnosing.entries import MOST, Entries, Marks
from mor_ref.verify.diagnosing.sample import Sample

Numbers = NDArray[np.float32] | np.float32
_ENDS_IN = np.uint32(0xFF)  # bits that are 0 in a round number of binary32
_INVERSE = "each entry is the inverse of the expected one, rounded to binary32"
_QUOTIENT = "each entry is amax / {largest}, which numbers are divided by, not {largest} / amax"


def inverse_scales(e: Entries) -> Iterator[Alternative]:
    """Yield the inverses of binary32 scales, and the quotients that kernels store instead.

    Two binary32 numbers that are not round are hardly equal by accident, so one scale is enough.
    """
    if not _is_scale(e):
        return
    every = np.ones(e.size, np.bool_)
    yield _of(e, _INVERSE, np.float32(1), e.expected.astype(np.uint32).view(np.float32), every)
    found = _amaxes(e)
    if found is not None:
        amax, largest = found
        is_there = (amax > 0) | (e.given == 0)
        words = _QUOTIENT.format(largest=f"{largest:g}")
        yield _of(e, words, amax, np.float32(largest), is_there)


_SCALES = (("f32", "grid"), ("f32", "ends"))


def _is_scale(e: Entries) -> bool:
    """Return whether the entries are binary32 scales, in a plain field of a mor_ref recipe."""
    name, views = split(e.field)
    output = OPERATIONS[e.samples[0].operation].outputs.get(name)
    is_foreign = any(RECIPE in one.question.parameters for one in e.samples)
    is_binary32 = output is not None and (output.format, output.axes) in _SCALES
    return is_binary32 and name.endswith("scale") and not views and not is_foreign


def _of(e: Entries, words: str, above: Numbers, below: Numbers, is_there: Marks) -> Alternative:
    """Return quotients in binary32, with the bits of surprise of an equal one."""
    with np.errstate(all="ignore"):
        bits = np.broadcast_to(above / below, (e.size,)).astype(np.float32).view(np.uint32)
    sure = np.where(bits & _ENDS_IN, LEAST_BITS, 0.0)
    values = bits.astype(np.uint64)
    return Alternative(words, values, is_there, e, is_of_place=False, sure=sure)


def _amaxes(e: Entries) -> tuple[NDArray[np.float32], float] | None:
    """Return the expected amax of each scale, and the largest number; None if unknown."""
    operation = OPERATIONS[e.samples[0].operation]
    asked = {str(one.question.parameters.get("format")) for one in e.samples}
    is_small = sum(one.size for one in e.samples) <= MOST
    if "amax" not in operation.outputs or not is_small:
        return None
    if e.field != "scale" or len(asked) > 1 or (fmt := asked.pop()) not in formats:
        return None
    found = [_amax(one) for one in e.samples]
    bits = np.concatenate([one.ravel() for one in found]).astype(np.uint32)
    return bits.view(np.float32), float(formats[fmt].largest)


def _amax(one: Sample) -> NDArray[np.integer[Any]]:
    if "amax" in one.pairs:
        return one.pairs["amax"].expected
    return OPERATIONS[one.operation].engine(one.question.parameters, one.question.arrays)["amax"]
