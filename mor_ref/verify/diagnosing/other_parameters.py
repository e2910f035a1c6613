"""Fields computed with another parameter, such as scales in e8m0 where gam is asked for."""

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial

import numpy as np

from mor_ref.definitions.scales import SCALINGS
from mor_ref.operations import OPERATIONS
from mor_ref.operations.bits import Unsigned
from mor_ref.operations.call import Parameters
from mor_ref.operations.parameters import RECIPE
from mor_ref.verify.diagnosing.alternative import Alternative, sure_of
from mor_ref.verify.diagnosing.amaxes_of_parts import joined_parts
from mor_ref.verify.diagnosing.entries import MOST, Entries
from mor_ref.verify.diagnosing.other_amaxes import AmaxOf, other_amaxes
from mor_ref.verify.diagnosing.sample import Sample
from mor_ref.verify.diagnosing.scales_of_other_numbers import has_32_bits

_CASES = 2  # cases that each value is tried on first
OF_PARAMETERS = "each entry is that with "
_VALUES = {"scaling": SCALINGS}  # parameters without deviations such as `nvfp4_as_torchao`

Other = Callable[[int], Parameters]  # the other parameters of the case with this number
Computed = Callable[..., Unsigned | None]


def other_parameters(e: Entries) -> Iterator[Alternative]:
    """Yield a field computed with another value of a parameter, or with another amax.

    Each value is tried on some cases that differ; a value that explains these is tried on all. Two
    numbers of 32 bits that are not round are hardly equal by accident, so one entry is enough.
    """
    asked = [one.question.parameters for one in e.samples]
    is_small = sum(one.size for one in e.samples) <= MOST
    if e.noun != "entry" or not is_small or any(RECIPE in one for one in asked):
        return
    yield from joined_parts(_fitting(e))


def _fitting(e: Entries) -> Iterator[tuple[Alternative, bool]]:
    """Yield other parameters that explain some cases, each with whether it is of a part."""
    computed = cache(partial(_computed, e))
    for words, other, is_of_part in _others(e.samples):
        known = ((k, changed) for k in e.worst_cases if (changed := other(k)))
        some = [*itertools.islice(known, _CASES)]
        if some and all(e.is_given(k, computed(k, *changed.items())) for k, changed in some):
            yield _alternative(e, f"{OF_PARAMETERS}{words}", other, computed), is_of_part


def _alternative(e: Entries, words: str, other: Other, computed: Computed) -> Alternative:
    """Return the field of all cases with other parameters."""
    values, is_there = e.expected.copy(), np.zeros(e.size, np.bool_)
    for k, places in enumerate(e.slices):
        changed = other(k)
        found = computed(k, *changed.items()) if changed else None
        if found is not None:
            values[places], is_there[places] = found, True
    one = Alternative(words, values, is_there, e, is_of_place=False)
    is_sure = has_32_bits(e) and one.kept <= one.explained
    return replace(one, sure=sure_of(values, e.expected)) if is_sure else one


def _others(samples: Sequence[Sample]) -> Iterator[tuple[str, Other, bool]]:
    """Yield words, a function that returns the other parameters of a case, and if it is of a part.

    The function returns nothing if a case keeps its parameters.
    """
    for name in OPERATIONS[samples[0].operation].parameters.keys() & _VALUES:
        for value in _VALUES[name]:
            yield f"{name} {value}", partial(_with_value, samples, name, value), False
    for words, amax, is_of_part in other_amaxes(samples):
        yield f"the amax of {words}", partial(_with_amax, amax), is_of_part


def _with_value(samples: Sequence[Sample], name: str, value: object, k: int) -> Parameters:
    return {} if samples[k].question.parameters.get(name) == value else {name: value}


def _with_amax(of: AmaxOf, k: int) -> Parameters:
    amax = of(k)
    return {"amax": amax} if amax else {}


def _computed(e: Entries, k: int, *other: tuple[str, object]) -> Unsigned | None:
    """Return a field of a case computed with other parameters, or None if there is none."""
    one = e.samples[k]
    asked = one.question
    with contextlib.suppress(ValueError):  # some values exclude each other
        parameters = {**asked.parameters, **dict(other)}
        found = OPERATIONS[one.operation].engine(parameters, asked.arrays).get(e.field)
        if found is not None and found.size == one.pairs[e.field].expected.size:
            flat: Unsigned = found.ravel()
            return flat
    return None
