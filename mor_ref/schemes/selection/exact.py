"""Selections by rank and by column: the outliers of PB-LLM and LLM.int8, and y."""

import math
from collections.abc import Sequence

from mor_ref.definitions.blocks import partition
from mor_ref.definitions.integer_grids import integer_grid
from mor_ref.exact.blocks import Rows
from mor_ref.exact.outliers import Selected, by_column, is_outlier, rounded_limit
from mor_ref.exact.step import step
from mor_ref.schemes.affine.definition import affine_profile
from mor_ref.schemes.affine.exact import AffineTensor, Choices, affine
from mor_ref.schemes.levels.definition import level_kind
from mor_ref.schemes.levels.exact import level_row


@step
def selected(x: Rows, by: str, limit: float) -> Selected:
    """Return which numbers are selected (SEL-001, SEL-002)."""
    if by == "rank":
        return by_rank(x, limit)
    least = rounded_limit(limit)
    return by_column([[is_outlier(number, least) for number in row] for row in x])


@step
def by_rank(x: Rows, share: float) -> Selected:
    """Return the numbers above the threshold of a tensor (SEL-001)."""
    least = threshold([abs(number) for row in x for number in row], share)
    return [[is_above(number, least) for number in row] for row in x]


@step
def threshold(magnitudes: list[float], share: float) -> float:
    """Return the magnitude at the place of a share; those of NaN come last (SEL-001)."""
    ordered = sorted(number for number in magnitudes if not math.isnan(number))
    k = place(len(magnitudes), share)
    return ordered[k] if 0 <= k < len(ordered) else math.nan


@step
def place(count: int, share: float) -> int:
    """Return the place of the threshold, from 0 on (SEL-001); Python's product is RN64."""
    return min(int(count * share), count - 1)


@step
def is_above(x: float, least: float) -> bool:
    """Return whether a number is selected by rank (SEL-001)."""
    return not abs(x) <= least


def pb_llm(w: Rows, share: float, grid: str) -> Rows:
    """Return y of weights with PB-LLM (SEL-003)."""
    high = integers(w, grid, "onnxruntime", symmetric=False)
    chosen = by_rank(w, share)
    pairs = [pair for row in zip(w, chosen, strict=True) for pair in zip(*row, strict=True)]
    rest = [number for number, is_high in pairs if not is_high]
    low = iter(level_row(rest, level_kind("elastic1"), None, "f32").elements)
    return [
        [element.y if is_high else next(low).y for element, is_high in zip(*row, strict=True)]
        for row in zip(high.elements, chosen, strict=True)
    ]


def llm_int8(x: Rows, limit: float) -> Rows:
    """Return y of activations by LLM.int8 (SEL-004)."""
    least = rounded_limit(limit)
    rest = [[0.0 if is_outlier(number, least) else number for number in row] for row in x]
    quantized = integers(rest, "int8", "bnb_int8_row", symmetric=True)
    chosen = selected(x, "column", limit)
    return [
        [number if is_kept else element.y for number, element, is_kept in zip(*row, strict=True)]
        for row in zip(x, quantized.elements, chosen, strict=True)
    ]


def integers(x: Sequence[list[float]], grid: str, profile: str, *, symmetric: bool) -> AffineTensor:
    """Quantize each row to integers in binary32 (AFF-001)."""
    choices = Choices(affine_profile(profile), integer_grid(grid), symmetric, "f32")
    return affine(list(x), choices, partition((len(x), len(x[0])), "row"))
