"""Streams: how lines are written, refusals, and lines that were sent."""

import pytest
from streaming import E4M3, answered, arrays_of, check, joined, random_lines, run

from mor_ref.golden.streams.stream import inputs_of, stream_named
from mor_ref.verify.running.check_lines import LineError, Sent, checked, whole_lines


@pytest.mark.tier("full")
def test_how_lines_may_be_written():
    lines = answered(E4M3, random_lines(E4M3, 100))
    text = joined(lines)
    for other in (
        text,
        text.upper(),
        joined(lines, "\r\n"),
        text.removesuffix(b"\n"),
        joined(lines, "\r\n").removesuffix(b"\n"),
        joined(lines[:50], "\r\n") + joined(lines[50:]),
    ):
        for piece in (1, 7, 12, 1 << 16):
            assert check(E4M3, other, piece) == (100, [])


@pytest.mark.tier("full", but=["[100-3f800000-", "[1-3f80  00 38-"])
@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("3f800000", "'3f800000'"),
        ("3f800000 ", "'3f800000 '"),
        ("3f800000 3", "'3f800000 3'"),
        ("3f800000 038", "'3f800000 038'"),
        ("3f800000 38 00", "'3f800000 38 00'"),
        ("3f800000  8", "'3f800000  8'"),
        ("3f80000 038", "'3f80000 038'"),
        ("3f8000 0038", "'3f8000 0038'"),
        ("3f80  00 38", "'3f80  00 38'"),
        ("3f800000\t38", "'3f800000\\t38'"),
        ("3f80000g 38", "'3f80000g 38'"),
        ("0x3f800000 0x38", "'0x3f800000 0x38'"),
        ("3f800000038", "'3f800000038'"),
        ("3f800000 \x00\x00", "'3f800000 \\x00\\x00'"),
        ("", "''"),
        (" ", "' '"),
    ],
)
@pytest.mark.parametrize("before", [0, 1, 100])
def test_a_line_that_is_not_understood(line, shown, before):
    """It is named with its number, after the lines before it have been checked."""
    right = ["3F80000a 38"] * before
    expected = (
        f"line {before + 1} is {shown}, which is not understood; give x of 8 and code of 2 "
        "hexadecimal digits, with one space between"
    )
    text = joined([*right, line, *right])
    for piece in (5, 1 << 16):
        with pytest.raises(LineError) as refused:
            check(E4M3, text, piece)
        assert str(refused.value) == expected


@pytest.mark.parametrize(
    ("ending", "said"),
    [
        (" 00" * 32, "it has 64 numbers, but 65 are expected"),
        (" 00" * 34, "it has more than 65 numbers"),
        (" 00" * 32 + " 0x7f", "number 65 is '0x7f', but 2 digits are expected"),
        ("0" + " 00" * 33, "number 32 is '000000000', but 8 digits are expected"),
    ],
)
def test_the_fault_of_a_long_line_is_named(ending, said):
    line = " ".join(["00000000"] * 32) + ending
    with pytest.raises(LineError) as refused:
        check("mx_blocks/e4m3.floor", joined([line]))
    assert str(refused.value) == (
        f"line 1 is {line[:60] + '..'!r}, which is not understood: {said}; give x of 32 times 8, "
        "scale of 2 and code of 32 times 2 hexadecimal digits, with one space between"
    )


def test_bytes_that_are_no_text():
    with pytest.raises(LineError, match=r"line 1 is '\\\\xff\\\\xfe'"):
        check(E4M3, b"\xff\xfe\n")


def test_a_line_without_end_is_not_kept():
    pieces = iter([b"0" * 100] * 3)
    assert list(whole_lines(lambda: next(pieces, b""), 12)) == [b"0" * 100 + b"\n"]


