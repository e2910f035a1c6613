"""Candidates whose bits are not all defined: reports name why, and no suite is a match."""

import json

import numpy as np
import pytest
from kernels import needed
from ptx_programs import program

from mor_ref.golden import bundled_files
from mor_ref.operations import OPERATIONS
from mor_ref.ptx import Candidate
from mor_ref.verify.candidates.python_function import PythonFunction
from mor_ref.verify.reporting.junit import as_junit
from mor_ref.verify.reporting.page import as_html
from mor_ref.verify.reporting.report_files import as_json
from mor_ref.verify.reporting.text import lines
from mor_ref.verify.running.run import verify
from mor_ref.verify.running.suites import suites_in


@pytest.fixture(scope="module", autouse=True)
def _compiler():
    needed.compiler()


def verified(opcode, *, in_one_buffer=False):
    """Verify the engine on single numbers, with xs divided by 1 as an opcode of PTX does."""
    text = program(opcode, ("f32", "f32", "f32"))
    buffer = np.zeros(1 << 14, np.uint32)

    def launch(module, operation, parameters, inputs):
        if parameters["format"] != "e4m3":
            return None
        found = dict(OPERATIONS[operation].engine(parameters, inputs))
        out, xs = np.zeros(len(found["xs"]), np.uint64), found["xs"].astype(np.uint64)
        module(text)["run"][len(out), 1](out, xs, np.full(len(out), 0x3F800000, np.uint64))
        results = buffer[: len(out)] if in_one_buffer else np.zeros(len(out), np.uint32)
        results[:] = out
        return found | {"xs": results}

    suites = suites_in(bundled_files(), ["quantize_steps"])
    return verify(PythonFunction("kernel:run", Candidate(launch)), suites)


def test_open_entries_are_no_match():
    """All bits are right if the division is, and no GPU promises that."""
    found = verified("div.full.f32")
    (result,) = found.results
    assert result.differing == 0
    assert found.verdict == result.verdict == "incomplete"
    said = list(lines(found))
    assert said[0].startswith("quantize_steps: incomplete, ")
    assert "line 18: div.full.f32: PTX bounds its error by 2 ulp" in said[1]
    count = result.remarks.open
    assert 1000 < count < result.compared
    assert f"{count:,} of {result.compared:,} entries depend on this" in said[2]
    assert f"not bit-exact: the bits of {count:,} entries are not defined" in said[-2]
    assert json.loads(as_json(found))["results"][0]["remarks"]["open"] == count
    assert f'<failure message="{count:,} entries without defined bits">' in as_junit(found)
    assert "no GPU promises their bits" in as_html(found)


def test_open_entries_of_results_in_one_buffer():
    """The other ways to run the kernel fill it again."""
    (result,) = verified("div.full.f32").results
    (again,) = verified("div.full.f32", in_one_buffer=True).results
    assert again.remarks == result.remarks
    assert again.differing == 0


def test_defined_bits_have_no_remarks():
    found = verified("div.rn.f32")
    assert found.verdict == "match"
    assert not found.results[0].remarks.lines
    assert "bit-exact in the given part" in str(found.conformance)
