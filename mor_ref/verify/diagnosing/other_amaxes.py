"""Amaxes that kernels take for that of a tensor: of another tensor, or of a part of it."""

from collections.abc import Callable, Iterator, Sequence

from mor_ref.golden.model.suite import Case
from mor_ref.operations import OPERATIONS
from mor_ref.operations.bits import Unsigned
from mor_ref.verify.by_rows import amax_of
from mor_ref.verify.diagnosing.sample import Sample

_GIVEN = {"amax", "scale", "global_scale"}
_PARTS: dict[str, Callable[[Unsigned], Unsigned]] = {
    "the first half of its rows": lambda x: x[: len(x) // 2],
    "the last half of its rows": lambda x: x[len(x) // 2 :],
    "the first half of its columns": lambda x: x[:, : x.shape[1] // 2],
    "the last half of its columns": lambda x: x[:, x.shape[1] // 2 :],
    "its first row": lambda x: x[:1],
}


def other_amaxes(samples: Sequence[Sample]) -> Iterator[tuple[str, list[float]]]:
    """Yield the other amaxes of all cases, each with its words; 0 for a case that has none."""
    whole = OPERATIONS[samples[0].operation].whole_amax
    asked = [one.question.parameters for one in samples]
    if whole is None or any(_GIVEN & {*one} or not whole.is_needed(one) for one in asked):
        return
    own = [_amax(one, one.question.arrays["x"]) for one in samples]
    yield "the tensor before it", [0.0, *own[:-1]]
    yield "the tensor after it", [*own[1:], 0.0]
    yield "all tensors together", [max(own)] * len(own)
    for words, part in _PARTS.items():
        yield words, [_amax(one, part(one.question.arrays["x"])) for one in samples]


def _amax(one: Sample, x: Unsigned) -> float:
    case = Case(one.question.name, one.question.parameters, {"x": x})
    return amax_of(one.operation, case) if x.size else 0.0
