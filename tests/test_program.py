"""Programs as candidates: the protocol's text, and everything that a program can do wrong."""

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import forking
import numpy as np
import pytest
from clocks import ClockOfWaits, ClockThatWaits
from extras import reason
from hypothesis import given
from hypothesis import strategies as st
from verifying import eventually, is_running

from mor_ref import golden
from mor_ref.golden import bundled_files
from mor_ref.golden.model.suite import Case
from mor_ref.golden.model.views import seen, split
from mor_ref.golden.store.manifest import read_manifest
from mor_ref.verify.candidates import own_process
from mor_ref.verify.candidates import program as program_module
from mor_ref.verify.candidates.by_name import candidate_named
from mor_ref.verify.candidates.candidate import CandidateError
from mor_ref.verify.candidates.program import Program
from mor_ref.verify.candidates.protocol import Received, answer_limit, parse_answer, question_text
from mor_ref.verify.running.run import verify
from mor_ref.verify.running.suites import suites_in

ROOT = Path(__file__).resolve().parent.parent
MAIN = "import sys; from mor_ref.cli import main; sys.argv[0] = 'mor-ref'; main()"
LONG = 1e6  # seconds, for programs that answer: a machine may be as busy as it is
FOREVER = "sleep 10000"
SMALL = Case("e4m3.f32.rne", {"format": "e4m3"}, {"x": np.array([0x3E99999A, 1], np.uint32)})

# Reads questions as the specification has them, and leaves the numbers to the engine.
ENGINE = """
import re, sys
import numpy as np
from mor_ref.operations import OPERATIONS

def value(text):
    if text in ("true", "false"):
        return text == "true"
    if re.fullmatch(r"[0-9]+\\.[0-9]+(e-?[0-9]+)?", text):
        return float(text)
    sides = text.split("x")
    if not all(side.isdigit() for side in sides):
        return text
    return [int(side) for side in sides] if len(sides) > 1 else int(text)

words = (word for line in sys.stdin for word in line.split())
assert (next(words), next(words)) == ("mor-ref-protocol", "1")
for word in words:
    if word == "case":
        _, operation, _ = next(words), next(words), next(words)
        parameters, arrays = {}, {}
    elif word == "param":
        name, given = next(words), next(words)
        parameters[name] = value(given)
    elif word == "in":
        name, shape = next(words), [int(side) for side in next(words).split("x")]
        digits = [next(words) for _ in range(np.prod(shape))]
        kind = f"u{len(digits[0]) // 2}"
        arrays[name] = np.array([int(d, 16) for d in digits], kind).reshape(shape)
    else:
        assert word == "run"
        for name, array in OPERATIONS[operation].engine(parameters, arrays).items():
            print("out", name, "x".join(map(str, array.shape)))
            print(*(f"{number:X}" for number in array.ravel().tolist()))
        print("done", flush=True)
"""


@pytest.fixture(autouse=True)
def _patience(monkeypatch):
    """Wait as long as needed for the status of a program that ends."""
    monkeypatch.setattr(program_module, "_PATIENCE_FOR_STATUS", LONG)


def python(where, text):
    """Write a program in Python, and return the command that runs it."""
    path = where / "program.py"
    path.write_text(text)
    return shlex.join([sys.executable, str(path)])


def shell(text):
    return f"sh -c {shlex.quote(text)}"


def answering(text):
    """Return a candidate that runs a text of shell for each case that it is asked."""
    return shell(f"while read -r word rest; do [ $word != run ] || {{ {text}; }}; done")


def asked(command, case=SMALL, *, suite="encode", seconds=LONG):
    with Program(command, seconds) as program:
        return program.answer(suite, "encode", case)


def failure(command, case=SMALL, **options):
    with pytest.raises(CandidateError) as failed:
        asked(command, case, **options)
    text = str(failed.value)
    at = "" if "it cannot be started" in text else f", case '{case.name}' of suite 'encode'"
    assert text.startswith(f"exec:{command}{at}: ")
    assert "\n" not in text
    return text


