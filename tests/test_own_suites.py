"""Suites of a user: golden check takes the files of golden make, and no line claims too much."""

from dataclasses import replace

import numpy as np
import pytest
from integers import OPERATION

from mor_ref.cli.golden import _exposed
from mor_ref.golden.generation.vectors import has_deviations, made, make
from mor_ref.golden.model.suite import Case, Size, suite
from mor_ref.golden.store.manifest import GoldenError
from mor_ref.golden.suites import SUITES
from mor_ref.operations import OPERATIONS
from mor_ref.operations.fields import given
from mor_ref.verify.checking.check import check, lines

DECODE = SUITES["decode"]


class Here:
    """Workers that work in this process, which has the suites of the test."""

    def as_done(self, function, shards):
        for number, shard in enumerate(shards):
            yield number, function(*shard)


def one_case(name="a", **parameters):
    codes = {"code": np.arange(4, dtype=np.uint8)}
    return lambda _: iter([Case(name, {"format": "e4m3", **parameters}, dict(codes))])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"title": "Größe"}, r"title is 'Gr\xf6\xdfe', and has to be a line of ASCII"),
        ({"title": "ends */ a comment"}, "title is 'ends */ a comment', and has to be"),
        ({"about": ("MINE-1",)}, "is 'MINE-1', and has to be the id of a rule"),
        ({"fields": (given("code f32 n", "codes"), *DECODE.fields[1:])}, "in the format f32"),
        ({"questions": one_case("a b")}, "cases has the name 'a b', which is not a file name"),
        ({"questions": one_case(Size=1)}, "has the name 'Size', which is not a parameter"),
    ],
)
def test_what_no_manifest_can_list_is_not_made(changes, said, tmp_path, monkeypatch):
    """It was written, and `golden check` asked to make it again, which never helped."""
    suite = {"questions": one_case(), **changes}
    monkeypatch.setitem(SUITES, "ours", replace(DECODE, name="ours", **suite))
    with pytest.raises(GoldenError) as refused:
        make(["ours"], tmp_path, Size(), workers=Here())
    assert "cannot be made, as no manifest can list it: " in str(refused.value)
    assert said in str(refused.value)
    assert str(refused.value).endswith("; change it in the module of --rows")
    assert not list(tmp_path.glob("*.safetensors"))
    assert not (tmp_path / "MANIFEST.json").exists()


def test_what_is_made_is_taken(tmp_path, monkeypatch):
    monkeypatch.setitem(
        SUITES, "ours", replace(DECODE, name="ours", title="Mine", questions=one_case())
    )
    entries = {}
    make(["ours"], tmp_path, Size(), entries.__setitem__, Here())
    monkeypatch.setattr("mor_ref.verify.checking.check.processes", Here)
    found = check(tmp_path, [])
    assert found, list(lines(found))
    assert found.suites[0].model == "the exact model"
    assert "exposes" not in _exposed("ours", entries["ours"]).partition(",")[0]
    assert _exposed("ours", entries["ours"]) == (
        "no mistake names it, so how many it exposes is not known"
    )
    assert has_deviations("decode")
    assert _exposed("decode", {"kills": {"a": 1}}) == "exposes 1 mistake"


@pytest.mark.parametrize(
    ("operation", "model"),
    [
        (OPERATION, "the exact function of its own operation"),
        (
            replace(OPERATION, model=OPERATION.function),
            "the function of its operation, which is also the engine",
        ),
    ],
)
def test_a_check_says_what_it_compared_with(operation, model, tmp_path, monkeypatch):
    """Not the exact model, if the operation of a user has an exact function of its own."""
    monkeypatch.setitem(OPERATIONS, operation.name, operation)
    x = np.float32([[0.5, -1.25, 3.0]]).view(np.uint32)
    case = Case("a", {"block": "row", "source": "f32"}, {"x": x})
    own = suite("ours", "Mine", operation.name, (), lambda _: iter([case]), ("zero", "code"))
    monkeypatch.setitem(SUITES, "ours", own)
    make(["ours"], tmp_path, Size(), workers=Here())
    monkeypatch.setattr("mor_ref.verify.checking.check.processes", Here)
    found = check(tmp_path, [])
    assert found, list(lines(found))
    assert f"compared with {model}, " in next(lines(found))


def test_a_suite_is_refused_before_its_cases_are_computed(monkeypatch):
    def asked(_):
        raise AssertionError("the cases are computed")

    monkeypatch.setitem(SUITES, "ours", replace(DECODE, name="ours", title="ü", questions=asked))
    with pytest.raises(GoldenError, match="no manifest can list it: title is"):
        made("ours", Size())