@pytest.mark.tier("full", but_one_in=4)
@pytest.mark.parametrize(
    ("name", "line", "words"),
    [
        ("error_steps", ["00000000"] * 5, "line 2 has x 0x00000000 (0), y 0x00000000 (0), which"),
        ("error_steps", ["7f800000"] * 5, "does not take: x is finite and not zero"),
        ("error_steps", ["3f800000", "7fc00000"] + ["0" * 8] * 3, "and y is not a NaN"),
        ("scale_steps/e4m3.gam", ["3f800000", "40000000", "0" * 8, "00", "0" * 8], "not larger"),
        ("scale_steps/e4m3.gam", ["7f800000", "40000000", "0" * 8, "00", "0" * 8], "not larger"),
        ("quantize_steps/e4m3", ["3f800000", "0" * 8, "0" * 8, "00", "0" * 8], "scale is positive"),
        ("encode_stochastic/e4m3.8", ["3f800000", "00000100", "38"], "random_word 256, which"),
        ("decode/e2m1", ["10", "00000000"], "code 0x10 (not of 4 bits), which decode does not"),
    ],
)
def test_inputs_outside_of_the_domain(name, line, words):
    right = answered(stream_named(name).name, random_lines(name, 1))
    with pytest.raises(LineError, match="line 2 has ") as refused:
        check(name, joined([*right, " ".join(line), *right]))
    assert words in str(refused.value)


