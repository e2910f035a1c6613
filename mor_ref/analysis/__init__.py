"""Analysis of tensors: which representations MoR chooses, and their errors."""

from mor_ref.analysis.tensors import (
    Analysis,
    BlockMap,
    Settings,
    TensorReport,
    analyze,
    settings_for,
)
from mor_ref.analysis.totals import Totals, totals_of

__all__ = [
    "Analysis",
    "BlockMap",
    "Settings",
    "TensorReport",
    "Totals",
    "analyze",
    "settings_for",
    "totals_of",
]
