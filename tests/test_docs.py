"""The site: it builds without a warning, every link leads somewhere, and a dead one stops it."""

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import numpy as np
import pytest
from extras import imported, skip_without
from mor_docs.shown import (
    command_line,
    conversions,
    formats,
    four_bits,
    golden,
    profiles,
    scaling,
    tensors,
    theorems,
    traces,
    units,
)
from mor_docs.shown.markup import number
from mor_docs.trace import rules_of, trace
from typer.testing import CliRunner

import mor_ref
from mor_ref.cli import app
from mor_ref.definitions.nvfp4 import PROFILES
from mor_ref.deviations import DEVIATIONS
from mor_ref.golden.suites import SUITES

imported("sphinx_needs")
imported("furo")

ROOT = Path(__file__).resolve().parent.parent
RULES = rules_of(ROOT / "spec")


def build(source, out, *options):
    """Run Sphinx as make docs does."""
    command = ["-m", "sphinx", "-b", "html", "-q", "-W", "--keep-going", "--nitpicky", *options]
    return subprocess.run(
        [sys.executable, *command, source, out],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    out = tmp_path_factory.mktemp("site")
    done = build(ROOT / "docs", out)
    assert done.returncode == 0, done.stderr
    return out


class Page(HTMLParser):
    """The ids of a page, what it links to, and what it loads."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.loads = set(), set(), set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        known = dict(attrs)
        self.ids |= {known[key] for key in ("id", "name") if known.get(key)}
        if tag == "a" and "href" in known:
            self.links.add(known["href"])
        if tag in ("script", "img", "iframe") and "src" in known:
            self.loads.add(known["src"])
        if tag == "link" and known.get("rel") in ("stylesheet", "icon", "preload"):
            self.loads.add(known["href"])


@pytest.fixture(scope="module")
def pages(site):
    paths = [path for path in site.rglob("*.html") if "explorer" not in path.parts]
    return {path: Page(path) for path in paths}


def is_elsewhere(link):
    return re.match(r"[a-z]+:", link) is not None


def test_every_rule_is_an_anchor_of_its_chapter(site, pages):
    for rule in RULES:
        assert rule.id in pages[site / "spec" / f"{rule.chapter}.html"].ids


def test_every_link_leads_somewhere(site, pages):
    """Inside of the site: to a file, and to an id in it."""
    dead = set()
    for path, page in pages.items():
        for link in page.links | page.loads:
            address, anchor = urldefrag(link)
            target = (path.parent / unquote(address).split("?")[0]).resolve() if address else path
            if is_elsewhere(link) or (target.parent.name == "explorer" and not has_explorer()):
                continue
            if not target.exists() or (
                anchor and target in pages and unquote(anchor) not in pages[target].ids
            ):
                dead.add((path.relative_to(site).as_posix(), link))
    assert dead == set()


def has_explorer():
    return (ROOT / "docs" / "explorer" / "index.html").exists()


def test_pages_load_nothing_from_elsewhere(pages):
    assert [load for page in pages.values() for load in page.loads if is_elsewhere(load)] == []


def test_the_exported_needs_are_the_rules_with_their_traces(site):
    exported = json.loads((site / "needs.json").read_text())
    needs = exported["versions"][exported["current_version"]]["needs"]
    assert needs.keys() == {rule.id for rule in RULES}
    found = trace(ROOT)
    for rule in RULES:
        need = needs[rule.id]
        assert need["title"] == rule.title
        assert need["origin"] == rule.origin
        assert (need["suites"] or "") == ", ".join(found.suites.get(rule.id, []))
        for column in ("code", "cuda", "tests"):
            places = [f"{place.path}:{place.line}" for place in found.of(column, rule.id)]
            assert (need[column] or "") == ", ".join(places)


def test_every_suite_and_every_deviation_is_described(site, pages):
    suites = pages[site / "reference" / "suites.html"].ids
    assert {f"suite-{name.replace('_', '-')}" for name in SUITES} <= suites
    deviations = pages[site / "spec" / "deviations.html"].ids
    assert {f"deviation-{name.replace('_', '-')}" for name in DEVIATIONS} <= deviations


def test_the_front_page_leads_to_the_walk_throughs(site, pages):
    guides = {path.name for path in (site / "guide").glob("verify-*.html")}
    assert len(guides) == 4
    assert {f"guide/{name}" for name in guides} <= pages[site / "index.html"].links
    assert not (site / "permalink.html").exists()


def test_every_chapter_is_listed_beside_the_chapters():
    listed = re.findall(r"\((\w+\.md)\)", (ROOT / "spec" / "README.md").read_text())
    kept = {path.name for path in (ROOT / "spec").glob("*.md")} - {"README.md"}
    assert sorted(listed) == sorted(kept)


# ---------------------------------------------------------------------- what stops a build

RULE = "```{rule} One\n:id: TIN-001\n:origin: ours\n\nThe text of the rule.\n```\n"
CONF = """
import sys
sys.path.insert(0, {docs!r})
extensions = ["myst_parser", "sphinx_needs", "mor_docs.extension"]
needs_types = [{{"directive": "rule", "title": "Rule", "prefix": "", "color": "", "style": ""}}]
needs_id_regex = r"^[A-Z]{{3}}-[0-9]{{3}}$"
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
    """A project of one rule, in which that is changed."""
    for path, text in (FILES | changes).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / "docs" / "spec").symlink_to("../spec")
    return folder


