"""The metric of one representation for all: every unit that loses nothing takes it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mor_ref.metrics.metric import Metric

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mor_ref.cuda import errors as on_device
    from mor_ref.cuda import scales as of_device
    from mor_ref.cuda.launching import Array, Device
    from mor_ref.engine.policies import Accepted, Errors
    from mor_ref.engine.scales import Extremes
    from mor_ref.metrics.unit import Unit


@dataclass(frozen=True)
class Always(Metric):
    """Accepts every unit that loses nothing (MOR-008).

    >>> from mor_ref import Policy, Rung
    >>> Policy("e5m2_alone", (Rung("e5m2", Always()),)).names
    ('e5m2', 'bf16')
    """

    name = "always"
    rule = "MOR-008"
    reads = ()

    def accepts(self, own: "Unit", errors: "Mapping[str, Unit]", amax: float, amin: float) -> bool:
        """Return True (MOR-008)."""
        del own, errors, amax, amin
        return True

    def engine(
        self, own: "Errors", errors: "Mapping[str, Errors]", extremes: "Extremes"
    ) -> "Accepted":
        """Return all units."""
        import numpy as np

        del errors, extremes
        return np.ones(own.shape[:-1], np.bool_)

    def cuda(
        self,
        device: "Device",
        own: "on_device.ErrorSums",
        errors: "Mapping[str, on_device.ErrorSums]",
        extremes: "of_device.Extremes",
    ) -> "Array":
        """Return all units: a 1 for each."""
        import numpy as np

        del own, errors
        return device.filled(extremes.amax.shape, np.uint8, 1)

    @property
    def question(self) -> tuple[str, ...]:
        """No condition."""
        return ("?",)
