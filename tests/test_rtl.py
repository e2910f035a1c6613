"""The example in Verilog passes its suite, and each of many bugs in it does not."""

import re
import shlex
import subprocess
from functools import cache
from pathlib import Path

import forking
import pytest
from extras import needs

from mor_ref import golden
from mor_ref.golden import bundled_files
from mor_ref.golden.export.export import export
from mor_ref.golden.store.manifest import read_manifest

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "rtl"
ENCODER = EXAMPLE / "e4m3_encode.sv"
BENCH = EXAMPLE / "e4m3_bench.sv"
CASE = "e4m3.f32.rne.satfinite.canonical"

pytestmark = needs("iverilog")

MUTANTS = {
    "a sticky bit without the highest bit": ("|shifted[23:0]", "|shifted[22:0]"),
    "a sticky bit of the lower half": ("|shifted[23:0]", "|shifted[9:0]"),
    "nothing saturates": ("rounded > {5'b0, LARGEST} ? LARGEST : rounded[6:0]", "rounded[6:0]"),
    "saturates one code late": ("rounded > {5'b0, LARGEST}", "rounded > {5'b0, LARGEST} + 12'd1"),
    "saturates one code early": ("LARGEST = 7'h7E", "LARGEST = 7'h7D"),
    "the sum of the exponent is too narrow": ("wire [11:0] rounded", "wire [9:0] rounded"),
    "infinity is NaN": ("8'hFF && mantissa != 0", "8'hFF"),
    "NaN saturates": ("is_nan ? CANONICAL_NAN : {sign, magnitude}", "{sign, magnitude}"),
    "NaN keeps its sign": ("? CANONICAL_NAN", "? {sign, CANONICAL_NAN[6:0]}"),
    "only quiet NaNs are NaN": ("8'hFF && mantissa != 0", "8'hFF && mantissa[22]"),
    "another NaN": ("CANONICAL_NAN = 8'h7F", "CANONICAL_NAN = 8'hFF"),
    "zero loses its sign": ("{sign, magnitude}", "{sign && magnitude != 0, magnitude}"),
    "no sign": ("{sign, magnitude}", "{1'b0, magnitude}"),
    "another bias": ("SMALLEST_NORMAL = 8'd121", "SMALLEST_NORMAL = 8'd120"),
    "no number has a leading one": ("{1'b1, mantissa}", "{1'b0, mantissa}"),
    "subnormal results become zero": ("k = shifted[28:25]", "k = is_small ? 4'd0 : shifted[28:25]"),
    "subnormal results are shifted too little": (
        "wire [7:0]  distance = base - exponent",
        "wire [7:0]  distance = is_small ? base - exponent - 8'd1 : 8'd0",
    ),
    "subnormal results are shifted too far": (
        "wire [7:0]  distance = base - exponent",
        "wire [7:0]  distance = is_small ? base - exponent + 8'd1 : 8'd0",
    ),
    "the shift stops too early": ("distance > 8'd5 ? 3'd5", "distance > 8'd4 ? 3'd4"),
    "the shift wraps around": ("distance > 8'd5 ? 3'd5 : distance[2:0]", "distance[2:0]"),
    "bits that are shifted out are lost": (
        "{significand, 5'b0} >> shift",
        "{significand >> shift, 5'b0}",
    ),
    "toward zero": ("up = half && (sticky || k[0])", "up = 1'b0"),
    "away from zero": ("up = half && (sticky || k[0])", "up = half || sticky"),
    "no sticky bit": ("half && (sticky || k[0])", "half && k[0]"),
    "a sticky bit without the lowest bit": ("|shifted[23:0]", "|shifted[23:6]"),
    "ties go toward zero": ("half && (sticky || k[0])", "half && sticky"),
    "ties go to odd": ("sticky || k[0]", "sticky || !k[0]"),
    "ties go up": ("half && (sticky || k[0])", "half && (sticky || !sign)"),
    "the carry is lost": (
        "{8'b0, k} + {11'b0, up}",
        "{8'b0, k == 4'd15 ? k : k + {3'b0, up}}",
    ),
    "the carry out of subnormal numbers is lost": (
        "{8'b0, k} + {11'b0, up}",
        "{8'b0, k == 4'd7 ? k : k + {3'b0, up}}",
    ),
}


@cache
def count():
    """Return the number of vectors, as Python reads them."""
    return next(case for case in golden.load("encode") if case.name == CASE).arrays["x"].size


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    """Export the suite, and return its directory."""
    out = tmp_path_factory.mktemp("vectors")
    export(bundled_files(), "readmemh", out, ["encode"])
    return out / "encode"


