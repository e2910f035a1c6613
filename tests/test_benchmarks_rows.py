"""The measurements of a row of the table: contenders, bytes, rounds, and differences."""

import functools
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
from extras import of_benchmarks

import mor_ref

rows = of_benchmarks("rows")
course = of_benchmarks("course")
table = of_benchmarks("table")

X = np.linspace(-3, 3, 1 << 10, dtype=np.float32).reshape(8, -1)
CODES = mor_ref.encode(X, "e4m3")
Q = functools.partial(mor_ref.quantize_nvfp4, X.astype(np.float32), threads=1)


def line(contenders, numbers=X, wanted=()):
    """Measure a row; each time is a second."""
    row = rows.Row("r", lambda: numbers, contenders, wanted)
    found = course.Course(row)
    return table.Line(row, {n: rows.Measured(**f, seconds=1.0) for n, f in found.facts.items()})


@pytest.mark.parametrize(
    ("call", "numbers", "each"),
    [
        (lambda x: lambda: mor_ref.encode(x, "e4m3"), X, 4 + 1),
        (lambda x: lambda: mor_ref.decode(x, "e4m3"), CODES, 1 + 4),
        (lambda _: Q, X, 4 + 1 + 1 / 16 + (3 * 8 + 2 * 4) / X.size),  # scales and sums
        (lambda _: lambda: [X, {"again": X}, X[:1]], X, 4 + 4),
    ],
)
def test_bytes_are_those_given_and_those_returned(call, numbers, each):
    """And a copy of as many bytes is what the rate of these bytes is a share of."""
    found = line({"mor_ref": rows.Contender(call)}, numbers)
    assert found.bytes_each == each
    assert found.share_of_copy == pytest.approx(1, abs=1e-3)
    assert rows.COPY not in found.found


def test_a_limit_on_the_time_of_a_copy_is_of_the_same_numbers():
    """Whatever the call writes."""
    limit = rows.Ratio((rows.COPY,), at_least=1.1)
    found = line({"mor_ref": rows.Contender(lambda x: x.copy)}, wanted=(limit,))
    assert found.found[rows.COPY].elements == X.size
    assert found.found[rows.COPY].moved == 2 * X.nbytes
    assert [v.is_met for v in found.verdicts] == [False]


def test_there_is_no_rate_of_what_makes_its_numbers():
    found = line({"mor_ref": rows.Contender(lambda _: lambda: None, makes_numbers=True)})
    assert found.bytes_each is None
    assert found.share_of_copy is None


@pytest.mark.parametrize(
    ("seconds", "rounds"), [((0.001, 0.002), 7), ((0.03, 0.05), 3), ((0.001, 3.0), 2)]
)
def test_all_contenders_have_the_same_number_of_rounds(seconds, rounds):
    assert course.rounds_in_a_turn(seconds) == rounds


@pytest.mark.parametrize(
    ("differs", "allowed"),
    [
        (None, {None, 0}),
        (rows.Difference("r", 3, 2), {None, 2, 3}),
        (rows.Difference("r", 2, 0), {None, 0, 1, 2}),
    ],
)
def test_a_reason_excuses_only_so_many_differences(differs, allowed):
    contender = rows.Contender(lambda x: x, differs=differs)
    assert {n for n in (None, 0, 1, 2, 3, 4) if contender.allows(n)} == allowed


def test_differences_are_counted():
    """Next to results that are ours, and to those that are compared with something else."""
    off = X.copy()
    off[0, :3] += 1
    same = (lambda _: lambda: X, lambda y: (y,))
    contenders = {
        "mor_ref": rows.Contender(*same),
        "peer": rows.Contender(
            lambda _: lambda: off, lambda y: (y,), differs=rows.Difference("is off", 3)
        ),
        "variant": rows.Contender(*same, expected=lambda: (X,)),
    }
    found = line(contenders).found
    assert [found[name].differing for name in contenders] == [0, 3, 0]
    assert found["peer"].differs == "is off"


def test_every_library_is_asked_for_and_listed():
    """In an extra of this project, and among the versions of a run."""
    from benchmarks.all_rows import ROWS
    from benchmarks.conftest import VERSIONS

    folder = Path(table.__file__).parent.parent
    extras = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    extras = extras["optional-dependencies"]
    asked_for = {
        re.match(r"[\w-]+", text)[0].lower().replace("_", "-")
        for text in extras["bench"] + extras["peers"] + extras["test"]
    }
    listed = {name.lower().replace("_", "-") for name in VERSIONS}
    needed = {c.needs for row in ROWS for c in row.contenders.values() if c.needs}
    assert {"jax", "apytypes"} <= needed
    named = {"modelopt": "nvidia-modelopt"}
    for module in needed - {"gcc"}:  # a program
        name = named.get(module, module).replace("_", "-")
        assert name in asked_for, module
        assert name in listed, module
