"""Fields computed with another parameter, such as scales in e8m0 where gam is asked for."""

import contextlib
from collections.abc import Iterator, Sequence

import numpy as np

from mor_ref.definitions.scales import SCALINGS
from mor_ref.operations import OPERATIONS
from mor_ref.operations.bits import Unsigned
from mor_ref.operations.operation import Parameters
from mor_ref.operations.parameters import RECIPE
from mor_ref.verify.diagnosing.alternative import Alternative, sure_of
from mor_ref.verify.diagnosing.entries import MOST, Entries
from mor_ref.verify.diagnosing.other_amaxes import other_amaxes
from mor_ref.verify.diagnosing.sample import Sample

_CASES = 2  # cases that each value is tried on first
OF_PARAMETERS = "each entry is that with "
_VALUES = {"scaling": SCALINGS}  # parameters without deviations such as `mx_as_ceil`


def other_parameters(e: Entries) -> Iterator[Alternative]:
    """Yield a field computed with another value of a parameter, or with another amax.

    Each value is tried on some cases that differ; a value that explains these is tried on all. Two
    numbers of 32 bits that are not round are hardly equal by accident, so one entry is enough.
    """
    asked = [one.question.parameters for one in e.samples]
    is_small = sum(one.size for one in e.samples) <= MOST
    if e.noun != "entry" or not is_small or any(RECIPE in one for one in asked):
        return
    for words, others in _others(e.samples):
        known = [k for k, other in enumerate(others) if {**asked[k], **other} != asked[k]]
        most = [k for k in e.worst_cases if k in known][:_CASES]
        if all(e.is_given(k, _computed(e.samples[k], e.field, others[k])) for k in most):
            values, is_there = e.expected.copy(), np.zeros(e.size, np.bool_)
            for k in known:
                found = _computed(e.samples[k], e.field, others[k])
                if found is not None:
                    values[e.slices[k]], is_there[e.slices[k]] = found, True
            sure = sure_of(values) if _is_of_parts(e) else None
            said = f"{OF_PARAMETERS}{words}"
            yield Alternative(said, values, is_there, e, is_of_place=False, sure=sure)


def _others(samples: Sequence[Sample]) -> Iterator[tuple[str, list[Parameters]]]:
    """Yield other parameters of all cases, each with their words."""
    for name in OPERATIONS[samples[0].operation].parameters.keys() & _VALUES:
        for value in _VALUES[name]:
            yield f"{name} {value}", [{name: value} for _ in samples]
    for words, amaxes in other_amaxes(samples):
        yield f"the amax of {words}", [{"amax": amax} if amax else {} for amax in amaxes]


def _is_of_parts(e: Entries) -> bool:
    """Return whether the entries have 32 bits and are of parts of a tensor, or of the whole."""
    fmt, axes = OPERATIONS[e.samples[0].operation].outputs.get(e.field, ("", ""))
    return fmt in ("f32", "u32") and axes != "rc"


def _computed(one: Sample, field: str, other: Parameters) -> Unsigned | None:
    """Return a field of a case computed with other parameters, or None if there is none."""
    asked = one.question
    with contextlib.suppress(ValueError):  # some values exclude each other
        parameters = {**asked.parameters, **other}
        found = OPERATIONS[one.operation].engine(parameters, asked.arrays).get(field)
        if found is not None and found.size == one.pairs[field].expected.size:
            flat: Unsigned = found.ravel()
            return flat
    return None
