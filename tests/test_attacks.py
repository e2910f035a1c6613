"""A sample of `make hostile`, with a fixed seed."""

import random

import pytest
from hostile import mutations, signals

DRAW = random.Random(1)  # noqa: S311  # not for secrets


def test_mutations_are_results_or_sentences():
    assert mutations.attack(DRAW, 20) == []


@pytest.mark.tier("full")
def test_signals_end_commands_whenever_they_come():
    assert signals.attack(DRAW, 2) == []


def test_a_finding_is_reported_and_kept(tmp_path, monkeypatch):
    def failing(_data):
        raise KeyError("a traceback")

    monkeypatch.setattr(mutations, "FINDINGS", tmp_path)
    monkeypatch.setattr(mutations, "TARGETS", [mutations.lines])
    monkeypatch.setattr(mutations.lines, "one_input", failing)
    (failure,) = mutations.attack(DRAW, 1)
    assert failure == f"{tmp_path / 'fuzz.lines.0'}: KeyError: 'a traceback'"
    assert (tmp_path / "fuzz.lines.0").is_file()
