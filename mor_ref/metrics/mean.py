"""The metric of the mean relative error."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from mor_ref.metrics.metric import ComparedNumbers, InKernels, Metric
from mor_ref.metrics.thresholds import ByTensor, Threshold, WithThreshold, as_fraction

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mor_ref.cuda import errors as on_device
    from mor_ref.cuda import scales as of_device
    from mor_ref.cuda.launching import Array, Device
    from mor_ref.engine.policies import Accepted, Errors
    from mor_ref.engine.scales import Extremes
    from mor_ref.exact.errors import ErrorSum
    from mor_ref.metrics.unit import Unit


class _MeanIsBelow(InKernels):
    """Accepts a unit whose mean relative error is below T / 2^23; T is the limit (MOR-002)."""

    name = "mean_relative_error"
    rule = "MOR-002"
    reads = ("limit",)

    @property
    @abstractmethod
    def limit(self) -> Any:
        """T."""

    def asked(self, parameters: "Mapping[str, Any]", limit: Any) -> Metric:
        """Return the metric of that T."""
        del parameters
        return Limit(limit)

    def accepts(self, own: "Unit", errors: "Mapping[str, Unit]", amax: float, amin: float) -> bool:
        """Return whether the mean is below the threshold (MOR-002)."""
        from mor_ref.exact.metrics import mean_is_below

        del errors, amax, amin
        return mean_is_below(own, self.limit)

    def turning_point(self, own: "ErrorSum", errors: "Mapping[str, ErrorSum]") -> int | None:
        """Return the sum at the threshold."""
        del errors
        return self.limit * own.nonzero if own.nonzero else None

    def engine(
        self, own: "Errors", errors: "Mapping[str, Errors]", extremes: "Extremes"
    ) -> "Accepted":
        """Return which means are below the threshold."""
        del errors, extremes
        return _is_below()(own, self.limit)

    @property
    def numbers(self) -> "Mapping[str, Any]":
        """T."""
        return {"limit": self.limit}

    @property
    def question(self) -> tuple[str, ...]:
        """The threshold as an integer."""
        return (f"and (sum < {self.limit} · nonzero", "or nonzero = 0) ?")

    def compared(
        self, own: "ErrorSum", errors: "Mapping[str, ErrorSum]", amax: float, amin: float
    ) -> ComparedNumbers | None:
        """Return the sum and the one at the threshold."""
        del errors, amax, amin
        right = (self.limit, own.nonzero)
        return ComparedNumbers("sum", own.sum, ("<", "≥"), right) if own.nonzero else None


@cache
def _is_below() -> "Callable[[Errors, Any], Accepted]":
    from mor_ref.engine.policies import is_below  # imports Numba

    return is_below


@dataclass(frozen=True, eq=False)
class Limit(_MeanIsBelow):
    """A mean relative error below T / 2^23; `limit` is T, or an array with the T of each unit."""

    limit: Any = 0

    def cuda(
        self,
        device: "Device",
        own: "on_device.ErrorSums",
        errors: "Mapping[str, on_device.ErrorSums]",
        extremes: "of_device.Extremes",
    ) -> "Array":
        """Return which means are below the T of their unit."""
        from mor_ref.cuda.metrics import below_limits

        del errors
        return below_limits(device, own, self.limit, extremes)


@dataclass(frozen=True)
class MeanRelativeError(WithThreshold, _MeanIsBelow):
    """Accepts a unit whose mean relative error is below a threshold, 0 < threshold <= 1.

    The threshold is the decimal that is written: 0.045 is 45/1000, not the float next to it.

    >>> MeanRelativeError(0.045).limit
    377487
    """

    threshold: Threshold | ByTensor
    bounds = (0, 1, "a number above 0 and up to 1, such as 0.045")

    @cached_property
    def limit(self) -> int:
        """The threshold times 2^23, to the nearest integer, ties to even (MOR-002)."""
        return round(as_fraction(self.written) * 2**23)

    @property
    def arguments(self) -> "Mapping[str, Any]":
        """The threshold as it is written, and T."""
        return {**super().arguments, "limit": self.limit}
