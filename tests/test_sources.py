"""The C99 library: it compiles without a warning, answers every suite, and refuses what it must."""

import ctypes
import itertools
import math
import platform
import re
import struct
import subprocess
from pathlib import Path

import forking
import numpy as np
import pytest
from extras import skip_without
from hypothesis import given
from hypothesis import strategies as st

import mor_ref
from mor_ref import Format, FormatError
from mor_ref.definitions.format import Specials
from mor_ref.exact import arithmetic
from mor_ref.exact.errors import error_term
from mor_ref.golden import bundled_files
from mor_ref.golden.store.manifest import read_manifest
from mor_ref.operations import OPERATIONS as DECLARED
from mor_ref.sources import write_sources
from mor_ref.sources.block_formats import header
from mor_ref.verify.candidates.by_name import candidate_named
from mor_ref.verify.running.run import verify
from mor_ref.verify.running.suites import suites_in

SOURCES = Path(mor_ref.__file__).parent / "sources" / "c"
STRICT = ["-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"]
SANITIZED = ["-O1", "-fsanitize=undefined,address", "-fno-sanitize-recover=all"]
LONG = 1e6  # seconds: a machine may be as busy as it is
# Steps of every chapter; the others are of whole tensors, or longer.
SAMPLE = ["decisions", "decode", "encode_presets", "error_steps", "nvfp4_torchao", "scale_steps"]
LARGEST = "policies_large"
ENTRIES = read_manifest(bundled_files())["suites"]
# The operations that the candidate has functions for, as its table lists them.
_TABLE = (SOURCES / "mor_ref_candidate.cpp").read_text().split(" operations = {")[1].split("};")[0]
ANSWERED = {*re.findall(r'\{"(\w+)", \1\}', _TABLE)}
SUITES = [name for name, entry in ENTRIES.items() if entry["operation"] in ANSWERED]
OTHERS = sorted({*SUITES} - {*SAMPLE, LARGEST})


def bits_of(x):
    """Return the bits of a binary32 number; all NaNs have the same."""
    return 0x7FFFFFFF if math.isnan(x) else int.from_bytes(struct.pack(">f", x), "big")


def built(directory, *commands):
    """Run compilers in a directory that holds the sources."""
    skip_without(*{command[0] for command in commands})
    write_sources(directory)
    for command in commands:
        done = subprocess.run(
            [*command], cwd=directory, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, ""), command


def candidate(directory, *options, linked_with=()):
    """Compile the library with these options, and return the path of the candidate."""
    built(
        directory,
        ["gcc", "-std=c99", *options, "-c", "mor_ref.c"],
        ["g++", "-std=c++17", *STRICT, "-c", "mor_ref_candidate.cpp"],
        ["g++", *linked_with, "-o", "it", "mor_ref_candidate.o", "mor_ref.o"],
    )
    return directory / "it"


