"""Instructions that the target or the version of a module lacks, as ptxas has them."""

import re
import shutil
import subprocess
import tempfile
from bisect import bisect_left
from pathlib import Path

import ptxas
import pytest
from gpu.ptx_forms import TABLES, parser, texts_of
from ptx_programs import HEADER

from mor_ref.ptx import PtxError
from mor_ref.ptx.instructions.forms import is_form
from mor_ref.ptx.parsing import parsed
from mor_ref.ptx.program import WIDTHS
from mor_ref.ptx.rows import found_in
from mor_ref.ptx.targets import is_target, needs_of
from mor_ref.ptx.translation import translated

TARGETS = (
    *(
        "75",
        "80",
        "86",
        "87",
        "88",
        "89",
        "90",
        "90a",
        "100",
        "100f",
        "100a",
        "103",
        "103f",
        "103a",
    ),
    *("110", "110f", "110a", "120", "120f", "120a", "121", "121f", "121a"),
)
REGISTERS = {1: "%p", 8: "%c", 16: "%h", 32: "%r", 64: "%d", 128: "%q"}
DIFFERENT = re.compile(r"e2m1x2\.f16x2")  # ptxas 13.5 wants PTX 9.1 for these, and 13.0 does not
DECLARED = """.visible .entry run() {
.reg .pred %p<9>; .reg .b8 %c<9>; .reg .b16 %h<19>; .reg .b32 %r<60>; .reg .b64 %d<19>;
"""
OTHERS = """ld.weak.b32 %r0, [%d1]
ld.relaxed.gpu.b32 %r0, [%d1]
ld.relaxed.cluster.b32 %r0, [%d1]
ld.acquire.gpu.global.b32 %r0, [%d1]
st.release.gpu.global.b32 [%d1], %r0
ld.mmio.relaxed.sys.b32 %r0, [%d1]
ld.global.L1::evict_last.b32 %r0, [%d1]
ld.global.L2::128B.b32 %r0, [%d1]
ld.global.L2::256B.b32 %r0, [%d1]
ld.global.L2::cache_hint.b32 %r0, [%d1], %d2
ld.global.v4.b64 {%d0, %d1, %d2, %d3}, [%d1]
ld.global.v8.f32 {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, [%d1]
ld.shared::cta.b32 %r0, [%r1]
atom.global.gpu.add.u32 %r0, [%d1], %r1
atom.relaxed.gpu.global.add.u32 %r0, [%d1], %r1
atom.global.add.noftz.f16x2 %r0, [%d1], %r1
atom.global.add.noftz.f16 %h0, [%d1], %h1
atom.global.add.noftz.bf16x2 %r0, [%d1], %r1
atom.global.add.v2.f32 {%r0, %r1}, [%d1], {%r2, %r3}
atom.global.cas.b16 %h0, [%d1], %h1, %h2
red.relaxed.cluster.global.add.u32 [%d1], %r1
createpolicy.fractional.L2::evict_last.b64 %d1, 1.0
prefetch.global.L2::evict_last [%d1]
applypriority.global.L2::evict_normal [%d1], 128
cp.async.ca.shared.global [%r0], [%d1], 16
cp.async.wait_group 1
barrier.cta.sync 0
bar.cta.sync 0
match.any.sync.b32 %r0, %r1, -1
redux.sync.add.u32 %r0, %r1, -1
redux.sync.min.f32 %r0, %r1, -1
elect.sync %r0|%p1, -1
nanosleep.u32 5
lop3.and.b32 %r1|%p1, %r2, %r3, %r4, 5, %p2
fence.sc.cta
fence.acq_rel.cluster
fence.proxy.async
fence.mbarrier_init.release.cluster
griddepcontrol.wait
setmaxnreg.inc.sync.aligned.u32 96
setp.eq.bf16 %p1, %h1, %h2
set.eq.f16.f16 %h0, %h1, %h2
ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%r1]
ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r0, %r1}, [%r2]
stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1], {%r0}
stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%r1], {%r0}
movmatrix.sync.aligned.m8n8.trans.b16 %r0, %r1
wgmma.fence.sync.aligned
mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%r0, %r1, %r2, %r3}, {%r4, %r5}, {%r6}, {%r0, %r1, %r2, %r3}
mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%r0, %r1, %r2, %r3}, {%r4, %r5, %r6, %r7}, {%r8, %r9}, {%r0, %r1, %r2, %r3}
mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%r0, %r1, %r2, %r3}, {%r4, %r5, %r6, %r7}, {%r8, %r9}, {%r0, %r1, %r2, %r3}
mma.sync.aligned.m16n8k16.row.col.f16.e4m3.e5m2.f16 {%r0, %r1}, {%r4, %r5}, {%r8}, {%r0, %r1}
mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e5m2.f32 {%r0, %r1, %r2, %r3}, {%r4, %r5, %r6, %r7}, {%r8, %r9}, {%r0, %r1, %r2, %r3}
mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e2m1.f32 {%r0, %r1, %r2, %r3}, {%r4, %r5, %r6, %r7}, {%r8, %r9}, {%r0, %r1, %r2, %r3}
mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r0, %r1}, {%r4}, {%r8}, {%r0, %r1}
mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%r0, %r1, %r2, %r3}, {%r4, %r5, %r6, %r7}, {%r8, %r9}, {%r0, %r1, %r2, %r3}
mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d0, %d1}, {%d2}, {%d3}, {%d0, %d1}
mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%d0, %d1, %d2, %d3}, {%d4, %d5}, {%d6}, {%d0, %d1, %d2, %d3}"""  # noqa: E501  # a line each


