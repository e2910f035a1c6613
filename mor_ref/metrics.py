"""Metrics as rows: whether a unit takes a representation, and how each implementation decides."""

from abc import abstractmethod
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import as_format
from mor_ref.representations import Representation, as_representation

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from mor_ref.cuda import errors as on_device
    from mor_ref.cuda import scales as of_device
    from mor_ref.cuda.launching import Array, Device
    from mor_ref.engine.policies import Accepted, Errors
    from mor_ref.engine.scales import Extremes
    from mor_ref.exact.errors import ErrorSum

Threshold = float | str | Decimal | Fraction

_SMALLEST_THRESHOLD = -30  # as an exponent of ten


@runtime_checkable
class Metric(Protocol):
    """A metric of a rung. A subclass has `accepts`; all else has a default.

    Only a unit that loses nothing is asked: `nonfinite` is 0 (MOR-001). Give a metric by which
    results are found, such as a frozen dataclass.
    """

    @abstractmethod
    def accepts(
        self, own: "ErrorSum", errors: "Mapping[str, ErrorSum]", amax: float, amin: float
    ) -> bool:
        """Return whether a unit is accepted, from exact integers.

        `own` has the `sum`, `nonzero` and `nonfinite` of the unit under the representation of the
        rung, and `errors` has them under each representation that the policy tries, by name. `amax`
        and `amin` are the largest and the smallest magnitude but zero.
        """

    @property
    def yardsticks(self) -> tuple[Representation, ...]:
        """The representations whose errors the metric reads besides its own."""
        return ()

    def turning_point(self, own: "ErrorSum", errors: "Mapping[str, ErrorSum]") -> int | None:
        """Return the error sum next to which the decision turns; None if there is none."""
        del own, errors
        return None

    def engine(
        self, own: "Errors", errors: "Mapping[str, Errors]", extremes: "Extremes"
    ) -> "Accepted":
        """Return which units the engine accepts; unit by unit, if a subclass has no faster way.

        The last axis of `own`, and of each of `errors`, has sum, nonzero and nonfinite as uint64.
        `extremes` are binary32 bits.
        """
        return _one_by_one(self, own, errors, extremes)

    def cuda(
        self,
        device: "Device",
        own: "on_device.ErrorSums",
        errors: "Mapping[str, on_device.ErrorSums]",
        extremes: "of_device.Extremes",
    ) -> "Array":
        """Return which units the kernels accept: an array of bytes on the device.

        The default brings the sums to the host, and decides there.
        """
        import numpy as np

        def stacked(sums: "on_device.ErrorSums") -> "Errors":
            return np.stack([device.download(array) for array in sums], axis=-1)

        others = {name: stacked(sums) for name, sums in errors.items()}
        ends = [device.download(array) for array in extremes]
        found = _one_by_one(self, stacked(own), others, ends)
        return device.upload(found.astype(np.uint8))


def _one_by_one(
    metric: Metric,
    own: "Errors",
    errors: "Mapping[str, Errors]",
    extremes: "Iterable[NDArray[np.uint32]]",
) -> "Accepted":
    """Ask a metric of a user for each unit, in Python integers."""
    import numpy as np

    from mor_ref.exact.errors import ErrorSum

    amax, amin = (bits.view(np.float32) for bits in extremes)
    accepted = np.zeros(amax.shape, np.bool_)
    for place in np.ndindex(amax.shape):
        if own[place][2] == 0:  # else the unit is not accepted, whatever the metric says
            others = {name: ErrorSum(*sums[place].tolist()) for name, sums in errors.items()}
            unit = ErrorSum(*own[place].tolist())
            accepted[place] = metric.accepts(unit, others, float(amax[place]), float(amin[place]))
    return accepted