def excused(*options):
    """The chapter, whose rule says why it has nothing in some columns."""
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
            "the suite encode names TIN-002, which is no rule",
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
            "mor_ref/code.py:1 names TIN-009, which is no rule",
        ),
        (
            {"tests/test_it.py": "def test_it(x='TIN-009'):\n    '''TIN-001.'''\n"},
            SUITES_OF_ONE,
            "tests/test_it.py:1 names TIN-009, which is no rule",
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


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, None),
        ({"spec/encoding.md": f"# Encoding\n\n{RULE}\nTIN-007.\n"}, "TIN-007 is no rule"),
        ({"spec/encoding.md": f"# Encoding\n\n{RULE}\n## `NIT-007`\n"}, "names NIT-007, which"),
        ({"mor_ref/code.py": "\n"}, "TIN-001 has no code"),
        ({"spec/encoding.md": RULE.replace("ours", "mine")}, "origin of TIN-001 is none of"),
    ],
)
def test_what_stops_a_build(tmp_path, changes, message):
    done = build(project(tmp_path, changes) / "docs", tmp_path / "out")
    if message is None:
        assert done.returncode == 0, done.stderr
    else:
        assert done.returncode == 1, done.stderr
        assert message in done.stderr


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


def test_links_may_go_to_a_repository_instead_of_copies(tmp_path):
    address = "https://code.invalid/{path}#L{line}"
    done = build(project(tmp_path, {}) / "docs", tmp_path / "out", "-D", f"source_url={address}")
    assert done.returncode == 0, done.stderr
    linked = Page(tmp_path / "out" / "spec" / "encoding.html").links
    assert address.format(path="mor_ref/cuda/kernel.cu", line=1) in linked
    assert not (tmp_path / "out" / "source").exists()


def test_a_run_on_a_gpu_takes_its_rules_from_the_page(tmp_path, monkeypatch):
    """What `mor-ref verify` reports is what the page reads."""
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


def test_what_would_show_a_rule_on_a_gpu_is_one_click_away(site, pages):
    """The suites of each rule without evidence."""
    found = trace(ROOT)
    shown = traces.without_gpu()
    for rule, cell in zip(cells(shown, 0), cells(shown, -1), strict=True):
        assert re.findall(r"\[(\w+)\]\(#suite-", cell) == found.suites.get(rule, [])
    named = {name for rule in cells(shown, 0) for name in found.suites.get(rule, [])}
    anchors = {f"reference/suites.html#suite-{name.replace('_', '-')}" for name in named}
    assert named
    assert pages[site / "gpu-rules.html"].links >= anchors


def verify_as_the_command_does(candidate, suite, report):
    done = CliRunner().invoke(app, ["verify", candidate, "--suite", suite, "--report", str(report)])
    assert done.exit_code == 0, done.output


# ---------------------------------------------------------------------- worked examples