def mor_ref(*arguments):
    limit = () if "--timeout" in arguments else ("--timeout", LONG)
    return forking.mor_ref("verify", *limit, *arguments)


def test_the_text_of_a_question():
    """PRO-003, PRO-004 and PRO-005, written by hand."""
    case = Case(
        "a.b",
        {
            "format": "e4m3",
            "bits": 12,
            "tile": [1, 16],
            "share": 0.045,
            "label": "two words",
            "none": None,
            "ladder": [["e4m3", 1]],
            "flags": [True, False],
        },
        {
            "x": np.array([[1, 0xFFFFFFFF, 0x3F800000]], np.uint32),
            "code": np.arange(17, dtype=np.uint8),
            "sum": np.array([1 << 63], np.uint64),
            "half": np.array([0x3C00], np.uint16),
            "nothing": np.zeros((0, 4), np.uint8),
        },
    )
    assert question_text("suite", "operation", case).decode("ascii").splitlines() == [
        "case suite operation a.b",
        "param format e4m3",
        "param bits 12",
        "param tile 1x16",
        "param share 0.045",
        'param label "two\\u0020words"',
        "param none null",
        'param ladder [["e4m3",1]]',
        "param flags [true,false]",
        "in x 1x3",
        "00000001 ffffffff 3f800000",
        "in code 17",
        "00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f",
        "10",
        "in sum 1",
        "8000000000000000",
        "in half 1",
        "3c00",
        "in nothing 0x4",
        "run",
    ]


@pytest.mark.parametrize("name", ["two words", "", "naïve", "a\nrun", "a" * 256])
def test_what_is_no_token_is_not_sent(name):
    """PRO-002."""
    for case in (Case(name, {}, {}), Case("a", {name: 1}, {}), Case("a", {"b": "c" * 256}, {})):
        with pytest.raises(
            CandidateError, match="cannot be sent to a program; take names of ASCII"
        ):
            question_text("suite", "operation", case)


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("skip\n", None),
        (" skip \r\n", None),
        ("done\n", {}),
        ("out code 3\n2a fe 7F\ndone\n", {"code": [0x2A, 0xFE, 0x7F]}),
        ("out code\t3 2A\r\n0fe\n\n7f\ndone\n", {"code": [0x2A, 0xFE, 0x7F]}),
        ("out y 2x1 0 ffffffffffffffff\ndone\n", {"y": [[0], [(1 << 64) - 1]]}),
        ("out a 1 1 out b 1x1x1x1 2\ndone\n", {"a": [1], "b": [[[[2]]]]}),
        ("out out 1 0000000000000001\ndone\n", {"out": [1]}),
        ("out code 0\ndone\n", {"code": []}),
        ("out code 0x3\ndone\n", {"code": np.zeros((0, 3))}),
    ],
)
def test_answers(text, fields):
    """PRO-005 and PRO-006."""
    found = parse_answer(text.encode("ascii"))
    assert (found is None) == (fields is None)
    for name, numbers in (fields or {}).items():
        assert found[name].dtype == np.uint64
        assert found[name].shape == np.shape(numbers)
        assert np.array_equal(found[name], np.array(numbers, np.uint64))
    assert set(found or {}) == set(fields or {})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the answer is ''; end it with a line done"),
        ("out code 1 2a", "the answer is 'out code 1 2a'; end it"),
        ("skip done", "the answer has 'skip' where a field begins; give `out NAME SHAPE`"),
        ("hello\nworld done", "the answer has 'hello world' where a field begins"),
        ("out done", "the answer ends amid a field"),
        ("out code done", "the answer ends amid a field"),
        ("out code 3 1 2 done", "field code has 2 numbers; give 3 for its shape 3"),
        ("out code 2x2 1 2 3 4 5 done", "field code has 5 numbers; give 4 for its shape 2x2"),
        ("out code 1 out y 1 1 done", "field code has 0 numbers; give 1"),
        ("out code 1 1 out code 1 1 done", "field code is there twice; give it once"),
        ("out y 1 00000000000000001 done", "field y holds '00000000000000001'; give hexadecimal"),
        (
            "out code 1 0x1 done",
            "field code holds '0x1'; give hexadecimal digits, 1 to 16, without",
        ),
        ("out code 1 -1 done", "field code holds '-1'"),
        ("out code 1 1_0 done", "field code holds '1_0'"),
        ("out code 1 \xff done", "field code holds '\\xff'"),
        ("out c\xf6de 1 1 done", "'c\\xf6de' is not the name of a field"),
        ("out code 1.0 1 done", "field code has the shape '1.0'; give one to four sizes"),
        ("out code 1x1x1x1x1 1 done", "field code has the shape '1x1x1x1x1'; give one to four"),
        ("out code 9999999999 1 done", "field code has the shape '9999999999'; give one to four"),
        ("out code 999999999x999999999 1 done", "give at most 2^40 entries"),
        ("out code 999999999x999999999x0 done", "give at most 2^40 entries"),
        ("out code " + "9" * 5000 + " done", "field code has the shape '" + "9" * 60 + "'..;"),
    ],
)
def test_answers_that_are_refused(text, message):
    """PRO-005 and PRO-006, each with the finding and what to do."""
    with pytest.raises(CandidateError) as failed:
        parse_answer(text.encode("latin-1"))
    assert message in str(failed.value)