def verified(program, names):
    """Return the number of suites that match, all fields of all cases given, or fail."""
    suites = suites_in(bundled_files(), names)
    with candidate_named(f"exec:{program}", LONG) as asked:
        found = verify(asked, suites, must_be_complete=True)
    assert found.verdict == "match", [result.suite for result in found.results]
    return len(found.results)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Load the library."""
    directory = tmp_path_factory.mktemp("library")
    built(directory, ["gcc", "-std=c99", "-O1", "-shared", "-fPIC", "-o", "it.so", "mor_ref.c"])
    loaded = ctypes.CDLL(str(directory / "it.so"))
    loaded.mor_format_named.restype = ctypes.c_void_p
    encoders = ("mor_encode", "mor_encode_stochastic", "mor_encode_profile", "mor_encode_preset")
    for name in (*encoders, "mor_decode"):
        getattr(loaded, name).restype = ctypes.c_int64
    loaded.mor_is_format.restype = loaded.mor_can_be_scaled.restype = ctypes.c_bool
    return loaded


def named(library, name):
    return ctypes.c_void_p(library.mor_format_named(name.encode()))


@pytest.mark.tier("full", but=["[language0-mor_ref_dpi.c]"])
@pytest.mark.parametrize("name", ["mor_ref.c", "mor_ref_dpi.c"])
@pytest.mark.parametrize("language", [["-std=c99"], ["-std=c++17", "-x", "c++"]])
def test_no_compiler_warns(tmp_path, name, language):
    built(tmp_path, ["gcc", *language, *STRICT, "-O2", "-c", name])


@pytest.mark.tier("full")
@pytest.mark.parametrize("name", ["mor_ref.c", "mor_ref_dpi.c", "mor_ref_candidate.cpp"])
def test_no_other_compiler_warns(tmp_path, name):
    language = ["-std=c++17"] if name.endswith("pp") else ["-std=c99"]
    built(tmp_path, ["clang++" if name.endswith("pp") else "clang", *language, *STRICT, "-c", name])


@pytest.mark.skipif(
    platform.machine() not in ("x86_64", "aarch64"), reason="gcc has no such option"
)
def test_nothing_is_computed_in_floating_point(tmp_path):
    """So no mode of the processor and no option of the compiler changes a bit.

    With this option, gcc refuses any variable and any operation in floating point.
    """
    built(tmp_path, ["gcc", "-std=c99", "-mgeneral-regs-only", "-c", "mor_ref.c"])


@pytest.mark.tier("full")
def test_steps_of_every_chapter_match_under_sanitizers(tmp_path):
    """ENC-001 to ENC-016, DEC-001 to DEC-003, SCL-001 to SCL-005, GAM-001 to GAM-005, ERR-001.

    MOR-002 to MOR-004 and NVF-007 as well.
    """
    program = candidate(tmp_path, *SANITIZED, linked_with=SANITIZED)
    assert verified(program, SAMPLE) == len(SAMPLE)


@pytest.mark.tier("full")
def test_it_says_nothing_of_what_it_lacks(tmp_path, monkeypatch):
    """Its table has the operations of every chapter from the formats to MX."""
    chapters = ("encode", "decode", "scale", "quantize", "error", "decide", "mor", "nvfp4", "mx")
    assert all(name.startswith(chapters) for name in ANSWERED)
    assert {name for name in DECLARED if name.startswith(chapters)} == ANSWERED
    program = candidate(tmp_path, "-O1")
    with candidate_named(f"exec:{program}", LONG) as asked:
        found = verify(asked, suites_in(bundled_files(), ["shared_blocks"]))
    (result,) = found.results
    assert (result.verdict, result.answered) == ("not run", 0)
    mine = Format("mine", exponent_bits=3, mantissa_bits=2, bias=3)
    monkeypatch.setitem(mor_ref.formats, "mine", mine)
    x, words = np.ones((2, 32), np.float32), {"x/random_word": np.zeros((2, 32), np.uint16)}
    given = {"mxfp8:n_random_bits=16": words, "nvfp4:amax=4.5": {}, "e4m3:fp32:1x32:scale=2": {}}
    for recipe, more in (given | {"mine:fp32:1x32": {}}).items():
        asked = {"inputs": {"x": x, **more}, "recipe": recipe, "timeout": LONG}
        found = mor_ref.verify(f"exec:{program}", **asked)
        assert (found.verdict, found.failures) == ("not run", ()), recipe


@pytest.mark.tier("full")
def test_all_other_suites_match(tmp_path):
    """Within the time of the tier: the largest tensor has a tier of its own."""
    assert verified(candidate(tmp_path, "-O3"), OTHERS) == len(OTHERS)


@pytest.mark.tier("exhaustive")
def test_the_largest_suite_matches(tmp_path):
    assert verified(candidate(tmp_path, "-O3"), [LARGEST]) == 1


def test_refusals(library):
    """ENC-005, ENC-013, ENC-016, DEC-004."""
    e4m3, e8m0, f32 = (named(library, name) for name in ("e4m3", "e8m0", "f32"))
    default, rne, rtp, rto = 0, 1, 4, 6
    x = ctypes.c_uint64(0x3F800000)
    assert library.mor_encode(e4m3, default, 0, 0, f32, x) == 0x38
    assert library.mor_encode(e8m0, default, 0, 0, f32, x) == 0x7F
    assert library.mor_encode(e8m0, rtp, 0, 0, f32, x) == 0x7F
    assert library.mor_encode(e8m0, rto, 0, 0, f32, x) == -1
    three, below = ctypes.c_uint64(0x40400000), ctypes.c_uint64(0x403FFFFF)
    assert [library.mor_encode(e8m0, rne, 0, 0, f32, x) for x in (below, three)] == [0x80, 0x81]
    assert library.mor_encode(e4m3, default, 0, 0, e4m3, ctypes.c_uint64(256)) == -1
    stochastic = library.mor_encode_stochastic
    assert stochastic(e4m3, 0, 0, 3, 7, f32, x) == 0x38
    for n, word in ((0, 0), (33, 0), (3, 8)):
        assert stochastic(e4m3, 0, 0, n, word, f32, x) == -1
    assert stochastic(e8m0, 0, 0, 3, 7, f32, x) == -1
    ml_dtypes, torch = 1, 2
    for profile in (library.mor_encode_profile, library.mor_encode_preset):  # and its former name
        assert profile(ml_dtypes, e4m3, default, 0x3F800000) == 0x38
        assert profile(torch, f32, default, 0x3F800000) == -1
    assert library.mor_decode(e4m3, 0x38) == 0x3F800000
    assert library.mor_decode(e4m3, 0x138) == -1
    assert library.mor_format_named(b"e9m9") is None


class Row(ctypes.Structure):
    """A format of mor_ref.h."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        *((field, ctypes.c_int) for field in ("exponent_bits", "mantissa_bits", "bias")),
        *((field, ctypes.c_int) for field in ("specials", "sign")),
    )


