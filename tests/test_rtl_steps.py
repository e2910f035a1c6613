"""The scale and the decision in Verilog pass their suites, and each of many bugs does not."""

import re
import subprocess
from pathlib import Path

import pytest
from extras import needs

from mor_ref import golden
from mor_ref.golden import bundled_files
from mor_ref.golden.export.export import export
from mor_ref.sources import write_sources

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "rtl"
FORMATS = ("e4m3", "e5m2", "e2m1", "e2m3", "e3m2")

pytestmark = needs("iverilog")

SCALE_BUGS = {
    "no decrement": ("doubled < {25'b0", "49'b0 > {25'b0"),
    "a decrement of equal mantissas": ("1'b0} - 49'd1)", "1'b0} + 49'd1)"),
    "a decrement without the half": ("1'b0} - 49'd1)", "1'b0})"),
    "a product of 48 bits": (
        "doubled < {25'b0, significand} *",
        "48'(doubled) < 48'(significand) *",
    ),
    "no cap": ("is_capped ? 10'sd127 : e", "e"),
    "a cap before the decrement": (
        "block_exponent - (decrements",
        "(block_exponent > 10'sd127 ? 10'sd127 : block_exponent) - (decrements",
    ),
    "a cap of 126": ("(is_capped ? 10'sd127", "(e > 10'sd126 ? 10'sd126"),
    "a group of zeros has a mantissa": ("has_group ? group_mantissa : 23'd0", "group_mantissa"),
    "the fraction of the block": ("exponent, mantissa}", "exponent, significand[22:0]}"),
    "a quotient that is cut": ("quotient + {47'b0, up}", "quotient"),
    "a larger amax moves no binade": ("is_larger ? 10'sd1 : 10'sd0", "10'sd0"),
    "a larger amax doubles nothing": ("is_larger ? {NUMERATOR, 25'b0} : ", ""),
    "another bias": ("+ 10'sd127;", "+ 10'sd126;"),
}
NORMALIZED_BUGS = {
    "subnormal numbers have a leading one": ("{field != 0, fraction}", "{1'b1, fraction}"),
    "subnormal numbers have the exponent field 0": (": 10'sd1;", ": 10'sd0;"),
    "normalisation stops early": ("i < 23", "i < 22"),
}
DECISION_BUGS = {
    "equality accepts a mean": ("{32'b0, sum} < bound", "{32'b0, sum} <= bound"),
    "a unit of zeros is refused": ("nonzero == 0 || {32'b0, sum}", "{32'b0, sum}"),
    "a lost element is accepted": ("nonfinite == 0;", "1'b1;"),
    "a tie refuses": ("sum <= yardstick_sum", "sum < yardstick_sum"),
    "a narrow product": ("{64'b0, limit} * {32'b0, nonzero}", "96'(limit * nonzero[31:0])"),
    "an exact range is refused": ("left <= right)", "left < right)"),
    "a range of powers of two": ("is_equal && left <= right", "is_equal"),
    "a wider range": ("10'sd30 : 10'sd29", "10'sd31 : 10'sd30"),
    "a range of 1.5": ("* 27'd7", "* 27'd6"),
}


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    """Export both suites and the constants, and return their directory."""
    out = tmp_path_factory.mktemp("vectors")
    export(bundled_files(), "readmemh", out, ["scale_steps", "decisions"])
    write_sources(out / "sources")
    return out


