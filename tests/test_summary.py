"""What a paper takes from a comparison: tables with intervals, and the picture of bits and SQNR."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from analyzing import heavy, write
from extras import imported, needs
from forking import mor_ref as run

import mor_ref
from mor_ref.analysis.compare_files import compare_files
from mor_ref.analysis.statistics import Sample, differences, t_quantile, t_share
from mor_ref.analysis.summary import latex_of, markdown_of, summaries

ROOT = Path(__file__).resolve().parent.parent
RECIPES = ("mxfp8:rceil", "mxfp4", "nvfp4")


@pytest.fixture
def model(tmp_path):
    tensors = {f"layer{k}": heavy((32, 64), 0.2 * (k + 1), k).astype(np.float32) for k in range(4)}
    return write(tmp_path / "model.safetensors", tensors)


def test_the_share_and_its_quantile_are_those_of_scipy():
    stats = imported("scipy.stats")
    for freedom in (*range(1, 12), 29, 30, 119, 600):
        for t in (-40.0, -2.5, -1e-3, 0.0, 0.3, 1.0, 4.0, 12.0):
            assert t_share(t, freedom) == pytest.approx(stats.t.cdf(t, freedom), abs=1e-13)
        for share in (0.6, 0.9, 0.95, 0.975, 0.999):
            expected = stats.t.ppf(share, freedom)
            assert t_quantile(share, freedom) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("freedom", "quantile"), [(1, 12.706), (2, 4.303), (5, 2.571), (10, 2.228), (30, 2.042)]
)
def test_quantiles_are_those_of_printed_tables(freedom, quantile):
    assert t_quantile(0.975, freedom) == pytest.approx(quantile, abs=5e-4)


def test_the_interval_of_students_example():
    """The sleep of ten patients, as R prints t.test(extra ~ group, data = sleep, paired = TRUE)."""
    first = (0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0)
    second = (1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4)
    assert differences(second, first).interval == pytest.approx((0.7001142, 2.4598858), abs=1e-7)


def test_a_sample_without_an_interval():
    assert not Sample((1.0,)).has_interval
    assert not Sample((1.0, math.inf)).has_interval


def test_summaries_are_of_each_tensor(model):
    """The means and the gains are computed here from the measures of each tensor."""
    found = compare_files([str(model)], RECIPES)
    sqnr = np.array([[one.measures.sqnr for one in tensor.under] for tensor in found.tensors])
    for k, one in enumerate(summaries(found)):
        assert one.recipe == RECIPES[k]
        assert one.sqnr.mean == pytest.approx(sqnr[:, k].mean(), rel=1e-12)
        half = 3.18245 * sqnr[:, k].std(ddof=1) / 2  # of four tensors
        assert one.sqnr.interval[1] - one.sqnr.mean == pytest.approx(half, rel=1e-5)
        gain = sqnr[:, k] - sqnr[:, 0]
        assert one.gain is None if k == 0 else one.gain.mean == pytest.approx(gain.mean())


def test_tables(model):
    found = compare_files([str(model)], RECIPES)
    markdown = markdown_of(found).decode()
    rows = [line.strip("| ").split(" | ") for line in markdown.splitlines()[2:5]]
    assert [re.sub(r"[*`]", "", row[0]) for row in rows] == list(RECIPES)
    assert [row[0].startswith("**") for row in rows] == [
        recipe in {one.recipe for one in found.best} for recipe in RECIPES
    ]
    assert "4 tensors, 8,192 numbers; bold: no other recipe beats it" in markdown
    assert markdown.endswith(f"mor_ref {mor_ref.__version__}\n")
    latex = latex_of(found).decode()
    assert latex.count(r" \\") == 4
    assert r"error \% & SQNR dB" in latex
    for row in rows:
        assert row[3] in latex
        assert row[4] in latex


def test_latex_escapes_what_it_would_obey(model):
    latex = latex_of(compare_files([str(model)], ("mor:three_way", "mxfp4"))).decode()
    assert r"\texttt{mor:three\_way}" in latex


def test_one_tensor_has_no_interval(tmp_path):
    path = write(tmp_path / "one.safetensors", {"w": heavy((8, 32), 1).astype(np.float32)})
    row = markdown_of(compare_files([str(path)], ("mxfp4",))).decode().splitlines()[2]
    assert "to" not in row


def test_the_command_writes_tables_and_pictures(model):
    needs("matplotlib")
    imported("matplotlib")
    arguments = [word for name in ("t.md", "t.tex", "p.svg") for word in ("--out", name)]
    asked = ["compare", str(model), *arguments, "--pareto", "q.pdf"]
    done = run(*asked, cwd=model.parent)
    assert done.returncode == 0, done.stderr
    assert "t.tex: 8 rows, one for each recipe\n" in done.stdout
    assert "q.pdf: a picture of bits and SQNR, with the recipes that no other beats" in done.stdout
    names = ("t.md", "t.tex", "p.svg", "q.pdf")
    made = {name: (model.parent / name).read_bytes() for name in names}
    assert made["q.pdf"].startswith(b"%PDF-")
    assert b"/Type3" not in made["q.pdf"]
    assert made["p.svg"].startswith(b"<?xml")
    assert run(*asked, "-q", cwd=model.parent).returncode == 0
    assert made == {name: (model.parent / name).read_bytes() for name in made}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--out", "x.doc"], ".csv, .json, .parquet, .md, .tex, .png, .svg or .pdf"),
        (["--pareto", "x.csv"], "pareto is 'x.csv'; give a file that ends in .png, .svg or .pdf"),
        (["--out", "x.svg", "--pareto", "x.svg"], "x.svg"),
    ],
)
def test_what_cannot_be_written_is_said_first(model, arguments, said):
    done = run("compare", str(model), *arguments, cwd=model.parent)
    assert done.returncode not in (0, 1)
    assert said in done.stderr
    assert done.stdout == ""


def test_the_citation_has_the_version_of_the_package():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {mor_ref.__version__}\n" in text
