"""The first pages of the site: the report of a real run, and one tensor through MoR."""

import html
import re

import numpy as np
import pytest
from mor_docs.shown import mor_diagram, one_tensor, reports
from pages import blocks_of
from site_of_docs import ROOT, cells

import mor_ref

X = np.float32([[2.5, -1, 0.75, 0], [0.125, -0.3125, -0.4375, 2**-18]])
BLOCKS = X.reshape(2, 2, 2).swapaxes(0, 1).reshape(8)  # row by row, one block after the other
POLICIES = ("tensor", "two_way", "three_way")


def by_blocks(array):
    return np.asarray(array).reshape(2, 2, 2).swapaxes(0, 1).ravel().tolist()


def text_of(shown):
    """Return the lines of a report as they are read, without its notes."""
    lines = re.findall(r'<span class="line.*', shown)
    plain = (re.sub(r'<span class="answer">.*?</span>|<[^>]*>', "", line) for line in lines)
    return [html.unescape(line) for line in plain]


@pytest.mark.tier("full")
def test_the_report_is_that_of_readme():
    """README's console block has it, and a test of README runs that."""
    said = next(
        block.text for block in blocks_of(ROOT / "README.md") if block.language == "console"
    )
    expected = [line.strip().replace("`", "") for line in said.splitlines()[1:7]]
    shown = reports.console()
    assert said.splitlines()[0] == f"$ mor-ref {' '.join(reports.COMMAND)}"
    assert text_of(shown)[:6] == expected
    assert '<a href="spec/mx.html#MXS-003">MXS-003</a>' in shown
    assert len(re.findall('class="answer"', shown)) == 4


def test_the_report_is_written_as_a_page(tmp_path):
    reports.write(tmp_path)
    assert "MXS-003/log2-in-binary32" in (tmp_path / reports.PAGE).read_text("utf-8")


def test_readme_multiplies_and_names_the_page_on_products():
    said = (ROOT / "README.md").read_text("utf-8")
    assert "(docs/guide/dot.md)" in said
    assert any(">>> mor_ref.matmul(" in block.text for block in blocks_of(ROOT / "README.md"))


@pytest.mark.parametrize("name", ["e4m3", "e5m2"])
def test_the_tables_of_one_tensor_are_what_the_engine_gives(name):
    found = mor_ref.quantize(X, name, block=(2, 2))
    scales = one_tensor.scales(name)
    assert [int(c, 16) for c in cells(scales, 7)] == found.scale_exponent.ravel().tolist()
    assert [float(c) for c in cells(scales, 1)] == found.amax.ravel().tolist()
    assert f"m = `0x{found.scale_mantissa.item():06X}`" in scales
    assert [np.float32(c.split()[0]) for c in cells(scales, 8)] == found.scale.ravel().tolist()
    elements = one_tensor.elements(name).removesuffix(":::\n")
    assert [int(code, 16) for code in cells(elements, 3)] == by_blocks(found.codes)
    sums = one_tensor.sums(name)
    assert [int(cell) for cell in cells(sums, 1)[:2]] == found.error.sum.ravel().tolist()
    assert int(cells(sums, 1)[2]) == int(found.error.sum.sum())
    assert cells(sums, 2) == ["4", "3", "7"]


def test_the_decisions_of_one_tensor_are_what_the_engine_gives():
    shown = cells(one_tensor.decisions(*POLICIES), 3)
    found = [mor_ref.mor(X, policy, block=(2, 2)) for policy in POLICIES]
    taken = [one.ladder[choice] for one in found for choice in one.choice.ravel()]
    assert [cell.strip("*") for cell in shown] == taken == ["bf16", "e4m3", "bf16", "e4m3", "e5m2"]
    output = one_tensor.output(*POLICIES)
    for column, one in enumerate(found, 1):
        codes = [int(cell.split("`")[0], 16) for cell in cells(output, column)]
        assert codes == one.output.view(np.uint16).ravel().tolist()


def test_the_diagram_has_the_ten_steps_and_the_links_of_their_rules():
    shown = mor_diagram.diagram()
    assert re.findall(r'class="name">([^<]*)<', shown)[-3:] == ["sums", "ladder", "bf16"]
    assert len(re.findall(r'<a href="../spec/\w+.html#[A-Z]{3}-\d{3}">', shown)) == 10
    assert "takes e5m2" in shown


def test_links_of_one_tensor_have_its_numbers():
    assert "row=2.5+-1+0.125+-0.3125+0.75+0+-0.4375+3.81469727e-06" in one_tensor.links()
