"""Acceptance from the sums of a unit, at and next to where each metric turns."""

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from mor_ref.definitions.formats import formats
from mor_ref.definitions.policies import MeanRelativeError
from mor_ref.exact import arithmetic
from mor_ref.golden.inputs.edges import amaxes
from mor_ref.golden.model.suite import Case, Size, Suite, expected, given
from mor_ref.operations.bits import f32_bits, numbers_of

_LOST = (1, 1 << 8, 1 << 16, 1 << 32)  # counts that are 0 in fewer bits


def _decision_cases(_: Size) -> Iterator[Case]:
    yield _mean_case()
    yield _tie_case()
    for name in ("e5m2", "e4m3", "bf16"):
        yield _range_case(name)


def _mean_case() -> Case:
    rows = []
    for written in ("0.045", "0.05", "0.2", "1", "0.00000012"):
        limit = MeanRelativeError(written).limit
        for nonzero in (0, 1, 2, 255, 1 << 14, (1 << 32) + 1, 1 << 40):
            at = limit * nonzero
            for total in sorted({0, max(at - 1, 0), at, at + 1, nonzero << 23}):
                rows += [(total, nonzero, lost, limit, 0, 0, 0) for lost in (0, 1)]
            rows += [(0, nonzero, lost, limit, 0, 0, 0) for lost in _LOST]
    return _decisions("mean_relative_error", {"metric": "mean_relative_error"}, rows)


def _tie_case() -> Case:
    rows = []
    for yardstick in (0, 1, 1 << 23, (1 << 32) + 5, (1 << 63) - 1):
        for total in sorted({0, max(yardstick - 1, 0), yardstick, yardstick + 1, 1 << 63}):
            rows += [(total, 1, lost, 0, yardstick, 0, 0) for lost in (0, *_LOST)]
    return _decisions("not_worse_than", {"metric": "not_worse_than"}, rows)


def _range_case(name: str) -> Case:
    fmt = formats[name]
    ratio = Fraction(fmt.largest) / Fraction(fmt.smallest_normal or 1)
    rows = [(0, 0, 0, 0, 0, 0, 0), *((0, 2, lost, 0, 0, 1 << 30, 1 << 30) for lost in _LOST)]
    for low in amaxes().tolist():
        amin = numbers_of(np.array([low], np.uint32), "f32")[0]
        at = f32_bits(arithmetic.rn32(Fraction(amin) * ratio))
        for high in sorted({low, max(low, at - 1), max(low, at), max(low, at + 1)}):
            if low and high < 0x7F800000:
                rows += [(0, 2, lost, 0, 0, high, low) for lost in (0, 1)]
    return _decisions(f"fits_range.{name}", {"metric": "fits_range", "format": name}, rows)


def _decisions(name: str, parameters: dict[str, str], rows: Sequence[tuple[int, ...]]) -> Case:
    columns = list(zip(*rows, strict=True))
    names = ("sum", "nonzero", "nonfinite", "limit", "yardstick_sum", "amax", "amin")
    kinds = ("u8", "u8", "u8", "u4", "u8", "u4", "u4")
    arrays = {
        field: np.array(column, kind)
        for field, column, kind in zip(names, columns, kinds, strict=True)
    }
    return Case(name, parameters, arrays)


SUITES = (
    Suite(
        "decisions",
        "Acceptance from the sums of a unit",
        "decide",
        ("ERR-005",),
        (
            given("sum", "u64", "the error sum"),
            given("nonzero", "u64", "how many elements count"),
            given("nonfinite", "u64", "how many elements are lost"),
            given("limit", "u32", "T of mean_relative_error"),
            given("yardstick_sum", "u64", "the error sum under the yardstick"),
            given("amax", "f32", "the largest magnitude"),
            given("amin", "f32", "the smallest magnitude but zero"),
            expected(
                "accepted",
                "u8",
                "1 if the metric of the parameters accepts",
                *(f"MOR-{k:03}" for k in range(1, 5)),
            ),
        ),
        _decision_cases,
    ),
)
