"""Amaxes that kernels take for that of a tensor: of another tensor, or of a part of it."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from mor_ref.golden.model.suite import Case
from mor_ref.operations import OPERATIONS
from mor_ref.operations.bits import Unsigned
from mor_ref.verify.diagnosing.amaxes_of_parts import Part, named, parts_of_blocks
from mor_ref.verify.diagnosing.sample import Sample
from mor_ref.verify.quantize_by_rows import amax_of

AmaxOf = Callable[[int], float]

_TENSOR = "the tensor"
_GIVEN = {"amax", "scale", "global_scale"}
_HALVES: dict[str, Callable[[Unsigned], Unsigned]] = {
    "the first half of its rows": lambda x: x[: len(x) // 2],
    "the last half of its rows": lambda x: x[len(x) // 2 :],
    "the first half of its columns": lambda x: x[:, : x.shape[1] // 2],
    "the last half of its columns": lambda x: x[:, x.shape[1] // 2 :],
}


def other_amaxes(samples: Sequence[Sample]) -> Iterator[tuple[str, AmaxOf, bool]]:
    """Yield words, a function that returns the other amax of a case, and whether it is of a part.

    The function takes the number of a case. It returns 0 if there is none.
    """
    whole = OPERATIONS[samples[0].operation].whole_amax
    asked = [one.question.parameters for one in samples]
    if whole is None or any(_GIVEN & {*one} or not whole.is_needed(one) for one in asked):
        return
    own = [_amax(one, one.question.arrays["x"]) for one in samples]
    for words, others in (
        ("the tensor before it", [0.0, *own[:-1]]),
        ("the tensor after it", [*own[1:], 0.0]),
        ("all tensors together", [max(own)] * len(own)),
        ("the tensor and all before it", [*itertools.accumulate(own, max)]),
    ):
        yield words, others.__getitem__, False
    for words, half in _HALVES.items():
        yield words, partial(_of_some, half, samples), False
    for part in parts_of_blocks(_TENSOR):
        yield named(part, _TENSOR), partial(_of_part, part, samples, own), True


def _of_some(some: Callable[[Unsigned], Unsigned], samples: Sequence[Sample], k: int) -> float:
    return _amax(samples[k], some(samples[k].question.arrays["x"]))


def _of_part(part: Part, samples: Sequence[Sample], own: Sequence[float], k: int) -> float:
    """Return the amax of a part of a tensor."""
    x = samples[k].question.arrays["x"]
    some = part.of(x, x.shape)
    return own[k] if some is None else _amax(samples[k], some)


def _amax(one: Sample, x: Unsigned) -> float:
    case = Case(one.question.name, one.question.parameters, {"x": x})
    return amax_of(one.operation, case) if x.size else 0.0
