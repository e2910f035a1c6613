"""The documentation: gaps of a rule, and faults that stop a build."""

import re
import subprocess
import sys
from urllib.parse import urldefrag

import pytest
from mor_docs.shown import (
    traces,
)
from mor_docs.trace import trace
from site_of_docs import ROOT, RULES, Page, build, cells
from typer.testing import CliRunner

from mor_ref.cli import app

RULE = "```{rule} One\n:id: TIN-001\n:origin: ours\n\nThe text of the rule.\n```\n"
CONF = """
import sys
sys.path.insert(0, {docs!r})
extensions = ["myst_parser", "sphinx_needs", "mor_docs.extension"]
needs_types = [{{"directive": "rule", "title": "Rule", "prefix": "", "color": "", "style": ""}}]
needs_id_regex = r"^[A-Z]{{3}}-[0-9]{{3}}$"
myst_enable_extensions = ["colon_fence", "dollarmath"]
TRACED = ("code", "cuda", "tests", "examples", "suites")
needs_fields = {{
    name: {{"nullable": True, "schema": {{"type": "string"}}}}
    for name in ("origin", "untestable", "suiteless", "host", *TRACED)
}}
trace_suites = {suites!r}
"""


SUITES_OF_ONE = {"encode": ("TIN-001",)}
PAGES = "spec/encoding\nspec/deviations\nreference/suites\n"
FILES = {
    "spec/encoding.md": f"# Encoding\n\n{RULE}",
    "spec/deviations.md": "# Deviations\n",
    "mor_ref/code.py": "x = 1  # TIN-001\n",
    "mor_ref/cuda/kernel.cu": "// TIN-001\nint x;\n",
    "tests/test_it.py": "def test_it():\n    '''TIN-001.'''\n",
    "docs/index.md": f"# Index\n\n```{{toctree}}\n{PAGES}```\n",
    "docs/reference/suites.md": "# Suites\n\n(suite-encode)=\n## encode\n",
    "docs/conf.py": CONF.format(docs=str(ROOT / "docs"), suites=SUITES_OF_ONE),
}


def project(folder, changes):
    """Write a project of one rule, with changes of its files."""
    for path, text in (FILES | changes).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / "docs" / "spec").symlink_to("../spec")
    return folder


def excused(*options):
    """Return the chapter, whose rule says why it has nothing in some columns."""
    said = "".join(f":{option}: it is a picture\n" for option in options)
    return {"spec/encoding.md": RULE.replace(":origin: ours\n", f":origin: ours\n{said}")}


