"""What is stable: nothing that was promised is gone or changed, and what is new is listed."""

import functools
import json
import re
import warnings

import pytest
import stable

import mor_ref
from mor_ref.cli.statuses import Status


@functools.cache
def today(section):
    return stable.today(section, stable.listed()[section])


@pytest.mark.parametrize("section", stable.PROMISES)
def test_no_promise_is_broken(section):
    wrong = stable.broken(section, stable.listed()[section], today(section))
    said = "".join(f"\n  {name}: {how}" for name, how in wrong.items())
    assert not wrong, f"{stable.PROMISES[section]}{said}"


@pytest.mark.parametrize("section", stable.PROMISES)
def test_what_is_new_is_listed(section):
    new = sorted(today(section).keys() - stable.listed()[section].keys())
    said = f"{section}: {', '.join(new[:9])} ({len(new)} in all)"
    assert not new, f"{said} will be promised from now on: run `make stable`"


@pytest.mark.parametrize(
    ("section", "was", "now", "how"),
    [
        ("rules", {"ENC-001": ""}, {"ENC-001": "", "ENC-002": ""}, {}),
        ("rules", {"ENC-001": ""}, {"ENC-002": ""}, {"ENC-001": "gone"}),
        ("statuses", {"bits differ": 1}, {"bits differ": 2}, {"bits differ": "1 is 2 now"}),
        ("golden", {"a": "12"}, {"a": "13", "b": "14"}, {"a": "12 is 13 now"}),
        ("records", {"a": ["text"]}, {"a": ["null", "text"], "a.b": ["text"]}, {}),
        ("records", {"a": ["null"]}, {"a": ["text"]}, {}),
        ("records", {"a": ["text"]}, {"a": ["number"]}, {"a": "(text) is (number) now"}),
        ("python", {"f": ["x", "*", "n=1"]}, {"f": ["x", "*", "m=2", "n=1"]}, {}),
        ("python", {"f": ["x"]}, {"f": ["x", "y=1", "*", "n=1"]}, {}),
        ("python", {"f": ["x", "*", "n=1"]}, {"f": ["x", "n=1"]}, {}),
        ("python", {"f": ["x"]}, {"f": ["x", "y"]}, {"f": "(x) is (x, y) now"}),
        ("python", {"f": ["x"]}, {"f": ["y"]}, {"f": "(x) is (y) now"}),
        ("python", {"f": ["x"]}, {"f": ["y=1", "x"]}, {"f": "(x) is (y=1, x) now"}),
        ("python", {"f": ["*", "n=1"]}, {"f": ["*", "n=2"]}, {"f": "(*, n=1) is (*, n=2) now"}),
        ("python", {"f": ["x"]}, {"f": ["x", "*", "n"]}, {"f": "(x) is (x, *, n) now"}),
        ("python", {"f": ["x"]}, {"f": "value"}, {"f": "(x) is value now"}),
    ],
)
def test_additions_break_nothing(section, was, now, how):
    assert stable.broken(section, was, now) == how


HEADER = """
typedef enum { MOR_A, /* the first */ MOR_B } mor_letter;
typedef struct { uint32_t x, y; } mor_pair;
int64_t mor_f(const mor_pair *pair, mor_letter letter,
              uint32_t count);
"""
TAKEN = "const mor_pair *, mor_letter, uint32_t"


@pytest.mark.parametrize(
    ("old", "new", "how"),
    [
        ("MOR_A,", "MOR_Z, MOR_A,", {"MOR_A": "0 is 1 now", "MOR_B": "1 is 2 now"}),
        ("MOR_B }", "MOR_B, MOR_C }", {}),
        ("mor_pair *pair", "mor_pair *of", {}),
        ("x, y", "x, y, z", {}),
        ("uint32_t x", "int x", {f"mor_pair.{name}": "uint32_t is int now" for name in "xy"}),
        ("f(", "f(int size, ", {"mor_f": f"int64_t ({TAKEN}) is int64_t (int, {TAKEN}) now"}),
        ("int64_t", "int", {"mor_f": f"int64_t ({TAKEN}) is int ({TAKEN}) now", "int64_t": "gone"}),
    ],
)  # fmt: skip
def test_numbers_and_arguments_of_the_library_stay(old, new, how):
    promised = stable.declared_in_c(HEADER)
    changed = stable.declared_in_c(HEADER.replace(old, new))
    assert stable.broken("library", promised, changed) == how


def test_names_and_numbers_in_systemverilog_stay():
    text = (
        "typedef enum int {MOR_A, MOR_B} letter_t; function int mor_f(\n input int a, input int b);"
    )
    promised = stable.declared_in_systemverilog(text)
    changed = stable.declared_in_systemverilog(
        text.replace("A, MOR_B", "B, MOR_A").replace("b)", "c)")
    )
    assert set(stable.broken("library", promised, changed)) == {
        *("mor_ref_dpi::MOR_A", "mor_ref_dpi::MOR_B", "mor_ref_dpi::mor_f")
    }


