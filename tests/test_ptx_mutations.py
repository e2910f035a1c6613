"""Mutated PTX: each text is translated or refused in a sentence, and no other error comes up."""

import random

import pytest
from ptx_programs import HEADER, program
from test_ptx import SUM

from mor_ref.ptx import LaunchError, Module, PtxError

TEXTS = (
    HEADER + SUM,
    program("fma.rn.ftz.f32", ("f32",) * 4),
    program("setp.lt.u32", ("pred", "u32", "u32")),
    program("cvt.rn.satfinite.e2m1x2.f32", ("b8", "f32", "f32")),
)
PIECES = (
    *"{}()[];,:@%=<>!+-|_\0\f\r\"\\", "/*", "*/", "//", "0f", "1.5", "99999999999999999999", "%r1",
    "%p1", "%f1", "%d1", "%tid.x", "\n", ".reg .b32 %z<5>;", ".shared .b8 q[99999999];", ".v99",
    ".global .b8 q[4]={1,2,3,4,5};", ".local .b8 w[8];", ".align 0", "<99999999999>", "bra L;",
    "call f, (y);", ".branchtargets a, b;", ".entry", ".func f() { ret; }", "mov.u32", "setp.lt.f3",
    "shfl.sync.idx.b32", "bar.red.popc.u32", ".version", ".param .u64 x", "mma.sync", "\u00e9",
)  # fmt: skip


def mutated(text, draw):
    """Return a text with a piece put in, taken out or exchanged, in one to three places."""
    for _ in range(draw.choice((1, 1, 2, 3))):
        lines = text.split("\n")
        at = draw.randrange(len(lines))
        line, piece = lines[at], draw.choice((*PIECES, draw.choice(lines)))
        begin = draw.randrange(len(line) + 1)
        end = min(len(line), begin + draw.choice((0, 1, 1, 2, 8)))
        lines[at] = line[:begin] + draw.choice((piece, "")) + line[end:]
        if draw.random() < 0.1:
            del lines[at + 1 :]
        text = "\n".join(lines)
    return text


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(n, marks=pytest.mark.tier("full")) for n in range(1, 9))]
)
def test_mutations(seed):
    draw = random.Random(seed)  # noqa: S311
    refused = list[str]()
    for _ in range(500):
        text = mutated(draw.choice(TEXTS), draw)
        try:
            module = Module(text)
            for kernel in module.values():
                assert kernel.translated.source
        except (PtxError, LaunchError) as error:
            refused.append(str(error))
    assert 100 < len(refused) < 500
    assert not [said for said in refused if not said or "\n" in said]
