"""The formulas of the chapter on acceptance."""

from mor_docs.checked.check import Check, Entry, Names
from mor_docs.exact_values import number
from mor_ref.definitions.formats import as_format


def _of_unit(entry: Entry) -> Names:
    fmt = as_format(entry.parameters.get("format", "e5m2"))
    return {
        "T": entry["limit"],
        "sum_yardstick": entry["yardstick_sum"],
        "largest": number(fmt.largest),
        "smallest": number(fmt.smallest_normal or 0),
        **{name: entry[name] for name in ("sum", "nonzero", "amax", "amin")},
    }


CHECKS = tuple(
    Check(
        rule,
        "decisions",
        {"": "accepted"},
        _of_unit,
        cases={"metric": (metric,)},
        entries=lambda entry: entry["nonfinite"] == 0,  # MOR-001
    )
    for rule, metric in (
        ("MOR-002", "mean_relative_error"),
        ("MOR-003", "not_worse_than"),
        ("MOR-004", "fits_range"),
    )
)
