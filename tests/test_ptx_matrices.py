"""Matrix instructions of PTX, against the exact model of dot products."""

import itertools
import re

import numpy as np
import pytest
from fragments import KINDS, multiplied, numbers
from kernels import needed
from ptx_programs import HEADER

from mor_ref import exact, formats
from mor_ref.definitions.dot import DOT_PROFILES
from mor_ref.definitions.encoding import SpecialCases
from mor_ref.exact.dot import dot
from mor_ref.ptx import LaunchError, Module, PtxError, Schedule

BITS = {"f16": 16, "bf16": 16, "tf32": 32, "f32": 32}
BITS |= dict.fromkeys(("e4m3", "e5m2", "e2m3", "e3m2", "e2m1"), 8)
# The architecture, the shape in k, the types of a, b and c, and the profile.
CASES = [
    ("sm_75", 8, "f16", "f16", "f32", "turing_fp16"),
    ("sm_80", 16, "f16", "f16", "f32", "ampere_fp16"),
    ("sm_80", 8, "f16", "f16", "f16", "ampere_fp16_f16"),
    ("sm_80", 16, "bf16", "bf16", "f32", "ampere_bf16"),
    ("sm_80", 8, "tf32", "tf32", "f32", "ampere_tf32"),
    ("sm_89", 32, "e4m3", "e5m2", "f32", "ada_fp8"),
    ("sm_89", 16, "e4m3", "e4m3", "f16", "ada_fp8_f16"),
    ("sm_90", 16, "f16", "f16", "f32", "hopper_fp16"),
    ("sm_90a", 8, "f16", "f16", "f32", "hopper_fp16_k8"),
    ("sm_90", 16, "bf16", "bf16", "f32", "hopper_bf16"),
    ("sm_90", 4, "tf32", "tf32", "f32", "hopper_tf32_k4"),
    ("sm_100", 16, "f16", "f16", "f16", "blackwell_fp16_f16"),
    ("sm_120", 32, "e5m2", "e4m3", "f32", "rtx_blackwell_fp8"),
    ("sm_120", 16, "e4m3", "e4m3", "f16", "rtx_blackwell_fp8_f16_k16"),
    ("sm_120a", 32, "e2m1", "e3m2", "f32", "rtx_blackwell_fp8"),
    ("sm_120a", 32, "e5m2", "e2m3", "f16", "rtx_blackwell_fp8_f16"),
]
TARGETS = {
    "turing": "sm_75", "ampere": "sm_80", "ada": "sm_89", "hopper": "sm_90", "blackwell": "sm_100",
    "rtx_blackwell": "sm_120a",
}  # fmt: skip
USUAL = ("f16", "fp16", (8, 16)), ("bf16", "bf16", (8, 16)), ("tf32", "tf32", (4, 8))


def name_of(case):
    return f"{case[5]}-{case[2]}-{case[3]}-{case[1]}"


def others():
    """Yield the cases of 16 and 32 bits that are not in `CASES`."""
    for (name, target), (kind, letters, sizes) in itertools.product(TARGETS.items(), USUAL):
        for c, k in itertools.product(("f32", "f16"), sizes):
            profile = f"{name}_{letters}{'_f16' if c == 'f16' else ''}"
            profile = next((x for x in (f"{profile}_k{k}", profile) if x in DOT_PROFILES), None)
            case = target, k, kind, kind, c, profile
            is_there = (target, k) != ("sm_75", 16)  # which has m16n8k8 alone
            is_new = (profile, k) not in {(each[5], each[1]) for each in CASES}
            if profile is not None and is_there and is_new:
                yield case


@pytest.fixture(scope="module", autouse=True)
def _compiler():
    needed.compiler()


def multiplied_by(case, codes):
    """Return the codes of a product by the kernel."""
    target, k, a, b, c, _ = case
    kind = ".kind::f8f6f4" if {a, b} & {"e2m1", "e2m3", "e3m2"} else ""
    opcode = f"mma.sync.aligned.m16n8k{k}.row.col{kind}.{c}.{a}.{b}.{c}"
    shown = [each << 2 * (of == "e2m1") for each, of in zip(codes, (a, b, c), strict=True)]
    return multiplied(target, opcode, shown, (BITS[a], BITS[b], BITS[c]))


def expected(case, codes):
    """Return the codes of the exact model."""
    *_, a, b, c, name = case
    profile, of = DOT_PROFILES[name], tuple(formats["f32" if x == "tf32" else x] for x in (a, b))
    result = formats[c]
    x, y, z = (each.tolist() for each in codes)
    found = []
    for i, row in enumerate(x):
        found.append([])
        for j in range(8):
            start = exact.decode(z[i][j], result)
            start = float(np.uint32(start).view(np.float32))
            total = dot(row, [line[j] for line in y], start, profile, of)
            found[-1].append(exact.encode(total, result, "rne", SpecialCases(overflow="ieee")))
    return found


