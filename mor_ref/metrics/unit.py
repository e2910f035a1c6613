"""A unit as a metric sees it: exact sums, its rows and columns, and its numbers on request."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

from mor_ref.definitions.roles import Kind, Role
from mor_ref.definitions.unit_sums import ULP_OF_ONE, UnitSums

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mor_ref.exact.errors import HasSums


class NumbersOfUnit(Protocol):
    """x and y of a unit, and what an implementation sums of them (MOR-009)."""

    @property
    def x(self) -> Any:
        """The numbers of the unit, row by row."""

    @property
    def y(self) -> Any:
        """The numbers under the representation, before any rounding to bfloat16."""

    @property
    def sums(self) -> UnitSums:
        """The sums of the unit."""

    @property
    def rows(self) -> Sequence[UnitSums]:
        """The sums of each row."""

    @property
    def columns(self) -> Sequence[UnitSums]:
        """The sums of each column."""

    def has_small_errors(self, limit: Fraction) -> bool:
        """Return whether the largest d of each row is below a part of its amax (MOR-013)."""


@dataclass(frozen=True, eq=False)
class Unit:
    """A unit under a representation. A metric pays for what it reads.

    `sum`, `nonzero` and `nonfinite` are the error sums, and `amax` and `amin` the largest and the
    smallest magnitude but zero. `index` is the row and the column of the unit among all units.
    `layer`, `kind` and `step` are known in training, and `layer` and `kind` of tensors of files.
    """

    sum: int
    nonzero: int
    nonfinite: int
    amax: float = 0.0
    amin: float = 0.0
    representation: str = ""
    index: tuple[int, int] = (0, 0)
    numbers: NumbersOfUnit | None = field(default=None, repr=False)
    role: Role = field(default_factory=Role, repr=False)

    @property
    def layer(self) -> str:
        """The name of the layer; empty if it is not known."""
        return self.role.layer

    @property
    def kind(self) -> Kind | None:
        """The kind of the tensor: weight, activation or gradient; None if it is not known."""
        return self.role.kind

    @property
    def step(self) -> int:
        """The step of the training, from 0."""
        return self.role.step

    @property
    def x(self) -> "NDArray[np.float32]":
        """The numbers of the unit, in its rows and columns."""
        return _array(self._known.x)

    @property
    def y(self) -> "NDArray[np.float32]":
        """The numbers under the representation, before any rounding to bfloat16."""
        return _array(self._known.y)

    @property
    def sums(self) -> UnitSums:
        """The sums of the unit: signal, noise, energy, product, error and extremes (MOR-009)."""
        return self._known.sums

    @property
    def rows(self) -> Sequence[UnitSums]:
        """The sums of each row."""
        return self._known.rows

    @property
    def columns(self) -> Sequence[UnitSums]:
        """The sums of each column."""
        return self._known.columns

    def has_small_errors(self, limit: Fraction) -> bool:
        """Return whether the largest d of each row is below a part of its amax (MOR-013)."""
        return self._known.has_small_errors(limit)

    @property
    def error(self) -> float:
        """The mean relative error; 0 if every number is 0."""
        return self.sum / max(self.nonzero, 1) * ULP_OF_ONE

    @property
    def relative_frobenius(self) -> float:
        """The root of noise / signal."""
        return self.sums.relative_frobenius

    @property
    def sqnr(self) -> float:
        """The ratio of signal and noise in decibels; infinite without noise."""
        return self.sums.sqnr

    @property
    def cosine(self) -> float:
        """The cosine of the angle between x and y."""
        return self.sums.cosine

    @property
    def _known(self) -> NumbersOfUnit:
        if self.numbers is None:
            raise ValueError(
                "a metric reads the numbers of a unit, but only its error sums are known here: "
                "kernels of CUDA and the operation decide have no others; call mor_ref.mor"
            )
        return self.numbers


def units_of(
    errors: "Mapping[str, HasSums]",
    amax: float,
    amin: float,
    numbers: "Mapping[str, NumbersOfUnit] | None" = None,
    index: tuple[int, int] = (0, 0),
) -> dict[str, Unit]:
    """Return a unit under each representation, by name."""
    return {
        name: Unit(
            own.sum, own.nonzero, own.nonfinite, amax, amin, name, index,
            None if numbers is None else numbers[name],
        )
        for name, own in errors.items()
    }  # fmt: skip


def _array(rows: Any) -> "NDArray[np.float32]":
    import numpy as np

    return np.asarray(rows, np.float32)
