"""Sequences of Adam steps in FP8-LM that use the previous state in other ways."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from mor_ref.definitions.formats import formats
from mor_ref.deviations.deviation import Change, Deviation, deviation
from mor_ref.exact.arithmetic import product, quotient
from mor_ref.schemes.fp8lm import exact_adam as fp8lm_adam
from mor_ref.schemes.fp8lm.definition import FIRST_MOMENT, MASTER, SECOND_MOMENT, Adam
from mor_ref.schemes.fp8lm.deviations_adam import after_with
from mor_ref.schemes.fp8lm.exact_adam import Moments, Numbers, Scales

Reference = Callable[..., Any]
_STEPS = ("fp8lm_steps",)
_RATES = ("fp8lm_rates", *_STEPS)


@deviation(fp8lm_adam.stored, rules=("FLM-014",), domain=_STEPS)
def fp8lm_codes_of_the_scale_before(
    reference: Reference, steps: int, numbers: Numbers, before: Scales
) -> Moments:
    """Codes follow from the scale before the step, and the new scale is stored with them."""
    found: Moments = reference(steps, numbers, before)
    return Moments(steps, *fp8lm_adam.codes_of(numbers, before), found.scales)


@deviation(fp8lm_adam.stored, rules=("FLM-014",), domain=_STEPS)
def fp8lm_scales_of_the_step_before(
    reference: Reference, steps: int, numbers: Numbers, before: Scales
) -> Moments:
    """Codes follow from the new scale, and the scale before the step stays with them."""
    found: Moments = reference(steps, numbers, before)
    return found._replace(scales=before)


@deviation(fp8lm_adam.stored, rules=("FLM-014",), domain=_STEPS)
def fp8lm_scales_never_change(
    reference: Reference, steps: int, numbers: Numbers, before: Scales
) -> Moments:
    """All steps use the scales before the first step."""
    del reference
    return Moments(steps, *fp8lm_adam.codes_of(numbers, before), before)


@deviation(fp8lm_adam.stored, rules=("FLM-014",), domain=_STEPS)
def fp8lm_weights_keep_their_scale(
    reference: Reference, steps: int, numbers: Numbers, before: Scales
) -> Moments:
    """All steps use the scale that the weights have before the first step."""
    found: Moments = reference(steps, numbers, before)
    scales = (*found.scales[:2], before[2])
    return Moments(steps, *fp8lm_adam.codes_of(numbers, scales), scales)


@deviation(fp8lm_adam.largest_of_moment, rules=("FLM-014",), domain=_STEPS)
def fp8lm_nan_counts_in_moments(reference: Reference, numbers: Sequence[float]) -> float:
    """A NaN makes the amax of a moment NaN, so that its scale is 1."""
    return math.nan if any(map(math.isnan, numbers)) else float(reference(numbers))


@deviation(fp8lm_adam.largest_of_weights, rules=("FLM-014",), domain=_STEPS)
def fp8lm_nan_skipped_in_weights(reference: Reference, numbers: Sequence[float]) -> float:
    """A NaN does not count in the amax of the weights."""
    return float(reference([x for x in numbers if not math.isnan(x)]))


def _restored(state: Moments) -> Numbers:
    """Return y of the moments and of the weights of a state."""
    kinds, codes = (FIRST_MOMENT, SECOND_MOMENT, MASTER), (state.first, state.second, state.master)
    first, second, weights = (
        [product(formats[kind].value(code), quotient(1.0, scale)) for code in own]
        for kind, own, scale in zip(kinds, codes, state.scales, strict=True)
    )
    return first, second, weights


def _stored_values(numbers: Numbers) -> tuple[list[float], list[float]]:
    """Return y of the moments as a step stores them."""
    return _restored(fp8lm_adam.stored(1, numbers, (1.0, 1.0, 1.0)))[:2]


def _weights_by(
    numbers: Adam,
    state: Moments,
    first: Sequence[float],
    second: Sequence[float],
    rate: float,
    root: float,
) -> list[float]:
    """Return the weights after a step with these moments."""
    old = _restored(state)[2]
    return [
        fp8lm_adam.updated(
            fp8lm_adam.decayed(w, numbers.lr, numbers.weight_decay), m, v, rate, root, numbers.eps
        )
        for w, m, v in zip(old, first, second, strict=True)
    ]


@deviation(fp8lm_adam.numbers_after, rules=("FLM-013",), domain=_STEPS)
def fp8lm_weights_by_the_stored_first_moment(
    reference: Reference, state: Moments, gradient: Sequence[float], numbers: Adam, *of_step: float
) -> Numbers:
    """The new weight follows from the first moment as it is stored, and not as it is computed."""
    first, second, weights = reference(state, gradient, numbers, *of_step)
    rounded, _ = _stored_values((first, second, weights))
    return first, second, _weights_by(numbers, state, rounded, second, *of_step)


@deviation(fp8lm_adam.numbers_after, rules=("FLM-013",), domain=_STEPS)
def fp8lm_weights_by_stored_moments(
    reference: Reference, state: Moments, gradient: Sequence[float], numbers: Adam, *of_step: float
) -> Numbers:
    """The new weight follows from both moments as they are stored."""
    first, second, weights = reference(state, gradient, numbers, *of_step)
    rounded = _stored_values((first, second, weights))
    return first, second, _weights_by(numbers, state, *rounded, *of_step)


@deviation(fp8lm_adam.numbers_after, rules=("FLM-012",), domain=_STEPS)
def fp8lm_weights_by_the_moments_before(
    reference: Reference, state: Moments, gradient: Sequence[float], numbers: Adam, *of_step: float
) -> Numbers:
    """The new weight follows from the moments before the step."""
    first, second, _ = reference(state, gradient, numbers, *of_step)
    return first, second, _weights_by(numbers, state, *_restored(state)[:2], *of_step)


@deviation(fp8lm_adam.correction, rules=("FLM-011",), domain=_RATES)
def fp8lm_steps_from_two(reference: Reference, beta: float, steps: int) -> float:
    """Steps count from 2."""
    return float(reference(beta, steps + 1))


@deviation(fp8lm_adam.correction, rules=("FLM-011",), domain=_RATES)
def fp8lm_steps_do_not_count(reference: Reference, beta: float, steps: int) -> float:
    """All steps use the corrections of the first step."""
    del steps
    return float(reference(beta, 1))


def _not_corrected(reference: Reference, beta: float, steps: int) -> float:
    """Return the correction that changes nothing."""
    del reference, beta, steps
    return 1.0


fp8lm_corrections_left_out = Deviation(
    "fp8lm_corrections_left_out",
    "Moments are not corrected.",
    ("FLM-011",),
    ("fp8lm_adam", *_RATES),
    (
        Change(fp8lm_adam.correction, _not_corrected),
        Change(fp8lm_adam.parameter_after, after_with(lambda a, _: a.lr, lambda _: 1.0)),
    ),
)


DEVIATIONS = tuple(value for value in globals().values() if isinstance(value, Deviation))