SPECIALS, SIGNS = Specials.__args__, ("sign-magnitude", "none", "twos-complement")


@given(
    st.integers(0, 9),
    st.one_of(st.just(0), st.integers(0, 24)),
    st.one_of(st.sampled_from([126, 127, 128]), st.integers(-140, 140)),
    st.sampled_from(range(4)),
    st.sampled_from(range(3)),
)
def test_a_format_exists_if_it_can(library, exponent_bits, mantissa_bits, bias, specials, sign):
    """FMT-003, FMT-005, FMT-007, FMT-008, FMT-010."""
    row = Row(b"own", exponent_bits, mantissa_bits, bias, specials, sign)
    try:
        Format(
            "own",
            exponent_bits=exponent_bits,
            mantissa_bits=mantissa_bits,
            bias=bias,
            specials=SPECIALS[specials],
            sign=SIGNS[sign],
        )
    except FormatError:
        assert not library.mor_is_format(ctypes.byref(row))
    else:
        assert library.mor_is_format(ctypes.byref(row))


NUMBERS = [0x0, 0x1, 0x2, 0x3FFFFF, 0x7FFFFF, 0x800000, 0x800001, 0x1000000, 0x33800000, 0x337FFFFF,
           0x33800001, 0x34000000, 0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x3FFFFFFF, 0x40000000,
           0x40490FDB, 0x4B7FFFFF, 0x5F000001, 0x7F000000, 0x7F7FFFFF, 0x7F800000, 0x7F800001,
           0x7FC00000]  # fmt: skip
OPERATIONS = {"add": arithmetic.total, "subtract": arithmetic.difference,
              "multiply": arithmetic.product, "divide": arithmetic.quotient}  # fmt: skip


@pytest.mark.parametrize("name", OPERATIONS)
def test_one_operation_is_rounded_once(library, name):
    """ART-001 to ART-003."""
    operation = getattr(library, f"mor_f32_{name}")
    operation.restype = ctypes.c_uint32
    words = [word | sign for word in NUMBERS for sign in (0, 0x80000000)]
    for a, b in itertools.product(words, repeat=2):
        x, y = (struct.unpack(">f", word.to_bytes(4, "big"))[0] for word in (a, b))
        assert operation(a, b) == bits_of(OPERATIONS[name](x, y)), (hex(a), hex(b))


class Error(ctypes.Structure):
    """The error of an element in mor_ref.h."""

    _fields_ = tuple((field, ctypes.c_uint32) for field in "dru")


@pytest.mark.parametrize("y", [math.nan, math.inf, -math.inf])
def test_a_lost_element_counts_in_full(library, y):
    """ERR-001."""
    library.mor_error_of.restype = Error
    found = library.mor_error_of(0x40000000, bits_of(y))
    expected = error_term(2.0, y)
    assert (found.r, found.u) == (0x3F800000, 1 << 23) == (bits_of(expected.r), expected.u)
    assert found.d == bits_of(abs(y))


@pytest.mark.parametrize(("decimal", "fraction"), [("0.045", (45, 1000)), ("0.2", (1, 5))])
def test_thresholds_are_those_of_the_metric(library, decimal, fraction):
    """MOR-002."""
    assert library.mor_threshold(*fraction) == mor_ref.MeanRelativeError(decimal).limit


def test_a_threshold_at_a_tie_is_even(library):
    """MOR-002."""
    assert [library.mor_threshold(odd, 1 << 24) for odd in (1, 3, 5)] == [0, 2, 2]


OUT_OF_RANGE = """
#include "mor_ref.h"
int main(void) {
    const uint32_t wrong[][2] = {{1, 0}, {0, 0}, {0, 7}, {0xFFFFFFFF, 0}, {8, 7}, {0xFFFFFFFF, 1}};
    for (int i = 0; i < 6; i++)
        if (mor_threshold(wrong[i][0], wrong[i][1]) != 0) return 1 + i;
    return mor_threshold(0xFFFFFFFF, 0xFFFFFFFF) == 0x800000 ? 0 : 99;
}
"""