@pytest.mark.parametrize(
    ("changes", "suites", "problem"),
    [
        ({}, SUITES_OF_ONE, None),
        ({"mor_ref/code.py": "\n"}, SUITES_OF_ONE, "TIN-001 has no code"),
        ({"tests/test_it.py": "\n"}, SUITES_OF_ONE, "TIN-001 has no test of its own"),
        (
            {"tests/test_it.py": "def test_it():\n    '''TIN-001 to TIN-001.'''\n"},
            SUITES_OF_ONE,
            "no test of its own",
        ),
        (
            {"tests/test_it.py": "def helper():\n    '''TIN-001.'''\n\nx = 1  # TIN-001\n"},
            SUITES_OF_ONE,
            "no test of its own",
        ),
        ({"mor_ref/code.py": "x = 'TIN-001'\n"}, SUITES_OF_ONE, "TIN-001 has no code"),
        ({}, {}, "TIN-001 has no suite"),
        (
            {},
            {"encode": ("TIN-001", "TIN-002")},
            "the suite encode names TIN-002, which is not a rule",
        ),
        ({"mor_ref/cuda/kernel.cu": "\n"}, SUITES_OF_ONE, "TIN-001 has no CUDA"),
        (excused("host"), SUITES_OF_ONE, "TIN-001 has links to cuda, and :host: says"),
        ({"mor_ref/cuda/kernel.cu": "\n"} | excused("host"), SUITES_OF_ONE, None),
        (excused("suiteless"), SUITES_OF_ONE, "links to suites, and :suiteless: says"),
        (excused("suiteless"), {}, None),
        (excused("untestable"), SUITES_OF_ONE, "links to tests, and :untestable: says"),
        (
            {"mor_ref/code.py": "x = 1  # TIN-001, TIN-009\n"},
            SUITES_OF_ONE,
            "mor_ref/code.py:1 names TIN-009, which is not a rule",
        ),
        (
            {"tests/test_it.py": "def test_it(x='TIN-009'):\n    '''TIN-001.'''\n"},
            SUITES_OF_ONE,
            "tests/test_it.py:1 names TIN-009, which is not a rule",
        ),
        ({"tests/test_it.py": "\n"} | excused("untestable"), SUITES_OF_ONE, None),
        ({"mor_ref/code.py": "x = 1  # TIN-001, SHA-256 and AVX-512\n"}, SUITES_OF_ONE, None),
        *(
            ({path: f"{FILES.get(path, '')}{said}\n"}, SUITES_OF_ONE, f"{path}:{line} names NIT-")
            for path, said, line in (
                ("mor_ref/code.py", "# As NIT-001 has it", 2),
                ("mor_ref/code.py", "# TIN-001 to NIT-003", 2),
                ("spec/encoding.md", "## As `NIT-001`", 9),
                ("docs/guide/start.md", "`NIT-001`", 1),
                ("docs/mor_docs/sources.py", "x = 'NIT-001'", 1),
                ("docs/explorer/steps.js", "'NIT-001'", 1),
                ("tests/headers.cpp", "// NIT-001", 1),
                ("tests/part/adapter.js", "// NIT-001", 1),
                ("benchmarks/table.py", "# NIT-001", 1),
                ("README.md", "NIT-001", 1),
            )
        ),
    ],
)
def test_what_a_trace_lacks(tmp_path, changes, suites, problem):
    found = list(trace(project(tmp_path, changes), suites).problems())
    assert len(found) == (problem is not None)
    assert problem is None or problem in found[0]


@pytest.mark.tier("full")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, None),
        ({"spec/encoding.md": f"# Encoding\n\n{RULE}\nTIN-007.\n"}, "TIN-007 is not a rule"),
        ({"spec/encoding.md": f"# Encoding\n\n{RULE}\n## `NIT-007`\n"}, "names NIT-007, which"),
        ({"mor_ref/code.py": "\n"}, "TIN-001 has no code"),
        ({"spec/encoding.md": RULE.replace("ours", "mine")}, "origin of TIN-001 is none of"),
        (
            {"spec/encoding.md": RULE.replace("text", "power 2^min(e, 127)")},
            "not raised as a whole",
        ),
        (
            {"spec/encoding.md": RULE.replace("text", "text $2^$")},
            "the formula '2^' ends too early",
        ),
    ],
)
def test_what_stops_a_build(tmp_path, changes, message):
    done = build(project(tmp_path, changes) / "docs", tmp_path / "out")
    if message is None:
        assert done.returncode == 0, done.stderr
    else:
        assert done.returncode == 1, done.stderr
        assert message in done.stderr


