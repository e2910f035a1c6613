"""Schemes: a directory each, which is added and removed as one."""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "mor_ref"
# Every module but those that need more than the package does, then all tables of what there is.
PROGRAM = """
import importlib, pkgutil, mor_ref
for module in pkgutil.walk_packages(mor_ref.__path__, "mor_ref."):
    others = "mor_ref.torch", "mor_ref.proofs", "mor_ref.verify.candidates.peers"
    if not module.name.startswith(others):
        importlib.import_module(module.name)
from mor_ref.analysis.recipes import OF_ALL_REPRESENTATIONS, recipes_from
from mor_ref.deviations import DEVIATIONS
from mor_ref.golden.suites import SUITES
from mor_ref.operations import OPERATIONS
from mor_ref.recipes import TENSOR_RECIPES
recipes_from(OF_ALL_REPRESENTATIONS)
used = {suite.operation for suite in SUITES.values()}
assert {getattr(one, "name", one) for one in used} <= set(OPERATIONS), used
reached = {name for one in DEVIATIONS.values() for name in (*one.domain, *one.exemptions)}
assert reached <= set(SUITES), reached - set(SUITES)
print(len(OPERATIONS), len(SUITES), len(DEVIATIONS), len(TENSOR_RECIPES), len(mor_ref.__all__))
"""

CHAPTER_SHOWN = {"mixtures": "mixed"}  # pictures of a chapter with another name
# Names for type checkers, and the public module of FP8-LM.
NAMED = {"cuda/__init__.py", "fp8lm.py"}


def counted(package):
    environment = {**os.environ, "PYTHONPATH": str(package.parent), "PYTHONSAFEPATH": "1"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        check=False,
        cwd=package.parent,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return [int(count) for count in done.stdout.split()]


@pytest.mark.tier("full", but=["[mixed]"])
@pytest.mark.parametrize("schemes", ["shared", "selection", "mixed", "selection affine"])
def test_a_scheme_is_removed_as_one_directory_and_one_line(tmp_path, schemes):
    """Selection needs levels and affine, and goes with them; fp8lm is also a module of its own."""
    package = tmp_path / "mor_ref"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    before = counted(package)
    table = package / "schemes" / "__init__.py"
    for scheme in schemes.split():
        shutil.rmtree(package / "schemes" / scheme)
        text, lines = re.subn(rf'\n    "{scheme}": .*', "", table.read_text())
        assert lines == 1
        table.write_text(text)
    operations, suites, _, recipes, names = counted(package)
    assert operations < before[0]
    assert suites < before[1]
    assert recipes == before[3] - (schemes != "selection")
    assert names < before[4]


def test_the_core_names_no_scheme():
    """But for lines that nothing reads once a scheme is away."""
    named = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if not path.is_relative_to(PACKAGE / "schemes")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("mor_ref.schemes.")
    }
    assert named == NAMED


def test_the_explorer_names_a_scheme_in_a_module_of_its_own():
    """So do the other modules of the site, which have the names of chapters."""
    docs = PACKAGE.parent / "docs" / "mor_docs"
    for path in docs.rglob("*.py"):
        named = {
            node.module.split(".")[2]
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("mor_ref.schemes.")
        }
        assert named <= {CHAPTER_SHOWN.get(path.stem, path.stem)}, path
