"""The command line, run as people run it: what it prints, and how it ends."""

import json
import os
import re

import forking
import pytest
import typer
from inputs import ALL, UP_TO_16

from mor_ref import Policy, cli, exact, formats
from mor_ref.definitions.scales import SCALINGS
from mor_ref.explanations.encoding import explain
from mor_ref.explanations.numerals import parse_number
from mor_ref.explanations.text import codes, split_fields
from mor_ref.golden.all_inputs import digests as exhaustive
from mor_ref.policies import POLICIES
from mor_ref.verify.all_inputs import engine_codes

SR = ["--rounding", "sr"]


def mor_ref(*arguments, status=0, columns="100"):
    environment = os.environ | {"COLUMNS": columns, "NO_COLOR": "1"}
    done = forking.mor_ref(*arguments, env=environment)
    assert done.returncode == status, done.stderr + done.stdout
    return done.stdout if status == 0 else done.stderr


def test_formats_lists_every_format_in_80_columns():
    text = mor_ref("formats", columns="80")
    assert all(any(line.startswith(f"{fmt.name} ") for line in text.splitlines()) for fmt in ALL)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.tier("full", but_one_in=4)
@pytest.mark.parametrize("fmt", UP_TO_16, ids=lambda fmt: fmt.name)
def test_a_format_is_shown_down_to_its_codes(fmt):
    text = mor_ref("formats", fmt.name)
    assert text.startswith(f"{fmt.name}  {fmt.describe_layout()}\n")
    assert ("too many to list" in text) == (fmt.bits > 8)
    if fmt.bits <= 8:
        digits = -(-fmt.bits // 4)
        assert all(f"0x{code:0{digits}X} " in text for code in range(fmt.code_count))
        assert "…" not in text


def test_codes_have_the_digits_and_the_fields_of_their_format():
    shown = (("e2m1", 10, "0xA"), ("e2m3", 10, "0x0A"), ("e4m3", 10, "0x0A"), ("e8m0", None, "-"))
    for name, code, text in shown:
        assert codes(formats[name], code) == text
    for name, bits in (("e4m3", "1 0111 000"), ("e8m0", "01111111"), ("int8_mx", "10000000")):
        assert split_fields(formats[name], bits.replace(" ", "")) == bits


def test_formats_as_json():
    rows = json.loads(mor_ref("formats", "--json"))
    assert [row["name"] for row in rows] == list(formats)
    row = json.loads(mor_ref("formats", "e5m2", "--json"))
    assert [float.fromhex(value) for value in row["values"][:2]] == [0.0, 2.0**-16]
    assert row["values"][0x7C:0x7E] == ["inf", "nan"]
    assert (row["largest"], row["infinity_code"], row["nan_codes"]) == (
        57344.0,
        0x7C,
        [[0x7D, 0x7F], [0xFD, 0xFF]],
    )


WORD = ["--random-word", "255", "--n-random-bits", "8"]


@pytest.mark.tier("full", but_one_in=3)
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["0.3"], "0x2A", ["0 0101 010", "0.28125", "0.3125", "0.296875", "+0.4 ulp", "(ENC-003)"]),
        (["-0.3"], "0xAA", ["1 0101 010", "-0.28125", "-0.4 ulp"]),
        (["0x1.8p-2"], "0x2C", ["0.375", "exact: the format has this number (ENC-002)"]),
        (["0x3f800000"], "0x38", ["0 0111 000"]),
        (["0x3ff0000000000000"], "0x38", []),
        (["0x3f80", "--source", "bf16"], "0x38", []),
        (["0x3c00", "--source", "f16"], "0x38", []),
        (["464"], "0x7E", ["a tie, and rne goes to the even code", "480", "outside of the format"]),
        (
            ["465"],
            "0x7E",
            ["overflow: it rounds above the largest number, 448, and saturates (ENC-006)"],
        ),
        (["465", "--overflow", "ieee"], "0x7F", ["leaves the finite numbers (ENC-007)"]),
        (
            ["1e30", "--rounding", "rtz", "--overflow", "ieee"],
            "0x7E",
            ["overflow", "saturates (ENC-007)"],
        ),
        (["-nan", "--profile", "ml_dtypes"], "0xFF", ["NaN (ENC-010)"]),
        (["-inf"], "0xFE", []),
        (["-0x1.fp3"], "0xD8", []),
        (["inf"], "0x7E", ["an infinite input, which is not rounded (ENC-008)"]),
        (["-0.0"], "0x80", ["zero (ENC-011)"]),
        (
            ["1.03", "--rounding", "sr", "--random-word", "200", "--n-random-bits", "8"],
            "0x39",
            ["the random bits give 61 + 200 >= 2^8 (ENC-005)"],
        ),
    ],
)
def test_explain(arguments, code, words):
    text = mor_ref("explain", *arguments, "--format", "e4m3")
    assert code in text
    for word in words:
        assert word in text