@pytest.mark.tier("full")
def test_a_threshold_out_of_range_is_0(tmp_path):
    """MOR-002: 0 < t <= 1. Sanitizers end the program if a denominator divides that is 0."""
    (tmp_path / "it.c").write_text(OUT_OF_RANGE)
    built(tmp_path, ["gcc", "-std=c99", *SANITIZED, *STRICT, "-o", "it", "it.c", "mor_ref.c"])
    assert subprocess.run([tmp_path / "it"], check=False).returncode == 0


def test_the_command_writes_every_file(tmp_path):
    out = tmp_path / "there" / "it"
    done = forking.mor_ref("sources", "--out", out, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"10 files are in {out}\n")
    by_hand = {path.name: path.read_bytes() for path in SOURCES.iterdir()}
    written = {path.name: path.read_bytes() for path in out.iterdir()}
    assert {name: written[name] for name in by_hand} == by_hand
    assert written.keys() - by_hand.keys() == {"mor_ref_constants.sv", "mor_ref_constants.vhd"}


def test_the_command_writes_headers_of_block_formats(tmp_path):
    paper = mor_ref.BlockFormat(
        "paper", "e2m1", (mor_ref.BlockScale("s", "row", "amax / 6"),), decode="s"
    )
    (tmp_path / "own.toml").write_text(paper.text)
    recipes = ("--recipe", "own.toml", "--recipe", "nvfp4:modelopt")
    done = forking.mor_ref("sources", "--out", tmp_path / "c", *recipes, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"12 files are in {tmp_path / 'c'}\n")
    assert (tmp_path / "c" / "paper.h").read_text() == header(paper)
    assert (tmp_path / "c" / "nvfp4_modelopt.h").exists()
    for recipe, said in {
        "mor:three_way": "which is no block format; give the text of a block format",
        "no.toml": "recipe is 'no.toml'",
    }.items():
        done = forking.mor_ref("sources", "--out", "d", "--recipe", recipe, cwd=tmp_path)
        assert done.returncode == 2
        assert said in done.stderr
    assert not (tmp_path / "d").exists()


def test_a_directory_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    done = forking.mor_ref("sources", "--out", tmp_path / "file", cwd=tmp_path)
    assert done.returncode == 2
    assert f"{tmp_path / 'file' / 'mor_ref.c'} cannot be written" in done.stderr
    done = forking.mor_ref("sources", "--out", "", cwd=tmp_path)
    assert "out is ''; give a directory" in done.stderr


@pytest.mark.tier("full", but_one_in=3)
@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        ("mor-ref-protocol 1\n", 0, ""),
        ("mor-ref-protocol 2\n", 2, "does not begin with mor-ref-protocol 1"),
        ("", 2, "does not begin with mor-ref-protocol 1"),
    ],
)
def test_the_reader_of_the_protocol_knows_its_greeting(reader, text, status, said):
    """PRO-001, PRO-009."""
    done = subprocess.run([reader], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (status, "")
    assert said in done.stderr


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    """Compile a program that returns x, and skips operations that do not begin with e."""
    directory = tmp_path_factory.mktemp("reader")
    (directory / "echo.cpp").write_text(ECHO)
    built(directory, ["g++", "-std=c++17", *STRICT, "-o", "echo", "echo.cpp"])
    return directory / "echo"


ECHO = """
#include "mor_ref_protocol.hpp"
int main() {
    return mor_ref::protocol::run([](const mor_ref::protocol::Case &asked) {
        mor_ref::protocol::Answer answer;
        if (asked.operation[0] == 'e') answer["x" + asked.parameter("p")] = asked.input("x");
        return answer;
    });
}
"""


def test_the_reader_takes_any_white_space_and_answers_each_question(reader):
    """PRO-002 to PRO-006."""
    asked = "mor-ref-protocol 1\ncase s echo c param p 7\tin x 2x2 00ff 00\r\n"
    asked += "ffffffffffffffff\v0a\f run\ncase s other c in x 1 00 run\ncase s e c in x 0 run\n"
    done = subprocess.run([reader], input=asked, capture_output=True, text=True, check=False)
    answers = "out x7 2x2 ff 0 ffffffffffffffff a done skip out x 0 done"
    assert (done.returncode, done.stdout.split()) == (0, answers.split())
    assert done.stdout.endswith("\ndone\n")


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ("case s e c in x 2 00", "the input ends in an array"),
        ("case s e c in x 1 0g", "not a hexadecimal digit"),
        ("case s e c in x 1by1 00 run", "not a shape: 1by1"),
        ("case s e c out x", "the question has 'out' where param, in or run is expected"),
        ("case s e c", "the question has '' where param, in or run is expected"),
    ],
)
def test_the_reader_says_what_is_wrong_with_a_question(reader, rest, said):
    text = f"mor-ref-protocol 1\n{rest}\n"
    done = subprocess.run([reader], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"{said}\n")
