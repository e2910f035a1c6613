"""Inputs that a candidate does not promise: left out, and counted."""

import sys

import numpy as np
import pytest
from verifying import undiagnosed

from mor_ref import golden
from mor_ref.cli import main
from mor_ref.golden import bundled_files
from mor_ref.operations import OPERATIONS
from mor_ref.operations.bits import numbers_of
from mor_ref.verify.candidates.python_function import PythonFunction
from mor_ref.verify.comparing.domain import as_domain
from mor_ref.verify.running.run import verify
from mor_ref.verify.running.suites import suites_in

__all__ = ["undiagnosed"]
ROWS, TENSORS = "quantize_steps", "nvfp4_te_row"
OUTSIDE = {
    "finite": lambda x, _: not np.isfinite(x),
    "normal": lambda x, least: not np.isfinite(x) or 0 < abs(x) < least,
    "nonnegative": lambda x, _: bool(np.signbit(x)),
}


def wrong_outside(domain):
    """Return a candidate whose answers are wrong in rows, or tensors, outside a domain."""

    def function(operation, parameters, inputs):
        found = dict(OPERATIONS[operation].engine(parameters, inputs))
        marks = [of_rows(bits, parameters, domain) for bits in inputs.values()]
        off = np.logical_or.reduce(marks)
        if not OPERATIONS[operation].is_by_row:
            off[:] = off.any()
        found["code"] = found["code"].copy()
        found["code"][off] ^= 1
        return {"code": found["code"]}

    return PythonFunction("wrong outside", function)


def of_rows(bits, parameters, domain):
    """Return which rows have a number outside, by the exact model's reading of the bits."""
    source = parameters.get("source", "f32")
    least = 2.0**-14 if source == "f16" else 2.0**-126
    numbers = numbers_of(bits, source)
    marks = np.array([OUTSIDE[domain](x, least) for x in numbers]).reshape(bits.shape)
    return marks.reshape(len(marks), -1).any(axis=1)


@pytest.mark.parametrize("domain", OUTSIDE)
@pytest.mark.parametrize("suite", [ROWS, TENSORS])
def test_a_candidate_that_is_wrong_outside_matches(suite, domain):
    found = verify(wrong_outside(domain), suites_in(bundled_files(), [suite]), domain=domain)
    assert found.verdict == "match"
    cases, left = golden.load(suite), 0
    for case in cases:
        names = OPERATIONS[{ROWS: "quantize_element", TENSORS: "nvfp4"}[suite]].inputs
        marks = [of_rows(case.arrays[name], case.parameters, domain) for name in names]
        off = np.logical_or.reduce(marks)
        left += int(off.sum()) if suite == ROWS else int(off.any())
    assert left > 0
    noun = "row" if suite == ROWS else "case"
    said = f"{left:,} {noun}s outside the domain {domain} left out"
    (result,) = found.results
    assert result.left_out == said
    assert found.conformance.level == "partial"
    assert str(found.conformance).endswith(f"; {said}")
    if suite == TENSORS:
        assert result.cases == len(cases) - left


@pytest.mark.usefixtures("undiagnosed")
def test_a_mistake_inside_is_still_found():
    """The candidate is wrong where a number is negative: finite numbers are compared."""
    suites = suites_in(bundled_files(), [ROWS])
    assert verify(wrong_outside("nonnegative"), suites, domain="finite").verdict == "mismatch"


def test_everything_is_compared_at_first():
    engine = PythonFunction("engine", lambda operation, *rest: OPERATIONS[operation].engine(*rest))
    found = verify(engine, suites_in(bundled_files(), [ROWS]))
    assert found.results[0].left_out == ""
    assert found.conformance.level == "bit-exact"


def test_the_command_says_how_many(monkeypatch, capsys):
    command = ["mor-ref", "verify", "numba", "--suite", ROWS, "--domain", "finite"]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
    assert "  1,211 rows outside the domain finite left out\n" in capsys.readouterr().out


def test_other_words_are_refused():
    with pytest.raises(ValueError, match="domain is 'positive', which is not known; "):
        as_domain("positive")