def simulated(folder, vectors, encoder, *options, memory=None):
    """Simulate an encoder on the bench, and return the exit status and the lines."""
    command = ["iverilog", "-g2012", "-Wall", *options, "-I", vectors, "-o", "bench"]
    compiled = subprocess.run(
        [*command, encoder, BENCH], cwd=folder, capture_output=True, text=True, check=False
    )
    assert (compiled.returncode, compiled.stdout, compiled.stderr) == (0, "", "")
    done = subprocess.run(
        ["vvp", "-n", "bench", f"+vectors={memory or vectors / f'{CASE}.mem'}"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout.splitlines()


def differing(outcome):
    """Return how many vectors differ in a run that must fail."""
    status, lines = outcome
    assert status == 1
    return int(re.fullmatch(rf"FAIL (\d+) of {count()}", lines[-1])[1])


@pytest.mark.tier("full")
def test_all_vectors_pass(tmp_path, vectors):
    """ENC-001 to ENC-004, ENC-006, ENC-008, ENC-009 and ENC-011."""
    assert simulated(tmp_path, vectors, ENCODER) == (0, [f"PASS {count()} vectors"])


def test_the_planted_bug_is_found(tmp_path, vectors):
    outcome = simulated(tmp_path, vectors, ENCODER, "-DPLANTED_BUG")
    shown = [line for line in outcome[1] if re.match(r"\d+: input", line)]
    assert re.fullmatch(r"\d+: input 3a800000, given 01, expected 00", shown[0])
    assert len(shown) == 10 < differing(outcome)


@pytest.mark.tier("full", but_one_in=3)
@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_bug_is_found(tmp_path, vectors, mutant):
    old, new = MUTANTS[mutant]
    text = ENCODER.read_text()
    assert text.count(old) == 1
    changed = tmp_path / "changed.sv"
    changed.write_text(text.replace(old, new))
    assert differing(simulated(tmp_path, vectors, changed)) > 0


def test_unknown_codes_are_mismatches(tmp_path, vectors):
    unknown = tmp_path / "unknown.sv"
    unknown.write_text(ENCODER.read_text().replace("{sign, magnitude}", "8'bx"))
    assert differing(simulated(tmp_path, vectors, unknown)) > count() // 2


def test_vectors_that_are_not_there(tmp_path, vectors):
    """No mismatches are made of them: a sentence says what to give."""
    short = tmp_path / "short.mem"
    lines = (vectors / f"{CASE}.mem").read_text().splitlines(keepends=True)
    short.write_text("".join(lines[:-5]))
    for memory, problem in (
        (short, f"has fewer than {count()} vectors; give those of this case as +vectors=FILE"),
        (tmp_path / "missing.mem", "cannot be read; give the vectors as +vectors=FILE"),
    ):
        status, said = simulated(tmp_path, vectors, ENCODER, memory=memory)
        assert (status, said[-1]) == (1, "FAIL no vectors")
        assert any(f"{memory.name} {problem}" in line for line in said)
        assert not [line for line in said if "given" in line]


@pytest.mark.tier("full")
def test_all_structs_can_be_included(tmp_path):
    """A module for each suite, as suites have cases of the same name."""
    export(bundled_files(), "readmemh", tmp_path, [])
    modules = []
    for suite in read_manifest(bundled_files())["suites"]:
        if files := sorted((tmp_path / suite).glob("*.svh")):
            includes = "".join(f'`include "{path}"\n' for path in files)
            modules.append(f"module {suite};\n{includes}endmodule\n")
    source = tmp_path / "all.sv"
    source.write_text("".join(modules))
    done = subprocess.run(
        ["iverilog", "-g2012", "-Wall", "-o", tmp_path / "all", source],
        capture_output=True,
        text=True,
        check=False,
    )
    assert len(modules) > 5
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.tier("full")
def test_the_commands_of_its_readme(tmp_path):
    """Each does as the text says; the second run of the encoder is to fail."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    text = (EXAMPLE / "README.md").read_text()
    pattern = r"^    ((?:mor-ref golden export|mor-ref sources|iverilog|vvp) .+)$"
    outcomes = []
    for command in re.findall(pattern, text, re.MULTILINE):
        program, *arguments = shlex.split(command)
        if program == "mor-ref":
            done = forking.mor_ref(*arguments, cwd=tmp_path)
        else:
            done = subprocess.run(
                [program, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
            )
        outcomes.append((program, done.returncode, done.stdout.splitlines()[-1:]))
    commands = [("mor-ref", 0), ("iverilog", 0), ("vvp", 0), ("iverilog", 0), ("vvp", 1)]
    commands += [("mor-ref", 0), ("mor-ref", 0), *2 * [("iverilog", 0), ("vvp", 0)], ("mor-ref", 0)]
    assert [outcome[:2] for outcome in outcomes] == commands
    last = [line for program, _, lines in outcomes if program == "vvp" for line in lines]
    assert last[0] == f"PASS {count()} vectors"
    assert last[1].startswith("FAIL ")
    assert last[2:] == [f"PASS {number} vectors" for number in (2945, 1591)]
