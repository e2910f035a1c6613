"""Plain English: phrases that make a sentence hard to read, with what to write instead."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command

from mor_ref.cli import app

ROOT = Path(__file__).resolve().parent.parent
INSTEAD = {
    r"\bvoices?\b": "implementation",
    r"\bheld to\b": "checked against, or compared with",
    r"(?<!there )\bis no (?!more\b|longer\b|less\b)[a-z]+": "is not a",
    r"\bof which\b": "a sentence of its own",
    r"\bthe kept\b": "the bundled",
    r"\bfolders?\b": "directory",
}
IN_DOCSTRINGS = {r"\AWhat\b": "a verb (functions) or a noun (records) first"}
# Files that are not rewritten yet. The list may only become shorter.
NOT_YET: tuple[str, ...] = (
    "mor_ref/__init__.py",
    "mor_ref/api/nvfp4.py",
    "mor_ref/api/policies.py",
    "mor_ref/api/quantization.py",
    "mor_ref/arguments.py",
    "mor_ref/arrays.py",
    "mor_ref/cuda/__init__.py",
    "mor_ref/cuda/arrays.py",
    "mor_ref/cuda/cache.py",
    "mor_ref/cuda/device.py",
    "mor_ref/cuda/functions.py",
    "mor_ref/cuda/host.py",
    "mor_ref/cuda/mx.py",
    "mor_ref/cuda/nvfp4.py",
    "mor_ref/cuda/nvrtc.py",
    "mor_ref/cuda/ptx.py",
    "mor_ref/cuda/quantization.py",
    "mor_ref/cuda/source.py",
    "mor_ref/cuda/structures.py",
    "mor_ref/definitions/blocks.py",
    "mor_ref/definitions/encoding.py",
    "mor_ref/definitions/format.py",
    "mor_ref/definitions/policies.py",
    "mor_ref/deviations/deviation.py",
    "mor_ref/deviations/encoding.py",
    "mor_ref/deviations/errors.py",
    "mor_ref/deviations/overflow.py",
    "mor_ref/engine/blocks.py",
    "mor_ref/engine/formats.py",
    "mor_ref/engine/kernel.py",
    "mor_ref/engine/mx.py",
    "mor_ref/engine/strips.py",
    "mor_ref/exact/__init__.py",
    "mor_ref/exact/arithmetic.py",
    "mor_ref/exact/encoding.py",
    "mor_ref/exact/nvfp4.py",
    "mor_ref/exact/policies.py",
    "mor_ref/exact/step.py",
    "mor_ref/golden/__init__.py",
    "mor_ref/golden/all_inputs/digests.py",
    "mor_ref/golden/expected/__init__.py",
    "mor_ref/golden/expected/operation.py",
    "mor_ref/golden/expected/tensors.py",
    "mor_ref/golden/export/export.py",
    "mor_ref/golden/inputs/enlarged.py",
    "mor_ref/golden/inputs/random_inputs.py",
    "mor_ref/golden/making/directory.py",
    "mor_ref/golden/making/negative.py",
    "mor_ref/golden/making/witnesses.py",
    "mor_ref/golden/model/calls.py",
    "mor_ref/golden/model/checks.py",
    "mor_ref/golden/model/entries.py",
    "mor_ref/golden/model/suite.py",
    "mor_ref/golden/store/container.py",
    "mor_ref/golden/store/files.py",
    "mor_ref/golden/store/manifest.py",
    "mor_ref/golden/streams/lines.py",
    "mor_ref/golden/streams/stream.py",
    "mor_ref/golden/suites/large.py",
    "mor_ref/golden/suites/scales.py",
    "mor_ref/golden/suites/single_blocks.py",
    "mor_ref/verify/all_inputs/verify.py",
    "mor_ref/verify/candidates/candidate.py",
    "mor_ref/verify/candidates/fresh_process.py",
    "mor_ref/verify/candidates/kernels.py",
    "mor_ref/verify/candidates/program.py",
    "mor_ref/verify/candidates/protocol.py",
    "mor_ref/verify/checking/check.py",
    "mor_ref/verify/checking/findings.py",
    "mor_ref/verify/checking/manifests.py",
    "mor_ref/verify/comparing/compare.py",
    "mor_ref/verify/comparing/evidence.py",
    "mor_ref/verify/comparing/extent.py",
    "mor_ref/verify/comparing/origins.py",
    "mor_ref/verify/diagnosing/diagnosis.py",
    "mor_ref/verify/diagnosing/sample.py",
    "mor_ref/verify/diagnosing/scoring.py",
    "mor_ref/verify/reporting/files.py",
    "mor_ref/verify/reporting/page.py",
    "mor_ref/verify/reporting/page_suite.py",
    "mor_ref/verify/reporting/text.py",
    "mor_ref/verify/running/ask.py",
    "mor_ref/verify/running/run.py",
    "mor_ref/verify/running/stream.py",
    "mor_ref/workers/pools.py",
    "mor_ref/workers/shards.py",
    "spec/blocks.md",
    "spec/policies.md",
    "spec/scales.md",
    "spec/scope.md",
    "spec/vectors.md",
)
CODE = re.compile(r"^(`{3,}).*?^\1$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
PAGES = ("README.md", "docs/index.md", "docs/guide/*.md", "docs/reference/*.md", "spec/*.md")
FILES = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in (*PAGES, "mor_ref/**/*.py")
    for path in ROOT.glob(pattern)
)


def found_in(text: str, instead: dict[str, str]) -> Iterator[str]:
    """Yield a sentence for each phrase of a text, outside of code."""
    prose = " ".join(CODE.sub("`code`", text).split())
    for pattern, better in instead.items():
        for phrase in re.finditer(pattern, prose, re.IGNORECASE):
            around = prose[max(0, phrase.start() - 30) : phrase.end() + 30]
            yield f"'{phrase[0]}' in '{around}': write {better}"


def found_in_file(name: str) -> list[str]:
    text = (ROOT / name).read_text()
    if name.endswith(".md"):
        return list(found_in(text, INSTEAD))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    nodes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, documented))
    docstrings = (ast.get_docstring(node) or "" for node in nodes)
    return [line for text in docstrings for line in found_in(text, INSTEAD | IN_DOCSTRINGS)]


@pytest.mark.parametrize("name", FILES)
def test_prose(name):
    lines = found_in_file(name)
    if name in NOT_YET:
        assert lines, f"{name} is done; take it out of NOT_YET"
    else:
        assert not lines, "\n".join(lines)


def test_the_files_that_are_left_exist():
    assert set(NOT_YET) <= set(FILES)


def helps_of(command, name="mor-ref"):
    yield name, command.help or ""
    for parameter in command.params:
        yield f"{name} {parameter.name}", getattr(parameter, "help", None) or ""
    for inner_name, inner in getattr(command, "commands", {}).items():
        yield from helps_of(inner, f"{name} {inner_name}")


def test_prose_of_help():
    helps = list(helps_of(get_command(app)))
    assert len(helps) > 40
    assert [(name, line) for name, text in helps for line in found_in(text, INSTEAD)] == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Three voices; a folder of\nwhich the kept is no link.", 5),
        ("It is no longer so, there is no limit, and `folder`.\n```\nheld to\n```\n", 0),
        ("What is given. What is kept.", 1),
    ],
)
def test_phrases_are_found(text, count):
    assert len(list(found_in(text, INSTEAD | IN_DOCSTRINGS))) == count