WORDS = [b"out", b"done", b"skip", b"code", b"y", b"1", b"2", b"1x2", b"ff", b"0x0", b"\n", b"\xff"]


@given(st.lists(st.sampled_from(WORDS) | st.binary(max_size=4)))
def test_any_text_is_an_answer_or_is_refused(words):
    """Also when it comes in pieces."""
    received = Received(1 << 20)
    with contextlib.suppress(CandidateError):  # its first line may begin no answer
        for word in words:
            received.add(word + b" ")
    for text in (bytes(received.text), b" ".join([*words, b"done"])):
        try:
            found = parse_answer(text)
        except CandidateError:
            continue
        assert all(array.size <= len(words) for array in (found or {}).values())


def test_an_answer_ends_with_a_line_of_its_own():
    """PRO-006: however it is cut into pieces, also amid that line."""
    text = b"out done 1 1\n donee\nxdone\n skip it\n\t done \r\nrest\ndone\n"
    end = text.index(b"rest")
    for size in (1, 2, 3, 7, 100):
        received = Received(1000)
        for start in range(0, len(text), size):
            received.add(text[start : start + size])
        assert received.end == end
    unended = Received(1000)
    unended.add(b"out code 1\n1\ndone")
    assert unended.end is None


def taken_in(pieces):
    received = Received(1000)
    for piece in pieces:
        received.add(piece)
    return received


@pytest.mark.parametrize(
    "text",
    ["mor-ref-protocol 1\ncase a b c\n", "\n \n\tmor-ref-protocol 1 \r\n", "outs 1\n", "skipped\n"],
)
def test_a_first_line_that_begins_no_answer_is_refused_at_once(text):
    """PRO-006: its end may never come. However the line is cut into pieces."""
    shown = text.split()[0]
    for size in (1, 7, 100):
        pieces = [text[start : start + size].encode() for start in range(0, len(text), size)]
        with pytest.raises(CandidateError, match=f"the answer has '{shown}"):
            taken_in(pieces)
    assert taken_in([b"\n", b" ou", b"t code 1\n", b"1 \nsome\n"]).end is None


def test_a_program_that_echoes_is_refused_at_once():
    assert "the answer has 'mor-ref-protocol 1' where a field begins" in failure("cat")


