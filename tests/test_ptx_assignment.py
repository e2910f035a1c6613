"""Registers that a way through a kernel reads before anything is written to them."""

import numpy as np
import pytest

from mor_ref.ptx import Module

KERNEL = """.version 8.0
.target sm_90
.address_size 64
.visible .entry run(.param .u64 out, .param .u32 n) {{
  .reg .b64 %d<2>; .reg .b32 %r<4>; .reg .pred %p<4>; .reg .b32 %i;
  ld.param.u64 %d1, [out]; ld.param.u32 %r1, [n];
  setp.ne.u32 %p1, %r1, 0;
{body}
  st.global.u32 [%d1], %r2;
  ret;
}}
"""
EARLY = {
    "@%p1 bra END;\nmov.u32 %r2, 5;\nEND:": "%r2",
    "AGAIN: add.u32 %r3, %r2, 1; mov.u32 %r2, %r3; @%p1 bra OUT; bra AGAIN;\nOUT:": "%r2",
    "@%p1 bra A; bra B;\nA: mov.u32 %r2, 1;\nB:": "%r2",
    "mov.u32 %i, 0; T: .branchtargets A, B; brx.idx %i, T;\nA: mov.u32 %r2, 1;\nB:": "%r2",
}
NEVER_EARLY = (
    "mov.u32 %r2, 5;",
    "@%p1 mov.u32 %r2, 1; @!%p1 mov.u32 %r2, 2;",
    "@%p1 bra A; mov.u32 %r2, 1; bra B;\nA: mov.u32 %r2, 2;\nB:",
    "mov.u32 %r2, 0;\nAGAIN: add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 9; @%p2 bra AGAIN;",
    "mov.u32 %r2, 0; ret;\nNEVER: add.u32 %r2, %r3, 1;",
    # Where %p1 decides, a compiler leaves the other predicate open.
    "mov.u32 %r2, 0; @%p1 bra A; setp.eq.u32 %p3, %r1, 1;\nA: or.pred %p2, %p1, %p3;",
)


def remarks_on(body):
    module = Module(KERNEL.format(body=body))
    module["run"][1, 1](np.zeros(1, np.uint32), np.uint32(1))
    return [remark for remark in module.undefined_in_use if "before a write" in remark.why]


@pytest.mark.parametrize(("body", "name"), EARLY.items())
def test_a_register_that_some_way_reads_early_is_named(body, name):
    (remark,) = remarks_on(body)
    assert f"register {name} is read before a write on some way" in remark.why
    assert remark.text.split()[0] in ("st.global.u32", "add.u32")
    assert not remark.always


@pytest.mark.parametrize("body", NEVER_EARLY)
def test_a_register_that_every_way_writes_first_is_not(body):
    assert remarks_on(body) == []


def test_the_bits_of_such_a_register_are_open():
    text, found = KERNEL.format(body=next(iter(EARLY))), []
    for model in ("nearest", "below", "above"):
        out = np.zeros(1, np.uint32)
        Module(text, undefined=model)["run"][1, 1](out, np.uint32(1))
        found.append(int(out[0]))
    assert found == [0, 0, 0xFFFFFFFF]
