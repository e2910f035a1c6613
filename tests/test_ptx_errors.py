"""Errors of `mor_ref.ptx` as a reader sees them: one thread, one line, and no lines of mor_ref."""

import numpy as np
import pytest
from kernels import needed
from ptx_programs import HEADER

from mor_ref.ptx import LaunchError, Module
from mor_ref.verify.candidates.python_function import _place_of

READS = """.visible .entry run(.param .u64 out) {
.reg .b32 %r<5>; .reg .b64 %d<3>; .shared .align 4 .b8 s[64];
ld.shared.u32 %r1, [s+PLACE];
ld.param.u64 %d1, [out]; st.global.u32 [%d1], %r1; ret; }
"""


@pytest.fixture(scope="module", autouse=True)
def _compiler():
    needed.compiler()


def launched(text, threads=2):
    with pytest.raises(LaunchError) as found:
        Module(text)["run"][1, threads](np.zeros(4, np.uint32))
    return found.value


def test_a_read_of_unwritten_shared_memory_names_one_thread():
    """It is reported when the last thread ends, and is that of the thread that read first."""
    message = str(launched(HEADER + READS.replace("PLACE", "0")))
    assert message.endswith("its bits open (block 0,0,0, thread 0)")
    assert message.count("thread") == 1


def test_a_module_of_one_line_is_shortened():
    longer = READS.replace("PLACE", "64").replace(
        "ld.shared", "mov.u32 %r1, 1; " * 20 + "ld.shared"
    )
    text = HEADER + " ".join(longer.split("\n"))
    message = str(launched(text))
    assert " ... it is outside of shared memory" in message
    assert len(message) < 400


def test_a_byte_order_mark_may_begin_a_file():
    assert list(Module("\ufeff" + HEADER + READS.replace("PLACE", "0"))) == ["run"]


def test_no_line_of_mor_ref_is_the_place_of_an_error():
    """The last line of somebody else is."""
    place = _place_of(launched(HEADER + READS.replace("PLACE", "64")))
    assert "running.py" not in place
    assert "test_ptx_errors.py" in place