@pytest.mark.tier("full", but_one_in=3)
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["1.79e308", "--format", "e4m3"], ["1.79769313e+308..", "overflow", "(ENC-006)"]),
        (["460", "--format", "e4m3", "--rounding", "sr", *WORD], ["overflow", "(ENC-006)"]),
        (
            ["-2", "--format", "e8m0", "--profile", "ml_dtypes"],
            ["as the profile stores it (ENC-016)"],
        ),
        (
            ["0", "--format", "e8m0", "--profile", "ml_dtypes"],
            ["zero, as the profile", "(ENC-016)"],
        ),
        (
            ["6.5e-39", "--format", "e8m0", "--profile", "torch"],
            ["the profile rounds up", "(ENC-016)"],
        ),
        (["nan", "--format", "e2m1", "--profile", "ml_dtypes"], ["(ENC-016)"]),
        (["-nan", "--format", "e4m3"], ["(ENC-009)"]),
        (["-0.296875", "--format", "int8_mx"], ["0xED", "0xEC", "exact"]),
        (["-1000", "--format", "int8_mx"], ["overflow", "-1000.015625"]),
        (["-0.001", "--format", "e4m3"], ["0x80", "0x81"]),
    ],
)
def test_explain_where_it_is_hard(arguments, words):
    text = mor_ref("explain", *arguments)
    for word in words:
        assert word in text


def test_neighbours_have_codes_with_their_sign():
    found = json.loads(mor_ref("explain", "-0.3", "--format", "e4m3", "--json"))
    assert found["nearer_zero"] == {"value": "-9/32", "code": 0xA9}
    assert found["farther_from_zero"] == {"value": "-5/16", "code": 0xAA}


@pytest.mark.tier("full")
def test_explain_of_other_formats():
    assert "the smallest value: e8m0 has nothing below it" in mor_ref(
        "explain", "1e-40", "--format", "e8m0"
    )
    assert "(ENC-013)" in mor_ref("explain", "3", "--format", "e8m0")
    to_nearest = ["explain", "3", "--format", "e8m0", "--rounding"]
    assert "0x81" in mor_ref(*to_nearest, "rne")
    assert mor_ref(*to_nearest, "rne") == mor_ref(*to_nearest, "rna")
    assert "0x81" in mor_ref("explain", "-5", "--format", "int8_mx")
    found = json.loads(
        mor_ref("explain", "1e9", "--format", "e5m2", "--overflow", "ieee", "--json")
    )
    assert (found["code"], found["value"], found["rule"]) == (0x7C, "inf", "ENC-007")


@pytest.mark.parametrize("fmt", UP_TO_16, ids=lambda fmt: fmt.name)
def test_an_explanation_agrees_with_the_code(fmt):
    for x in (0.3, -0.3, 1.5, 100.7, 1e-3, 6.1, -3e38, 1e-39):
        found = explain(x, fmt)
        assert found.code == exact.encode(x, fmt)
        if (
            found.nearer_zero
            and found.nearer_zero.code is not None
            and "overflow" not in found.outcome
        ):
            chosen = (
                found.farther_from_zero if found.outcome.startswith("up") else found.nearer_zero
            )
            assert float(chosen.value) == found.value


def test_numbers_are_parsed_as_written():
    assert parse_number("-inf") == float("-inf")
    assert parse_number("0x.8p1") == 1.0
    for text in ("1e400", "-1e400", "1e-400", "0x1p2000", "0x1p-1080", "0x1.00000000000001p0"):
        with pytest.raises(ValueError, match="which binary64 does not have"):
            parse_number(text)
    for text in ("1e-999999999", "-0.001e-999999999999", "0x1p-99999999999", "-0x.8p-999999999999"):
        with pytest.raises(ValueError, match="which binary64 does not have"):
            parse_number(text)
    for text in ("0e-999999999", "-0.00E99999999", "0x0p-99999999999", "-0x.0p999999999999"):
        assert parse_number(text) == 0
    with pytest.raises(ValueError, match=r"NUMBER is '0\.3', which is not a number of f32"):
        parse_number("0.3", "f32")
    assert parse_number("0.25", "f32") == 0.25


