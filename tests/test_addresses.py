"""Addresses of rules and causes: pages of the site at them, and commands that print them."""

import json
from types import SimpleNamespace

import pytest
from mor_docs import addresses
from mor_docs.trace import own_trace
from site_of_docs import ROOT, RULES, Page, build
from test_docs_build import project
from test_page import deviating, on
from typer.testing import CliRunner

import mor_ref.addresses
from mor_ref.cli import app
from mor_ref.deviations import DEVIATIONS
from mor_ref.mistakes.catalogue import FORMER_IDS, MODELLED
from mor_ref.verify.reporting import text
from mor_ref.verify.reporting.report_files import as_json


def test_there_is_a_page_for_each_rule_and_each_cause(tmp_path):
    """It leads to the place; that each link has its target is a check of the build."""
    site = SimpleNamespace(
        builder=SimpleNamespace(format="html"),
        tags=SimpleNamespace(has=lambda _: False),
        outdir=tmp_path,
        srcdir=ROOT / "docs",
        env=SimpleNamespace(rule_trace=own_trace()),
    )
    (tmp_path / "spec").mkdir()
    for rule in RULES:
        with (tmp_path / "spec" / f"{rule.chapter}.html").open("a") as chapter:
            chapter.write(f'<p id="{rule.id}">')
    addresses.write(site, None)
    pages = {path.parent.relative_to(tmp_path).as_posix(): Page(path)
             for path in tmp_path.rglob("index.html")}  # fmt: skip
    rules = {f"spec/{rule.id}": f"../../spec/{rule.chapter}.html#{rule.id}" for rule in RULES}
    causes = {
        f"causes/{name}": f"../../spec/deviations.html#deviation-{name.replace('_', '-')}"
        for name in DEVIATIONS
    }
    floor = "spec/deviations.html#deviation-scl-002-floor-left-out"
    of_model = {f"causes/{name}" for name in (*MODELLED, *FORMER_IDS)}
    assert pages["causes/SCL-002/floor-left-out"].links == {f"../../../{floor}"}
    assert pages["causes/scale_is_subnormal"].links == {f"../../{floor}"}, "its former name"
    assert of_model <= pages.keys()
    pages = {path: page for path, page in pages.items() if path not in of_model}
    assert {path: page.links for path, page in pages.items()} == {
        path: {link} for path, link in (rules | causes).items()
    }
    for former, now in addresses.FORMER_PAGES.items():
        assert Page(tmp_path / f"{former}.html").links == {f"../{now}.html"}
        assert (ROOT / "docs" / f"{now}.md").is_file()
        assert not (ROOT / "docs" / f"{former}.md").exists()
    assert set(addresses.FORMER_PAGES) == {"guide/which-scheme", "guide/more-schemes"}
    shown = (tmp_path / "spec" / "ENC-003" / "index.html").read_text()
    assert "<title>ENC-003 Roundings</title>" in shown
    assert 'content="0; url=../../spec/encoding.html#ENC-003"' in shown


@pytest.mark.tier("full")
def test_a_build_writes_the_pages_of_its_rules(tmp_path):
    done = build(project(tmp_path, {}) / "docs", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    page = Page(tmp_path / "out" / "spec" / "TIN-001" / "index.html")
    assert page.links == {"../../spec/encoding.html#TIN-001"}


def test_explain_prints_the_address_of_the_rule(monkeypatch):
    call = ["explain", "0.3", "--format", "e4m3"]
    said = CliRunner().invoke(app, call).output.splitlines()
    assert said[-1] == "see on the site: spec/ENC-003"
    assert (
        json.loads(CliRunner().invoke(app, [*call, "--json"]).output)["address"] == "spec/ENC-003"
    )
    monkeypatch.setattr(mor_ref.addresses, "own_site", lambda: "https://example.org/d/")
    said = CliRunner().invoke(app, call).output.splitlines()
    assert said[-1] == "see on the site: https://example.org/d/spec/ENC-003"


def test_a_report_has_the_addresses_of_what_it_names():
    """Those of the explanation, or of the rules of the first mismatching field."""
    found = on(deviating("ENC-003/ties-away"), "encode_stochastic", "quantize_steps")
    said = list(text.lines(found))
    assert "    see on the site: causes/ENC-003/ties-away, spec/ENC-003" in said
    recorded = json.loads(as_json(found))["addresses"]
    assert recorded["ENC-003/ties-away"] == "causes/ENC-003/ties-away"
    assert recorded["ENC-003"] == "spec/ENC-003"
    assert recorded["QNT-001"] == "spec/QNT-001"


def test_rules_of_the_first_mismatching_field_have_addresses():
    def wrong(operation, parameters, inputs):
        del operation, parameters
        return {"value": inputs["code"].astype("uint32") * 7919}

    assert "  see on the site: spec/DEC-001, spec/DEC-002, spec/DEC-003" in list(
        text.lines(on(wrong, "decode"))
    )


def test_rules_and_causes_of_a_user_have_no_address():
    assert list(text.addresses(["mine"], ["MINE"])) == []
    assert list(text.addresses(["mine"], ["MINE", "ENC-003"])) == ["see on the site: spec/ENC-003"]