@dataclass(frozen=True)
class MeanRelativeError(Metric):
    """Accepts a unit whose mean relative error is below a threshold, 0 < threshold <= 1.

    The threshold is the decimal that is written: 0.045 is 45/1000, not the float next to it.

    >>> MeanRelativeError(0.045).limit
    377487
    """

    threshold: Threshold

    def __post_init__(self) -> None:
        try:
            is_threshold = 0 < self._written <= 1
        except (TypeError, ValueError, ArithmeticError):
            is_threshold = False
        if not is_threshold:
            raise ValueError(
                f"threshold is {self.threshold!r}; give a number above 0 and up to 1, such as 0.045"
            )

    @property
    def _written(self) -> Decimal | Fraction:
        """The threshold as it was written: a decimal, or a fraction such as "1/22"."""
        text = str(self.threshold)
        is_fraction = "/" in text or isinstance(self.threshold, Fraction)
        return Fraction(text) if is_fraction else Decimal(text)

    @property
    def value(self) -> float:
        """The threshold as people read it; decisions use the limit."""
        return float(self._written)

    @property
    def limit(self) -> int:
        """The threshold times 2^23, to the nearest integer, ties to even (MOR-002)."""
        written = self._written
        if isinstance(written, Decimal) and written.adjusted() < _SMALLEST_THRESHOLD:
            return 0  # as it is anyway; but the digits of such a fraction could fill the memory
        return round(Fraction(written) * 2**23)

    def accepts(
        self, own: "ErrorSum", errors: "Mapping[str, ErrorSum]", amax: float, amin: float
    ) -> bool:
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
        from mor_ref.engine.policies import is_below

        del errors, extremes
        return is_below(own, self.limit)

    def cuda(
        self,
        device: "Device",
        own: "on_device.ErrorSums",
        errors: "Mapping[str, on_device.ErrorSums]",
        extremes: "of_device.Extremes",
    ) -> "Array":
        """Return which means are below the threshold."""
        from mor_ref.cuda.metrics import accepted
        from mor_ref.cuda.structures import rung

        del errors
        return accepted(device, rung("mean_relative_error", limit=self.limit), own, own, extremes)


@dataclass(frozen=True)
class NotWorseThan(Metric):
    """Accepts a unit whose error sum is at most that under a yardstick (MOR-003)."""

    yardstick: Representation

    def __init__(self, yardstick: str | Format | Representation) -> None:
        object.__setattr__(self, "yardstick", as_representation(yardstick))

    @property
    def yardsticks(self) -> tuple[Representation, ...]:
        """The yardstick."""
        return (self.yardstick,)

    def accepts(
        self, own: "ErrorSum", errors: "Mapping[str, ErrorSum]", amax: float, amin: float
    ) -> bool:
        """Return whether the error sum is at most that under the yardstick (MOR-003)."""
        from mor_ref.exact.metrics import is_not_worse

        del amax, amin
        return is_not_worse(own, errors[self.yardstick.name])

    def turning_point(self, own: "ErrorSum", errors: "Mapping[str, ErrorSum]") -> int | None:
        """Return the sum under the yardstick."""
        del own
        return errors[self.yardstick.name].sum

    def engine(
        self, own: "Errors", errors: "Mapping[str, Errors]", extremes: "Extremes"
    ) -> "Accepted":
        """Return which sums are at most those under the yardstick."""
        from mor_ref.engine.policies import is_not_worse

        del extremes
        return is_not_worse(own, errors[self.yardstick.name])

    def cuda(
        self,
        device: "Device",
        own: "on_device.ErrorSums",
        errors: "Mapping[str, on_device.ErrorSums]",
        extremes: "of_device.Extremes",
    ) -> "Array":
        """Return which sums are at most those under the yardstick."""
        from mor_ref.cuda.metrics import accepted
        from mor_ref.cuda.structures import rung

        other = errors[self.yardstick.name]
        return accepted(device, rung("not_worse_than"), own, other, extremes)


@dataclass(frozen=True)
class FitsRange(Metric):
    """Accepts a unit whose magnitudes span no more than a format's normal numbers (MOR-004)."""

    fmt: str | Format

    def __post_init__(self) -> None:
        if self.bound.smallest_normal is None:
            raise ValueError(f"FitsRange is of {self.fmt!r}, which has no normal numbers")

    @property
    def bound(self) -> Format:
        """The format."""
        return as_format(self.fmt)

    def accepts(
        self, own: "ErrorSum", errors: "Mapping[str, ErrorSum]", amax: float, amin: float
    ) -> bool:
        """Return whether the magnitudes fit (MOR-004)."""
        from mor_ref.exact.metrics import fits_range

        del errors
        return fits_range(own, amax, amin, self.bound)

    def engine(
        self, own: "Errors", errors: "Mapping[str, Errors]", extremes: "Extremes"
    ) -> "Accepted":
        """Return which magnitudes fit."""
        from mor_ref.engine.policies import fits_range

        del errors
        return fits_range(own, extremes, self.bound)

    def cuda(
        self,
        device: "Device",
        own: "on_device.ErrorSums",
        errors: "Mapping[str, on_device.ErrorSums]",
        extremes: "of_device.Extremes",
    ) -> "Array":
        """Return which magnitudes fit."""
        from mor_ref.cuda.metrics import accepted
        from mor_ref.cuda.structures import rung

        del errors
        return accepted(device, rung("fits_range", fmt=self.bound), own, own, extremes)
