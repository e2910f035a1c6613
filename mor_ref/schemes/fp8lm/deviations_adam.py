"""Steps of Adam in FP8-LM that differ: other orders of operations, and other decays."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from mor_ref.definitions.formats import formats
from mor_ref.deviations.deviation import Change, Deviation, deviation
from mor_ref.exact.arithmetic import difference, product, quotient, rn32, rn32_of_binary64, total
from mor_ref.exact.encoding import encode
from mor_ref.schemes.fp8lm import exact as fp8lm
from mor_ref.schemes.fp8lm import exact_adam as fp8lm_adam
from mor_ref.schemes.fp8lm.definition import FIRST_MOMENT, Adam

Reference = Callable[..., Any]
After = tuple[float, float, float]
_DOMAIN = ("fp8lm_adam", "fp8lm_steps")


@deviation(fp8lm_adam.correction, rules=("FLM-011",), domain=("fp8lm_rates", "fp8lm_steps"))
def fp8lm_corrections_in_binary64(reference: Reference, beta: float, steps: int) -> float:
    """The power and the correction are numbers of binary64, rounded at last."""
    del reference
    return rn32_of_binary64(1.0 - float(Fraction(beta) ** steps))


@deviation(fp8lm_adam.moment, rules=("FLM-012",), domain=_DOMAIN)
def fp8lm_moments_fused(
    reference: Reference, code_value: float, inverse: float, beta: float, term: float
) -> float:
    """A moment is one fused multiply-add, as a compiler contracts it."""
    old = product(product(beta, code_value), inverse)
    share = difference(1.0, beta)
    if not all(map(math.isfinite, (old, share, term))):
        return float(reference(code_value, inverse, beta, term))
    exact = Fraction(old) + Fraction(share) * Fraction(term)
    return rn32(exact) if exact else float(reference(code_value, inverse, beta, term))


@deviation(fp8lm_adam.moment, rules=("FLM-012",), domain=_DOMAIN)
def fp8lm_moments_by_lerp(
    reference: Reference, code_value: float, inverse: float, beta: float, term: float
) -> float:
    """A moment is m + (1 - beta) * (g - m), as in torch's lerp."""
    del reference
    old = product(code_value, inverse)
    return total(old, product(difference(1.0, beta), difference(term, old)))


@deviation(fp8lm_adam.moment, rules=("FLM-012",), domain=_DOMAIN)
def fp8lm_inverse_first(
    reference: Reference, code_value: float, inverse: float, beta: float, term: float
) -> float:
    """The moment is dequantized before beta multiplies it."""
    del reference
    old = product(beta, product(code_value, inverse))
    return total(old, product(difference(1.0, beta), term))


@deviation(fp8lm_adam.decay_factor, rules=("FLM-013",), domain=_DOMAIN)
def fp8lm_decay_in_binary64(reference: Reference, lr: float, weight_decay: float) -> float:
    """The factor of the decay is rounded once, as in MS-AMP for binary32 rates, or by an FMA."""
    del reference
    return rn32_of_binary64(1.0 - lr * weight_decay)


@deviation(fp8lm_adam.decay_factor, rules=("FLM-013",), domain=_DOMAIN)
def fp8lm_decay_left_out(reference: Reference, lr: float, weight_decay: float) -> float:
    """The weights do not decay."""
    del reference, lr, weight_decay
    return 1.0


@deviation(fp8lm_adam.decayed, rules=("FLM-013",), domain=_DOMAIN)
def fp8lm_decay_subtracted(
    reference: Reference, weight: float, lr: float, weight_decay: float
) -> float:
    """The decay is subtracted from the weight: w - (lr * decay) * w."""
    if not weight_decay:
        return float(reference(weight, lr, weight_decay))
    return difference(weight, product(product(lr, weight_decay), weight))


def after_with(
    rate_of: Callable[[Adam, float], float], root_of: Callable[[float], float]
) -> Callable[..., After]:
    """Return a step of Adam with another rate or another root of the second correction."""

    def replaced(
        reference: Reference,
        values: Sequence[float],
        inverses: Sequence[float],
        g: float,
        numbers: Adam,
        rate: float,
        root: float,
    ) -> After:
        found: After = reference(
            values, inverses, g, numbers, rate_of(numbers, rate), root_of(root)
        )
        return found

    return replaced


fp8lm_first_correction_left_out = Deviation(
    "fp8lm_first_correction_left_out",
    "The first moment is not corrected: lr stands for the rate.",
    ("FLM-011", "FLM-013"),
    _DOMAIN,
    (Change(fp8lm_adam.parameter_after, after_with(lambda a, _: a.lr, lambda root: root)),),
)
fp8lm_second_correction_left_out = Deviation(
    "fp8lm_second_correction_left_out",
    "The second moment is not corrected.",
    ("FLM-011", "FLM-013"),
    _DOMAIN,
    (Change(fp8lm_adam.parameter_after, after_with(lambda _, rate: rate, lambda _: 1.0)),),
)


@deviation(fp8lm_adam.updated, rules=("FLM-013",), domain=_DOMAIN)
def fp8lm_update_fused(
    reference: Reference, w: float, m: float, v: float, rate: float, root: float, eps: float
) -> float:
    """The change is subtracted by a fused multiply-add, as a compiler contracts it."""
    change = quotient(m, total(quotient(fp8lm.square_root(v), root), eps))
    if not all(map(math.isfinite, (w, rate, change))):
        return float(reference(w, m, v, rate, root, eps))
    exact = Fraction(w) - Fraction(rate) * Fraction(change)
    return rn32(exact) if exact else float(reference(w, m, v, rate, root, eps))


