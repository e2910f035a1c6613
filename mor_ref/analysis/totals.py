"""Totals of the analyses of many tensors."""

from collections.abc import Sequence
from dataclasses import dataclass

from mor_ref.analysis.analyze_tensor import Settings, TensorReport, shares_of
from mor_ref.api.border import public
from mor_ref.definitions.formats import formats


@dataclass(frozen=True)
class Totals:
    """Counts of the units and the numbers of many tensors.

    With a tensor policy the units are the tensors. `bits` is the width of each representation.
    """

    tensors: int
    elements: int
    units: dict[str, int]
    taken: dict[str, int]
    bits: dict[str, int]

    @property
    def shares(self) -> dict[str, float]:
        """The share of numbers that took each representation; 0 for all if there are none."""
        return shares_of(self.taken)

    @property
    def unit_shares(self) -> dict[str, float]:
        """The share of units that took each representation: every unit counts once."""
        return shares_of(self.units)

    @property
    def width_shares(self) -> dict[int, float]:
        """The share of numbers in representations of 4 bits, of 8, and so on."""
        return shares_of(_by_width(self.taken, self.bits))

    @property
    def unit_width_shares(self) -> dict[int, float]:
        """The share of units in representations of 4 bits, of 8, and so on.

        The paper reports the share in 8 bits.
        """
        return shares_of(_by_width(self.units, self.bits))


@public
def totals_of(reports: Sequence[TensorReport], settings: Settings) -> Totals:
    """Return the totals of tensors that were analyzed with the same settings."""
    names = settings.policy.names
    bits = {rung.name: rung.representation.bits for rung in settings.policy.ladder}
    return Totals(
        len(reports),
        sum(report.elements for report in reports),
        {name: sum(r.units[name] for r in reports) for name in names},
        {name: sum(r.taken[name] for r in reports) for name in names},
        {**bits, "bf16": formats["bf16"].bits},
    )


def _by_width(counts: dict[str, int], bits: dict[str, int]) -> dict[int, int]:
    widths = sorted({*bits.values()})
    return {
        width: sum(count for name, count in counts.items() if bits[name] == width)
        for width in widths
    }