def lines():
    """Return an instruction for each form of the tables, and those that no table has."""
    found = {}
    for rows in TABLES.values():
        for row in rows:
            texts = {text for text, _ in texts_of(list(parser.parse(row.pattern)), {})}
            for text in sorted(one for one in texts if re.fullmatch(row.pattern, one)):
                types = found_in(rows, text, len(row.types)).types
                if not is_form(text) or DIFFERENT.search(text) or "lop3" in text:
                    continue
                if len(types) == len(row.types):
                    found.setdefault((text, len(types)), of_registers(text, types))
    return [*found.values(), *OTHERS.split("\n")]


def of_registers(opcode, types):
    """Return an instruction with registers; those of four numbers are a vector."""
    names = [f"{REGISTERS[WIDTHS[kind]]}{k}" for k, kind in enumerate(types)]
    if "x4.f32" in opcode:
        names[:2] = [names[0] if "e2m1" not in opcode else "%h0", f"{{{', '.join(names[1:5])}}}"]
        del names[2:5]
    return f"{opcode} {', '.join(names)}"


def refused_by_ptxas(every, target, version):
    """Return those of the instructions that ptxas refuses in a module."""
    head = HEADER.replace("9.0", version).replace("sm_90", target)
    head += DECLARED
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "run.ptx"
        path.write_text(head + "".join(f"{each};\n" for each in every) + "ret; }\n", "ascii")
        command = [
            "ptxas",
            f"-arch={target.replace('sm', 'compute')}",
            "-o",
            "/dev/null",
            str(path),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert f"does not support .target {target}" not in done.stderr
    first = head.count("\n") + 1
    return {every[int(n) - first] for n in re.findall(r"line (\d+); (?:error|fatal)", done.stderr)}


def is_refused(line, target, version):
    """Return whether the tables refuse an instruction in a module."""
    opcode = line.split()[0]
    needs = needs_of(opcode, line.count(",") + 1)
    late = [each for each in needs if each.version and number(each.version) > number(version)]
    return bool(late) or not all(is_target(each, target) for each in needs)


def number(version):
    return tuple(map(int, version.split(".")))


@pytest.mark.tier("full", but=["[sm_80", "[sm_100a", "[sm_120f"])
@pytest.mark.parametrize("target", [f"sm_{each}" for each in TARGETS])
def test_targets_of_ptxas(target):
    """Each form of each row is taken or refused as ptxas does."""
    if not shutil.which("ptxas"):
        pytest.skip("ptxas is not installed: pip install nvidia-cuda-nvcc")
    every = lines()
    wanted = refused_by_ptxas(every, target, "9.0")
    assert {line for line in every if is_refused(line, target, "9.0")} == wanted


@pytest.mark.tier("full", but=["[sm_89-8.1"])
@pytest.mark.parametrize(
    ("target", "version"),
    [
        *(("sm_80", each) for each in ("7.0", "7.1", "7.4", "8.1", "8.3")),
        *(("sm_89", each) for each in ("8.1", "8.3", "8.4", "8.7")),
        *(("sm_90", each) for each in ("7.8", "8.0", "8.1", "8.6")),
        *(("sm_100a", each) for each in ("8.6", "8.7", "8.8")),
    ],
)
def test_versions_of_ptxas(target, version):
    if not shutil.which("ptxas"):
        pytest.skip("ptxas is not installed: pip install nvidia-cuda-nvcc")
    every = lines()
    wanted = refused_by_ptxas(every, target, version)
    assert {line for line in every if is_refused(line, target, version)} == wanted


REFUSED = {
    ("sm_80", "9.0", "cvt.rn.satfinite.e4m3x2.f32 %h1, %r1, %r2"): "sm_89 or higher; .* has sm_80",
    ("sm_90", "9.0", "cvt.rn.satfinite.e2m1x2.f32 %c1, %r1, %r2"): "sm_100a/f or sm_110a/f or",
    ("sm_100", "9.0", "cvt.rp.satfinite.ue8m0x2.f32 %h1, %r1, %r2"): "sm_100a/f or sm_110a/f or",
    ("sm_120a", "9.0", "cvt.rs.bf16x2.f32 %r1, %r2, %r3, %r4"): "sm_100a or sm_103a or",
    ("sm_90a", "9.0", "add.rn.f32x2 %d1, %d2, %d3"): "sm_100 or higher; the module has sm_90a",
    ("sm_90", "9.0", "wgmma.fence.sync.aligned"): "sm_90a; the module has sm_90",
    ("sm_80", "7.7", "ld.shared::cta.b32 %r0, [%r1]"): "7.8 or higher; .* 7.7",
    ("sm_90", "9.0", "max.f32 %r1, %r2, %r3, %r4"): "sm_100 or higher; the module has sm_90",
}


@pytest.mark.parametrize(("target", "version", "line"), REFUSED)
def test_instructions_that_a_target_lacks(target, version, line):
    """The error has the line, its text, and the target or the version that it needs."""
    head = HEADER.replace("9.0", version).replace("sm_90", target) + DECLARED
    number_of_line, words = head.count("\n") + 1, REFUSED[target, version, line]
    with pytest.raises(
        PtxError, match=rf"^line {number_of_line}: .*: it needs \.\w+ {words}"
    ) as found:
        translated(parsed(f"{head}{line};\nret; }}\n"), "run")
    assert line in str(found.value)


VERSIONS = [
    *(f"{major}.{minor}" for major, last in ((6, 5), (7, 8), (8, 8)) for minor in range(last + 1)),
    "9.0",
]


def is_parsed(text):
    try:
        parsed(text)
    except PtxError:
        return False
    return True


def first_version(target, is_taken):
    """Return the first version that takes a module for this target; those after it do as well."""
    text = ".version {}\n.target sm_{}\n.address_size 64\n.visible .entry k() {{ ret; }}\n"
    return VERSIONS[bisect_left(VERSIONS, True, key=lambda one: is_taken(text.format(one, target)))]


@pytest.mark.tier("full", but=["[75]", "[90a]", "[100f]"])
@pytest.mark.parametrize("target", TARGETS)
def test_a_target_has_its_first_version(target):
    ptxas.needed()
    found = first_version(target, lambda text: bool(ptxas.assembled(text, f"sm_{target}")))
    assert first_version(target, is_parsed) == found


def test_a_version_before_its_target_is_refused_with_the_first_one():
    message = r"\.target sm_90a needs \.version 8\.0 or higher; the module has 7\.8"
    with pytest.raises(PtxError, match=message):
        parsed(".version 7.8\n.target sm_90a, debug\n.visible .entry k() { ret; }")
    for old in ("3.0\n.target sm_30", "4.2\n.target sm_53", "6.0\n.target sm_70"):
        parsed(f".version {old}\n.visible .entry k() {{ ret; }}")
