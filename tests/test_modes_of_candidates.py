"""A candidate that changes the processor's modes keeps them to itself, and gets a verdict."""

import numpy as np
import pytest
from modes import MODES, has_modes, set_modes

from mor_ref.golden import bundled_files
from mor_ref.processor_modes import follows_ieee_754
from mor_ref.verify.candidates.python_function import PythonFunction, imported_function
from mor_ref.verify.running.run import verify
from mor_ref.verify.running.suites import suites_in

pytestmark = has_modes
IN_EACH_MODE = pytest.mark.parametrize("mode", MODES)

# As a library does when it is loaded; `run` has one code wrong in each case.
CANDIDATE = """
from modes import set_modes
from mor_ref.operations import OPERATIONS
from mor_ref.processor_modes import follows_ieee_754
set_modes({bits})

def run(operation, parameters, inputs):
    assert not follows_ieee_754(), "the modes are those of this module"
    code = OPERATIONS[operation].engine(parameters, inputs)["code"]
    code.flat[0] ^= 1
    return {{"code": code}}
"""


@pytest.mark.tier("full")
@IN_EACH_MODE
def test_a_module_that_changes_them_is_compared_and_diagnosed(mode, tmp_path, monkeypatch):
    name = f"candidate_{mode.replace(' ', '_')}"
    (tmp_path / f"{name}.py").write_text(CANDIDATE.format(bits=MODES[mode]))
    monkeypatch.syspath_prepend(tmp_path)
    candidate = imported_function(f"{name}:run", name, "run")
    assert follows_ieee_754()
    found = verify(candidate, suites_in(bundled_files(), ["encode_presets"]))
    (result,) = found.results
    assert (found.verdict, result.differing) == ("mismatch", result.cases)
    assert follows_ieee_754()


def test_a_call_that_changes_them_has_them_in_the_next_call():
    seen = []

    def run(*_):
        seen.append(follows_ieee_754())
        set_modes(MODES["FTZ"])

    found = verify(PythonFunction("run", run), suites_in(bundled_files(), ["encode_presets"]))
    assert found.verdict == "not run"
    assert not np.any(seen[1:])
    assert follows_ieee_754()


def test_another_candidate_does_not_have_them():
    seen = []

    def run(*_):
        seen.append(follows_ieee_754())

    suites = suites_in(bundled_files(), ["error_steps"])
    verify(PythonFunction("flushing", lambda *_: set_modes(MODES["FTZ"]) and None), suites)
    verify(PythonFunction("run", run), suites)
    assert seen == [True]
