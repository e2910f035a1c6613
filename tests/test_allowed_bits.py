"""Bits that a user allows to differ: those of NaN, and the sign of zero."""

import math

import numpy as np
import pytest
from verifying import undiagnosed

from mor_ref import formats, golden
from mor_ref.golden import bundled_files
from mor_ref.operations import OPERATIONS
from mor_ref.verify.candidates.python_function import PythonFunction
from mor_ref.verify.comparing.allowed import Allowed
from mor_ref.verify.reporting.junit import as_junit
from mor_ref.verify.reporting.text import cases_differing, suite_lines
from mor_ref.verify.running.run import verify
from mor_ref.verify.running.suites import suites_in

__all__ = ["undiagnosed"]
NAMES = ("e4m3", "e5m2", "bf16", "f16", "e4m3fnuz", "e8m0", "e2m1", "e4m3b11fnuz")


def allowed_pairs(fmt, allowed):
    """Return which code counts for which, over all pairs of 8 bits, or of some of 16 bits."""
    step = 1 if fmt.bits <= 8 else 67
    ends = (code for nans in fmt.nan_codes for code in (nans[0], nans[-1]))
    codes = np.unique([*range(0, fmt.code_count, step), *ends])
    actual, expected = np.meshgrid(codes, codes)
    return codes, allowed.nans(actual, expected, fmt), allowed.zeros(actual, expected, fmt)


@pytest.mark.parametrize("name", NAMES)
def test_only_nans_count_for_nans_and_only_zeros_for_zeros(name):
    """The exact model says which codes they are."""
    fmt = formats[name]
    codes, nans, zeros = allowed_pairs(fmt, Allowed("any", "any"))
    values = [fmt.value(int(code)) for code in codes]
    is_nan = np.array([math.isnan(value) for value in values])
    is_zero = np.array([value == 0 for value in values])
    others = ~np.eye(len(codes), dtype=bool)
    assert np.array_equal(nans, np.outer(is_nan, is_nan) & others)
    assert np.array_equal(zeros, np.outer(is_zero, is_zero) & others)


@pytest.mark.parametrize(("name", "quiet"), [("f16", 1 << 9), ("bf16", 1 << 6), ("e5m2", 2)])
def test_canonical_or_quiet_refuses_signalling_ones(name, quiet):
    fmt = formats[name]
    codes, nans, _ = allowed_pairs(fmt, Allowed("canonical-or-quiet"))
    columns = codes[nans.any(axis=0)]
    assert all(code & quiet for code in columns.tolist())
    signalling = fmt.nan_codes[0][0]
    assert not signalling & quiet
    assert signalling in codes
    assert signalling not in columns


def test_only_the_canonical_nan_is_quiet_without_fractions():
    _, nans, _ = allowed_pairs(formats["e8m0"], Allowed("canonical-or-quiet"))
    assert not nans.any()


def test_nothing_is_allowed_at_first():
    codes, nans, zeros = allowed_pairs(formats["e5m2"], Allowed())
    assert len(codes) == 256
    assert not nans.any()
    assert not zeros.any()


def with_other_nans(operation, parameters, inputs):
    """Return the engine's results, with the smallest NaN for every one."""
    found = OPERATIONS[operation].engine(parameters, inputs)
    code = found["code"].copy()
    for nans in formats[parameters["format"]].nan_codes:
        code[(code >= nans.start) & (code < nans.stop)] = nans.start
    return {**found, "code": code}


def without_minus_zero_too(operation, parameters, inputs):
    code, fmt = (
        with_other_nans(operation, parameters, inputs)["code"],
        formats[parameters["format"]],
    )
    if fmt.sign == "sign-magnitude" and fmt.value(fmt.sign_bit) == 0:
        code[code == fmt.sign_bit] = 0
    return {"code": code}


def verified(allowed, function=without_minus_zero_too):
    suites = suites_in(bundled_files(), ["encode"])
    return verify(PythonFunction("mine", function), suites, allowed=allowed)


def counts_of(suite="encode"):
    """Return how many NaNs of the suite are not the smallest, and how many zeros are negative."""
    nans = zeros = 0
    for case in golden.load(suite):
        fmt = formats[case.parameters["format"]]
        for code in case.arrays["code"].tolist():
            is_nan = any(code in one for one in fmt.nan_codes)
            nans += is_nan and not any(code == one.start for one in fmt.nan_codes)
            zeros += code != 0 and fmt.value(code) == 0
    return nans, zeros