def test_the_size_of_an_answer_has_an_end():
    """PRO-008."""
    limit = answer_limit({"x": np.zeros((3, 4), np.uint8), "y": np.zeros(5, np.uint8)})
    assert limit == 2**20 + 256 * 17
    received = Received(limit)
    received.add(b"1" * limit)
    with pytest.raises(CandidateError, match=f"the answer has more than {limit} bytes \\('1111"):
        received.add(b"1")


def test_a_program_is_started_once_and_greeted(tmp_path):
    """PRO-001."""
    heard = tmp_path / "heard"
    text = f"tee -a {heard} | while read -r word rest; do [ $word != run ] || echo skip; done"
    with Program(shell(text), LONG) as program:
        assert program.answer("encode", "encode", SMALL) is None
        assert program.answer("mx", "mx", Case("b", {"format": "e2m1"}, {})) is None
    expected = b"mor-ref-protocol 1\ncase encode encode e4m3.f32.rne\nparam format e4m3\nin x 2\n"
    expected += b"3e99999a 00000001\nrun\ncase mx mx b\nparam format e2m1\nrun\n"
    assert heard.read_bytes() == expected


def test_parameters_of_every_case_are_tokens():
    """PRO-002, PRO-003: of recipes, all but the placed numbers, which are in x."""
    longest = 0
    for name, entry in read_manifest(bundled_files())["suites"].items():
        for case, parameters in entry["cases"].items():
            words = question_text(name, entry["operation"], Case(case, parameters, {})).split()
            longest = max(longest, *map(len, words))
    assert 60 < longest <= 255
    recipe = {"shape": [3, 2], "seed": 0, "stream": 7, "placed": [[2, 1, 15360]] * 64}
    text = question_text("mine", "quantize", Case("a", {"recipe": recipe}, {}))
    assert b'param recipe {"shape":[3,2],"seed":0,"stream":7}\n' in text


def smallest(cases):
    return [min(cases, key=lambda case: sum(array.size for array in case.arrays.values()))]


@pytest.mark.tier("full")
@pytest.mark.parametrize("chosen", [smallest, lambda cases: cases[::37]], ids=["smallest", "more"])
def test_any_suite_fits(tmp_path, chosen):
    """Columns, tensors and blocks, with lists, texts and numbers of every width."""
    with candidate_named(f"exec:{python(tmp_path, ENGINE)}", LONG) as candidate:
        for name, entry in read_manifest(bundled_files())["suites"].items():
            for case in chosen(golden.load(name)):
                given, expected = (
                    [field["name"] for field in entry["fields"] if field["role"] == role]
                    for role in ("input", "expected")
                )
                question = Case(case.name, case.parameters, {n: case.arrays[n] for n in given})
                found = candidate.answer(name, entry["operation"], question)
                compared = [f for f in expected if f in case.arrays and split(f)[0] in found]
                assert compared
                for field in compared:
                    base, views = split(field)
                    given_as = seen(found[base], views, case.parameters)
                    assert np.array_equal(given_as, case.arrays[field]), (name, case.name)


