"""Amaxes that kernels take for that of a tensor: of another tensor, or of a part of it."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from mor_ref.operations import OPERATIONS
from mor_ref.operations.bits import Unsigned
from mor_ref.verify.diagnosing.amaxes_of_parts import Part, named, parts_of_blocks
from mor_ref.verify.diagnosing.amaxes_of_tensors import amax_of_sample, amaxes_of_tensors
from mor_ref.verify.diagnosing.sample import Sample

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
    has_amax = [_follows_amax(one) for one in samples]
    if not any(has_amax):
        return
    own = [amax_of_sample(one, one.question.arrays["x"]) for one in samples]
    for words, others in amaxes_of_tensors(samples):
        amaxes = [other or 0.0 for other in others]
        yield words, partial(_of_these, has_amax, amaxes.__getitem__), False
    for words, half in _HALVES.items():
        yield words, partial(_of_these, has_amax, partial(_of_some, half, samples)), False
    for part in parts_of_blocks(_TENSOR):
        of_part = partial(_of_part, part, samples, own)
        yield named(part, _TENSOR), partial(_of_these, has_amax, of_part), True


def _follows_amax(one: Sample) -> bool:
    """Return whether a case follows from the amax of the tensor, which is not given."""
    whole, asked = OPERATIONS[one.operation].whole_amax, one.question.parameters
    return whole is not None and not _GIVEN & {*asked} and whole.is_needed(asked)


def _of_these(has_amax: Sequence[bool], of: AmaxOf, k: int) -> float:
    return of(k) if has_amax[k] else 0.0


def _of_some(some: Callable[[Unsigned], Unsigned], samples: Sequence[Sample], k: int) -> float:
    return amax_of_sample(samples[k], some(samples[k].question.arrays["x"]))


def _of_part(part: Part, samples: Sequence[Sample], own: Sequence[float], k: int) -> float:
    """Return the amax of a part of a tensor."""
    x = samples[k].question.arrays["x"]
    some = part.of(x, x.shape)
    return own[k] if some is None else amax_of_sample(samples[k], some)
