"""Measures of one quantization, as a recording keeps them (TRN-010 to TRN-012)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from mor_ref.api.dequantization import OutcomeOfCodes
from mor_ref.api.measures import saturated
from mor_ref.recipes.training import Axis, OperandName
from mor_ref.torch.layers import Observation
from mor_ref.torch.on_cpu import Quantization, quantization

_FRACTION_BITS = 7  # of bfloat16
_CODES = 1 << 15  # magnitudes of bfloat16
_UNIT = Fraction(1, 1 << 266)  # the square of its smallest number
_UNIT_OF_ERROR = 2.0**-23


@dataclass(frozen=True)
class Measured:
    """One quantization of an operand of a layer, measured.

    `microbatch` counts the quantizations of this operand in this direction in the step, from 0.
    `is_recomputed` marks a quantization that a checkpoint computes again. `choices` has the
    number of units that took each representation, `errors` the mean relative error of each that was
    tried, and `exponents` the lowest and the highest exponent of its scales. `flushed` and
    `saturated` count elements, `nonzero` the finite ones that are not zero. `saturated` is None if
    a representation that took elements does not count them.
    """

    step: int
    microbatch: int
    layer: str
    operand: OperandName
    axis: Axis
    is_recomputed: bool
    elements: int
    nonzero: int
    nonfinite: int
    amax: float
    amin: float
    units: int
    choices: Mapping[str, int]
    errors: Mapping[str, float]
    exponents: Mapping[str, tuple[int, int]]
    flushed: int
    saturated: int | None
    signal: float
    noise: float
    sqnr: float

    @property
    def error(self) -> float:
        """The mean relative error under the representation that is tried first."""
        return next(iter(self.errors.values()))

    @property
    def shares(self) -> dict[str, float]:
        """The share of units that took each representation."""
        return {name: count / max(self.units, 1) for name, count in self.choices.items()}

    @property
    def flushed_share(self) -> float:
        """The share of the numbers that are not zero that became zero."""
        return self.flushed / max(self.nonzero, 1)

    @property
    def saturated_share(self) -> float:
        """The share of the numbers that are not zero that saturated; NaN if it is not known."""
        return math.nan if self.saturated is None else self.saturated / max(self.nonzero, 1)


class _Scaling(NamedTuple):
    """The exponents of the scales of a tensor, and how many of its elements saturated."""

    exponents: dict[str, tuple[int, int]]
    saturated: int | None


def measure(seen: Observation, microbatch: int) -> Measured:
    """Measure an observed quantization; the operand does not change."""
    names = seen.tensor_recipe.statistics
    numbers = dict(zip(names, seen.statistics.tolist(), strict=True))
    of_x = _histogram(seen.x)
    signal, noise = (_sum_of_squares(one) for one in (of_x, _histogram(seen.x - seen.y)))
    scaling = _scaling(seen)
    is_not_zero = int(of_x[1:].sum())
    nonfinite = int(of_x[255 << _FRACTION_BITS :].sum())
    return Measured(
        seen.step,
        microbatch,
        seen.layer,
        seen.operand,
        seen.axis,
        seen.is_recomputed,
        elements=seen.x.numel(),
        nonzero=is_not_zero - nonfinite,
        nonfinite=nonfinite,
        amax=_number(numbers["amax"]),
        amin=_number(numbers["amin"]),
        units=numbers["units"],
        choices=_named("choice ", numbers),
        errors={
            name: total * _UNIT_OF_ERROR / max(numbers[f"nonzero {name}"], 1)
            for name, total in _named("sum ", numbers).items()
        },
        exponents=scaling.exponents,
        flushed=int(is_not_zero - np.count_nonzero(_magnitudes(seen.y).cpu())),  # zeros stay zeros
        saturated=scaling.saturated,
        signal=float(signal * _UNIT),
        noise=float(noise * _UNIT),
        sqnr=10 * math.log10(Fraction(signal, noise)) if noise else math.inf,
    )


def _named(prefix: str, numbers: Mapping[str, int]) -> dict[str, int]:
    return {key.removeprefix(prefix): n for key, n in numbers.items() if key.startswith(prefix)}


def _number(bits: int) -> float:
    return float(np.uint32(bits).view(np.float32))


def _magnitudes(x: torch.Tensor) -> torch.Tensor:
    """Return the codes of bfloat16 numbers, without their signs."""
    return x.contiguous().view(torch.int16).reshape(-1) & (_CODES - 1)


def _histogram(x: torch.Tensor) -> NDArray[np.int64]:
    """Return how often each magnitude of bfloat16 occurs, by its code."""
    return np.asarray(torch.bincount(_magnitudes(x), minlength=_CODES).cpu(), np.int64)


def _sum_of_squares(counts: NDArray[np.int64]) -> int:
    """Return the exact sum over the finite numbers, in units of 2^-266 (TRN-010).

    Integers are summed for each exponent, so that neither order nor size matters.
    """
    fractions = np.arange(1 << _FRACTION_BITS, dtype=np.int64)
    by_exponent = counts.reshape(-1, fractions.size)
    sums = by_exponent @ (fractions + fractions.size) ** 2
    sums[0] = by_exponent[0] @ fractions**2  # subnormal numbers
    return sum(int(sums[e]) << 2 * (max(e, 1) - 1) for e in range(255) if sums[e])


# ---------------------------------------------------------------------- scales


def _scaling(seen: Observation) -> _Scaling:
    """Return the exponents of the scales of an operand, and how many of its elements saturated.

    An operand that a GPU quantized, or that was rounded at random, is quantized once more.
    """
    found: Quantization | None = seen.quantization
    if found is None or not _scaled_in(found):
        found = quantization(seen.x.cpu(), seen.tensor_recipe.to_nearest, seen.axis, seen.situation)
    if found is None:
        return _Scaling({}, 0)
    ends = {name: _exponents(one) for name, one in _scaled_in(found).items()}
    exponents = {name: both for name, both in ends.items() if both}
    rungs = [found.mixed.tried[rung.name] for rung in found.given.policy.ladder]
    where = found.given.numbers, rungs, found.cuts.units, found.mixed.choice
    return _Scaling(exponents, saturated(*where))


def _scaled_in(found: Quantization) -> dict[str, OutcomeOfCodes[Any]]:
    """Return the representations that have scales, of those that were tried."""
    tried = found.mixed.tried.items()
    return {name: one for name, one in tried if isinstance(one, OutcomeOfCodes)}


def _exponents(outcome: OutcomeOfCodes[Any]) -> tuple[int, int] | None:
    """Return the lowest and the highest exponent of the scales (TRN-012)."""
    divides = outcome.scales.encode is None
    found: Any = outcome.scales.decode if divides else outcome.scales.encode
    factors = found.view(np.float32)
    usable = factors[np.isfinite(factors) & (factors > 0)]
    if not usable.size:
        return None
    ends = sorted(int(np.frexp(end)[1]) - 1 for end in (usable.min(), usable.max()))
    return (-ends[1], -ends[0]) if divides else (ends[0], ends[1])