@pytest.mark.tier("full")
def test_a_kernel_with_other_nans_and_zeros_matches_if_both_are_allowed():
    nans, zeros = counts_of()
    assert min(nans, zeros) > 100
    assert verified(Allowed()).results[0].differing == nans + zeros
    assert verified(Allowed(nan="any")).results[0].differing == zeros
    assert verified(Allowed(zero_sign="any")).results[0].differing == nans
    both = verified(Allowed("any", "any"))
    assert both.verdict == "match"
    assert both.conformance.level == "allowed"
    assert str(both.conformance).startswith(
        f"not bit-exact: {nans:,} NaNs with other bits and {zeros:,} zeros of the other sign were "
        "allowed; all else is equal in "
    )


def test_who_needs_no_allowance_is_bit_exact():
    engine = PythonFunction("engine", lambda operation, *rest: OPERATIONS[operation].engine(*rest))
    suites = suites_in(bundled_files(), ["decode"])
    assert verify(engine, suites, allowed=Allowed("any", "any")).conformance.level == "bit-exact"


@pytest.mark.tier("full")
def test_another_mistake_is_named_as_if_the_nans_were_the_expected_ones():
    def away(operation, parameters, inputs):
        is_narrow = formats[parameters["format"]].bits <= 8  # those that the deviation is about
        if not is_narrow or (parameters["rounding"], parameters["overflow"]) != (
            "rne",
            "satfinite",
        ):
            return None
        return with_other_nans(operation, {**parameters, "rounding": "rna"}, inputs)

    strict, allowed = (verified(one, away) for one in (Allowed(), Allowed("any")))
    assert not strict.diagnosis.suites[0].is_explained
    assert allowed.diagnosis.suites[0].is_explained
    (explanation,) = allowed.diagnosis.suites[0].explanations
    assert explanation.deviations == ("ENC-003/ties-away",)


def test_other_words_are_refused():
    with pytest.raises(ValueError, match="nan is 'all', which is not known; "):
        Allowed("all")
    with pytest.raises(ValueError, match="zero-sign is 'quiet', which is not known"):
        Allowed(zero_sign="quiet")


@pytest.mark.tier("full")
@pytest.mark.usefixtures("undiagnosed")
def test_a_suite_that_is_equal_but_for_nans_says_so():
    """Once for the suite, and once for its field; also in the message of JUnit."""
    found = verified(Allowed(), with_other_nans)
    (result,) = found.results
    assert 0 < result.nans == result.differing
    first, *others = suite_lines(result, None)
    assert first.endswith(f"in {cases_differing(result)}; equal but for the bits of NaN")
    assert any(one.endswith("differ; equal but for the bits of NaN") for one in others)
    assert 'differ; equal but for the bits of NaN"' in as_junit(found)
    some = verified(Allowed()).results[0]
    assert 0 < some.nans < some.differing
    assert "NaN" not in next(suite_lines(some, None))


def in_other_bits(place=None):
    """Return a candidate with another quiet NaN in each place, and with one NaN more if asked."""

    def function(operation, parameters, inputs):
        found = OPERATIONS[operation].engine(parameters, inputs)
        y = np.where(found["y"] == 0x7FFFFFFF, np.uint32(0x7FC00000), found["y"])
        if place is not None:
            y[place] = 0x7FC00000
        return {"y": y}

    return function


@pytest.mark.tier("full")
@pytest.mark.parametrize("nan", ["any", "canonical-or-quiet"])
def test_digests_are_of_nans_that_are_allowed(nan):
    """They are counted, and a NaN in place of a number is a mismatch."""
    suites = suites_in(bundled_files(), ["levels_large"])
    found = [
        verify(PythonFunction("mine", in_other_bits(place)), suites, allowed=allowed)
        for place, allowed in ((None, Allowed()), (None, Allowed(nan)), ((0, 0), Allowed(nan)))
    ]
    assert [one.verdict for one in found] == ["mismatch", "match", "mismatch"]
    arrays = [
        OPERATIONS["levels"].exact(case.parameters, {"x": case.arrays["x"]})["y"]
        for case in golden.load("levels_large")
    ]
    nans = sum(int((y == 0x7FFFFFFF).sum()) for y in arrays)
    assert nans > 0
    assert f"{nans:,} NaNs with other bits" in str(found[1].conformance)
