"""Deviations: named wrong or foreign behaviours, each with replaced steps of the exact model.

Tests show that the suites expose each deviation. Diagnoses name the deviations of a candidate.
"""

from typing import TYPE_CHECKING

from mor_ref.deviations.deviation import Deviation, applied
from mor_ref.schemes import collected_later

if TYPE_CHECKING:
    from mor_ref.deviations.catalogue import DEVIATIONS

__all__ = ["DEVIATIONS", "Deviation", "applied"]

__getattr__ = collected_later(__name__, "DEVIATIONS")