def test_the_page_names_the_modules_that_are_not_promised():
    page = (stable.ROOT / "docs" / "guide" / "stable.md").read_text("utf-8")
    section = page.partition("## What is not promised")[2].partition("\n## ")[0]
    named = set(re.findall(r"`mor_ref\.([\w.]+)`", section))
    assert named == set(stable.INSIDE)


def test_the_list_drops_nothing_by_itself(tmp_path, monkeypatch, capsys):
    file = tmp_path / "stable.json"
    file.write_text('{"rules": {"ENC-001": "spec/ENC-001", "TIN-001": "spec/TIN-001"}}')
    monkeypatch.setattr(stable, "FILE", file)
    monkeypatch.setattr(stable, "PROMISES", {"rules": stable.PROMISES["rules"]})
    before = file.read_text()
    assert stable.main([]) == 1
    assert "rules: TIN-001: gone" in capsys.readouterr().out
    assert file.read_text() == before
    assert stable.main(["--drop"]) == 0
    written = json.loads(file.read_text())["rules"]
    assert "TIN-001" not in written
    assert {"ENC-001", "ENC-002"} <= written.keys()


def test_an_old_name_of_python_that_answers_keeps_the_promise(monkeypatch):
    """It is no longer in the reference, and warns."""
    usual = mor_ref.__getattr__

    def answer(name):
        if name == "to_codes":
            warnings.warn("to_codes is encode now", DeprecationWarning, stacklevel=2)
            return mor_ref.encode
        return usual(name)

    promised = {"mor_ref.to_codes": stable.listed()["python"]["mor_ref.encode"]}
    assert stable.broken("python", promised, stable.api(promised)) == {"mor_ref.to_codes": "gone"}
    monkeypatch.setattr(mor_ref, "__getattr__", answer)
    assert stable.broken("python", promised, stable.api(promised)) == {}


def test_the_page_has_the_statuses():
    page = (stable.ROOT / "docs" / "guide" / "stable.md").read_text("utf-8")
    section = page.partition("## Exit statuses")[2].partition("\n## ")[0]
    named = {int(status) for status in re.findall(r"^\| (\d) \|", section, re.MULTILINE)}
    assert named == {status for status in stable.listed()["statuses"].values() if status < 6}
    shells = {Status.INTERRUPTED, Status.CLOSED_PIPE}
    assert set(Status) - shells == named
    assert all(f" {int(status)}" in section for status in shells)


def test_the_page_names_commands_that_there_are():
    page = (stable.ROOT / "docs" / "guide" / "stable.md").read_text("utf-8")
    named = re.findall(r"`mor-ref ([a-z]+(?: [a-z]+)?)", page)
    named += re.findall(r"^\$ mor-ref ([a-z]+)", page, re.MULTILINE)
    commands = {name for name, taken in stable.listed()["commands"].items() if taken == "a command"}
    assert {"gen", "golden check"} <= set(named)
    assert [name for name in named if name not in commands] == []
    assert set(re.findall(r"`([a-z]+) [a-z]+`", page)) == {"make"}  # others begin with mor-ref


def test_the_list_has_every_outcome_of_a_test_of_junit():
    """A report for the list has a suite of each: an element without attributes is listed, too."""
    outcomes = {"failure", "error", "skipped", "system-out"}
    assert {f"junit {tag}" for tag in (*outcomes, "properties")} <= today("records").keys()


def test_the_version_is_that_of_the_change_log_and_of_the_wheel_that_pages_name():
    changes = (stable.ROOT / "CHANGELOG.md").read_text("utf-8")
    versions = re.findall(r"^## (\d+\.\d+\.\d+)\b", changes, re.MULTILINE)
    assert versions[0] == mor_ref.__version__
    page = (stable.ROOT / "docs" / "guide" / "maintainers.md").read_text("utf-8")
    assert f"mor_ref-{mor_ref.__version__}-py3-none-any.whl" in page


def test_each_list_and_each_value_of_records_has_what_is_in_it():
    """A list that is empty in a sample, or a value that is null, would hide keys of entries."""
    records = today("records")
    lists = [path for path, kinds in records.items() if "list" in kinds]
    assert [path for path in lists if f"{path}[]" not in records] == []
    nulls = [path for path, kinds in records.items() if kinds == ["null"]]
    assert [path for path in nulls if not path.endswith(".other.other")] == []  # of its own kind


def test_each_command_with_json_has_records():
    commands = [name[: -len(" --json")] for name in today("commands") if name.endswith(" --json")]
    assert {"golden mistakes", "verify"} <= set(commands)
    records = today("records")
    named = tuple(path.partition("[]")[0].partition(".")[0] for path in records)
    assert [name for name in commands if not any(n.startswith(name) for n in named)] == []
