"""Reports as flat records, as `pandas.DataFrame` takes them."""

from collections.abc import Iterable
from typing import Any

from mor_ref.analysis.analyze_tensor import TensorReport
from mor_ref.api.border import public


@public
def to_records(reports: Iterable[TensorReport]) -> list[dict[str, Any]]:
    """Return a flat record for each report.

    Representations have entries of their own: `share e4m3`, `units e4m3` and `error e4m3`.

    >>> from mor_ref.analysis import analyze, settings_for
    >>> report = analyze([[1.0, 2.0]], settings_for(), name="w").report
    >>> to_records([report])[0]["share e4m3"]
    1.0
    """
    return [_record(report) for report in reports]


def _record(report: TensorReport) -> dict[str, Any]:
    return {
        "file": report.file,
        "tensor": report.name,
        "shape": "x".join(map(str, report.shape)),
        "dtype": report.dtype,
        "elements": report.elements,
        "decision": report.decision,
        "error": report.error,
        "distance": report.distance,
        "zeros": report.zeros,
        "nonfinite": report.nonfinite,
        "overflows": report.overflows,
        "amax": report.amax,
        "amin": report.amin,
        "log2_dynamic_range": report.log2_dynamic_range,
        **{f"share {name}": share for name, share in report.shares.items()},
        **{f"units {name}": count for name, count in report.units.items()},
        **{f"error {name}": error for name, error in report.errors.items()},
    }
