"""Products of matrices of single bits by `mma.sync`, against sums of numbers of ones by NumPy."""

import re

import numpy as np
import ptxas
import pytest
from fragments import multiplied
from fragments import program as of_registers
from kernels import needed

from mor_ref.ptx import Module, PtxError

SHAPES = [(8, 128), (16, 128), (16, 256)]


@pytest.fixture(scope="module", autouse=True)
def _compiler():
    needed.compiler()


def opcode_of(m, k, join):
    return f"mma.sync.aligned.m{m}n8k{k}.row.col.s32.b1.b1.s32.{join}.popc"


@pytest.mark.parametrize(("m", "k"), SHAPES)
@pytest.mark.parametrize("join", ["and", "xor"])
def test_numbers_of_ones(m, k, join):
    """Rows of a with columns of b; a sum beyond 32 bits wraps around."""
    random = np.random.default_rng(m + k)
    a = random.integers(0, 2, (m, k), np.uint32)
    b = random.integers(0, 2, (k, 8), np.uint32)
    c = random.integers(0, 1 << 32, (m, 8), np.uint32)
    c[0] = (1 << 32) - 1
    joined = {"and": np.bitwise_and, "xor": np.bitwise_xor}[join]
    ones = joined(a[:, :, None], b[None]).sum(axis=1, dtype=np.uint32)
    found = multiplied("sm_90", opcode_of(m, k, join), (a, b, c), (1, 1, 32))
    assert found == (ones + c).tolist()


OTHERS = (
    "m8n8k128.row.col.s32.b1.b1.s32.or.popc", "m8n8k128.row.col.s32.b1.b1.s32",
    "m8n8k128.row.col.satfinite.s32.b1.b1.s32.xor.popc", "m8n8k128.row.col.s32.b1.b1.s32.popc.xor",
    "m8n8k256.row.col.s32.b1.b1.s32.and.popc", "m8n8k128.row.col.s32.b1.s4.s32.and.popc",
    "m8n8k128.col.row.s32.b1.b1.s32.and.popc", "m16n8k128.row.col.s32.b1.b1.s32.and.popc",
    "m8n8k128.row.col.u32.b1.b1.u32.and.popc", "m8n8k128.row.col.s32.b1.b1.s32.and",
)  # fmt: skip


@pytest.mark.parametrize("words", OTHERS)
def test_other_forms_are_refused(words):
    """One of them has the registers of another shape; ptxas refuses all of them."""
    text = of_registers("sm_90", f"mma.sync.aligned.{words}", (1, 1, 2))
    with pytest.raises(PtxError, match=re.escape(words)):
        Module(text)["run"][1, 32](*np.zeros((4, 64), np.uint32))


def test_forms_of_ptxas():
    """It takes all forms that run here, and no other one of these tests."""
    ptxas.needed()
    forms = {opcode_of(m, k, join): (m, k) for m, k in SHAPES for join in ("and", "xor")}
    for opcode, (m, k) in forms.items():
        counts = m * k // 1024, k // 128, m // 4
        assert ptxas.assembled(of_registers("sm_90", opcode, counts)), opcode
    for words in OTHERS:
        text = of_registers("sm_90", f"mma.sync.aligned.{words}", (1, 1, 2))
        assert not ptxas.assembled(text), words
