"""Text of commands: names are printed as they are, and progress goes to a terminal alone."""

import ast
import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.table import Table
from safetensors.numpy import save_file
from terminals import errors_on_terminal

import mor_ref
from mor_ref.cli import main, show
from mor_ref.metrics import MeanRelativeError
from mor_ref.policies import POLICIES, Policy, Rung

NAMES = ["l:fire:w", "a:x:b", "[bold]c[/bold]", "mor:three:"]


@pytest.fixture
def run(monkeypatch, capsys):
    """Return a function that runs the command line, and returns its output and its errors."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["mor-ref", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code == 0
        return tuple(capsys.readouterr())

    return call


@pytest.fixture
def file(tmp_path):
    x = np.linspace(-3, 3, 64, dtype=np.float32).reshape(4, 16)
    save_file(dict.fromkeys(NAMES, x), tmp_path / "x.safetensors")
    return tmp_path / "x.safetensors"


def test_names_are_printed_as_they_are(run, file, monkeypatch):
    """Colons and brackets in the names of tensors and recipes are not markup."""
    policy = Policy("three", (Rung("e4m3", MeanRelativeError("0.1")),))
    monkeypatch.setitem(POLICIES, "three", policy)
    printed, _ = run("analyze", file)
    assert all(name in printed for name in NAMES)
    monkeypatch.setenv("COLUMNS", "200")
    printed, _ = run("compare", file, "--recipe", "mor:three", "--recipe", "mxfp8")
    assert "mor:three " in printed
    assert any(name in printed.partition("worst tensor")[2] for name in NAMES)


def test_tables_print_names_as_they_are():
    for console in (show.plain_console(), show.console_of_some_width(), show.Bars().console):
        console.file = io.StringIO()
        table = Table(*NAMES, box=None)
        table.add_row(*NAMES)
        console.print(table)
        console.print(*NAMES)
        assert all(console.file.getvalue().count(name) == 3 for name in NAMES)


def test_no_other_module_makes_a_console():
    """One place decides that text of data is not markup, and where progress goes."""
    package = Path(mor_ref.__file__).parent
    made = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("Console", "Progress")
    }
    assert made == {"cli/show.py"}


@pytest.mark.parametrize(
    "command", [("compare", "--recipe", "mxfp8", "--json"), ("analyze", "--json")]
)
def test_progress_is_not_in_what_a_pipe_reads(run, file, command):
    """`mor-ref compare x.npy --json 2>&1 | jq` reads JSON alone."""
    name, *options = command
    printed, errors = run(name, file, *options)
    assert printed.startswith("{")
    assert errors == ""


def test_bars_are_on_a_terminal_alone():
    """A child of a pseudo-terminal draws a bar, and one of a pipe does not."""
    program = (
        "from mor_ref.cli.show import bar\n"
        "with bar('counting', 'counted', 2) as done: done('one'); done('two')"
    )
    command = [sys.executable, "-c", program]
    assert "counted two" in errors_on_terminal(command)
    assert subprocess.run(command, capture_output=True, check=True).stderr == b""
