"""Packages for hardware: what they declare is what C has, and constants are those of the model."""

import math
import os
import re
import struct
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest
from extras import skip_without
from pages import blocks_of
from test_trace import table_after

import mor_ref
from mor_ref import Format, exact, formats
from mor_ref.definitions.encoding import special_cases
from mor_ref.sources import write_sources
from mor_ref.sources.constants import systemverilog, vhdl

ROOT = Path(__file__).resolve().parent.parent
RTL = ROOT / "examples" / "rtl"
SOURCES = Path(mor_ref.__file__).parent / "sources" / "c"
# Verilator compiles its library for each simulation: this way it takes less time.
UNOPTIMIZED = os.environ | {"MAKEFLAGS": "OPT_FAST=-O0 OPT_SLOW=-O0 OPT_GLOBAL=-O0"}
# The types of C that a type of SystemVerilog is.
TYPES = {"int": "int", "int unsigned": "uint32_t", "longint": "int64_t", "string": "const char *",
         "longint unsigned": "uint64_t", "void": "void"}  # fmt: skip


def enumerations(text):
    """Return the names of each enumeration of a source, in order, by the first of them."""
    bodies = re.findall(r"typedef enum(?: int)? \{([^}]+)\}", text)
    lists = [[name.strip() for name in body.split(",")] for body in bodies]
    return {names[0]: names for names in lists}


def test_enumerations_have_the_numbers_of_the_header():
    ours, theirs = (
        enumerations((SOURCES / name).read_text()) for name in ("mor_ref_dpi.sv", "mor_ref.h")
    )
    counts = {"MOR_FORMATS": "MOR_F64", "MOR_PROFILES": None}
    assert len(ours) == 8
    for first, names in ours.items():
        expected = [counts.get(name, name) for name in theirs[first]]
        assert names == [name for name in expected if name]


def prototypes_of_c():
    """Return the result and the types of the arguments of each function of the headers."""
    text = "".join((SOURCES / name).read_text() for name in ("mor_ref.h", "mor_ref_dpi.h"))
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    found = {}
    for result, name, arguments in re.findall(r"^(\w+) (mor_\w+)\(([^)]*)\);", text, re.MULTILINE):
        types = [re.sub(r"\w+$", "", argument.strip()).strip() for argument in arguments.split(",")]
        found[name] = (result, types)
    return found


def type_of(argument):
    """Return the type of C that an argument of an import has."""
    direction, kind, _, size = re.fullmatch(
        r"(input|output|inout) (int unsigned|int|longint unsigned|string) (\w+)(\[0:\d+\])?",
        argument.strip(),
    ).groups()
    if direction != "input":
        return f"{TYPES[kind]} *"
    return f"const {TYPES[kind]} *" if size else TYPES[kind]


def test_imports_have_the_arguments_of_c():
    text = (SOURCES / "mor_ref_dpi.sv").read_text()
    imports = re.findall(r'import "DPI-C" function ([\w ]+?) (mor_\w+)\(([^)]*)\);', text)
    in_c = prototypes_of_c()
    assert {name for _, name, _ in imports} >= {name for name in in_c if "_dpi_" in name}
    assert len(imports) == text.count("import")  # the pattern leaves none out
    for result, name, arguments in imports:
        types = [type_of(argument) for argument in arguments.split(",")]
        assert (TYPES[result], types) == in_c[name], name


def expected_of(fmt):
    """Return the constants of a format, by the exact model."""
    name = fmt.name.upper()
    largest = exact.encode(math.inf, fmt, None, special_cases("satfinite", None))
    bits = exact.decode(largest, fmt)
    number = struct.unpack(">f", bits.to_bytes(4, "big"))[0]
    found = {"LARGEST": largest, "LARGEST_F32": bits, "LARGEST_EXPONENT": exact.floor_log2(number)}
    infinity = exact.encode(math.inf, fmt, None, special_cases("ieee", None))
    if exact.decode(infinity, fmt) == 0x7F800000:
        found["INFINITY"] = infinity
    nan = exact.encode(math.nan, fmt, None, special_cases(None, None))
    if exact.decode(nan, fmt) == 0x7FFFFFFF:
        found["CANONICAL_NAN"] = nan
    if fmt.exponent_bits:
        exponent = -fmt.bias if fmt.is_power_of_two else 1 - fmt.bias
        found["SMALLEST_NORMAL"] = exact.encode(2.0**exponent, fmt, None, special_cases(None, None))
    found |= {"EXPONENT_BITS": fmt.exponent_bits, "MANTISSA_BITS": fmt.mantissa_bits}
    found |= {"BIAS": fmt.bias, "BITS": fmt.bits}
    return {f"{name}_{key}": value for key, value in found.items()}


def expected():
    found = {key: value for fmt in formats.values() for key, value in expected_of(fmt).items()}
    for name, q, *_ in table_after(":id: NVF-002", ROOT / "spec/nvfp4.md"):
        found[f"NVFP4_{name.upper()}_Q"] = exact.encode(float(q), formats["f32"])
    for name, _, ladder in table_after(":id: MOR-005", ROOT / "spec/policies.md"):
        for rung, limit in re.findall(r"(\w+): mean_relative_error\(([0-9.]+)\)", ladder):
            found[f"{name.upper()}_{rung.upper()}_LIMIT"] = round(Fraction(limit) * 2**23)
    assert found["NVFP4_NVFP4_LIMIT"] == 1677722
    return found


