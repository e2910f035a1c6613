"""Streams: the inputs that are generated."""

import numpy as np
import pytest
from streaming import ALL, E4M3, ENTRIES, FIRST, arrays_of, random_lines, run, widths

from mor_ref.golden.streams.stream import inputs_of, random_inputs, stream_named
from mor_ref.operations import random_words
from mor_ref.operations.random_numbers import Draws, moved


@pytest.mark.tier("full", but_one_in=8)
@pytest.mark.parametrize("name", FIRST)
def test_the_kept_inputs_come_first(name):
    fields = ENTRIES[name.split("/")[0]]["fields"]
    columns = [field["name"] for field in fields if field["role"] == "input"]
    rows = zip(*(arrays_of(name)[column].tolist() for column in columns), strict=True)
    places = widths(name)
    expected = [" ".join(f"{v:0{w}x}" for v, w in zip(row, places, strict=False)) for row in rows]
    status, out, err = run("gen", name, "--count", len(expected) + 5)
    assert (status, err) == (0, "")
    assert out.endswith("\n")
    assert out.splitlines()[: len(expected)] == expected
    assert out.splitlines()[len(expected) :] == random_lines(name, 5)
    assert {len(line) for line in out.splitlines()} == {len(expected[0])}


@pytest.mark.tier("full")
def test_the_same_lines_every_time():
    lengths = 3000, 3000, 2500
    first, again, shorter = (run("gen", E4M3, "--seed", 7, "--count", n)[1] for n in lengths)
    other = run("gen", E4M3, "--seed", 8, "--count", 3000)[1]
    assert first == again
    assert first.startswith(shorter)
    size = arrays_of(E4M3)["x"].size
    same = [a == b for a, b in zip(first.splitlines(), other.splitlines(), strict=True)]
    assert all(same[:size])
    assert sum(same[size:]) < 100


@pytest.mark.tier("full", but_one_in=2)
@pytest.mark.parametrize("name", FIRST)
def test_the_same_lines_in_chunks_of_any_size(name):
    stream = stream_named(name)
    some, others = (
        b"".join(stream.question.written(a) for a in inputs_of(stream, 3, 9000, chunk=chunk))
        for chunk in (1 << 14, 777)
    )
    assert some == others
    assert some.count(b"\n") == 9000


def test_the_words_have_no_end():
    """SplitMix64 of a counter that begins at a word of the seed's; here with Python's integers."""

    def split_mix(counter):
        z = counter * 0x9E3779B97F4A7C15 % 2**64
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        return z ^ z >> 31

    for first in (0, 5, 1 << 40, (1 << 64) - 9):
        start = split_mix(1 + (2 << 32) + (3 << 48))
        expected = [split_mix((start + first + i) % 2**64) for i in range(4)]
        assert random_words.endless_words(first, 4, 3, 2).tolist() == expected


def test_numbers_move_up_to_two_steps_each_way():
    """As integers of Python do, and no further than the ends."""
    pairs = [(at, steps) for at in range(7) for steps in range(5)]
    found = moved(*np.array(pairs, np.uint64).T, most=6)
    assert found.tolist() == [min(max(at + steps - 2, 0), 6) for at, steps in pairs]


@pytest.mark.tier("full", one_in=4, but=[f"[{name}]" for name in FIRST])
@pytest.mark.parametrize("name", ALL)
def test_all_inputs_are_in_the_domain(name):
    stream = stream_named(name)
    arrays = random_inputs(stream, Draws(0, 1 << 14, 1))
    assert stream.domain.inside(stream.parameters, arrays).all()
    assert stream.domain.inside(stream.parameters, arrays_of(name)).all()