@pytest.mark.tier("full")
def test_each_line_that_names_a_rule_is_linked(tmp_path):
    """Tests are the test functions and the ids of their cases."""
    tests = "# TIN-001\n\ndef helper(): ...  # TIN-001\ncase(1, id='TIN-001 a tie')\n"
    tests += "@cases\ndef test_it():\n    '''TIN-001.'''\n    x = 2  # TIN-001\n"
    changes = {
        "mor_ref/code.py": "x = 1  # TIN-001\n\ny = 2  # TIN-001 to TIN-001\n",
        "tests/test_it.py": tests,
    }
    made = project(tmp_path, changes)
    found = trace(made, SUITES_OF_ONE)
    assert [place.line for place in found.of("code", "TIN-001")] == [1, 3]
    assert [place.line for place in found.of("tests", "TIN-001")] == [4, 6, 8]
    done = build(made / "docs", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    page = tmp_path / "out" / "spec" / "encoding.html"
    lines = {urldefrag(link).fragment for link in Page(page).links if "test_it" in link}
    assert lines == {"L-4", "L-6", "L-8"}
    assert "code.py:1, 3" in re.sub("<[^>]+>", "", page.read_text())


@pytest.mark.tier("full")
def test_links_may_go_to_a_repository_instead_of_copies(tmp_path):
    address = "https://code.invalid/{path}#L{line}"
    done = build(project(tmp_path, {}) / "docs", tmp_path / "out", "-D", f"source_url={address}")
    assert done.returncode == 0, done.stderr
    linked = Page(tmp_path / "out" / "spec" / "encoding.html").links
    assert address.format(path="mor_ref/cuda/kernel.cu", line=1) in linked
    assert not (tmp_path / "out" / "source").exists()


@pytest.mark.tier("full")
def test_a_run_on_a_gpu_takes_its_rules_from_the_page(tmp_path, monkeypatch):
    """The report of `mor-ref verify` is the one that the page reads."""
    kept = tmp_path / "report.json"
    monkeypatch.setattr(traces, "_EVIDENCE", kept)
    before = traces.without_gpu()
    assert "no result of a GPU is kept here yet" in before
    verify_as_the_command_does("numba", "decode", kept)
    after = traces.without_gpu()
    assert "| DEC-001 |" in before
    assert "| DEC-001 |" not in after
    assert "| ENC-003 |" in after
    kernels = {rule.id for rule in RULES if "cuda" not in rule.reasons}
    assert set(cells(before, 0)) == kernels
    assert kernels > {"ART-001", "QNT-004"}
    kept.write_text(kept.read_text().replace('"match"', '"mismatch"'))
    assert "| DEC-001 |" in traces.without_gpu()


def verify_as_the_command_does(candidate, suite, report):
    done = CliRunner().invoke(app, ["verify", candidate, "--suite", suite, "--report", str(report)])
    assert done.exit_code == 0, done.output


CARD = "::::{{grid}} 1\n:::{{grid-item-card}} Look\n:link: {}\nAt numbers.\n:::\n::::\n"
OF_CARDS = CONF.replace('"mor_docs.extension"', '"mor_docs.extension", "sphinx_design"', 1)


@pytest.mark.tier("full")
@pytest.mark.parametrize(
    ("text", "dead"),
    [
        (CARD.format("spec/encoding.html"), None),
        (CARD.format("explorer/indexx.html"), "index.html links to explorer/indexx.html"),
        ('<a href="needs.json">needs</a>\n', None),
        ('<a href="needz.json">needs</a>\n', "index.html links to needz.json"),
        ('<a href="spec/encoding.html#TIN-001">it</a>\n', None),
        ('<a href="spec/encoding.html#TIN-002">it</a>\n', "spec/encoding.html#TIN-002"),
        ('<a href="#nowhere">it</a>\n', "index.html links to #nowhere"),
    ],
)
def test_a_dead_link_stops_a_build(tmp_path, text, dead):
    """Also one that is in no reference of Sphinx's."""
    conf = OF_CARDS.format(docs=str(ROOT / "docs"), suites=SUITES_OF_ONE)
    changes = {
        "docs/conf.py": f"{conf}needs_build_json = True\n",
        "docs/index.md": FILES["docs/index.md"] + text,
    }
    done = build(project(tmp_path, changes) / "docs", tmp_path / "out")
    assert (done.returncode == 0) is (dead is None), done.stderr
    assert dead is None or dead in done.stderr


@pytest.mark.tier("full")
def test_a_suite_that_is_not_described_stops_a_build(tmp_path):
    """The link to it is made from the trace."""
    changes = {"docs/reference/suites.md": "# Suites\n"}
    done = build(project(tmp_path, changes) / "docs", tmp_path / "out")
    assert done.returncode != 0
    assert "spec/encoding.html links to ../reference/suites.html#suite-encode" in done.stderr


# What the extension of Sphinx does when autodoc_mock_imports names torch.
WITHOUT_TORCH = """
from sphinx.ext.autodoc.mock import mock
with mock(["torch"]):
    import mor_ref.torch
    print([name for name in mor_ref.torch.__all__ if getattr(mor_ref.torch, name) is None])
"""


def test_the_reference_of_training_is_made_without_torch():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")
