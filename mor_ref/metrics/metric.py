"""The protocol of a metric: its decisions, its part in the operation decide, and its words."""

from abc import abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from mor_ref.definitions.roles import Role
from mor_ref.metrics.unit import NumbersOfUnit, Unit, units_of
from mor_ref.representations import Representation

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

_TRUE_OR_FALSE = ("bool", "bool_")  # of Python and NumPy


class ComparedNumbers(NamedTuple):
    """The two sides that a metric compares, to be shown: `left`, and the product of `right`.

    `name` is the name of the left side, and `note` says whose the right side is. `signs` are two
    signs of comparison, such as "<" and "≥": one for an accepted unit, one for a refused unit.
    """

    name: str
    left: int | float
    signs: tuple[str, str]
    right: tuple[int | float | Fraction, ...]
    note: str = ""


@runtime_checkable
class Metric(Protocol):
    """A metric of a rung. A subclass has `accepts`; all else has a default.

    Only a unit that loses nothing is asked: `nonfinite` is 0 (MOR-001). Give a metric by which
    results are found, such as a frozen dataclass.
    """

    @abstractmethod
    def accepts(self, own: "Unit", errors: "Mapping[str, Unit]", amax: float, amin: float) -> bool:
        """Return whether a unit is accepted, from exact integers.

        `own` is the unit with the representation of the rung, and `errors` has it with each
        representation that the policy tries, by name: its `sum`, `nonzero` and `nonfinite`, and
        on request its `sums`, `rows`, `columns`, `x` and `y`. `amax` and `amin` are the largest
        and the smallest magnitude but zero.
        """

    @property
    def name(self) -> str:
        """The name in the catalogue `METRICS` and in the parameters of `decide`."""
        return type(self).__name__

    @property
    def rule(self) -> str:
        """The id of its rule; empty for a metric of a user."""
        return ""

    def for_tensor(self, role: Role) -> "Metric":
        """Return the metric for a tensor of this role; most are the same for all."""
        del role
        return self

    # ------------------------------------------------------------------ decisions

    @property
    def is_asked_by_unit(self) -> bool:
        """Whether `accepts` decides in the engine, unit by unit: there is no faster way."""
        return type(self).engine is Metric.engine

    @property
    def yardsticks(self) -> tuple[Representation, ...]:
        """The representations whose errors the metric reads in addition to its own."""
        return ()

    @property
    def limit(self) -> int | None:
        """The mean error at which the decision turns, times 2^23; None if there is none."""
        return None

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
        return asked_by_unit(self, own, errors, extremes)

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
        found = asked_by_unit(self, stacked(own), others, ends)
        return device.upload(found.astype(np.uint8))

    # ------------------------------------------------------------------ the operation decide

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns of `decide` that it reads, next to its own sums, and "format" if needed."""
        return ("yardstick_sum", "amax", "amin")

    def asked(self, parameters: "Mapping[str, Any]", limit: Any) -> "Metric":
        """Return the metric that a case of `decide` asks for: this one, or one with its arguments.

        `limit` is the T of a unit, or an array with the T of each.
        """
        del parameters, limit
        return self

    # ------------------------------------------------------------------ words

    @property
    def arguments(self) -> "Mapping[str, Any]":
        """Its arguments, for the catalogue of the explorer."""
        return {}

    @property
    def question(self) -> tuple[str, ...]:
        """The question that it asks of a unit, in lines of a flow chart."""
        return (f"and {self.name} ?",)

    def compared(
        self, own: "ErrorSum", errors: "Mapping[str, ErrorSum]", amax: float, amin: float
    ) -> ComparedNumbers | None:
        """Return the two sides that it compares for a unit; None if there is nothing to show."""
        del own, errors, amax, amin
        return None


class InKernels(Metric):
    """A metric that a kernel decides, with at most one yardstick (`cuda.structures.rung`)."""

    @property
    def numbers(self) -> "Mapping[str, Any]":
        """The numbers that the kernel takes."""
        return {}

    def cuda(
        self,
        device: "Device",
        own: "on_device.ErrorSums",
        errors: "Mapping[str, on_device.ErrorSums]",
        extremes: "of_device.Extremes",
    ) -> "Array":
        """Return which units a kernel accepts."""
        from mor_ref.cuda.metrics import accepted
        from mor_ref.cuda.structures import rung

        (other,) = [errors[one.name] for one in self.yardsticks] or [own]
        return accepted(device, rung(self.name, **self.numbers), own, other, extremes)


class NumbersOfUnits(Protocol):
    """x and y of all units of a tensor."""

    def __getitem__(self, place: tuple[int, int]) -> NumbersOfUnit:
        """Return x and y of the unit in a row and a column of units."""


def accepts(
    metric: Metric, own: Unit, errors: "Mapping[str, Unit]", amax: float, amin: float
) -> bool:
    """Return whether a metric accepts a unit; refuse an answer that is not true or false."""
    found = metric.accepts(own, errors, amax, amin)
    if type(found).__name__ not in _TRUE_OR_FALSE:
        raise TypeError(f"accepts of metric {metric.name!r} returned {found!r}; return a bool")
    return bool(found)


def asked_by_unit(
    metric: Metric,
    own: "Errors",
    errors: "Mapping[str, Errors]",
    extremes: "Iterable[NDArray[np.uint32]]",
    *,
    numbers: "Mapping[str, NumbersOfUnits] | None" = None,
    asked: "Accepted | None" = None,
) -> "Accepted":
    """Ask a metric about each unit, in Python integers.

    `numbers` has x and y of each unit with each representation. `asked` marks the units that no
    rung above has taken; without it, all are asked.
    """
    import numpy as np

    from mor_ref.exact.errors import ErrorSum

    amax, amin = (bits.view(np.float32) for bits in extremes)
    (representation,) = [name for name, sums in errors.items() if sums is own][:1] or [""]
    accepted = np.zeros(amax.shape, np.bool_)
    for place in np.ndindex(amax.shape):
        is_asked = own[place][2] == 0 and (asked is None or bool(asked[place]))
        if not is_asked:  # a unit that loses something is not accepted, whatever the metric says
            continue
        sums = {name: ErrorSum(*each[place].tolist()) for name, each in errors.items()}
        sums.setdefault(representation, ErrorSum(*own[place].tolist()))
        seen = None if numbers is None else {name: each[place] for name, each in numbers.items()}
        ends = float(amax[place]), float(amin[place])
        units = units_of(sums, *ends, seen, (place[0], place[-1]))
        accepted[place] = accepts(metric, units[representation], units, *ends)
    return accepted
