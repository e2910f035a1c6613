"""Streams: pipes, interrupts and memory."""

import os
import signal
import subprocess
import sys

import pytest
from peak_memory import saying_peak
from streaming import E4M3, MAIN, answered, joined, random_lines, run

from mor_ref.cli import stream as command


@pytest.mark.tier("full")
def test_a_pipe_of_commands():
    _, lines, _ = run("gen", E4M3, "--count", 3000)
    status, out, err = run("ver", E4M3, text=joined(answered(E4M3, lines.splitlines())))
    assert (status, out, err) == (0, f"{E4M3}: match, 3,000 lines, 0 of them wrong\n", "")


def started(*arguments, before="", **streams):
    # What runs in the background is started with interrupts ignored, and hands that on.
    listening = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    code = listening + before + MAIN
    return subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], **streams)


@pytest.mark.tier("full")
def test_a_reader_that_has_seen_enough():
    process = started("gen", E4M3, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"00000000\n"
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 0


def test_a_pipe_that_takes_a_few_bytes_at_once(monkeypatch):
    written = bytearray()

    def write(_, content):
        written.extend(content[:5])
        return min(5, len(content))

    monkeypatch.setattr(command.os, "write", write)
    assert command.run_gen(E4M3, "testfloat", 0, 3) == 0
    assert written == b"00000000\n00000001\n00800000\n"


@pytest.mark.tier("full")
def test_a_report_that_nobody_reads():
    reading, writing = os.pipe()
    os.close(reading)
    for code in (b"39", b"38"):
        process = started(
            "ver", E4M3, stdin=subprocess.PIPE, stdout=writing, stderr=subprocess.PIPE
        )
        _, err = process.communicate(b"3f800000 " + code + b"\n")
        assert (process.returncode, err) == (141, b"")
    os.close(writing)


@pytest.mark.tier("full")
def test_an_interrupt_is_quiet():
    process = started("gen", E4M3, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert (process.returncode, err) == (130, b"")


@pytest.mark.tier("full")
def test_an_interrupted_check_says_how_far_it_came():
    process = started(
        "ver", E4M3, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdin.write(b"3f800000 38\n3f800000 39\n")
    process.stdin.flush()
    assert process.stdout.readline().startswith(b"line 2: ")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert (process.returncode, err) == (1, b"")
    assert out.decode() == f"{E4M3}: mismatch, 2 lines, 1 of them wrong\n"


@pytest.mark.parametrize(("lines", "verdict"), [([b"3f800000 38\n"], "match"), ([], "not run")])
def test_an_interrupt_before_any_mismatch(monkeypatch, capsys, lines, verdict):
    pieces = iter(lines)

    def read(_, __):
        try:
            return next(pieces)
        except StopIteration:
            raise KeyboardInterrupt from None

    monkeypatch.setattr(command.os, "read", read)
    assert command.run_ver(E4M3, "testfloat", 20, None) == 130
    count = "1 line" if lines else "0 lines"
    assert capsys.readouterr().out == f"{E4M3}: {verdict}, {count}, 0 of them wrong\n"


@pytest.mark.tier("full")
def test_memory_does_not_grow_with_the_stream():
    """Ten million bytes more go through; the most memory that was used stays as it was."""
    peak = saying_peak()

    def kilobytes(*arguments, text=b""):
        process = started(
            *arguments,
            before=peak,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE if arguments[0] == "ver" else subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        _, err = process.communicate(text)
        assert process.returncode == 0
        return int(err)

    few, many = (kilobytes("gen", E4M3, "--count", n) for n in (100_000, 5_000_000))
    assert many - few < 4000
    lines = joined(answered(E4M3, random_lines(E4M3, 1000)))
    few, many = (kilobytes("ver", E4M3, text=lines * n) for n in (100, 4000))
    assert many - few < 4000
