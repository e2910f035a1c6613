"""Steps of states of FP8-LM that differ: windows, automatic scaling, rates, and the partition."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from mor_ref.deviations.deviation import Deviation, deviation
from mor_ref.exact import fp8lm
from mor_ref.exact.arithmetic import difference, product, rn32

Reference = Callable[..., Any]
_WINDOWS, _MU, _RATES, _RANKS = (
    ("fp8lm_windows",), ("fp8lm_mu",), ("fp8lm_rates",), ("fp8lm_partition",),
)  # fmt: skip


@deviation(fp8lm.history, rules=("FLM-006",), domain=_WINDOWS)
def fp8lm_windows_lag(
    reference: Reference, window: Sequence[float], amax: float
) -> tuple[float, ...]:
    """The newest amax replaces the newest one of before."""
    found: tuple[float, ...] = reference(window, amax)
    return (*window[:-1], found[-1])


@deviation(fp8lm.history, rules=("FLM-006",), domain=_WINDOWS)
def fp8lm_windows_keep_infinities(
    reference: Reference, window: Sequence[float], amax: float
) -> tuple[float, ...]:
    """An infinite amax counts as the largest number."""
    found: tuple[float, ...] = reference(window, amax)
    return (*found[:-1], 3.4028234663852886e38) if math.isinf(amax) else found


@deviation(fp8lm.growth, rules=("FLM-010",), domain=_MU)
def fp8lm_mu_grows_linearly(reference: Reference, window: int) -> float:
    """Mu grows by 1/window in each step."""
    del reference
    return rn32(1 + Fraction(1, window))


@deviation(fp8lm.auto_scale, rules=("FLM-010",), domain=_MU)
def fp8lm_mu_counts_one_sign(
    reference: Reference, mu: float, codes: Sequence[int], *rest: Any
) -> tuple[int, float]:
    """Codes that are NaN count as saturated, and saturated codes do not."""
    found: tuple[int, float] = reference(mu, [code ^ 1 for code in codes], *rest)
    return found


@deviation(fp8lm.auto_scale, rules=("FLM-010",), domain=_MU)
def fp8lm_mu_at_the_threshold(
    reference: Reference, mu: float, codes: Sequence[int], *rest: Any
) -> tuple[int, float]:
    """Mu halves only if two codes saturate."""
    first = next((i for i, code in enumerate(codes) if code & 0x7F == 0x7E), None)
    less = [code for i, code in enumerate(codes) if i != first]
    found: tuple[int, float] = reference(mu, less or codes, *rest)
    return found


@deviation(fp8lm.correction, rules=("FLM-011",), domain=_RATES)
def fp8lm_powers_in_binary32(reference: Reference, beta: float, steps: int) -> float:
    """The powers are products of binary32, one for each step."""
    del reference
    power = 1.0
    for _ in range(min(steps, 1000)):
        power = product(power, beta)
    return difference(1.0, power)


@deviation(fp8lm.correction, rules=("FLM-011",), domain=_RATES)
def fp8lm_steps_from_zero(reference: Reference, beta: float, steps: int) -> float:
    """Steps count from 0."""
    return float(reference(beta, steps - 1))


@deviation(fp8lm.partition, rules=("FLM-015",), domain=_RANKS)
def fp8lm_partition_by_index(reference: Reference, numels: Sequence[int], ranks: int) -> list[int]:
    """Tensors of one size go in the order of their indices."""
    del reference
    return _placed(numels, ranks, lambda i: (-numels[i], i))


@deviation(fp8lm.partition, rules=("FLM-015",), domain=_RANKS)
def fp8lm_partition_smallest_first(
    reference: Reference, numels: Sequence[int], ranks: int
) -> list[int]:
    """The smallest tensor goes first."""
    del reference
    return _placed(numels, ranks, lambda i: (numels[i], i % ranks))


def _placed(numels: Sequence[int], ranks: int, key: Callable[[int], tuple[int, int]]) -> list[int]:
    loads, found = [0] * ranks, [0] * len(numels)
    for i in sorted(range(len(numels)), key=key):
        found[i] = loads.index(min(loads))
        loads[found[i]] += numels[i]
    return found


DEVIATIONS = tuple(value for value in tuple(globals().values()) if isinstance(value, Deviation))