def of_systemverilog(text):
    integers = re.findall(r"localparam int (\w+) = (\d+);", text)
    bits = re.findall(r"localparam logic \[\d+:0\] (\w+) = \d+'h([0-9A-F]+);", text)
    return {name: int(value) for name, value in integers} | {n: int(b, 16) for n, b in bits}


def of_vhdl(text):
    integers = re.findall(r"constant (\w+) : integer := (\d+);", text)
    bits = re.findall(r'constant (\w+) : std_logic_vector\(\d+ downto 0\) := "([01]+)";', text)
    return {name: int(value) for name, value in integers} | {n: int(b, 2) for n, b in bits}


@pytest.mark.parametrize("read", [of_systemverilog, of_vhdl])
def test_constants_are_those_of_the_model(read):
    """FMT-001, FMT-009, FMT-011, MOR-002, MXS-002, NVF-002."""
    text = systemverilog() if read is of_systemverilog else vhdl()
    assert read(text) == expected()


def test_a_simulator_reads_the_constants(tmp_path):
    """Values and widths, and the fields of a code."""
    skip_without("iverilog")
    shown = "\n".join(
        f'$display("{name} %0d", {name});' for name in of_systemverilog(systemverilog())
    )
    (tmp_path / "constants.sv").write_text(systemverilog())
    (tmp_path / "show.sv").write_text(
        f"module show;\nimport mor_ref_constants::*;\ne5m2_t code;\ninitial begin\n{shown}\n"
        'code = 8\'hC1; $display("%0d %0d %0d", code.sign, code.exponent, code.mantissa);\n'
        "end\nendmodule\n"
    )
    command = ["iverilog", "-g2012", "-Wall", "-o", "show", "constants.sv", "show.sv"]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (built.returncode, built.stderr) == (0, "")
    done = subprocess.run(
        ["vvp", "-n", "show"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    *lines, fields = done.stdout.splitlines()
    assert {name: int(value) for name, value in map(str.split, lines)} == expected()
    assert fields == "1 16 1"


def test_vhdl_compiles(tmp_path):
    skip_without("ghdl")
    (tmp_path / "constants.vhd").write_text(vhdl())
    command = ["ghdl", "-a", "--std=93", "constants.vhd"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.tier("full")
def test_the_scoreboard_of_the_page_runs(tmp_path):
    """With Verilator, in the commands of the page."""
    skip_without("verilator", "g++")
    blocks = list(blocks_of(ROOT / "docs" / "guide" / "c-library.md"))
    (source,) = (block for block in blocks if block.file == "scoreboard.sv")
    (commands,) = (block.text for block in blocks if block.text.startswith("verilator"))
    (tmp_path / "scoreboard.sv").write_text(source.text)
    write_sources(tmp_path / "c")
    done = subprocess.run(
        ["sh", "-ec", commands],
        cwd=tmp_path,
        env=UNOPTIMIZED,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "exponent 85, scale 42eeeeef, code 7c" in done.stdout, done.stderr


@pytest.mark.tier("full")
def test_the_scoreboard_of_the_encoder(tmp_path):
    """With Verilator, in the commands of its README, and with a bug that is seldom seen."""
    skip_without("verilator", "g++")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    write_sources(tmp_path / "build" / "sources")
    text = (RTL / "README.md").read_text()
    build, run = re.findall(r"^    ((?:verilator|obj_dir/).+)$", text, re.MULTILINE)
    command = [*build.split(), "-DPLANTED_BUG"]
    subprocess.run(command, cwd=tmp_path, env=UNOPTIMIZED, capture_output=True, check=True)
    outcomes = {}
    for count in (0, 100, 100000):
        command = run.replace("count=100000", f"count={count}").split()
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        outcomes[count] = done.returncode == 0, done.stdout
    assert not outcomes[0][0]
    assert "count is 0, and nothing is compared; give +count=NUMBER" in outcomes[0][1]
    assert outcomes[100][0]
    assert "PASS 100 numbers" in outcomes[100][1]
    found = re.search(r"^FAIL (\d+) of 100000$", outcomes[100000][1], re.MULTILINE)
    assert not outcomes[100000][0]
    assert 0 < int(found[1]) < 5000


@pytest.mark.tier("full")
@pytest.mark.parametrize("bug", [[], ["PLANTED_BUG"]])
def test_the_encoder_under_cocotb(tmp_path, bug):
    skip_without("cocotb", "iverilog")
    # Within pytest, cocotb ends the program itself.
    variables = {k: v for k, v in os.environ.items() if k != "PYTEST_CURRENT_TEST"}
    done = subprocess.run(
        [sys.executable, RTL / "run_cocotb.py", *bug],
        cwd=tmp_path,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    found = done.stdout.splitlines()[-1], done.returncode
    assert found == (f"{'FAIL: 1' if bug else 'PASS: 0'} of 1 tests failed", len(bug)), done.stderr


def test_a_format_of_a_user_is_in_the_packages(monkeypatch):
    own = Format("my-own", exponent_bits=3, mantissa_bits=2, bias=3, specials="fn")
    monkeypatch.setattr("mor_ref.sources.constants.formats", {"my-own": own})
    assert "localparam logic [5:0] MY_OWN_LARGEST = 6'h1E;" in systemverilog()
    assert 'constant MY_OWN_LARGEST : std_logic_vector(5 downto 0) := "011110";' in vhdl()
    assert "my_own_t;" in systemverilog()