@pytest.mark.tier("full")
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_products_of_the_exact_model(case):
    """DOT-004, DOT-005, DOT-007, DOT-008, DOT-010: common numbers, and any codes."""
    *_, k, a, b, c, name = case
    random = np.random.default_rng(len(name))
    of = [formats["f32" if x == "tf32" else x] for x in (a, b, c)]
    shapes = (16, k), (k, 8), (16, 8)
    for kind in KINDS:
        codes = [numbers(random, shape, fmt, kind) for shape, fmt in zip(shapes, of, strict=True)]
        assert multiplied_by(case, codes) == expected(case, codes)


@pytest.mark.tier("full")
@pytest.mark.parametrize("case", list(others()), ids=name_of)
def test_products_of_all_profiles(case):
    """DOT-002: also those with the same numbers as others."""
    test_products_of_the_exact_model(case)


MMA = "mma.sync.aligned.m16n8k{} {{%r1, %r2, %r3, %r4}}, {}, {{%r1, %r2}}, {{%r1, %r2, %r3, %r4}};"
FOUR, TWO = "{%r1, %r2, %r3, %r4}", "{%r1, %r2}"
REFUSED = [
    ("sm_90", MMA.format("32.row.col.f32.e4m3.e4m3.f32", FOUR), "no profile .* on sm_90"),
    ("sm_80", MMA.format("16.row.col.f32.f16.bf16.f32", FOUR), "no profile"),
    ("sm_75", MMA.format("16.row.col.f32.f16.f16.f32", FOUR), "it needs .target sm_80 or higher"),
    ("sm_80", MMA.format("16.row.col.f32.f16.f16.f32", TWO), "registers are not those of its"),
    (
        "sm_80",
        MMA.format("16.row.row.f32.f16.f16.f32", FOUR),
        "matrix instruction is not supported",
    ),
    ("sm_100a", "tcgen05.alloc.cta_group::1.sync.aligned.b32 [%r1], 32;", "not supported"),
    ("sm_80", "cp.async.ca.shared.global [%r1], [%r2], 3;", "this copy is not supported"),
    ("sm_80", "cp.async.cg.shared.global [%r1], [%r2], 8;", "this copy is not supported"),
    ("sm_90", "cp.async.bulk.commit_group;", "this copy is not supported"),
    ("sm_80", "mma.sp.sync.aligned.m16n8k32 %r1, %r1, %r1, %r1, %r1, 0;", "is not supported"),
]


@pytest.mark.parametrize(("target", "line", "words"), REFUSED)
def test_others_are_refused_with_their_line(target, line, words):
    text = (
        f"{HEADER.replace('sm_90', target)}.visible .entry run() {{\n.reg .b32 %r<9>;\n{line}\n}}"
    )
    opcode = re.escape(line.split()[0].rstrip(";"))
    with pytest.raises(PtxError, match=rf"line \d+: {opcode}.*{words}"):
        Module(text)["run"][1, 32]()


# ---------------------------------------------------------------------- loads and copies

LOADS = """
.visible .entry run(.param .u64 out, .param .u64 x) {{
  .reg .b32 %r<20>; .reg .b64 %d<9>; .reg .pred %p<2>;
  .shared .align 16 .b8 all[1024];
  ld.param.u64 %d1, [out]; ld.param.u64 %d2, [x];
  mov.u32 %r1, %tid.x; mov.u32 %r2, all;
  mad.wide.u32 %d3, %r1, {each}, %d2; mad.lo.u32 %r3, %r1, {each}, %r2;
  {body}
  st.global.u32 [%d4], %r4; st.global.u32 [%d4+4], %r5;
  ret;
}}
"""


def of_loads(body, each=16, order=0):
    x, out = np.arange(512, dtype=np.uint16), np.zeros((32, 4), np.uint16)
    more = "mad.wide.u32 %d4, %r1, 8, %d1;"
    text = HEADER + LOADS.format(each=each, body=body + more)
    Module(text, schedule=Schedule(order=order))["run"][1, 32](out, x)
    return out


COPIED = "cp.async.cg.shared.global [%r3], [%d3], 16; cp.async.commit_group; "
WAITED = COPIED + "cp.async.wait_group 0; bar.sync 0; "
LOAD = "ldmatrix.sync.aligned.m8n8.x2{}.shared.b16 {{%r4, %r5}}, [%r3];"


@pytest.mark.parametrize("trans", ["", ".trans"])
def test_matrices_are_loaded(trans):
    """Lane 4 i + j has numbers 2 j and 2 j + 1 of row i, or of column i."""
    found = of_loads(WAITED + LOAD.format(trans))
    tiles = np.arange(128, dtype=np.uint16).reshape(2, 8, 8)
    wanted = tiles.transpose(0, 2, 1) if trans else tiles
    np.testing.assert_array_equal(found[:, :2].reshape(8, 8), wanted[0])
    np.testing.assert_array_equal(found[:, 2:].reshape(8, 8), wanted[1])


