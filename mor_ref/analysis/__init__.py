"""Analysis of tensors: what MoR decides about them, and recipes compared on them."""

from mor_ref.analysis.analyze_tensor import (
    Analysis,
    BlockMap,
    Settings,
    TensorReport,
    analyze,
    settings_for,
)
from mor_ref.analysis.compare_files import Comparison, compare_files
from mor_ref.analysis.compare_tensor import Compared, TensorComparison, compare
from mor_ref.analysis.data_frames import to_records
from mor_ref.analysis.layer_inputs import InputMeasures
from mor_ref.analysis.recipes import NamedRecipe, settings_under
from mor_ref.analysis.totals import Totals, totals_of
from mor_ref.api.measures import Measures

__all__ = [
    "Analysis",
    "BlockMap",
    "Compared",
    "Comparison",
    "InputMeasures",
    "Measures",
    "NamedRecipe",
    "Settings",
    "TensorComparison",
    "TensorReport",
    "Totals",
    "analyze",
    "compare",
    "compare_files",
    "settings_for",
    "settings_under",
    "to_records",
    "totals_of",
]
