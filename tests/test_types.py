"""Types: a strict checker accepts what runs, and refuses what does not."""

import ast
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typed_calls
from extras import needs

import mor_ref

HERE = Path(__file__).parent
FILE = HERE / "typed_calls.py"


@needs("mypy")
def test_mypy_accepts_what_runs_and_refuses_what_does_not() -> None:
    command = [sys.executable, "-m", "mypy", "--strict", str(FILE)]
    done = subprocess.run(command, cwd=HERE.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_types_are_those_of_the_calls() -> None:
    typed_calls.check_types()


@pytest.mark.parametrize("call", typed_calls.ACCEPTED)
def test_what_is_accepted_runs(call: Callable[[], object]) -> None:
    call()


@pytest.mark.parametrize("call", typed_calls.REFUSED)
def test_what_is_refused_does_not_run(call: Callable[[], object]) -> None:
    with pytest.raises((TypeError, ValueError, AttributeError)):
        call()


def test_the_stub_has_the_names_of_the_package() -> None:
    tree = ast.parse((HERE.parent / "mor_ref" / "__init__.pyi").read_text())
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    names = {
        alias.asname: f"{node.module}.{alias.name}"
        for node in imports
        for alias in node.names
        if alias.asname
    }
    assert set(names) | {"verify"} == {*mor_ref.__all__, *mor_ref.__dir__()}
    for name, place in names.items():
        module, _, member = place.rpartition(".")
        if module != "mor_ref":
            own = getattr(mor_ref, name)
            found = sys.modules[module]
            assert own is getattr(found, member), name