def cells(text, column):
    """A column of the last table in a text of MyST, without its marks."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    start = max(i for i, line in enumerate(lines) if set(line) <= set("|- ")) + 1
    return [line.strip("| ").split(" | ")[column].strip("` ") for line in lines[start:]]


NUMBERS = ["3.3", "-1.1", "0.007", "1e-6", "0", "-0.0", "448", "7.5"]


def bits_of(numbers):
    return [f"0x{word:08X}" for word in np.asarray(numbers, np.float32).view(np.uint32).ravel()]


def test_the_example_of_quantization_is_what_the_engine_gives():
    shown = tensors.elements("e4m3", *NUMBERS)
    found = mor_ref.quantize(np.array(NUMBERS, np.float64), "e4m3")
    assert [int(code, 16) for code in cells(shown, 3)] == found.codes.tolist()
    assert cells(shown, 6) == bits_of(found.dequantize())
    sums = tensors.errors("e4m3", *NUMBERS)
    error = found.error
    assert f"sum = {error.sum.item()}, nonzero = {error.nonzero.item()}, nonfinite = 0" in sums


@pytest.mark.parametrize("profile", ["te", "te_4over6_mse", "torchao", "modelopt"])
def test_the_example_of_nvfp4_is_what_the_engine_gives(profile):
    shown = four_bits.tile(profile, *NUMBERS)
    found = mor_ref.quantize_nvfp4(np.array([NUMBERS], np.float64), profile=profile)
    assert [int(code, 16) for code in cells(shown, 2)] == found.codes.ravel().tolist()
    packed = shown.splitlines()[-1].split(": ")[1].replace("`", "").split()
    assert [int(byte, 16) for byte in packed] == found.packed.ravel().tolist()


def test_the_nvfp4_chapter_shows_which_zeros_lose_their_sign():
    """NVF-010: what binary32 makes -0 does, and what only e2m1 makes -0 does not."""
    shown = four_bits.tile("modelopt", *computed("nvfp4", "four_bits.tile modelopt"))
    codes = dict(zip(cells(shown, 1), cells(shown, 2), strict=True))
    assert "NaN" not in shown
    assert "| encode |" not in shown
    assert "| encode |" in four_bits.tile("te", "1")
    minus = "\N{MINUS SIGN}"
    assert codes[f"{minus}0"] == "0x0"
    assert codes[f"{minus}2^{minus}149"] == "0x8"


def test_the_example_of_mx_is_what_the_engine_gives():
    shown = four_bits.mx_block("e2m1", "rceil", *NUMBERS)
    found = mor_ref.quantize_mx(np.array([NUMBERS], np.float64), "e2m1", scale_rule="rceil")
    assert f"c = `0x{found.scale.item():02X}`" in shown
    assert [int(code, 16) for code in cells(shown, 2)] == found.codes.ravel().tolist()


def test_the_example_of_subnormal_amaxes_is_what_the_engine_gives():
    """MXS-005: the addition to bits that are not normalised would leave the binade too early."""
    element, *words = computed("mx", "four_bits.even_of_subnormals")
    shown = four_bits.even_of_subnormals(element, *words)
    bits = np.array([int(word, 16) for word in words], np.uint32)
    assert bits.max() < 0x00800000
    found = mor_ref.quantize_mx(bits.view(np.float32)[:, None], element, scale_rule="even")
    assert [int(code, 16) for code in cells(shown, 2)] == found.scale.ravel().tolist()
    counterexample = words.index("007F0000")
    assert [cells(shown, column)[counterexample] for column in (1, 2, 3)] == [
        "\N{MINUS SIGN}127",
        "0x00",
        "0x01",
    ]


def test_the_scales_of_the_example_are_what_the_engine_gives():
    """One group of blocks of one number each."""
    shown = scaling.blocks("e4m3", "7.5", "3.3", "1.9", "0.011", "0")
    x = np.array([[7.5, 3.3, 1.9, 0.011, 0]])
    found = mor_ref.quantize(x, "e4m3", block=(1, 1))
    assert [int(code, 16) for code in cells(shown, 3)] == found.scale_exponent.ravel().tolist()
    assert [cell.split(" `")[1] for cell in cells(shown, 4)] == bits_of(found.scale)


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        (["3", "1.5", "-1", "0.52", "6", "2.1"], "nvfp4"),
        (["3.3", "-1.1", "0.12", "0.1", "0.9", "0.13"], "e4m3"),
        (["3.3", "-1.1", "0", "1e-6", "0.9", "16777216"], "bf16"),
    ],
)
def test_the_examples_of_a_policy_are_what_the_engine_gives(given, taken):
    shown = units.unit("nvfp4", *given)
    found = mor_ref.mor(np.array(given, np.float64), "nvfp4")
    assert found.ladder[found.choice.item()] == taken
    assert f"takes **{taken}** (choice {found.choice.item()})" in shown
    for column, name in ((1, "nvfp4"), (4, "e4m3")):
        codes = found.quantized[name].codes.ravel()
        assert [int(code, 16) for code in cells(shown, column)] == codes.tolist()
        refused = found.ladder.index(name) < found.choice.item()
        sign = "≥" if refused else "<"
        assert f"{name}: sum = {found.error[name].sum.item()} {sign} " in shown
    assert [int(code, 16) for code in cells(shown, 7)] == found.output.ravel().tolist()


def test_every_unit_of_the_chapter_is_what_the_engine_gives():
    """MOR-001 to MOR-004: each is decided as shown, and together they take every rung.

    What decides without a metric decides two of them: an infinity, and that all are zeros.
    """
    chapter = (ROOT / "spec" / "policies.md").read_text()
    taken, without_metric = set(), set()
    for policy, numbers in re.findall(r"\{computed\} units\.unit (\w+) (.+)", chapter):
        shown = units.unit(policy, *numbers.split())
        found = mor_ref.mor(np.array(numbers.split(), np.float64), policy)
        choice = found.choice.item()
        assert f"takes **{found.ladder[choice]}** (choice {choice})" in shown
        assert [int(code, 16) for code in cells(shown, -1)] == found.output.ravel().tolist()
        for i, error in enumerate(found.error.values()):
            terms = [int(u) for u in cells(shown, 3 * i + 3) if u != "—"]
            assert (sum(terms), len(terms)) == (error.sum.item(), error.nonzero.item())
        asked = shown.splitlines()[-1]
        verdicts = [sign not in "≥>" for sign in re.findall(r"[<≤≥>]|nonzero = 0", asked)]
        assert len(verdicts) == len(found.ladder) - 1
        assert verdicts.index(True) == choice if True in verdicts else choice == len(verdicts)
        taken.add((policy, found.ladder[choice]))
        without_metric.update(re.findall(r"nonfinite = 1 >|nonzero = 0", asked))
    rungs = {"tensor": ["e4m3"], "two_way": ["e4m3", "bf16"], "three_way": ["e5m2", "bf16"]}
    assert taken >= {(policy, name) for policy, names in rungs.items() for name in names}
    assert without_metric == {"nonfinite = 1 >", "nonzero = 0"}


def test_the_second_block_of_the_decisions_is_the_first_but_for_one_number():
    bell, scaled, _ = tensors._blocks().values()
    assert scaled == [*bell[:-1], bell[-1] * 2**24]


def test_the_examples_of_theorems_are_what_the_engine_gives():
    """THM-001 to THM-005."""
    given = ["3.4", "1.7", "1.9", "3", "0.87", "0.011"]
    shown = theorems.group("e4m3", *given)
    x = np.array([given], np.float64)
    found = mor_ref.quantize(x, "e4m3", block=(1, 1))
    own = mor_ref.quantize(x, "e4m3", block=(1, 1), scaling="fp32")
    stored = found.scale_exponent.ravel().astype(int) - 127
    assert [int(cell) for cell in cells(shown, 2)] == stored.tolist()
    alike = (found.scale == own.scale).ravel()
    assert [cell == "its own" for cell in cells(shown, 3)] == alike.tolist()
    assert [int(cell, 16) for cell in cells(shown, 5)] == found.codes.ravel().tolist()
    assert cells(shown, 4)[0].endswith("0x43E00001")
    shown = theorems.exponents("e4m3", "e5m2", *given)
    for column, name in ((2, "e4m3"), (4, "e5m2")):
        ideal = mor_ref.quantize(x, name, block=(1, 1), scaling="e8m0").scale_exponent.ravel()
        assert [int(cell.split(" = ")[1]) + 127 for cell in cells(shown, column)] == ideal.tolist()
    assert cells(shown, 3) == cells(shown, 5)


def computed(chapter, name):
    """What stands after the name of a function in a chapter of the specification."""
    text = (ROOT / "spec" / f"{chapter}.md").read_text()
    return text.split(f"{{computed}} {name} ", 1)[1].split("\n", 1)[0].split()


def test_the_program_of_the_protocol_answers_as_its_chapter_shows(tmp_path):
    """PRO-001 to PRO-006."""
    skip_without("gcc")
    shown = golden.exchange(*computed("protocol", "golden.exchange"))
    asked, answered = (part.split("\n```")[0] for part in shown.split("```text\n")[1:])
    source, program = ROOT / "examples" / "protocol" / "e4m3.c", tmp_path / "program"
    subprocess.run(["gcc", source, "-o", program], check=True)
    done = subprocess.run([program], input=asked, capture_output=True, text=True, check=True)
    assert done.stdout.split() == answered.split()
    assert "3e99999a c3fa0000 7fc00000" in asked
    assert "2a fe 7f" in answered


def test_the_blocks_of_the_example_are_what_the_engine_gives():
    """BLK-002, BLK-003, BLK-004."""
    name, columns, *cuts_and_numbers = computed("blocks", "tensors.amaxes")
    block, group, *numbers = cuts_and_numbers
    x = np.array(numbers, np.float64).reshape(-1, int(columns))
    shown = tensors.amaxes(name, columns, *cuts_and_numbers)
    sides = tuple(map(int, block.split("x")))
    found = mor_ref.quantize(x, name, block=sides, group=group)
    assert found.amax.shape == (2, 2)
    assert [cell.split(" `")[1] for cell in cells(shown, 2)] == bits_of(found.amax)
    assert [int(cell, 16) for cell in cells(shown, 4)] == found.scale_exponent.ravel().tolist()
    assert {int(cell, 16) for cell in cells(shown, 3)} == set(found.scale_mantissa.ravel().tolist())
    whole = [int(code.strip("`"), 16) for code in cells(shown, 5)[0].split()]
    assert whole == found.codes[: sides[0], : sides[1]].ravel().tolist()


def test_the_deviation_of_the_chapter_differs_from_what_the_engine_gives():
    name, fmt, *numbers = computed("deviations", "golden.deviating")
    shown = golden.deviating(name, fmt, *numbers)
    found = mor_ref.quantize(np.array(numbers, np.float64), fmt)
    assert [int(code, 16) for code in cells(shown, 1)] == found.codes.tolist()
    assert cells(shown, 2) == bits_of(found.dequantize())
    assert cells(shown, 3) != cells(shown, 1)
    assert "SCL-002" in DEVIATIONS[name].rules


def test_profiles_that_differ_are_counted_on_both_sides_of_the_diagonal():
    """Scales above it, and codes below."""
    counted = json.loads((ROOT / "tests" / "witnesses.json").read_text())
    scales, codes = counted["differing scales and codes"]["nvfp4 1x16"]["te torchao"]
    shown = profiles.disagreement("1x16").removesuffix(":::\n")
    names = [cell.split("** ")[1] for cell in cells(shown, 0)]
    te, torchao = names.index("te"), names.index("torchao")
    assert cells(shown, torchao + 1)[te] == str(scales)
    assert cells(shown, te + 1)[torchao] == str(codes)


def test_profiles_that_differ_are_counted_with_the_site(monkeypatch):
    """On zeros te and te_2_13 store the same, and torchao another scale than compressed_tensors."""
    monkeypatch.setattr(profiles, "bell_shaped", lambda: np.zeros((1, 2, 32), np.float32))
    shown = profiles.disagreement("1x16").removesuffix(":::\n")
    names = [cell.split("** ")[1] for cell in cells(shown, 0)]
    assert cells(shown, names.index("te_2_13") + 1)[names.index("te")] == "0"
    last = names.index("compressed_tensors")
    assert cells(shown, last + 1)[names.index("torchao")] == "4"


def test_the_encodings_of_the_example_are_what_the_engine_gives():
    given = ["0.3", "464", "465", "-0.0146484375", "1000", "1e-9"]
    shown = conversions.steps("e4m3", *given)
    assert [int(code, 16) for code in cells(shown, 5)] == mor_ref.encode(
        np.array(given, np.float64), "e4m3"
    ).tolist()


@pytest.mark.parametrize(
    ("x", "shown"),
    [
        (448.0, "448"),
        (447.99997, "447.99997"),
        (0.1, "0.1"),
        (1 / 3, "≈ 0.3333333"),
        (2.0**-149, "2^\N{MINUS SIGN}149"),
        (3.4028234663852886e38, "(2^24 \N{MINUS SIGN} 1) · 2^104"),
        (-255 * 2.0**120, "\N{MINUS SIGN}(2^8 \N{MINUS SIGN} 1) · 2^120"),
        (1e10, "1e+10"),
        (1.0000000150474662e30, "≈ 1e+30"),
        (-0.0, "\N{MINUS SIGN}0"),
        (float("nan"), "NaN"),
        (-float("inf"), "\N{MINUS SIGN}∞"),
    ],
)
def test_numbers_are_shown_in_as_many_digits_as_tell_them(x, shown):
    assert number(np.float32(x).item() if x == 447.99997 else x) == shown


# ---------------------------------------------------------------------- links that lead nowhere


CARD = "::::{{grid}} 1\n:::{{grid-item-card}} Look\n:link: {}\nAt numbers.\n:::\n::::\n"
OF_CARDS = CONF.replace("mor_docs.extension", "sphinx_design", 1).replace(
    "extensions = [",
    'myst_enable_extensions = ["colon_fence"]\nextensions = ["mor_docs.extension", ',
)


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


def test_a_suite_that_is_not_described_stops_a_build(tmp_path):
    """The link to it is made from the trace."""
    changes = {"docs/reference/suites.md": "# Suites\n"}
    done = build(project(tmp_path, changes) / "docs", tmp_path / "out")
    assert done.returncode != 0
    assert "spec/encoding.html links to ../reference/suites.html#suite-encode" in done.stderr


def test_the_explorer_is_beside_every_page(site, pages):
    """In the list of pages, and linked where somebody would look for it."""
    for path in (site / "index.html", site / "spec" / "encoding.html"):
        listed = {link.rpartition("/")[2] for link in pages[path].links}
        assert "explorer.html" in listed
    for name in ("reference/explorer", "reference/formats", "guide/how-we-know"):
        assert "../explorer/index.html" in pages[site / f"{name}.html"].links


# ---------------------------------------------------------------------- how the pages are set


def test_powers_are_raised_and_ids_keep_together(site):
    shown = (site / "spec" / "theorems.html").read_text()
    assert "· 2<sup>8</sup>" in (site / "spec" / "scales.html").read_text()
    assert re.search(r"2<sup>E\(q_amax\) [^<]*</sup>", shown)
    assert '<a class="rule-id reference internal" href="scales.html#' in shown
    for path in (site / "spec").glob("*.html"):
        text = re.sub(
            r"<(pre|code|script)\b.*?</\1>|<[^>]*>", "", path.read_text(), flags=re.DOTALL
        )
        assert re.findall(r".{9}\w\^.{9}", text) == [], path


def test_signs_are_those_of_a_minus():
    """FMT-008: in every place of a line."""
    shown = formats.decoded("int8_mx", "0x80")
    assert "\N{MINUS SIGN}128 · 2^\N{MINUS SIGN}6, FMT-008" in shown


@pytest.mark.parametrize("policy", ["tensor", "nvfp4"])
def test_a_unit_without_numbers_takes_the_same_rung_by_the_flow(policy):
    """MOR-002: zeros have sum 0 and nonzero 0, which the comparison alone would refuse."""
    assert mor_ref.mor(np.zeros((2, 32), np.float32), policy).choice.tolist() == [[0]]
    asked = re.findall(r">([^<]*)</text>", tensors.ladder(policy))
    for i, said in enumerate(asked):
        if "nonzero" in said and "sum" in said:
            assert asked[i + 1] == "or nonzero = 0) ?"
    assert any("sum" in said for said in asked)


def test_arrows_have_heads():
    drawings = [tensors.ladder("three_way"), scaling.decrement("e4m3", "7.5", "3.3", "0.011")]
    for drawn in drawings:
        assert drawn.count('class="head"') == drawn.count('class="arrow"') > 0


WORDS = {"binade", "canonical NaN", "case", "error sum", "preset", "representation", "RN32", "ulp"}


def test_the_glossary_has_the_words_of_the_rules_in_order():
    lines = (ROOT / "docs" / "guide" / "glossary.md").read_text().splitlines()
    terms = [line for line in lines[3:-1] if line and not line.startswith(" ")]
    assert set(terms) >= WORDS
    assert terms == sorted(terms, key=str.casefold)


def test_blocks_of_code_have_no_empty_end(site):
    for path in (site / "index.html", *(site / "guide").glob("*.html")):
        assert "\n\n</pre>" not in path.read_text(), path


def test_nothing_is_left_of_other_programs(site):
    assert not (site / "schema_violations.json").exists()


def test_all_public_names_are_described_with_types_that_can_be_read(site, pages):
    described = pages[site / "reference" / "api.html"].ids
    assert {f"mor_ref.{name}" for name in mor_ref.__all__} <= described
    assert {"mor_ref.deviations.DEVIATIONS", "mor_ref.operations.OPERATIONS"} <= described
    for module in ("analysis", "cuda", "deviations", "golden"):
        assert f"module-mor_ref.{module}" in described
    shown = re.sub(r"<[^>]*>", "", (site / "reference" / "api.html").read_text())
    assert "NDArray[unsignedinteger]" in shown
    assert "tuple[Any, ...]" not in shown
    assert "dtype: DTypeLike = np.float32" in shown


def test_records_show_users_nothing_that_is_for_the_engine_alone(site, pages):
    x = np.linspace(-3, 3, 32, dtype=np.float32)
    records = [
        mor_ref.quantize(x, "e4m3"),
        mor_ref.quantize_nvfp4(x),
        mor_ref.quantize_mx(x, "e4m3"),
    ]
    for record in [*records, mor_ref.mor(x), mor_ref.mor(x, "nvfp4").quantized["nvfp4"]]:
        public = [name for name in dir(record) if not name.startswith("_")]
        modules = {name: type(getattr(record, name)).__module__ for name in public}
        assert not [name for name in public if modules[name].startswith("mor_ref.engine")]
    described = pages[site / "reference" / "api.html"].ids
    assert {f"mor_ref.{type(record).__name__}.dequantize" for record in records} <= described
    shown = re.sub(r"<[^>]*>", "", (site / "reference" / "api.html").read_text())
    assert "TileScales" not in shown
    assert not re.findall(r"\b_\w+: ", shown)
    assert "source: str, block_scale: NDArray[uint8]" in shown


def test_parameters_have_the_names_of_the_usage_and_are_said_to_be_required():
    shown = command_line.commands()
    text = shown.partition("## mor-ref exhaustive\n")[2].partition("## ")[0]
    assert "{FORMAT}" in text
    assert "| `FORMAT` | The format to encode in. | required |" in text


def test_all_profiles_part_on_numbers_that_are_shown():
    """NVF-002: the tables of the tensors, which are there as words."""
    shown = four_bits.witness("nvfp4_1x16")
    parted = set()
    for part in re.split(r"\n(?=Row |The numbers)", shown):
        stored = {
            line.split(" | ")[0].strip("| "): line.split(" | ")[2:] for line in part.splitlines()
        }
        names = [name for name in stored if name in PROFILES]
        parted |= {(a, b) for a in names for b in names if stored[a] != stored[b]}
    assert parted >= {(a, b) for a in PROFILES for b in PROFILES if a != b}
    kept = json.loads((ROOT / "tests" / "witnesses.json").read_text())["witnesses"]["nvfp4 1x16"]
    words = shown.partition("```text")[2].split()
    for tensor in kept:
        assert set(" ".join(tensor["x"]).split()) <= set(words)