@deviation(fp8lm_adam.updated, rules=("FLM-013",), domain=_DOMAIN)
def fp8lm_change_by_a_reciprocal(
    reference: Reference, w: float, m: float, v: float, rate: float, root: float, eps: float
) -> float:
    """M is multiplied by a rounded reciprocal."""
    del reference
    below = total(quotient(fp8lm.square_root(v), root), eps)
    return difference(w, product(rate, product(m, quotient(1.0, below))))


@deviation(fp8lm_adam.updated, rules=("FLM-013",), domain=_DOMAIN)
def fp8lm_rate_first(
    reference: Reference, w: float, m: float, v: float, rate: float, root: float, eps: float
) -> float:
    """The rate multiplies M before the division."""
    del reference
    below = total(quotient(fp8lm.square_root(v), root), eps)
    return difference(w, quotient(product(rate, m), below))


@deviation(fp8lm_adam.updated, rules=("FLM-013",), domain=_DOMAIN)
def fp8lm_eps_before_the_correction(
    reference: Reference, w: float, m: float, v: float, rate: float, root: float, eps: float
) -> float:
    """Eps is added to the root of V before it is corrected."""
    del reference
    below = quotient(total(fp8lm.square_root(v), eps), root)
    return difference(w, product(rate, quotient(m, below)))


@deviation(fp8lm_adam.updated, rules=("FLM-013",), domain=_DOMAIN)
def fp8lm_eps_under_the_root(
    reference: Reference, w: float, m: float, v: float, rate: float, root: float, eps: float
) -> float:
    """Eps is added to V, under its root."""
    return float(reference(w, m, total(v, eps), rate, root, 0.0))


@deviation(fp8lm_adam.parameter_after, rules=("FLM-012", "FLM-013"), domain=_DOMAIN)
def fp8lm_decay_in_the_gradient(
    reference: Reference,
    values: Sequence[float],
    inverses: Sequence[float],
    g: float,
    numbers: Adam,
    *of_step: float,
) -> After:
    """Decay times the weight is added to the gradient, as in Adam without decoupled decay."""
    decay = product(numbers.weight_decay, product(values[2], inverses[2]))
    without = numbers._replace(weight_decay=0.0)
    taken = total(g, decay) if numbers.weight_decay else g
    found: After = reference(values, inverses, taken, without, *of_step)
    return found


@deviation(fp8lm_adam.parameter_after, rules=("FLM-012", "FLM-013"), domain=_DOMAIN)
def fp8lm_decay_in_every_gradient(
    reference: Reference,
    values: Sequence[float],
    inverses: Sequence[float],
    g: float,
    numbers: Adam,
    *of_step: float,
) -> After:
    """Decay times the weight is added to the gradient, also if the decay is 0."""
    decay = product(numbers.weight_decay, product(values[2], inverses[2]))
    without = numbers._replace(weight_decay=0.0)
    found: After = reference(values, inverses, total(g, decay), without, *of_step)
    return found


@deviation(fp8lm_adam.parameter_after, rules=("FLM-013",), domain=_DOMAIN)
def fp8lm_first_moment_rounded_before_use(
    reference: Reference,
    values: Sequence[float],
    inverses: Sequence[float],
    g: float,
    numbers: Adam,
    rate: float,
    root: float,
) -> After:
    """The weight follows from a first moment rounded to e4m3 with the previous scale."""
    first, second, _ = reference(values, inverses, g, numbers, rate, root)
    kind = formats[FIRST_MOMENT]
    code = encode(quotient(first, inverses[0]), kind, "rne")
    rounded = product(kind.value(code), inverses[0])
    weight = fp8lm_adam.decayed(product(values[2], inverses[2]), numbers.lr, numbers.weight_decay)
    new = fp8lm_adam.updated(weight, rounded, second, rate, root, numbers.eps)
    return first, second, new


@deviation(fp8lm_adam.parameter_after, rules=("FLM-013",), domain=_DOMAIN)
def fp8lm_decay_after_the_step(
    reference: Reference,
    values: Sequence[float],
    inverses: Sequence[float],
    g: float,
    numbers: Adam,
    *of_step: float,
) -> After:
    """The weight decays after the step."""
    without = numbers._replace(weight_decay=0.0)
    first, second, weight = reference(values, inverses, g, without, *of_step)
    return first, second, fp8lm_adam.decayed(weight, numbers.lr, numbers.weight_decay)


@deviation(fp8lm_adam.parameter_after, rules=("FLM-012",), domain=_DOMAIN)
def fp8lm_square_from_the_left(
    reference: Reference,
    values: Sequence[float],
    inverses: Sequence[float],
    g: float,
    numbers: Adam,
    rate: float,
    root: float,
) -> After:
    """The second moment has ((1 - beta2) * g) * g, as C++ reads it without brackets."""
    first, _, _ = reference(values, inverses, g, numbers, rate, root)
    old = product(product(numbers.beta2, values[1]), inverses[1])
    second = total(old, product(product(difference(1.0, numbers.beta2), g), g))
    weight = product(values[2], inverses[2])
    decayed = fp8lm_adam.decayed(weight, numbers.lr, numbers.weight_decay)
    return first, second, fp8lm_adam.updated(decayed, first, second, rate, root, numbers.eps)


DEVIATIONS = tuple(value for value in globals().values() if isinstance(value, Deviation))