def simulated(tmp_path, vectors, suite, sources, *options, data):
    """Simulate a bench, and return the exit status and the lines."""
    command = ["iverilog", "-g2012", "-Wall", *options, "-I", vectors / suite, "-o", "bench"]
    built = subprocess.run(
        [*command, *sources], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (built.returncode, built.stdout, built.stderr) == (0, "", "")
    run = ["vvp", "-n", "bench", f"+vectors={data}"]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines()


def scale(tmp_path, vectors, *options, replaced=(), fmt="e4m3"):
    """Simulate the scale with some files replaced."""
    bench = tmp_path / "gam_scale_bench.sv"
    text = (EXAMPLE / bench.name).read_text()
    bench.write_text(text.replace("e4m3", fmt).replace("E4M3", fmt.upper()))
    own = {path.name: path for path in (*replaced, bench)}
    names = ("normalized.sv", "gam_scale.sv", "gam_scale_bench.sv")
    constants = vectors / "sources" / "mor_ref_constants.sv"
    sources = [constants, *(own.get(name, EXAMPLE / name) for name in names)]
    data = vectors / "scale_steps" / f"{fmt}.gam.mem"
    return simulated(tmp_path, vectors, "scale_steps", sources, *options, data=data)


def decision(tmp_path, vectors, *options, replaced=()):
    """Simulate the decision with some files replaced."""
    own = {path.name: path for path in replaced}
    names = ("normalized.sv", "decision.sv", "decision_bench.sv")
    sources = [own.get(name, EXAMPLE / name) for name in names]
    data = vectors / "decisions"
    return simulated(tmp_path, vectors, "decisions", sources, *options, data=data)


def number_of(suite, *names):
    return sum(case.arrays["exponent" if suite == "scale_steps" else "sum"].size
               for case in golden.load(suite) if case.name in names)  # fmt: skip


def with_bug(tmp_path, name, bug):
    """Return a file of the example with a bug."""
    text = (EXAMPLE / name).read_text()
    assert text.count(bug[0]) == 1
    (tmp_path / name).write_text(text.replace(*bug))
    return tmp_path / name


@pytest.mark.tier("full", but=["[e2m1]"])
@pytest.mark.parametrize("fmt", FORMATS)
def test_all_scales_pass(tmp_path, vectors, fmt):
    """SCL-001, SCL-002, GAM-001 to GAM-005; and every cover point is reached."""
    status, lines = scale(tmp_path, vectors, fmt=fmt)
    assert (status, lines[-1]) == (0, f"PASS {number_of('scale_steps', f'{fmt}.gam')} vectors")
    covered = [line for line in lines if line.startswith("covered: ")]
    counts = [int(number) for line in covered for number in re.findall(r"(?<![-\d])\d+ ", line)]
    assert len(counts) == 6
    assert all(counts)


def test_all_decisions_pass(tmp_path, vectors):
    """MOR-001 to MOR-004; each metric accepts and refuses."""
    status, lines = decision(tmp_path, vectors)
    names = ("mean_relative_error", "not_worse_than", "fits_range.e5m2")
    assert (status, lines[-1]) == (0, f"PASS {number_of('decisions', *names)} vectors")
    for line, name in zip(lines, names, strict=False):
        (case,) = (case for case in golden.load("decisions") if case.name == name)
        accepted = int(case.arrays["accepted"].sum())
        refused = case.arrays["accepted"].size - accepted
        assert line.endswith(f" {accepted} accepted and {refused} refused")


@pytest.mark.parametrize("bench", [scale, decision])
def test_the_planted_bugs_are_found(tmp_path, vectors, bench):
    status, lines = bench(tmp_path, vectors, "-DPLANTED_BUG")
    assert (status, lines[-1].split()[0]) == (1, "FAIL")


@pytest.mark.tier("full", but_one_in=5)
@pytest.mark.parametrize("name", SCALE_BUGS)
def test_a_bug_of_the_scale_is_found(tmp_path, vectors, name):
    changed = with_bug(tmp_path, "gam_scale.sv", SCALE_BUGS[name])
    status, lines = scale(tmp_path, vectors, replaced=[changed])
    assert (status, lines[-1].split()[0]) == (1, "FAIL")


@pytest.mark.parametrize("name", DECISION_BUGS)
def test_a_bug_of_the_decision_is_found(tmp_path, vectors, name):
    changed = with_bug(tmp_path, "decision.sv", DECISION_BUGS[name])
    status, lines = decision(tmp_path, vectors, replaced=[changed])
    assert (status, lines[-1].split()[0]) == (1, "FAIL")


@pytest.mark.tier("full", but_one_in=3)
@pytest.mark.parametrize("name", NORMALIZED_BUGS)
def test_a_bug_of_the_part_of_both_is_found(tmp_path, vectors, name):
    """By one of them: few ranges end at a subnormal number."""
    changed = with_bug(tmp_path, "normalized.sv", NORMALIZED_BUGS[name])
    last = {bench(tmp_path, vectors, replaced=[changed])[1][-1] for bench in (scale, decision)}
    assert any(line.startswith("FAIL ") for line in last)


def test_vectors_that_are_not_there(tmp_path, vectors):
    """A sentence says what to do, and no mismatches are made of them."""
    for bench in (scale, decision):
        status, lines = bench(tmp_path, without_vectors(tmp_path, vectors))
        assert (status, lines[-1]) == (1, "FAIL no vectors")
        assert any("cannot be read; give" in line for line in lines)


def without_vectors(tmp_path, vectors):
    """Return a directory that has the headers and the constants alone."""
    bare = tmp_path / "bare"
    for path in (*vectors.rglob("*.svh"), *vectors.rglob("mor_ref_constants.sv")):
        copy = bare / path.relative_to(vectors)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    return bare