@pytest.mark.tier("full", but_one_in=3)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["formats", "e4m4"], "format is 'e4m4', which is not known; take one of e4m3,"),
        (["explain", "abc", "--format", "e4m3"], "NUMBER is 'abc'; give a decimal such as 0.3"),
        (["explain", "0x3f80", "--format", "e4m3"], "name its format with --source"),
        (["explain", "-0x3f800000", "--format", "e4m3"], "NUMBER is '-0x3f800000'; give a decimal"),
        (
            ["explain", "0x13c00", "--format", "e4m3", "--source", "f16"],
            "which has more than the 16 bits of f16",
        ),
        (["explain", "1", "--format", "e4m3", "--source", "f8"], "source is 'f8'"),
        (["explain", "1", "--format", "e8m0", "--rounding", "rto"], "give one of rtp, rtz, rna"),
        (
            ["explain", "1.1", "--format", "e4m3", "--rounding", "sr"],
            "needs --random-word; give --random-word and --n-random-bits",
        ),
        (["explain", "1"], "Missing option '--format'"),
        (
            ["explain", "1e400", "--format", "e4m3"],
            "NUMBER is '1e400', which binary64 does not have",
        ),
        (
            ["explain", "1", "--format", "e4m3", "--random-word", "1"],
            "--random-word is given, but rounding is 'rne'",
        ),
        (
            ["explain", "1", "--format", "e8m0", "--random-word", "1"],
            "--random-word is given, but rounding is 'rtp', which takes none",
        ),
        (
            ["explain", "nan", "--format", "e4m3", "--rounding", "sr"],
            "rounding is 'sr', which needs --random-word; give --random-word and --n-random-bits",
        ),
        (["exhaustive", "e4m3", *SR], "rounding is 'sr', which needs --random-word"),
        (
            ["exhaustive", "e4m3", *SR, "--random-word", "1"],
            "rounding is 'sr', which needs --n-random-bits; give --random-word and --n-random-bits",
        ),
        (
            ["exhaustive", "e4m3", "--random-word", "1"],
            "--random-word is given, but rounding is 'rne', which takes none",
        ),
        (
            ["exhaustive", "e8m0", "--n-random-bits", "1"],
            "--n-random-bits is given, but rounding is 'rtp', which takes none",
        ),
        (["exhaustive", "e8m0", *SR], "give one of rtp, rtz, rna"),
        (
            ["exhaustive", "e4m3", *SR, "--n-random-bits", "3", "--random-word", "8"],
            "--random-word is 8; give an int from 0 to 7",
        ),
        (
            ["exhaustive", "e4m3", *SR, "--n-random-bits", "33", "--random-word", "8"],
            "--n-random-bits is 33; give an int from 1 to 32",
        ),
        (["exhaustive", "e4m3", "--overflow", "no"], "overflow is 'no'"),
        (["exhaustive", "e4m3", "--threads", "0"], "threads is 0"),
        (
            ["exhaustive", "e4m3", "--threads", "1", "--chunks", "0x3f"],
            "threads is 1, but only a run of the engine on all inputs takes threads; leave it out",
        ),
        # What a variable of a shell that is not set leaves is not the default.
        (["exhaustive", "e4m3", "--candidate", ""], "candidate is '', which is not known"),
        (["formats", ""], "format is '', which is not known"),
        (["formats", "", "--json"], "format is '', which is not known"),
        (["analyze", ""], "FILE is ''; give a file that ends in one of .npy, .npz, .safetensors"),
        (["golden", "check", ""], "DIR is ''; give a directory; . is the current one"),
        (["golden", "check", "--same-as", ""], "--same-as is ''; give a directory"),
        (["golden", "export", "", "--to", "c", "--out", "x"], "DIR is ''; give a directory"),
        (["golden", "export", "--to", "c", "--out", ""], "out is ''; give a directory"),
        (["golden", "make", "--out", ""], "out is ''; give a directory"),
        (["verify", "numba", "--vectors", ""], "vectors is ''; give a directory"),
        (["verify", "/bin/sh -c"], "'/bin/sh -c', which has no kind; give 'exec:/bin/sh -c'"),
        (["verify", "/bin"], "candidate is '/bin', which has no kind; give 'dir:/bin'"),
        (["verify", "numba", "--report", ""], "report is ''; give a file that ends in .json"),
        (["nonsense"], "No such command 'nonsense'"),
        (["verify", "numba", "--nan", "any", "--nan", "exact"], "--nan is given 2 times; give one"),
        (["golden", "make", "--out", "a", "--out=b"], "--out is given 2 times; give one value"),
    ],
)
def test_mistakes_end_with_status_2_and_a_sentence(arguments, message):
    text = mor_ref(*arguments, status=2)
    assert message in " ".join(text.replace("│", " ").split())
    assert "Traceback" not in text