@pytest.mark.tier("full", but_one_in=5)
@pytest.mark.parametrize(
    ("arguments", "text", "message"),
    [
        ((), b"", "the input has no line to check; give lines of x of 8 and code of 2 hexadecimal"),
        (("--count", 3), b"3f800000 38\n" * 2, "count is 3, but the input ended after 2 lines"),
        (("--errors", 0), b"", "errors is 0; give an int from 1 to"),
        (("--count", 0), b"", "count is 0; give an int from 1 to"),
        (("--format", "json"), b"", "format is 'json', which is not known; take testfloat"),
    ],
)
def test_ver_cannot_go_on(arguments, text, message):
    status, out, err = run("ver", E4M3, *arguments, text=text)
    assert (status, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1


@pytest.mark.tier("full")
def test_mismatches_before_a_line_that_is_not_understood_are_named():
    status, out, err = run("ver", E4M3, text=b"3f800000 39\nfoo\n")
    assert status == 1
    assert out.startswith("line 1: x 0x3F800000 (1): code is 0x39")
    assert out.endswith(f"\n{E4M3}: mismatch, 1 line, 1 of them wrong\n")
    assert err.startswith("mor-ref: line 2 is 'foo'")
    status, out, _ = run("ver", E4M3, text=b"3f800000 38\nfoo\n")
    assert (status, out) == (2, "")


def test_a_count_ends_the_check():
    text = b"3f800000 38\n" * 5
    assert check(E4M3, text + b"foo\n", count=5) == (5, [])
    assert check(E4M3, text, count=3) == (3, [])
    assert check(E4M3, text + b"3f800000 39\n", piece=12, count=5) == (5, [])


@pytest.mark.parametrize(
    ("suite", "message"),
    [
        ("encode", "which has 250 cases; give one of them after a slash, such as encode/e4m3.f32"),
        ("encode/", "suite is 'encode', which has "),
        ("encode/e4m3.f32.rne", "case of encode is 'e4m3.f32.rne', which is not known; the neare"),
        ("encode/foo", "; mor-ref golden list encode --cases prints all 250"),
        ("encode", "canonical; mor-ref golden list encode --cases prints all"),
        ("encod/e4m3", "suite is 'encod', which is not known; did you mean 'encode'? take one of"),
        ("mx", "suite is 'mx', which has no random inputs; streams are of single numbers and"),
        ("nvfp4_te/bell.bf16", "or use mor-ref verify"),
    ],
)  # fmt: skip
def test_names_that_are_not_known(suite, message):
    with pytest.raises(ValueError, match=r"^\w[^\n]+$") as refused:
        stream_named(suite)
    assert message in str(refused.value)


@pytest.mark.parametrize("name", ["gen", "ver"])
def test_a_suite_of_tensors_is_refused(name):
    status, out, err = run(name, "mx")
    assert (status, out) == (2, "")
    assert err.startswith("mor-ref: suite is 'mx', which has no random inputs")


def test_gen_is_called_wrongly():
    for arguments, message in (
        (("--format", "csv"), "format is 'csv', which is not known; take testfloat"),
        (("--seed", -1), "seed is -1; give an int from 0 to 65535"),
        (("--count", 0), "count is 0; give an int from 1 to"),
    ):
        status, out, err = run("gen", E4M3, *arguments)
        assert (status, out) == (2, "")
        assert message in err


def sent_lines(name, seed, count):
    stream = stream_named(name)
    text = b"".join(stream.question.written(arrays) for arrays in inputs_of(stream, seed, count))
    return answered(name, text.decode("ascii").splitlines())


def held_to(name, lines, seed, piece=1 << 16):
    text = joined(lines)
    pieces = iter([text[i : i + piece] for i in range(0, len(text), piece)])
    stream = stream_named(name)
    sent = Sent(inputs_of(stream, seed, chunk=777))
    parts = checked(stream, lambda: next(pieces, b""), None, sent)
    return sum(part.count for part in parts)


@pytest.mark.tier("full")
@pytest.mark.parametrize("name", [E4M3, "encode_stochastic/e4m3.8", "error_steps/all"])
def test_lines_are_those_that_were_sent(name):
    """From the bundled ones to the random ones, in pieces of any size."""
    size = next(iter(arrays_of(name).values())).size
    lines = sent_lines(name, 7, size + 900)
    for piece in (1 << 16, 1000, 37 if size < 3000 else 997):
        assert held_to(name, lines, 7, piece) == size + 900


@pytest.mark.tier("full", but_one_in=4)
@pytest.mark.parametrize(
    ("change", "number"),
    [
        (lambda lines: lines[:100] + lines[101:], 101),
        (lambda lines: lines[:100] + lines[99:], 101),
        (lambda lines: [*lines[:100], lines[101], lines[100], *lines[102:]], 101),
        (lambda lines: [*lines[:100], "3e800000 28", *lines[101:]], 101),
        (lambda lines: lines[::-1], 1),
    ],
)
def test_a_device_that_drops_repeats_or_changes_a_line(change, number):
    right = sent_lines(E4M3, 7, 300)
    lines = change(right)
    with pytest.raises(LineError) as refused:
        held_to(E4M3, lines, 7)
    given, sent = (side[number - 1].split(" ")[0].upper() for side in (lines, right))
    said = str(refused.value)
    assert said.startswith(f"line {number} has x 0x{given} (")
    assert f"), where mor-ref gen sent x 0x{sent} (" in said
    assert said.endswith("each of its lines once, in its order, and give here the seed that it had")
    assert check(E4M3, joined(lines))[1] == []  # nobody could see it without the seed


@pytest.mark.tier("full")
def test_the_seed_of_ver():
    size = arrays_of(E4M3)["x"].size
    text = joined(sent_lines(E4M3, 7, size + 400))
    status, out, _ = run("ver", E4M3, "--seed", 7, text=text)
    assert (status, out) == (0, f"{E4M3}: match, {size + 400:,} lines, 0 of them wrong\n")
    status, out, err = run("ver", E4M3, "--seed", 8, text=text)
    assert (status, out) == (2, "")
    assert f"line {size + 1} has x 0x" in err or "where mor-ref gen sent x" in err
    assert run("ver", E4M3, "--seed", 7, "--count", size, text=text)[0] == 0
    status, _, err = run("ver", E4M3, "--seed", -1, text=text)
    assert (status, err) == (2, "mor-ref: seed is -1; give an int from 0 to 65535\n")


@pytest.mark.tier("full")
def test_results_before_another_line_are_named():
    lines = sent_lines(E4M3, 7, 20)
    lines[3] = f"{lines[3].split(' ')[0]} 55"
    status, out, err = run("ver", E4M3, "--seed", 7, text=joined([*lines[:9], *lines[10:]]))
    assert status == 1
    assert out.startswith("line 4: x 0x")
    assert err.startswith("mor-ref: line 10 has x 0x")


def test_integers_of_a_signed_grid_have_their_sign():
    line = b"bf800000 3f800000 fffffffd fffffffb 00000000\n"
    (found,) = checked(stream_named("affine_steps/int8.torchao_0_18"), iter([line, b""]).__next__)
    assert found.describe(0).startswith(
        "line 1: x 0xBF800000 (-1), scale 0x3F800000 (1), zero_point -3: "
        "code is -5, but -4 is expected, -1; y is"
    )
