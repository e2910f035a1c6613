"""Amaxes of other tensors: of the one that was asked before, of the next one, or of several."""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from mor_ref.golden.model.suite import Case
from mor_ref.operations.bits import Unsigned
from mor_ref.verify.diagnosing.cases_before import NONE, cases_before
from mor_ref.verify.diagnosing.sample import Sample
from mor_ref.verify.quantize_by_rows import amax_of

Amaxes = list[float | None]  # one for each case; None if there is no such tensor


def amaxes_of_tensors(samples: Sequence[Sample]) -> Iterator[tuple[str, Amaxes]]:
    """Yield words, and an amax for each case: of another tensor, or of several."""
    own = [amax_of_sample(one, one.question.arrays["x"]) for one in samples]
    for words, before in cases_before(samples):
        yield f"the tensor before it{words}", [None if k == NONE else own[k] for k in before]
    yield "the tensor after it", [*own[1:], None]
    yield "all tensors together", [max(own)] * len(own)
    yield "the tensor and all before it", [*itertools.accumulate(own, max)]


def amax_of_sample(one: Sample, x: Unsigned) -> float:
    """Return the amax of some numbers of a case."""
    case = Case(one.question.name, one.question.parameters, {"x": x})
    with np.errstate(invalid="ignore"):  # signalling NaNs
        return amax_of(one.operation, case) if x.size else 0.0
