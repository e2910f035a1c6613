"""Steps of states of FP8-LM that differ: windows, automatic scaling, rates, and scales."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.deviations.deviation import Deviation, deviation
from mor_ref.exact.arithmetic import difference, product, quotient, rn32, rn32_of_binary64
from mor_ref.schemes.fp8lm import exact as fp8lm
from mor_ref.schemes.fp8lm import exact_adam as fp8lm_adam
from mor_ref.schemes.fp8lm.definition import (
    BY_AMAX,
    FIRST_MOMENT,
    PAPER_PARTS,
    PAPER_WINDOW,
    SECOND_MOMENT,
)
from mor_ref.schemes.fp8lm.exact import SharedScales

Reference = Callable[..., Any]
_SHARED, _STORED = ("fp8lm_shared",), ("fp8lm_stored", "fp8lm_steps")
_WINDOWS, _MU, _RATES = ("fp8lm_windows",), ("fp8lm_mu",), ("fp8lm_rates", "fp8lm_steps")


@deviation(fp8lm.history, rules=("FLM-006",), domain=_WINDOWS)
def fp8lm_windows_lag(
    reference: Reference, window: Sequence[float], amax: float
) -> tuple[float, ...]:
    """The newest amax replaces the previous one, and the oldest one is not dropped."""
    found: tuple[float, ...] = reference(window, amax)
    return (*window[:-1], found[-1])


@deviation(fp8lm.largest_after, rules=("FLM-006",), domain=_WINDOWS)
def fp8lm_windows_one_step_late(reference: Reference, before: Any, after: Any) -> float:
    """The largest amax is of the window before a step, which lacks the newest amax."""
    return float(reference(after, before))


@deviation(fp8lm.history, rules=("FLM-006",), domain=_WINDOWS)
def fp8lm_windows_keep_infinities(
    reference: Reference, window: Sequence[float], amax: float
) -> tuple[float, ...]:
    """An infinite amax is kept, and the scale follows from the infinity."""
    found: tuple[float, ...] = reference(window, amax)
    return (*found[:-1], amax) if math.isinf(amax) else found


@deviation(fp8lm.history, rules=("FLM-006",), domain=_WINDOWS)
def fp8lm_windows_keep_all(
    reference: Reference, window: Sequence[float], amax: float
) -> tuple[float, ...]:
    """An amax that is infinite or NaN is kept."""
    found: tuple[float, ...] = reference(window, amax)
    return (*found[:-1], amax)


@deviation(fp8lm.growth, rules=("FLM-010",), domain=_MU)
def fp8lm_mu_grows_linearly(reference: Reference, window: int) -> float:
    """Mu grows by 1/window in each step."""
    del reference
    return rn32(1 + Fraction(1, window))


@deviation(fp8lm.growth, rules=("FLM-010",), domain=_MU)
def fp8lm_mu_exponent_in_binary32(reference: Reference, window: int) -> float:
    """Mu grows by 2^(RN32(1/window)), as powf(2.0f, 1.0f / window) does."""
    del reference
    return rn32_of_binary64(2.0 ** quotient(1.0, float(window)))


@deviation(fp8lm.growth, rules=("FLM-010",), domain=_MU)
def fp8lm_mu_factor_in_binary64(reference: Reference, window: int) -> float:
    """The factor is not rounded to binary32, but its product with mu is."""
    del reference
    return float(2.0 ** (1.0 / window))


@deviation(fp8lm.growth, rules=("FLM-010",), domain=_MU)
def fp8lm_mu_doubles(reference: Reference, window: int) -> float:
    """Mu doubles in each step."""
    del window
    return float(reference(1))


@deviation(fp8lm.growth, rules=("FLM-010",), domain=_MU)
def fp8lm_mu_window_of_the_paper(reference: Reference, window: int) -> float:
    """The window is 1,000 steps, also with msamp."""
    del window
    return float(reference(PAPER_WINDOW))


def _by_profile(name: str) -> Callable[..., bool]:
    return lambda _count, _size, profile, _threshold: bool(profile == name)


@deviation(fp8lm.are_too_many, rules=("FLM-010",), domain=_MU)
def fp8lm_mu_never_halves(reference: Reference, *_: Any) -> bool:
    """No number of saturated codes is too large."""
    del reference
    return False


@deviation(fp8lm.are_too_many, rules=("FLM-010",), domain=_MU)
def fp8lm_mu_halves_for_one(
    reference: Reference, count: int, size: int, profile: str, threshold: float
) -> bool:
    """One saturated code is too many, whatever the size of the gradient."""
    del reference, size, profile, threshold
    return count > 0


@deviation(fp8lm.are_too_many, rules=("FLM-010",), domain=_MU)
def fp8lm_mu_counts_one_less(reference: Reference, count: int, *rest: Any) -> bool:
    """One saturated code is not counted."""
    return bool(reference(max(count - 1, 0), *rest))


@deviation(fp8lm.are_too_many, where=_by_profile("paper"), rules=("FLM-010",), domain=_MU)
def fp8lm_mu_at_the_threshold(
    reference: Reference, count: int, size: int, profile: str, threshold: float
) -> bool:
    """With paper, a share that equals the threshold halves mu, too."""
    del reference, profile, threshold
    return count * PAPER_PARTS >= size


@deviation(fp8lm.are_too_many, where=_by_profile("paper"), rules=("FLM-010",), domain=_MU)
def fp8lm_mu_share_of_paper_rounded(
    reference: Reference, count: int, size: int, profile: str, threshold: float
) -> bool:
    """With paper, the share is rounded to binary32, as in the code."""
    del profile
    return bool(reference(count, size, "msamp", threshold))


@deviation(fp8lm.are_too_many, where=_by_profile("msamp"), rules=("FLM-010",), domain=_MU)
def fp8lm_mu_share_of_code_exact(
    reference: Reference, count: int, size: int, profile: str, threshold: float
) -> bool:
    """With msamp, the share is not rounded to binary32, as in the paper."""
    del profile
    return bool(reference(count, size, "paper", threshold))


@deviation(fp8lm_adam.correction, rules=("FLM-011",), domain=_RATES)
def fp8lm_powers_in_binary32(reference: Reference, beta: float, steps: int) -> float:
    """The powers are products of binary32, one for each step."""
    del reference
    power = 1.0
    for _ in range(min(steps, 1000)):
        power = product(power, beta)
    return difference(1.0, power)


@deviation(fp8lm_adam.correction, rules=("FLM-011",), domain=_RATES)
def fp8lm_steps_from_zero(reference: Reference, beta: float, steps: int) -> float:
    """Steps count from 0."""
    return float(reference(beta, steps - 1))


# ---------------------------------------------------------------------- an all-reduce and a state


def _by(*reductions: str) -> Callable[..., bool]:
    return lambda _amaxes, _fmt, reduction, _profile: reduction in reductions


def _anew(reference: Reference, shared: float, *arguments: Any) -> SharedScales:
    """Return the scales with another shared scale."""
    found: SharedScales = reference(*arguments)
    count, reduction = float(len(arguments[0])), arguments[2]
    return found._replace(
        scale=shared,
        scale_inv=quotient(quotient(1.0, shared), count),
        requantized=[reduction != "msamp_min" or own != shared for own in found.rank_scale],
    )


@deviation(fp8lm.shared_scales, where=_by("paper", "msamp_min"), rules=("FLM-007",), domain=_SHARED)
def fp8lm_shared_by_the_largest(reference: Reference, *arguments: Any) -> SharedScales:
    """The shared scale is the largest of the ranks."""
    return _anew(reference, max(reference(*arguments).rank_scale), *arguments)


@deviation(fp8lm.shared_scales, where=_by("paper", "msamp_min"), rules=("FLM-007",), domain=_SHARED)
def fp8lm_shared_of_the_largest_amax(
    reference: Reference, amaxes: Sequence[float], fmt: Format, reduction: str, profile: Any
) -> SharedScales:
    """The shared scale follows from the largest amax, in which a NaN does not count."""
    largest = max((amax for amax in amaxes if not math.isnan(amax)), default=math.nan)
    shared = fp8lm.scale_of(largest, 1.0, fmt, 0, profile).scale
    return _anew(reference, shared, amaxes, fmt, reduction, profile)


@deviation(fp8lm.shared_scales, where=_by("paper"), rules=("FLM-007",), domain=_SHARED)
def fp8lm_shared_ranks_stay(reference: Reference, *arguments: Any) -> SharedScales:
    """With paper, a rank whose scale is the shared one is not cast anew."""
    found: SharedScales = reference(*arguments)
    return found._replace(requantized=[own != found.scale for own in found.rank_scale])


@deviation(fp8lm.shared_scales, where=_by("msamp_min"), rules=("FLM-007",), domain=_SHARED)
def fp8lm_shared_ranks_change(reference: Reference, *arguments: Any) -> SharedScales:
    """With msamp_min, every rank is cast anew."""
    found: SharedScales = reference(*arguments)
    return found._replace(requantized=[True] * len(found.rank_scale))


@deviation(fp8lm.by_root, rules=("FLM-008",), domain=_SHARED)
def fp8lm_shared_by_the_count(
    reference: Reference, scale: float, ranks: int, reduction: str
) -> float:
    """The scale of the largest amax is divided by the number of ranks, not by its root."""
    del reference, reduction
    return quotient(scale, float(ranks))


def _by_root_of(name: str) -> Callable[..., bool]:
    return lambda _scale, _ranks, reduction: bool(reduction == name)


@deviation(fp8lm.by_root, where=_by_root_of("msamp_max"), rules=("FLM-008",), domain=_SHARED)
def fp8lm_shared_root_in_binary64(
    reference: Reference, scale: float, ranks: int, reduction: str
) -> float:
    """The scale is multiplied by RN32(1 / sqrt(N)), as with msamp_0_4_max."""
    del reduction
    return float(reference(scale, ranks, "msamp_0_4_max"))


@deviation(fp8lm.by_root, where=_by_root_of("msamp_0_4_max"), rules=("FLM-008",), domain=_SHARED)
def fp8lm_shared_root_in_binary32(
    reference: Reference, scale: float, ranks: int, reduction: str
) -> float:
    """The scale is divided by RN32(sqrt(N)), as with msamp_max."""
    del reduction
    return float(reference(scale, ranks, "msamp_max"))


@deviation(fp8lm.shared_scales, rules=("FLM-009",), domain=_SHARED)
def fp8lm_shared_sums_are_not_means(reference: Reference, *arguments: Any) -> SharedScales:
    """The inverse is not divided by the number of ranks."""
    found: SharedScales = reference(*arguments)
    return found._replace(scale_inv=quotient(1.0, found.scale))


@deviation(fp8lm.shared_scales, where=_by(*BY_AMAX), rules=("FLM-009",), domain=_SHARED)
def fp8lm_shared_mean_by_a_reciprocal(reference: Reference, *arguments: Any) -> SharedScales:
    """The inverse is multiplied by RN32(1 / N), as torch divides by a number on a GPU."""
    found: SharedScales = reference(*arguments)
    count = float(len(arguments[0]))
    inverse = product(quotient(1.0, found.scale), quotient(1.0, count))
    return found._replace(scale_inv=inverse)


@deviation(fp8lm.shared_scales, rules=("FLM-009",), domain=_SHARED)
def fp8lm_shared_mean_in_one_division(reference: Reference, *arguments: Any) -> SharedScales:
    """The inverse is 1 / (s * N), whose product can overflow."""
    found: SharedScales = reference(*arguments)
    count = float(len(arguments[0]))
    return found._replace(scale_inv=quotient(1.0, product(found.scale, count)))


@deviation(fp8lm_adam.stored_scales, rules=("FLM-014",), domain=_STORED)
def fp8lm_stored_weights_forget(
    reference: Reference, amaxes: Sequence[float], master: float
) -> tuple[float, float, float]:
    """The previous scale of the weights is 1, too."""
    del master
    found: tuple[float, float, float] = reference(amaxes, 1.0)
    return found


@deviation(fp8lm_adam.stored_scales, rules=("FLM-014",), domain=_STORED)
def fp8lm_stored_moments_remember(
    reference: Reference, amaxes: Sequence[float], master: float
) -> tuple[float, float, float]:
    """The moments take the scale of the weights as their previous scale."""
    _, _, weights = reference(amaxes, master)
    first, second = (
        fp8lm.scale_of(amax, master, formats[name], 0, "msamp").scale
        for amax, name in zip(amaxes, (FIRST_MOMENT, SECOND_MOMENT), strict=False)
    )
    return first, second, weights


@deviation(fp8lm_adam.stored_scales, rules=("FLM-014",), domain=_STORED)
def fp8lm_stored_alike(
    reference: Reference, amaxes: Sequence[float], master: float
) -> tuple[float, float, float]:
    """The second moment has the largest number of e4m3."""
    first, _, weights = reference(amaxes, master)
    same, _, _ = reference((amaxes[1], *amaxes[1:]), master)
    return first, same, weights


DEVIATIONS = tuple(value for value in tuple(globals().values()) if isinstance(value, Deviation))
