"""Products of matrices of binary64 by `mma.sync`: sums one after the other, from that of c on."""

import itertools
import math
import re
from fractions import Fraction

import numpy as np
import pytest
from fragments import of_a, of_b, of_c
from kernels import needed
from ptx_programs import HEADER

from mor_ref.ptx import Module, PtxError

SHAPES = [(8, 4), (16, 4), (16, 8), (16, 16)]
MODES = ("rn", "rz", "rm", "rp")
TOWARDS = {"rm": -math.inf, "rp": math.inf}


@pytest.fixture(scope="module", autouse=True)
def _compiler():
    needed.compiler()


def program(m, k, mode=""):
    """Return a kernel of one warp for each matrix: the registers of a lane lie in a row."""
    counts = m * k // 32, k // 4, m // 4
    groups, lines = [], []
    for letter, count in zip("abc", counts, strict=True):
        names = [f"%{letter}{n}" for n in range(count)]
        groups.append("{" + ", ".join(names) + "}")
        lines.append(f"ld.param.u64 %x1, [{letter}]; mad.wide.u32 %x1, %t, {8 * count}, %x1;")
        lines += [f"ld.global.f64 {name}, [%x1+{8 * n}];" for n, name in enumerate(names)]
    sums = [f"%d{n}" for n in range(counts[2])]
    stores = [f"st.global.f64 [%x1+{8 * n}], {name};" for n, name in enumerate(sums)]
    more = f".{mode}" if mode else ""
    opcode = f"mma.sync.aligned.m{m}n8k{k}.row.col{more}.f64.f64.f64.f64"
    return "\n".join([
        HEADER,
        ".visible .entry run(.param .u64 d, .param .u64 a, .param .u64 b, .param .u64 c) {",
        ".reg .f64 %a<9>, %b<9>, %c<9>, %d<9>; .reg .b64 %x<4>; .reg .u32 %t<3>, %t;",
        "mov.u32 %t1, %tid.x; mov.u32 %t2, %ctaid.x; mad.lo.u32 %t, %t2, 32, %t1;",
        *lines,
        f"{opcode} {{{', '.join(sums)}}}, {', '.join(groups)};",
        f"ld.param.u64 %x1, [d]; mad.wide.u32 %x1, %t, {8 * counts[2]}, %x1;",
        *stores,
        "ret; }",
    ])  # fmt: skip


def in_registers(matrices, count, place):
    """Return the numbers of matrices as rows of registers of their lanes."""
    lanes = [[place(lane, n, 0, 1) for n in range(count)] for lane in range(32)]
    return np.array([[matrix[at] for at in row] for matrix in matrices for row in lanes])


def multiplied(m, k, a, b, c, mode=""):
    """Return the sums of matrices by the kernel."""
    counts = m * k // 32, k // 4, m // 4

    def place_of_a(*at):
        return of_a(*at, rows=m)

    given = [
        in_registers(*each)
        for each in zip((a, b, c), counts, (place_of_a, of_b, of_c), strict=True)
    ]
    out = np.zeros_like(given[2])
    Module(program(m, k, mode))["run"][len(a), 32](out, *given)
    found = np.zeros_like(c)
    rows = iter(out)
    for matrix, lane in itertools.product(range(len(a)), range(32)):
        for n, number in enumerate(next(rows)):
            found[matrix][of_c(lane, n, 0, 1)] = number
    return found


def fused(x, y, z, mode):
    """Return x * y + z of finite numbers, exact and then rounded."""
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    if not exact:
        signs = math.copysign(1, x) * math.copysign(1, y), math.copysign(1, z)
        zero = -0.0 if mode == "rm" else 0.0
        return zero if (x and y) or signs[0] != signs[1] else math.copysign(0.0, z)
    nearest = float(exact)
    towards = TOWARDS.get(mode, -math.inf if exact > 0 else math.inf)
    is_beyond = nearest > exact if towards < 0 else nearest < exact
    return math.nextafter(nearest, towards) if mode not in ("", "rn") and is_beyond else nearest


def matrices(random, m, k, count=2):
    """Return matrices with close exponents, cancellation and zeros; the last has tiny numbers."""
    found = []
    for shape in ((m, k), (k, 8), (m, 8)):
        numbers = random.standard_normal((count, *shape)) * np.exp2(random.integers(-9, 10, shape))
        numbers[random.random(numbers.shape) < 0.2] = random.choice([0.0, -0.0, 1.0, -1.0])
        found.append(numbers)
    found[0][-1] *= 2.0**-520
    found[1][-1] *= 2.0**-540
    found[2][-1] *= 2.0**-1060
    return found


@pytest.mark.tier("full", but_one_in=4)
@pytest.mark.parametrize(
    ("m", "k", "mode"), [*((*shape, "") for shape in SHAPES), *((16, 8, mode) for mode in MODES)]
)
def test_sums_follow_on_one_another(m, k, mode):
    """An H100 has the same bits: its sums begin with c, and take products from the first k on."""
    a, b, c = matrices(np.random.default_rng(k), m, k)
    found = multiplied(m, k, a, b, c, mode)
    for matrix, i, j in np.ndindex(found.shape):
        total = float(c[matrix, i, j])
        for x, y in zip(a[matrix, i].tolist(), b[matrix, :, j].tolist(), strict=True):
            total = fused(x, y, total, mode)
        assert found[matrix, i, j].hex() == total.hex()


def test_numbers_that_are_not_finite():
    """Infinity stays, and of infinities of both signs the sum is NaN, with bits that are open."""
    a, b, c = np.ones((1, 8, 4)), np.ones((1, 4, 8)), np.zeros((1, 8, 8))
    a[0, 1, 2], a[0, 2, 3], c[0, 2, 5] = np.inf, np.inf, -np.inf
    found = multiplied(8, 4, a, b, c)[0]
    assert found[1].tolist() == [np.inf] * 8
    assert np.isnan(found[2, 5])
    assert (np.delete(found, (1, 2), axis=0) == 4).all()


@pytest.mark.parametrize("shape", ["m8n8k8", "m16n8k32"])
def test_other_shapes_are_refused(shape):
    text = program(8, 4).replace("m8n8k4", shape)
    with pytest.raises(PtxError, match=re.escape(f"mma.sync.aligned.{shape}")):
        Module(text)["run"][1, 32](*np.zeros((4, 64)))