@pytest.mark.tier("full")
def test_a_wrong_shape_is_a_mismatch_and_no_failure(tmp_path):
    """PRO-007."""
    text = ENGINE.replace('"x".join(map(str, array.shape))', "array.size")
    with candidate_named(f"exec:{python(tmp_path, text)}", LONG) as candidate:
        found = verify(candidate, suites_in(bundled_files(), ["nvfp4_te_row"]))
    assert found.verdict == "mismatch"
    assert "field block_scale: has shape (1,), and (1, 1) is expected" in str(
        found.results[0].differences[0]
    )


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """Return a function that compiles the C example with a piece of it replaced."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip(reason("gcc"))
    folder = tmp_path_factory.mktemp("example")

    def make(name, old="", new=""):
        source = (ROOT / "examples/protocol/e4m3.c").read_text()
        assert old in source
        (folder / f"{name}.c").write_text(source.replace(old, new, 1) if old else source)
        flags = ["-O2", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-std=c11"]
        subprocess.run([compiler, *flags, "-o", name, f"{name}.c"], cwd=folder, check=True)
        return f"exec:{shlex.quote(str(folder / name))}"

    return make


def test_the_example_in_c_matches(example):
    done = mor_ref(example("e4m3"), "--suite", "encode", "--suite", "decode")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(
        r"^encode: match, [\d,]+ entries in 1 of \d+ cases$", done.stdout, re.MULTILINE
    )
    assert "decode: not run, the candidate has no answer" in done.stdout


@pytest.mark.tier("full", but=["rest == half"])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("rest == half && (k & 1)", "rest == half"),  # ties away from zero
        ("return 0x7F;", "return (x >> 24 & 0x80) | 0x7F;"),  # a NaN keeps its sign
        ("< 5 ? 20", "< 4 ? 20"),  # half of the smallest subnormal number
    ],
)
def test_the_example_in_c_with_a_mistake_is_a_mismatch(example, old, new):
    done = mor_ref(example("wrong", old, new), "--suite", "encode")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "case e4m3.f32.rne.satfinite.canonical, field code: " in done.stdout
    assert "ENC-003" in done.stdout


def test_arguments_are_split_as_a_shell_does():
    text = answering('echo out code $#; for a; do echo "$a"; done; echo done')
    assert asked(f"{text} sh 1a '2b' \\3")["code"].tolist() == [0x1A, 0x2B, 3]
    assert "has 3 numbers; give 2 for its shape 2" in failure(f"{text} sh 1a '2b 3'")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("./no-such-program", "it cannot be started (No such file or directory); give a program"),
        ("/", "it cannot be started (Permission denied)"),
        (shell("exit 3"), "it ended with status 3 before its answer was whole (nothing was rec"),
        (shell("kill -SEGV $$"), "it was ended by signal 11 (Segmentation fault) before its"),
        (
            shell("printf 'out code 2\\n1'; sleep 0.2"),
            "ended with status 0 before its answer was whole (12 bytes were received, at last 'ou",
        ),
        (shell(f"exec >&-; {FOREVER}"), "closed its standard output before its answer"),
        (answering("echo hello; echo done"), "the answer has 'hello' where a field begins; give"),
        (answering("printf '\\377\\000\\ndone\\n'"), "the answer has '\\xff\\x00' where a field"),
        (answering("echo out code 2 1; echo done"), "field code has 1 numbers; give 2 for its sh"),
        (answering("echo out code 1 1 2; echo done"), "field code has 2 numbers; give 1 for its"),
        ("yes", "the answer has 'y' where a field begins; give `out NAME SHAPE`"),
        (shell("echo out code 2; yes 1"), "the answer has more than 1049088 bytes ('out code 2\\n"),
        ("cat /dev/zero", "the answer has more than 1049088 bytes ('\\x00\\x00"),
        ("yes skip", "where no question was open; answer each question once"),
        (answering("printf 'skip\\nmore\\n'"), "it wrote 'more\\n' where no question was open"),
    ],
)
def test_programs_that_fail(monkeypatch, command, message):
    """PRO-007 to PRO-009: the case, the received text, and what to do.

    Nothing waits for the end of a program that never ends.
    """
    if FOREVER in command:
        monkeypatch.setattr(program_module, "_PATIENCE_FOR_STATUS", 0.1)
    assert message in failure(command)


@pytest.mark.tier("full", but_one_in=2)
@pytest.mark.parametrize(
    ("text", "sent", "said"),
    [
        (f"exec {FOREVER}", b"", "nothing was received"),
        (
            f"printf 'out code 2\\n1'; exec {FOREVER}",
            b"out code 2\n1",
            "12 bytes were received, at last 'out code 2\\n1'",
        ),
        (
            "echo out code 9; while echo 0; do sleep 0.01; done",
            b"0\n" * 30,
            "bytes were received, at last '0\\n0\\n0\\n",
        ),
    ],
)
def test_a_program_that_hangs_is_given_up(monkeypatch, text, sent, said):
    """PRO-008: also one that reads nothing of a question that no pipe holds, or never stops."""
    ClockThatWaits(monkeypatch, sent)
    large = Case("large", SMALL.parameters, {"x": np.zeros(1 << 18, np.uint32)})
    for case in (SMALL, large):
        found = failure(shell(text), case, seconds=0.5)
        assert "it gave no whole answer within 0.5 s (" in found
        assert said in found
        assert "flush it, or give more time with --timeout" in found


def test_a_program_may_write_before_it_has_read(tmp_path):
    """Neither waits for the other, though both pipes are full; PRO-006."""
    count = 1 << 18
    text = f"""
