"""All 2^32 float32 inputs: by digest in the exhaustive tier, by sample in every run."""

import itertools
import struct
import zlib

import numpy as np
import pytest
from forking import mor_ref
from inputs import RELEASED, SMALL, by_name

from mor_ref import encode, exact, formats
from mor_ref.cli import exhaustive as command
from mor_ref.definitions.encoding import OVERFLOWS, SpecialCases
from mor_ref.golden.all_inputs import digests as exhaustive
from mor_ref.golden.all_inputs.digests import CHUNK, Case, RandomWord
from mor_ref.golden.model import suite
from mor_ref.verify.all_inputs import engine_codes
from mor_ref.verify.all_inputs.verify import chunks_named, verify_chunks
from mor_ref.verify.candidates.candidate import CandidateError
from mor_ref.verify.candidates.numba_engine import Engine
from mor_ref.verify.candidates.python_function import PythonFunction

IEEE = SpecialCases(overflow="ieee")
BUNDLED = exhaustive.bundled_digests()
SMALL_CASES = [
    Case(fmt, "rtp" if fmt.is_power_of_two else "rne", overflow)
    for fmt in SMALL
    for overflow in OVERFLOWS
]
# Words of each width, at both ends and between; all formats, and all overflows.
AT_RANDOM = [
    Case(fmt, "sr", overflow, RandomWord(word, n))
    for fmt, overflow, (word, n) in zip(
        [fmt for fmt in SMALL if not fmt.is_power_of_two],
        itertools.cycle(OVERFLOWS),
        itertools.cycle([(5, 3), (0xFFFF_FFFE, 32), (0x8001, 16), (0, 1), (0x12345, 17)]),
        strict=False,
    )
]


@pytest.mark.tier("exhaustive")
@pytest.mark.parametrize(
    "case",
    [case for case in SMALL_CASES if case.name in BUNDLED],
    ids=lambda case: case.name,
)
def test_all_inputs_of_every_small_format(case):
    """ENC-001 to ENC-015: the engine's codes have the digest of the exact model's."""
    digest = exhaustive.digest_of(engine_codes.engine_chunks(case))
    assert digest == BUNDLED[case.name]


@pytest.mark.tier("full", but_one_in=4)
@pytest.mark.parametrize("fmt", SMALL, ids=by_name)
def test_a_chunk_with_many_codes_has_the_kept_checksum(fmt):
    """The bundled digests, the exact model and the engine, on 2^24 inputs from 0.5 on."""
    for overflow in OVERFLOWS:
        case = Case(fmt, "rtp" if fmt.is_power_of_two else "rne", overflow)
        inputs = range(0x3F * CHUNK, 0x40 * CHUNK)
        codes = engine_codes.engine_codes(case, inputs)
        if case.name in BUNDLED:
            assert zlib.crc32(codes) == BUNDLED[case.name].crc32[0x3F]
        assert codes == exhaustive.exact_codes(case, exhaustive.runs(case), inputs)


@pytest.mark.tier("exhaustive")
@pytest.mark.parametrize("case", AT_RANDOM, ids=lambda case: case.name)
def test_all_inputs_of_every_small_format_under_one_random_word(case, capsys):
    """ENC-005: the command, which finds the exact codes by bisection."""
    fmt, _, overflow, (word, n) = case
    asked = command.WrittenCase(fmt.name, "sr", overflow, word, n)
    assert command.run(asked, None, "local", brief=True, as_json=False) == 0
    assert capsys.readouterr().out.endswith("equals the digest of the exact model\n")


@pytest.mark.tier("full", but_one_in=3)
@pytest.mark.parametrize("case", AT_RANDOM, ids=lambda case: case.name)
def test_a_chunk_with_many_codes_under_one_random_word(case):
    """ENC-005: by the engine and by bisection, on 2^24 inputs from -0.5 down."""
    inputs = range(0xBF * CHUNK, 0xC0 * CHUNK)
    right = exhaustive.exact_codes(case, exhaustive.runs(case), inputs)
    assert engine_codes.engine_codes(case, inputs) == right
    other = case._replace(random=RandomWord(case.random.word ^ 1, case.random.n))
    # Of 32 bits, the last one is beyond the dropped bits of a binary32 here.
    assert (engine_codes.engine_codes(other, inputs) == right) == (case.random.n == 32)


