"""Results of an H200 where it had other bits than PTX says, or than `mor_ref.ptx` had."""

import numpy as np
import pytest
from kernels import needed
from ptx_programs import program, run

from mor_ref.ptx import Module

SHOWN = {
    "mul.rn.ftz.f32": [
        (0x00800000, 0x3F7FFFFF, 0x00000000), (0x00800000, 0xBF7FFFFF, 0x80000000),
        (0x80800000, 0x3F7FFFFF, 0x80000000), (0x80800000, 0xBF7FFFFF, 0x00000000),
    ],
    "fma.rn.ftz.f32": [
        (0xBF7FFFFF, 0x00800000, 0x80000002, 0x80000000),
        (0xBF7FFFFF, 0x80800000, 0x007FFFFF, 0x00000000),
    ],
    "rcp.rm.ftz.f32": [(0xFE800001, 0x80000000)],
    "bfe.u64": [
        (0x1F, 0, 0x103, 0x1F), (0x1F, 1, 0x103, 0xF), (0x1F, 0x103, 5, 0),
        (0x0B010B440B400000, 2, 0x1A800001, 0x02C042D102D00000),
    ],
    "bfe.s64": [
        (0x1F, 0, 0x103, 0x1F), (0x1F, 0x103, 1, 0),
        (0x3670000000000000, 0x2A0C2C19, 0xC5E2EC79, 0),
        (0x53800000D3800001, 12, 0x36C00000, 0x00053800000D3800),
    ],
    "bfi.b64": [
        (0, 0x1F, 0, 0x103, 0), (0, 0x1F, 1, 0x103, 1), (0, 0x1F, 0x103, 5, 0x1F),
        (0xC77FF800477FF801, 0xBD00000010000000, 0x11, 0x80400000, 0xF0008EFFF0020000),
    ],
    "cvt.rp.ftz.f16.f32": [(0x0030E565, 1), (0x00001FFF, 1), (0x80000007, 0x8000)],
    "cvt.rp.ftz.sat.f16.f32": [(0x0030E565, 1), (0x00040007, 1)],
    "cvt.rm.ftz.f16.f32": [(0x80000007, 0x8001), (0x801FFFFF, 0x8001), (0x00000007, 0)],
}  # fmt: skip
COUNTS = {"bfe": ("u32", "u32"), "bfi": ("b64", "u32", "u32")}


@pytest.fixture(scope="module", autouse=True)
def _compiler():
    needed.compiler()


@pytest.mark.parametrize("opcode", SHOWN)
def test_what_is_defined(opcode):
    """The last number of a row is the result of the GPU."""
    name, kind = opcode.split(".")[0], opcode.rsplit(".", maxsplit=1)[1]
    to = "b16" if ".f16." in opcode else kind
    of = (kind, *COUNTS.get(name, (kind,) * (len(SHOWN[opcode][0]) - 2)))
    wanted = [row[-1] for row in SHOWN[opcode]]
    assert run(opcode, (to, *of), [row[:-1] for row in SHOWN[opcode]]) == wanted


# Operands, and the NaN of the H200; PTX leaves its bits open.
NANS = {
    "cvt.rn.ftz.f32.f64": (0xFFFFFE007FFFFF00, 0xFFFFF003),
    "cvt.rm.f32.f64": (0xFFFFC00000000000, 0xFFFE0000),
    "cvt.rz.f16.f64": (0xFFFFE00000000000, 0xFFF8),
    "cvt.rn.bf16.f64": (0x7FF07FF87FF80000, 0x7FC3),
    "cvt.f64.f16": (0x7C01, 0x7FF8040000000000),
    "cvt.rp.f64.bf16": (0xFF81, 0xFFF8200000000000),
    "cvt.rp.f32.bf16": (0x7F82, 0x7F820000),
    "cvt.rni.f64.f64": (0x7FF07FF87FF80000, 0x7FF87FF87FF80000),
    "cvt.rn.tf32.f32": (0xFF807FFF, 0x7FFFE000),
    "cvt.rz.relu.tf32.f32": (0x7FFC7FFD, 0x7FFFE000),
    "cvt.rna.tf32.f32": (0x7F800001, 0x7F800000),
    "cvt.rna.satfinite.tf32.f32": (0xFF807FFF, 0xFF804000),
    "add.f64": (0x7FFFFFFFFFFFF000, 0xFFFFFFFFFFFFFFFE, 0xFFFFFFFFFFFFFFFE),
    "max.f64": (0xFFFFFFF000000000, 0x7FF07FF87FF80000, 0x7FF87FF87FF80000),
    "fma.rn.f64": (
        0xFFFFFFE000000000, 0x80001FFFFFFFFFFF, 0xFFFFFFC0FFFFFFE0, 0xFFFFFFC0FFFFFFE0,
    ),
}  # fmt: skip
WIDTHS = {"bf16": "b16", "tf32": "b32"}


@pytest.mark.tier("full")
def test_nans_that_are_open():
    """The NaN of the GPU is that of one end, and its line is named."""
    for opcode, (*operands, wanted) in NANS.items():
        kinds = opcode.split(".")[-2:] if opcode.startswith("cvt") else [opcode[-3:]]
        kinds = [WIDTHS.get(each, each.replace("f16", "b16")) for each in kinds]
        types = (kinds[0], *[kinds[-1]] * len(operands))
        arrays = [np.array([bits], np.uint64) for bits in operands]
        out = np.zeros(1, np.uint64)
        kernel = Module(program(opcode, types), undefined="below")["run"]
        kernel[1, 1](out, *arrays)
        assert out.tolist() == [wanted], opcode
        assert [note.opcode for note in kernel.undefined] == [opcode]