import sys
sys.stdout.write("out code {count}\\n" + "7e\\n" * {count})
sys.stdout.flush()
for line in sys.stdin:
    if line == "run\\n":
        print("done", flush=True)
"""
    case = Case("large", SMALL.parameters, {"x": np.zeros(count, np.uint32)})
    found = asked(python(tmp_path, text), case)
    assert found["code"].shape == (count,)
    assert set(found["code"].tolist()) == {0x7E}


@pytest.mark.tier("full")
def test_a_question_is_sent_to_its_end_after_an_early_answer():
    """PRO-006: the next one would begin amid it otherwise."""
    text = "echo skip; while read -r word rest; do case $word in case) echo skip;; esac; done"
    late = "while read -r word rest; do case $word in case) echo skip;; esac; done"
    large = Case("large", SMALL.parameters, {"x": np.zeros(1 << 18, np.uint32)})
    with Program(shell(late), LONG) as program:
        assert program.answer("encode", "encode", large) is None
        assert program.answer("encode", "encode", SMALL) is None
    assert "where no question was open" in failure(shell(text), large)


def test_a_program_that_died_between_two_cases():
    reads_one = "while read -r word rest; do [ $word != run ] || { echo skip; exit 7; }; done"
    with Program(shell(reads_one), LONG) as program:
        assert program.answer("encode", "encode", SMALL) is None
        with pytest.raises(CandidateError, match="it ended with status 7 before its answer was wh"):
            program.answer("encode", "encode", SMALL)


def test_an_answer_without_a_question_is_not_taken_for_the_next(tmp_path):
    """PRO-008."""
    go = tmp_path / "go"
    twice = f"echo skip; until [ -e {go} ]; do sleep 0.01; done; echo skip; : >{tmp_path}/wrote"
    with Program(answering(twice), LONG) as program:
        assert program.answer("encode", "encode", SMALL) is None
        go.touch()
        eventually((tmp_path / "wrote").exists)
        with pytest.raises(CandidateError, match=r"it wrote 'skip\\n' where no question was open"):
            program.answer("encode", "encode", SMALL)


def test_an_error_ends_a_program_at_once(tmp_path):
    """PRO-009: also where nobody closes it; asked again, it is started again."""
    program = Program(answering(f"echo $$ >>{tmp_path}/pids; echo hello; echo done"), LONG)
    for _ in range(2):
        with pytest.raises(CandidateError, match="the answer has 'hello'"):
            program.answer("encode", "encode", SMALL)
    pids = list(map(int, (tmp_path / "pids").read_text().split()))
    assert len(set(pids)) == 2
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.tier("full")
def test_a_field_that_no_suite_has_ends_nothing(tmp_path):
    """PRO-007: it is named, and right fields are compared, here and in other suites."""
    text = ENGINE.replace(
        '        print("done"', '        print("out kode 1 7")\n        print("done"'
    )
    with candidate_named(f"exec:{python(tmp_path, text)}", LONG) as candidate:
        found = verify(candidate, suites_in(bundled_files(), ["decisions", "error_steps"]))
    assert [result.verdict for result in found.results] == ["match", "match"]
    assert [result.unknown.names for result in found.results] == [("kode",), ("kode",)]


@pytest.mark.tier("full")
def test_a_number_that_does_not_fit_is_a_mismatch(tmp_path):
    """PRO-007."""
    wide = '*(f"{number | 1 << 40:X}" for number in array.ravel().tolist())'
    text = ENGINE.replace('*(f"{number:X}" for number in array.ravel().tolist())', wide)
    with candidate_named(f"exec:{python(tmp_path, text)}", LONG) as candidate:
        found = verify(candidate, suites_in(bundled_files(), ["decisions", "error_steps"]))
    assert [result.verdict for result in found.results] == ["mismatch", "mismatch"]
    assert found.failures == ()


@pytest.mark.parametrize("raised", [None, ValueError, KeyboardInterrupt])
def test_nothing_of_a_program_is_left(tmp_path, monkeypatch, raised):
    """PRO-009: nor of its children, when it has to be killed."""
    monkeypatch.setattr(own_process, "_PATIENCE", 0.3)
    pids = tmp_path / "pids"
    stays = f"trap '' HUP TERM INT; {FOREVER} & echo $$ $! >{pids}; echo skip; wait; wait"
    with contextlib.suppress(raised or ()), Program(answering(stays), LONG) as program:
        program.answer("encode", "encode", SMALL)
        own, child = map(int, pids.read_text().split())
        assert is_running(own)
        assert is_running(child)
        if raised:
            raise raised
    with pytest.raises(ProcessLookupError):
        os.kill(own, 0)  # not even as a zombie
    eventually(lambda: not is_running(child))


def test_a_program_that_fails_midway_is_reported(tmp_path):
    """PRO-010."""
    third, cases = golden.load("decisions")[2].name, len(golden.load("decisions"))
    text = ENGINE.replace(
        "_, operation, _ = next(words), next(words), next(words)",
        f"_, operation, case = next(words), next(words), next(words); assert case != {third!r}",
    )
    with candidate_named(f"exec:{python(tmp_path, text)}", LONG) as candidate:
        found = verify(candidate, suites_in(bundled_files(), ["decisions", "error_steps"]))
    assert (found.verdict, found.not_asked) == ("failed", ())
    result, other = found.results
    assert (result.answered, result.cases, result.differing) == (cases - 1, cases, 0)
    assert result.not_answered == (third,)
    (failure,) = found.failures
    assert failure.case == third
    assert f"case '{third}' of suite 'decisions': it ended with status 1 before" in failure.message
    assert other.verdict == "match"  # the program was started again after the third case


@pytest.mark.tier("full", but=["[exec:/nowhere/program-0]"])
@pytest.mark.parametrize(
    ("candidate", "asked_until"),
    [
        ("exec:/nowhere/program", 0),  # it cannot be started
        (f"exec:{answering(FOREVER)}", 2),  # three cases that are late
    ],
)
def test_a_program_that_takes_time_for_nothing_is_not_asked_for_ever(
    monkeypatch, candidate, asked_until
):
    """PRO-009: three times the seconds of a case are lost, and nothing more is asked."""
    ClockOfWaits(monkeypatch)
    with candidate_named(candidate, 0.25) as program:
        found = verify(program, suites_in(bundled_files(), ["decisions", "error_steps"]))
    names = [case.name for case in golden.load("decisions")]
    assert [failure.case for failure in found.failures] == names[: asked_until + 1]
    assert found.not_asked == ("error_steps",)
    assert found.cases_not_asked == len(names[asked_until + 1 :]) + 1
    assert found.results[0].verdict == "failed"


def test_a_program_that_fails_at_once_is_asked_all():
    """PRO-009: each case of each suite, as little time is lost."""
    with candidate_named(f"exec:{answering('exit 1')}", LONG) as program:
        found = verify(program, suites_in(bundled_files(), ["decisions", "error_steps"]))
    assert [len(result.failures) for result in found.results] == [len(golden.load("decisions")), 1]
    assert found.not_asked == ()


def test_a_program_has_time_to_end(tmp_path, monkeypatch):
    """PRO-009: its input ends first, and it is killed only if it stays."""
    monkeypatch.setattr(own_process, "_PATIENCE", LONG)
    with Program(
        shell(f"read -r a; echo skip; cat >/dev/null; sleep 0.2; echo >{tmp_path}/end"), LONG
    ) as program:
        program.answer("encode", "encode", SMALL)
    assert (tmp_path / "end").exists()


def test_an_interrupt_amid_the_start_leaves_no_program(monkeypatch):
    """It comes where the program runs already, and nobody has it yet."""
    started = []

    class Interrupted(subprocess.Popen):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            started.append(self.pid)
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), Program(FOREVER, LONG) as program:
            program.answer("encode", "encode", SMALL)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, usual)
    with pytest.raises(ProcessLookupError):
        os.kill(started[0], 0)


@pytest.mark.tier("full")
def test_an_interrupted_run_leaves_no_program(tmp_path):
    text = f"{FOREVER} & echo $$ $! >{tmp_path}/new; mv {tmp_path}/new {tmp_path}/pids; wait"
    # What a shell runs in the background ignores interrupts, and so may we.
    listening = f"import signal; signal.signal(signal.SIGINT, signal.default_int_handler); {MAIN}"
    command = [sys.executable, "-c", listening, "verify", f"exec:{shell(text)}"]
    command += ["--timeout", str(LONG)]
    running = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    eventually((tmp_path / "pids").exists)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate()
    assert running.returncode == 130
    assert "Traceback" not in errors
    for pid in map(int, (tmp_path / "pids").read_text().split()):
        eventually(lambda pid=pid: not is_running(pid))


def test_a_program_and_its_children_end_with_a_run_that_is_killed(tmp_path):
    """Also where they hang, and do not see that their input has ended."""
    text = f"{FOREVER} & echo $$ $! >{tmp_path}/new; mv {tmp_path}/new {tmp_path}/pids; wait"
    command = [sys.executable, "-c", MAIN, "verify", f"exec:{shell(text)}", "--timeout", str(LONG)]
    with subprocess.Popen(command) as running:
        eventually((tmp_path / "pids").exists)
        running.kill()
    for pid in map(int, (tmp_path / "pids").read_text().split()):
        eventually(lambda pid=pid: not is_running(pid))


@pytest.mark.tier("full", but_one_in=4)
@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["exec:"], 2, "candidate is 'exec:' without a program; give one, as exec:./program"),
        (["exec:'a"], 2, "(No closing quotation); close the quotation"),
        (["exec:cat", "--timeout", "0"], 2, "timeout is 0.0; give a number of seconds above 0"),
        (["exec:cat", "--timeout", "nan"], 2, "timeout is nan; give a number of seconds above 0"),
        (["exec:cat", "--timeout", "inf"], 2, "timeout is inf; give a number of seconds above 0"),
        ([f"exec:{FOREVER}", "--timeout", "0.2"], 3, "it gave no whole answer within 0.2 s"),
        (["exec:./nowhere"], 3, "exec:./nowhere: it cannot be started (No such file"),
        (["exec:sh -c 'echo oh >&2'"], 3, "oh"),  # its own words are seen
    ],
)
def test_exit_status(arguments, status, message):
    done = mor_ref(*arguments, "--suite", "decode")
    assert done.returncode == status, done.stderr
    assert message in (done.stderr if status == 2 or message == "oh" else done.stdout)
    assert "Traceback" not in done.stderr


def test_a_program_is_named_as_a_candidate():
    candidate = candidate_named("exec:./program -x", 3)
    assert isinstance(candidate, Program)
    assert candidate.name == "exec:./program -x"
    assert candidate_named("exec:true").name == "exec:true"
