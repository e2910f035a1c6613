"""Fields computed with another parameter, such as scales in e8m0 where gam is asked for."""

import contextlib
from collections.abc import Iterator

import numpy as np

from mor_ref.definitions.scales import SCALINGS
from mor_ref.operations import OPERATIONS
from mor_ref.operations.bits import Unsigned
from mor_ref.operations.parameters import RECIPE
from mor_ref.verify.diagnosing.alternative import Alternative
from mor_ref.verify.diagnosing.entries import MOST, Entries
from mor_ref.verify.diagnosing.sample import Sample

_CASES = 2  # cases that each value is tried on first
OF_PARAMETERS = "each entry is that with "
_VALUES = {"scaling": SCALINGS}  # parameters without deviations such as `mx_as_ceil`


def other_parameters(e: Entries) -> Iterator[Alternative]:
    """Yield a field computed with another value of a parameter, the same value in all cases.

    Each value is tried on some cases that differ; a value that explains these is tried on all.
    """
    kinds = OPERATIONS[e.samples[0].operation].parameters
    asked = [one.question.parameters for one in e.samples]
    is_small = sum(one.size for one in e.samples) <= MOST
    if e.noun != "entry" or not is_small or any(RECIPE in one for one in asked):
        return
    places = e.slices
    count = [int(np.count_nonzero(e.differs[of_case])) for of_case in places]
    most = sorted(range(len(count)), key=lambda k: -count[k])[:_CASES]
    for name in kinds.keys() & _VALUES:
        for value in _VALUES[name]:
            if all(_explains(e, k, name, value) for k in most if count[k]):
                values, is_there = e.expected.copy(), np.zeros(e.size, np.bool_)
                for one, of_case in zip(e.samples, places, strict=True):
                    found = _computed(one, e.field, name, value)
                    if found is not None:
                        values[of_case], is_there[of_case] = found.ravel(), True
                words = f"{OF_PARAMETERS}{name} {value}"
                yield Alternative(words, values, is_there, e, is_of_place=False)


def _explains(e: Entries, k: int, name: str, value: str) -> bool:
    found, of_case = _computed(e.samples[k], e.field, name, value), e.slices[k]
    differs = e.differs[of_case]
    return found is not None and bool((found.ravel()[differs] == e.given[of_case][differs]).all())


def _computed(one: Sample, field: str, name: str, value: str) -> Unsigned | None:
    """Return a field of a case computed with another value, or None if there is none."""
    asked = one.question
    if asked.parameters[name] == value:
        return None
    with contextlib.suppress(ValueError):  # some values exclude each other
        parameters = {**asked.parameters, name: value}
        found = OPERATIONS[one.operation].engine(parameters, asked.arrays).get(field)
        if found is not None and found.size == one.pairs[field].expected.size:
            return found
    return None