@pytest.mark.tier("full", but=["[True]"])
@pytest.mark.parametrize("is_wrong", [False, True])
def test_the_command_under_one_random_word(is_wrong, monkeypatch, capsys):
    """On the first chunks, where the inputs that are not zero go up under the largest word."""
    case = Case(formats["e5m2"], "sr", "ieee", RandomWord(0xFFFF_FFFF, 32))
    monkeypatch.setattr(exhaustive, "CHUNKS", 0x2B)
    monkeypatch.setattr(engine_codes, "CHUNKS", 0x2B)
    made, at = engine_codes.engine_codes, 0x27654321

    def off_at_one_input(*arguments):
        codes = np.array(made(*arguments))
        codes[at % CHUNK] ^= arguments[1].start == at // CHUNK * CHUNK
        return codes.data

    if is_wrong:
        monkeypatch.setattr(engine_codes, "engine_codes", off_at_one_input)
    asked = command.WrittenCase("e5m2", "sr", "ieee", 0xFFFF_FFFF, 32)
    assert command.run(asked, None, "local", brief=True, as_json=False) == is_wrong
    said = capsys.readouterr().out
    assert said.startswith("e5m2 sr ieee, random word 0xffffffff of 32 bits: sha256 ")
    right = exact.encode(
        float32(at), case.fmt, "sr", IEEE, random_word=0xFFFF_FFFF, n_random_bits=32
    )
    wrong = (
        f"differs from the exact model, first at input {at:#x}: the engine returns {right ^ 1:#x}, "
        f"the exact model {right:#x}\n"
    )
    if is_wrong:
        assert f"{wrong}see on the site: spec/ENC-001, " in said
    else:
        assert said.endswith("equals the digest of the exact model\n")


def test_digests_are_kept_for_every_case_of_a_released_format():
    """Of a newer format, for each of its cases or for none."""
    kept = exhaustive.bundled_digests()
    of_formats = {}
    for case in exhaustive.digested_cases():
        of_formats.setdefault(case.fmt.name, set()).add(case.name)
    assert set(kept) <= set().union(*of_formats.values())
    for name, cases in of_formats.items():
        is_kept = name in RELEASED or not cases.isdisjoint(kept)
        assert cases & set(kept) == (cases if is_kept else set()), "make digests"
    assert all(len(digest.crc32) == exhaustive.CHUNKS for digest in kept.values())
    assert exhaustive.as_json(kept) == (exhaustive.bundled_files() / "exhaustive.json").read_text()