@pytest.mark.parametrize("trans", ["", ".trans"])
def test_matrices_are_stored_and_transposed(trans):
    """A matrix that is stored as it was loaded is the same; movmatrix changes rows and columns."""
    store = f"stmatrix.sync.aligned.m8n8.x2{trans}.shared.b16 [%r3], {{%r4, %r5}}; bar.sync 0; "
    again = "bar.sync 0; " + LOAD.format("").replace("%r5", "%r6")
    moved = "movmatrix.sync.aligned.m8n8.trans.b16 %r5, %r4;"
    found = of_loads(WAITED + LOAD.format("") + "bar.sync 0; " + store + again + moved)
    tile = np.arange(64, dtype=np.uint16).reshape(8, 8)
    stored = tile.T if trans else tile
    np.testing.assert_array_equal(found[:, :2].reshape(8, 8), stored)
    np.testing.assert_array_equal(found[:, 2:].reshape(8, 8), stored.T)


@pytest.mark.tier("full")
def test_a_copy_is_there_when_it_was_waited_for():
    read = "ld.shared.u32 %r4, [%r3]; ld.shared.u32 %r5, [%r3+4]; "
    hinted = COPIED.replace("global", "global.L2::cache_hint").replace("16;", "16, %d2;")
    zeros = hinted.replace("%d2;", "%r6, %d2;")
    found = of_loads(hinted + "cp.async.wait_all; " + read)
    assert found[3].tolist() == [24, 25, 26, 27]
    partly = "mov.u32 %r6, 6; " + zeros + "cp.async.wait_all; " + read
    assert of_loads(partly)[3].tolist() == [24, 25, 26, 0]
    early = COPIED + read + "cp.async.wait_group 0; "
    with pytest.raises(LaunchError, match="thread 0 copies to it in .*, and has not waited"):
        of_loads(early)
    none = "setp.eq.u32 %p1, %r1, 2; " + COPIED.replace("16;", "16, %p1;")
    later = none + COPIED.replace("[%r3]", "[%r3+512]") + "cp.async.wait_group 1; " + read
    assert of_loads(later)[2:4].tolist() == [[0, 0, 0, 0], [24, 25, 26, 27]]
    with pytest.raises(LaunchError, match="copies to it in .*, and has not waited"):
        of_loads(later.replace("%r4, [%r3]", "%r4, [%r3+512]"))


STAGES = f"""{WAITED} xor.b32 %r6, %r3, 16; ld.shared.u32 %r4, [%r6]; bar.sync 0; {COPIED}
  bar.sync 0; cp.async.wait_all; bar.sync 0; ld.shared.u32 %r5, [%r6]; bar.sync 0; """
SAME = f"""{COPIED.replace("%r3", "%r2").replace("%d3", "%d2")} bar.sync 0; cp.async.wait_all;
  bar.sync 0; """
# A lane reads what another one then copies to.
APART = """st.shared.u32 [%r3], %r1; bar.sync 0; setp.eq.u32 %p0, %r1, 7; setp.eq.u32 %p1, %r1, 20;
  @%p0 ld.shared.u32 %r4, [all]; bar.sync 0; @%p1 cp.async.ca.shared.global [all], [%d2+8], 4;
  bar.sync 0; cp.async.wait_all; bar.sync 0; ld.shared.u32 %r5, [all]; """


@pytest.mark.tier("full")
@pytest.mark.parametrize("order", [0, 1, 7])
def test_a_copy_races_from_its_begin_until_it_was_waited_for(order):
    """It races with reads before it, unless a barrier lies between; not with equal bytes."""
    assert of_loads(STAGES, order=order)[2].tolist() == [24, 25, 24, 25]
    for change in ("bar.sync 0; cp.async.cg", "wait_all; bar.sync 0;"):
        without = STAGES.replace(change, change.replace("bar.sync 0;", ""))
        with pytest.raises(LaunchError, match=r"line \d+: .*a race: thread \d+"):
            of_loads(without, order=order)
    both = "ld.shared.u32 %r4, [%r2]; ld.shared.u32 %r5, [%r2+4];"
    assert (of_loads(SAME + both, order=order) == [0, 1, 2, 3]).all()
    assert of_loads(APART, order=order)[7].tolist() == [0, 0, 4, 5]
    with pytest.raises(LaunchError, match=r"a race: thread \d+"):
        of_loads(APART.replace("bar.sync 0; @%p1", "@%p1"), order=order)


@pytest.mark.parametrize(
    ("body", "each", "words"),
    [
        (COPIED.replace("16;", "8;").replace(".cg", ".ca"), 12, "its address is misaligned"),
        (COPIED, 48, "it is outside of all arrays"),
        (WAITED.replace("bar.sync 0;", "") + LOAD.format(""), 16, "a race"),
        (WAITED + LOAD.format("").replace("[%r3]", "[%r3+4]"), 16, "of a row is misaligned"),
    ],
)
def test_faults_of_copies_and_loads(body, each, words):
    with pytest.raises(LaunchError, match=rf"line \d+: .*{words}"):
        of_loads(body, each)
