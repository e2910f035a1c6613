"""An assertion for other people's tests."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mor_ref.verify.asserting.codes import unlike_codes
from mor_ref.verify.comparing.allowed import Allowed, Nans, Zeros

if TYPE_CHECKING:
    from mor_ref.definitions.format import Format
    from mor_ref.metrics.thresholds import Threshold


def assert_bit_exact(
    actual: Any,
    expected: Any,
    fmt: "str | Format | None" = None,
    *,
    layout: str | None = None,
    x: Any = None,
    nan: Nans = "exact",
    zero_sign: Zeros = "exact",
    ties: "Threshold" = 0,
) -> None:
    """Fail if any bit differs, and say in which field, where, by how much and, if known, why.

    `expected` is one of

    * an array of codes of the format `fmt`. Codes are unsigned integers, or arrays of a small float
      dtype of ml_dtypes or torch, which need no `fmt`. If `actual` is in a layout, such as
      "swizzled_128x4", `layout` names it; `expected` stays plain.
    * a record of `quantize`, `quantize_mx`, `quantize_nvfp4`, `quantize_shared`, `quantize_levels`,
      `quantize_affine`, `mix_formats` or `mor`. `actual` is such a record, or a dict of fields:
      `{"code": .., "scale@swizzled_128x4": ..}`. With the quantized tensor `x`, the failure names
      the mistake.
    * the `mor_ref_case` of the pytest plugin. `actual` is a dict of fields.

    So -0 is not 0, and equal NaNs are equal. `nan`, `zero_sign` and `ties` allow other bits, as in
    `mor-ref verify`. For `ties`, a record needs `x`, and arrays of codes are refused.

    >>> import mor_ref
    >>> assert_bit_exact(mor_ref.encode([0.3, -0.0], "e4m3"), [0x2A, 0x80], "e4m3")
    >>> assert_bit_exact([0x2B, 0x00], [0x2A, 0x80], "e4m3")
    Traceback (most recent call last):
    AssertionError: 2 of 2 codes of e4m3 differ:
      [0]: 0x2B (0.34375) where 0x2A (0.3125) is expected, 1 ulp above
      [1]: 0x00 (0) where 0x80 (-0) is expected, the sign of zero
    """
    __tracebackhide__ = True
    from mor_ref.verify.asserting.records import recorded
    from mor_ref.verify.asserting.suite_case import SuiteCase
    from mor_ref.verify.comparing.near_ties import as_ties

    allowed = Allowed(nan, zero_sign, as_ties(ties))
    if not isinstance(expected, SuiteCase) and recorded(expected) is None:
        _refuse_input(x, allowed)
        lines = unlike_codes(actual, expected, fmt, layout, allowed)
    else:
        _refuse_formats(fmt, layout)
        lines = _of_fields(actual, expected, x, allowed)
    if lines:
        raise AssertionError("\n".join(lines))


def _refuse_input(x: object, allowed: Allowed) -> None:
    if allowed.ties:
        raise TypeError(
            f"ties is {allowed.ties}, but expected is an array of codes, which does not say which "
            "numbers they were rounded from; give a record and x"
        )
    if x is not None:
        raise TypeError("x is given, but expected is an array of codes; give a record of x")


def _refuse_formats(fmt: object, layout: object) -> None:
    if fmt is not None or layout is not None:
        raise TypeError(
            "fmt or layout is given, and expected has its formats; name the layout of a field with "
            "the field, such as 'scale@swizzled_128x4'"
        )


def _of_fields(actual: Any, expected: Any, x: Any, allowed: Allowed) -> list[str]:
    """Compare with a record or a case."""
    from mor_ref.verify.asserting.fields import unlike_fields
    from mor_ref.verify.asserting.records import case_of, in_rows, recorded
    from mor_ref.verify.comparing.near_ties import refuse_ties

    record, other = recorded(expected), recorded(actual)
    if x is not None and record is None:
        raise TypeError("x is given, but a case has its own inputs; leave x out")
    if allowed.ties and record is not None and x is None:
        raise TypeError(f"ties is {allowed.ties}, but x is not given; give the record's x")
    case = expected if record is None else case_of(record, x)
    refuse_ties(allowed.ties, {case.suite: case.operation})
    if other is not None:
        if record is not None and type(actual) is not type(expected):
            kinds = f"actual is {type(actual).__name__}, and expected {type(expected).__name__}"
            return [f"{kinds}; compare records of one function"]
        if record is not None and other.format != record.format:
            formats = f"actual has codes of {other.format}, and expected of {record.format}"
            return [f"{formats}; compare records of one format"]
        actual = other.fields
    elif not isinstance(actual, Mapping):
        return [f"actual is of type {type(actual).__name__}; give a dict of fields, or a record"]
    return unlike_fields(in_rows(case.operation, actual), case, allowed)
