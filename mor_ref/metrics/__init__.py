"""Metrics as rows: whether a unit takes a representation, and all that depends on the metric."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any

from mor_ref.definitions.catalogue import Catalogue
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import as_format
from mor_ref.metrics.always import Always
from mor_ref.metrics.function import FunctionMetric
from mor_ref.metrics.mean import Limit, MeanRelativeError
from mor_ref.metrics.metric import ComparedNumbers, InKernels, Metric
from mor_ref.metrics.squares import Cosine, LargestByRow, RelativeFrobenius, Sqnr
from mor_ref.metrics.thresholds import ByTensor, Threshold, WithThreshold
from mor_ref.metrics.unit import Unit
from mor_ref.representations import Representation, as_representation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mor_ref.engine.policies import Accepted, Errors
    from mor_ref.engine.scales import Extremes
    from mor_ref.exact.errors import ErrorSum

__all__ = [
    "METRICS",
    "Always",
    "ByTensor",
    "ComparedNumbers",
    "Cosine",
    "FitsRange",
    "FunctionMetric",
    "LargestByRow",
    "Limit",
    "MeanRelativeError",
    "Metric",
    "NotWorseThan",
    "RelativeFrobenius",
    "Sqnr",
    "Threshold",
    "Unit",
    "WithThreshold",
]


@cache
def _engine() -> Any:
    from mor_ref.engine import policies  # imports Numba

    return policies


@dataclass(frozen=True)
class NotWorseThan(InKernels):
    """Accepts a unit whose error sum is at most that of a yardstick (MOR-003)."""

    yardstick: Representation
    name = "not_worse_than"
    rule = "MOR-003"
    reads = ("yardstick_sum",)

    def __init__(self, yardstick: str | Format | Representation) -> None:
        object.__setattr__(self, "yardstick", as_representation(yardstick))

    @property
    def yardsticks(self) -> tuple[Representation, ...]:
        """The yardstick."""
        return (self.yardstick,)

    def accepts(self, own: "Unit", errors: "Mapping[str, Unit]", amax: float, amin: float) -> bool:
        """Return whether the error sum is at most that of the yardstick (MOR-003)."""
        from mor_ref.exact.metrics import is_not_worse

        del amax, amin
        return is_not_worse(own, errors[self.yardstick.name])

    def turning_point(self, own: "ErrorSum", errors: "Mapping[str, ErrorSum]") -> int | None:
        """Return the sum of the yardstick."""
        del own
        return errors[self.yardstick.name].sum

    def engine(
        self, own: "Errors", errors: "Mapping[str, Errors]", extremes: "Extremes"
    ) -> "Accepted":
        """Return which sums are at most those of the yardstick."""
        del extremes
        accepted: Accepted = _engine().is_not_worse(own, errors[self.yardstick.name])
        return accepted

    @property
    def arguments(self) -> "Mapping[str, Any]":
        """The name of the yardstick."""
        return {"yardstick": self.yardstick.name}

    @property
    def question(self) -> tuple[str, ...]:
        """The name of the yardstick."""
        return (f"and sum ≤ sum under {self.yardstick.name} ?",)

    def compared(
        self, own: "ErrorSum", errors: "Mapping[str, ErrorSum]", amax: float, amin: float
    ) -> ComparedNumbers | None:
        """Return the two sums."""
        del amax, amin
        name = self.yardstick.name
        return ComparedNumbers("sum", own.sum, ("≤", ">"), (errors[name].sum,), f"under {name}")


@dataclass(frozen=True)
class FitsRange(InKernels):
    """Accepts a unit whose magnitudes span no more than a format's normal numbers (MOR-004)."""

    fmt: str | Format
    name = "fits_range"
    rule = "MOR-004"
    reads = ("amax", "amin", "format")

    def __post_init__(self) -> None:
        if self.bound.smallest_normal is None:
            raise ValueError(f"FitsRange is of {self.fmt!r}, which has no normal numbers")

    @property
    def bound(self) -> Format:
        """The format."""
        return as_format(self.fmt)

    def asked(self, parameters: "Mapping[str, Any]", limit: Any) -> Metric:
        """Return the metric with the format of the case."""
        del limit
        return FitsRange(parameters["format"])

    def accepts(self, own: "Unit", errors: "Mapping[str, Unit]", amax: float, amin: float) -> bool:
        """Return whether the magnitudes fit (MOR-004)."""
        from mor_ref.exact.metrics import fits_range

        del errors
        return fits_range(own, amax, amin, self.bound)

    def engine(
        self, own: "Errors", errors: "Mapping[str, Errors]", extremes: "Extremes"
    ) -> "Accepted":
        """Return which magnitudes fit."""
        del errors
        accepted: Accepted = _engine().fits_range(own, extremes, self.bound)
        return accepted

    @property
    def numbers(self) -> "Mapping[str, Any]":
        """The format."""
        return {"fmt": self.bound}

    @property
    def arguments(self) -> "Mapping[str, Any]":
        """The name of the format."""
        return {"format": self.bound.name}

    @property
    def question(self) -> tuple[str, ...]:
        """The name of the format."""
        return (f"and amax ≤ amin · range of {self.bound.name} ?",)

    def compared(
        self, own: "ErrorSum", errors: "Mapping[str, ErrorSum]", amax: float, amin: float
    ) -> ComparedNumbers | None:
        """Return amax, and amin times the range."""
        del errors
        ratio = Fraction(self.bound.largest) / Fraction(self.bound.smallest_normal or 1)
        return ComparedNumbers("amax", amax, ("≤", ">"), (amin, ratio)) if own.nonzero else None


METRICS: Catalogue[Metric] = Catalogue(
    "metric", Metric, (MeanRelativeError(0.045), NotWorseThan("e5m2"), FitsRange("e5m2"))
)