def test_the_runs_are_those_of_every_single_input():
    """Bisection rests on rounding being monotonic: around a few ends, look at every input."""
    for name, rounding in (("e4m3", "rne"), ("e2m1", "rto"), ("int8_mx", "rtn"), ("e8m0", "rna")):
        case = Case(formats[name], rounding, "ieee")
        found = exhaustive.runs(case)
        for run in found[:: max(1, len(found) // 8)]:
            window = range(max(0, run.first - 500), min(run.first + 500, 1 << 32))
            singly = [exact.encode(float32(bits), case.fmt, rounding, IEEE) for bits in window]
            assert list(exhaustive.exact_codes(case, found, window)) == singly


def test_the_runs_under_a_random_word_are_those_of_every_single_input():
    for name, n, word in (("e4m3", 8, 100), ("e2m1", 1, 0), ("int8_mx", 32, 0xFFFFFFFF)):
        case = Case(formats[name], "sr", "ieee", RandomWord(word, n))
        found = exhaustive.runs(case)
        random = {"random_word": word, "n_random_bits": n}
        for run in found[:: max(1, len(found) // 8)]:
            window = range(max(0, run.first - 500), min(run.first + 500, 1 << 32))
            singly = [exact.encode(float32(x), case.fmt, "sr", IEEE, **random) for x in window]
            assert list(exhaustive.exact_codes(case, found, window)) == singly


WRONG = 0x3F012345


def encoded(parameters, arrays):
    given = {name: parameters[name] for name in ("rounding", "overflow", "nan")}
    return encode(arrays["x"].view(np.float32), parameters["format"], **given)


def off_at_one_input(_, parameters, arrays):
    return {"code": encoded(parameters, arrays) ^ (arrays["x"] == WRONG)}


def of_too_many_bits(_, parameters, arrays):
    code = encoded(parameters, arrays).astype(np.uint16)
    return {"code": code + np.uint16(0x100) * (arrays["x"] == WRONG)}


def test_a_candidate_is_narrowed_down_to_the_input():
    """Chunk by chunk up to the first that differs, and there in pieces to the inputs."""
    case = Case(formats["e2m1"], "rne", "satfinite")
    found = list(verify_chunks(PythonFunction("off", off_at_one_input), case, range(0x3E, 0x41)))
    assert [(chunk.number, chunk.is_same, chunk.count) for chunk in found] == [
        (0x3E, True, 0),
        (0x3F, False, 1),
    ]
    right = exact.encode(float32(WRONG), case.fmt, "rne", SpecialCases())
    (mismatch,) = found[-1].first
    assert (mismatch.input, mismatch.expected, mismatch.actual) == (WRONG, right, right ^ 1)
    assert "is expected, " in str(mismatch)
    assert str(found[-1]).startswith("inputs from 0x3f000000, chunk 63: another checksum than the")
    assert next(verify_chunks(Engine(), case, range(0x3F, 0x40))).is_same


def at_random(operation, parameters, arrays):
    assert operation == "encode_stochastic"
    return Engine().answer(operation, operation, suite.Case("", parameters, arrays))


def at_random_with_more_than_half(operation, parameters, arrays):
    """Round up by > instead of >=, which is the word before."""
    words = arrays["random_word"] - np.uint32(1)
    return at_random(operation, parameters, arrays | {"random_word": words})


def test_a_candidate_under_one_random_word():
    case = Case(formats["e4m3"], "sr", "satfinite", RandomWord(5, 3))
    chunks = range(0x3F, 0x40)
    right = PythonFunction("right", at_random)
    assert [chunk.is_same for chunk in verify_chunks(right, case, chunks)] == [True]
    off = PythonFunction("off", at_random_with_more_than_half)
    (found,) = verify_chunks(off, case, chunks)
    assert found.count == CHUNK // 8
    first = found.first[0]
    assert first.input == 0x3F000000 + 3 * 2**17
    assert (first.expected, first.actual) == (0x31, 0x30)


def test_a_code_of_too_many_bits_is_a_mismatch():
    """Cut to the bits of the format, it would be right."""
    case = Case(formats["e2m1"], "rne", "satfinite")
    candidate = PythonFunction("wide", of_too_many_bits)
    (found,) = verify_chunks(candidate, case, range(0x3F, 0x40))
    assert (found.count, found.first[0].input) == (1, WRONG)
    assert found.first[0].actual == found.first[0].expected + 0x100


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "has no answer to encode in e2m1 rne satfinite"),
        ({}, "case inputs_from_0x3f000000: code is missing"),
        ({"code": np.zeros(3, np.uint8)}, "code has shape"),
        ({"code": np.zeros(1 << 20)}, "code has dtype float64"),
    ],
)
def test_answers_that_cannot_be_compared(answer, message):
    candidate = PythonFunction("strange", lambda *_: answer)
    with pytest.raises(CandidateError, match=message):
        list(verify_chunks(candidate, Case(formats["e2m1"], "rne", "satfinite"), range(0x3F, 0x40)))


def test_chunks():
    assert chunks_named("63") == range(63, 64)
    assert chunks_named("0x3f:0x41") == range(63, 65)
    for text in ("", "a", "256", "3:3", "4:2", "-1:2", "0:257", ":"):
        with pytest.raises(
            ValueError, match="give the number of a chunk of 2\\^24 inputs, 0 to 255"
        ):
            chunks_named(text)
    for case in (
        Case(formats["f32"], "rne", "satfinite"),
        Case(formats["f32"], "sr", "satfinite", RandomWord(0, 1)),
    ):
        with pytest.raises(ValueError, match="format is 'f32', which has no bundled digests"):
            next(verify_chunks(Engine(), case, range(1)))


def test_the_command(tmp_path):
    lines = [
        "from mor_ref import encode",
        "def run(operation, parameters, inputs):",
        "    code = encode(inputs['x'].view('f4'), parameters['format'], rounding='rtz')",
        "    return {'code': code}",
    ]
    (tmp_path / "mykernel.py").write_text("\n".join(lines))
    for rounding, status in (("rne", 1), ("rtz", 0)):
        arguments = ["--candidate", "mykernel:run", "--chunks", "0x3f", "--rounding", rounding]
        done = mor_ref("exhaustive", "e2m1", *arguments, cwd=tmp_path)
        assert done.returncode == status, done.stderr
        verdict = "mismatch" if status else "match"
        said = f"mykernel:run: {verdict} in e2m1 {rounding} satfinite, chunks 63 to 63"
        assert said in done.stdout
    arguments = ["--candidate", "nowhere:run", "--chunks", "0x3f", "--json"]
    done = mor_ref("exhaustive", "e2m1", *arguments)
    assert done.returncode == 3
    assert "nowhere:run cannot be imported" in done.stderr


def float32(bits):
    return struct.unpack("<f", struct.pack("<I", bits))[0]
