"""FP8-LM: steps of Adam, with states that are stored in few bits."""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import NamedTuple

from mor_ref.definitions.formats import formats
from mor_ref.exact.arithmetic import difference, product, quotient, rn32, total
from mor_ref.exact.step import step
from mor_ref.schemes.fp8lm.definition import FIRST_MOMENT, MASTER, SECOND_MOMENT, Adam
from mor_ref.schemes.fp8lm.exact import cast, largest_magnitude, scale_of, square_root

Numbers = tuple[list[float], list[float], list[float]]  # both moments, and the weights
Scales = tuple[float, float, float]
_KINDS = tuple(formats[name] for name in (FIRST_MOMENT, SECOND_MOMENT, MASTER))


class Moments(NamedTuple):
    """The state of Adam: codes and scales of both moments and of the master weights."""

    step: int
    first: list[int]
    second: list[int]
    master: list[int]
    scales: Scales


@step
@cache
def correction(beta: float, steps: int) -> float:
    """Return RN32(1 - beta^steps) (FLM-011)."""
    return rn32(1 - Fraction(beta) ** steps)


@step
def moment(code_value: float, inverse: float, beta: float, term: float) -> float:
    """Return a moment after a step, in binary32 (FLM-012)."""
    old = product(product(beta, code_value), inverse)
    return total(old, product(difference(1.0, beta), term))


@step
def decay_factor(lr: float, weight_decay: float) -> float:
    """Return the factor of a weight (FLM-013)."""
    return difference(1.0, product(lr, weight_decay))


@step
def decayed(weight: float, lr: float, weight_decay: float) -> float:
    """Return a weight after its decay (FLM-013)."""
    return product(weight, decay_factor(lr, weight_decay)) if weight_decay else weight


@step
def parameter_after(
    values: Sequence[float],
    inverses: Sequence[float],
    g: float,
    numbers: Adam,
    rate: float,
    root: float,
) -> tuple[float, float, float]:
    """Return both moments and the weight of a parameter, before their casts (FLM-012, FLM-013)."""
    first = moment(values[0], inverses[0], numbers.beta1, g)
    second = moment(values[1], inverses[1], numbers.beta2, product(g, g))
    weight = decayed(product(values[2], inverses[2]), numbers.lr, numbers.weight_decay)
    return first, second, updated(weight, first, second, rate, root, numbers.eps)


def begun(weights: Sequence[float]) -> Moments:
    """Return the state before the first step (FLM-014)."""
    scale = scale_of(largest_magnitude(weights), 1.0, formats[MASTER], 0, "msamp").scale
    zeros = [0.0] * len(weights)
    scales = (1.0, 1.0, scale)
    return Moments(0, *codes_of((zeros, zeros, list(weights)), scales), scales)


def adam(state: Moments, gradient: Sequence[float], numbers: Adam) -> Moments:
    """Return the state after a step (FLM-011 to FLM-014)."""
    steps = state.step + 1
    rate = quotient(numbers.lr, correction(numbers.beta1, steps))
    root = square_root(correction(numbers.beta2, steps))
    return stored(steps, numbers_after(state, gradient, numbers, rate, root), state.scales)


@step
def numbers_after(
    state: Moments, gradient: Sequence[float], numbers: Adam, rate: float, root: float
) -> Numbers:
    """Return both moments and the weights, before their casts (FLM-012, FLM-013)."""
    inverses = [quotient(1.0, scale) for scale in state.scales]
    columns: Numbers = ([], [], [])
    for *codes, g in zip(state.first, state.second, state.master, gradient, strict=True):
        values = [kind.value(code) for kind, code in zip(_KINDS, codes, strict=True)]
        after = parameter_after(values, inverses, g, numbers, rate, root)
        for column, number in zip(columns, after, strict=True):
            column.append(number)
    return columns


@step
def stored(steps: int, numbers: Numbers, before: Scales) -> Moments:
    """Return the state that is stored after a step, given the scales before it (FLM-014)."""
    amaxes = [largest_of_moment(numbers[0]), largest_of_moment(numbers[1])]
    scales = stored_scales([*amaxes, largest_of_weights(numbers[2])], before[2])
    return Moments(steps, *codes_of(numbers, scales), scales)


@step
def largest_of_moment(numbers: Sequence[float]) -> float:
    """Return the amax of a moment, in which NaN does not count (FLM-014)."""
    return largest_magnitude([x for x in numbers if not math.isnan(x)])


@step
def largest_of_weights(numbers: Sequence[float]) -> float:
    """Return the amax of the weights, which a NaN makes NaN (FLM-014)."""
    return largest_magnitude(numbers)


def codes_of(numbers: Numbers, scales: Scales) -> tuple[list[int], list[int], list[int]]:
    """Return the codes of both moments and of the weights (FLM-014)."""
    first, second, master = (
        [cast(x, scale, kind).code for x in column]
        for column, scale, kind in zip(numbers, scales, _KINDS, strict=True)
    )
    return first, second, master


@step
def stored_scales(amaxes: Sequence[float], master: float) -> tuple[float, float, float]:
    """Return the scales of both moments and of the weights, given their scale before (FLM-014)."""
    first, second, weights = amaxes
    return (
        scale_of(first, 1.0, formats[FIRST_MOMENT], 0, "msamp").scale,
        scale_of(second, 1.0, formats[SECOND_MOMENT], 0, "msamp").scale,
        scale_of(weights, master, formats[MASTER], 0, "msamp").scale,
    )


@step
def updated(w: float, m: float, v: float, rate: float, root: float, eps: float) -> float:
    """Return the weight after a step, in binary32 (FLM-013)."""
    below = total(quotient(square_root(v), root), eps)
    return difference(w, product(rate, quotient(m, below)))