@pytest.mark.parametrize(
    ("raised", "named"),
    [
        ("KeyError('scale')", "KeyError: 'scale'"),
        ("AssertionError", "AssertionError"),
        ("EOFError('no data')", "UnexpectedEndError: no data"),  # Typer would end with 1
        ("RecursionError('too deep')", "RecursionError: too deep"),
        ("type('E', (Exception,), {'__str__': lambda e: 1 / 0})", "E: <exception str() failed>"),
    ],
)
def test_a_fault_of_the_program_ends_with_status_5(tmp_path, monkeypatch, raised, named):
    """It has its traceback, and never the status of bits that differ."""
    (tmp_path / "breaks.py").write_text(
        "from mor_ref.cli import formats\n"
        f"def run(*_, **__):\n    raise {raised}\n"
        "formats.run = run\n"
    )
    monkeypatch.chdir(tmp_path)
    *traceback, last = mor_ref("--rows", "breaks", "formats", status=5).splitlines()
    assert last.startswith("mor-ref: this is a fault of mor_ref, or of breaks, and says nothing")
    assert "Traceback (most recent call last):" in traceback
    assert traceback[-1].endswith(named)


def test_a_module_of_rows_that_ends_the_program_is_refused(tmp_path, monkeypatch):
    (tmp_path / "ends.py").write_text("raise SystemExit(1)")
    monkeypatch.chdir(tmp_path)
    assert "cannot be imported (SystemExit: 1)" in mor_ref("--rows", "ends", "formats", status=2)


def test_version_and_help():
    assert mor_ref("--version").startswith("mor-ref 0.")
    assert "explain" in mor_ref("--help")


def test_the_help_of_options_lists_the_catalogues(monkeypatch):
    monkeypatch.setitem(POLICIES, "mine", Policy("mine", POLICIES["tensor"].ladder))
    command = typer.main.get_command(cli.app).commands["analyze"]
    asked = command.make_context("analyze", ["x.npy"])
    names = {option.name: option.help for option in command.get_params(asked)}
    for option, default, rows in (("policy", "tensor", POLICIES), ("scaling", "gam", SCALINGS)):
        *others, last = (name for name in rows if name != default)
        assert names[option] == f"{', '.join([f'{default} (default)', *others])} or {last}."
    assert names["policy"].endswith(" or mine.")


COMMANDS = typer.main.get_command(cli.app).commands
GOLDEN = [("golden", name) for name in COMMANDS["golden"].commands]


@pytest.mark.parametrize("command", [(), *((name,) for name in COMMANDS), *GOLDEN], ids=" ".join)
def test_help_names_values_and_no_types_of_python(command):
    """And no example is cut off."""
    text = mor_ref(*command, "--help", columns="80")
    assert re.findall(r"<\w+|list\[|…|\.\.\.\]\.\.\.", text) == []


def test_paragraphs_of_help_are_wrapped_once():
    lines = [
        line.strip() for line in mor_ref("golden", "check", "--help", columns="80").splitlines()
    ]
    at = lines.index("Exits with 2 if files cannot be used at all.")
    assert lines[at - 1].endswith("names the suite, the case and the field.")


def test_a_wrong_digest_is_traced_to_its_input():
    """The sentence that `mor-ref exhaustive` prints, for a chunk that was tampered with."""
    case = exhaustive.Case(formats["e2m1"], "rne", "satfinite")
    kept = exhaustive.bundled_digests()[case.name]
    crcs = list(kept.crc32)
    crcs[0x3E] ^= 1
    wrong = exhaustive.Digest("0" * 64, tuple(crcs))
    assert wrong.first_difference(kept) == 0x3E
    said = engine_codes.describe_difference(case, 0x3E)
    assert said == "differs from the bundled digest in chunk 62, where engine and exact model agree"
    other = exhaustive.Case(formats["e2m1"], "rna", "satfinite")
    chunk = range(0x3E << 24, 0x3F << 24)
    assert exhaustive.exact_codes(case, exhaustive.runs(other), chunk) != engine_codes.engine_codes(
        case, chunk
    )
