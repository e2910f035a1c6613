"""The documentation as it is built: its pages, their links and how they are set."""

import json
import re
from urllib.parse import unquote, urldefrag

import numpy as np
import pytest
from explorer_browser import context_of
from mor_docs import explorer, links
from mor_docs.addresses import anchor_of
from mor_docs.shown import traces
from mor_docs.trace import own_trace
from newcomers import CLICKS, ROLES
from site_browser import HEIGHT, WIDTH, click, front_page, search, shows
from site_of_docs import ROOT, RULES, Page, build, cells

import mor_ref
from mor_ref.golden.suites import SUITES
from mor_ref.mistakes.catalogue import CAUSES

pytestmark = pytest.mark.tier("full")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    out = tmp_path_factory.mktemp("site")
    done = build(ROOT / "docs", out)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def pages(site):
    paths = [path for path in site.rglob("*.html") if "explorer" not in path.parts]
    return {path: Page(path) for path in paths}


def test_the_build_finds_the_ids_and_links_of_its_pages(pages):
    """By patterns, and not by a parser of HTML."""
    for path, page in pages.items():
        found = links.Page(path)
        assert found.ids == page.ids, path
        assert found.links >= page.links | page.loads, path


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
    found = own_trace()
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
    assert {anchor_of(name) for name in CAUSES} <= deviations


def test_the_front_page_leads_to_the_walk_throughs(site, pages):
    guides = {path.name for path in (site / "guide").glob("verify-*.html")}
    assert len(guides) == 4
    assert {f"guide/{name}" for name in guides} <= pages[site / "index.html"].links
    assert not (site / "permalink.html").exists()


def test_what_would_show_a_rule_on_a_gpu_is_one_click_away(site, pages):
    """The suites of each rule without evidence."""
    found = own_trace()
    shown = traces.without_gpu()
    for rule, cell in zip(cells(shown, 0), cells(shown, -1), strict=True):
        assert re.findall(r"\[(\w+)\]\(#suite-", cell) == found.suites.get(rule, [])
    named = {name for rule in cells(shown, 0) for name in found.suites.get(rule, [])}
    anchors = {f"reference/suites.html#suite-{name.replace('_', '-')}" for name in named}
    assert pages[site / "gpu-rules.html"].links >= anchors


def test_the_explorer_has_the_catalogue_of_today(site):
    """The file of the site, which its page loads."""
    loaded = Page(site / "explorer" / "index.html").loads
    assert "catalogue.js" in loaded
    assert (site / "explorer" / "catalogue.js").read_text(encoding="utf-8") == explorer.script()


def test_pages_link_the_explorer(site, pages):
    """In the list of pages, and where somebody would look for it."""
    for path in (site / "index.html", site / "spec" / "encoding.html"):
        listed = {link.rpartition("/")[2] for link in pages[path].links}
        assert "explorer.html" in listed
    for name in ("reference/explorer", "reference/formats", "guide/how-we-know"):
        assert "../explorer/index.html" in pages[site / f"{name}.html"].links


def test_powers_are_raised_and_ids_keep_together(site):
    shown = (site / "spec" / "theorems.html").read_text()
    assert "· 2<sup>8</sup>" in (site / "spec" / "scales.html").read_text()
    assert re.search(r"1.75 \* 2<sup>15</sup>", shown)
    assert '<a class="rule-id reference internal" href="scales.html#' in shown
    for path in (site / "spec").glob("*.html"):
        text = re.sub(
            r"<(pre|code|script)\b.*?</\1>|<[^>]*>", "", path.read_text(), flags=re.DOTALL
        )
        assert re.findall(r".{9}\w\^.{9}", text) == [], path


def test_every_rule_is_a_heading_that_the_search_finds(site):
    index = (site / "searchindex.js").read_text()
    found = json.loads(index.removeprefix("Search.setIndex(").removesuffix(")"))
    names = found["docnames"]
    for rule in RULES:
        title = rule.title.replace("'", "\N{RIGHT SINGLE QUOTATION MARK}")
        places = found["alltitles"][f"{rule.id} {title}"]
        assert [[names[page], anchor] for page, anchor in places] == [
            [f"spec/{rule.chapter}", rule.id]
        ]
        entries = found["indexentries"][rule.id.lower()]  # an id alone leads to its rule
        assert [[names[page], anchor] for page, anchor, _ in entries] == [
            [f"spec/{rule.chapter}", rule.id]
        ]


def test_formulas_are_mathematics_and_need_no_script(site):
    for path in (site / "spec").glob("*.html"):
        page = path.read_text()
        assert "mathjax" not in page.lower(), path
        assert not re.search(
            r"\$[^$<]+\$", re.sub(r"<(pre|script)\b.*?</\1>", "", page, flags=re.DOTALL)
        )
    shown = (site / "spec" / "scales.html").read_text()
    assert '<math alttext="min(lowered, 127)">' in shown
    assert '<math display="block" alttext="scale = 2^min(e, 127) if amax &gt; 0' in shown
    assert '<mn>2</mn><mrow><mrow><mi mathvariant="normal">min</mi>' in shown


def test_rules_lead_to_their_program_and_to_the_explorer(site, pages):
    shown = (site / "spec" / "mx.html").read_text()
    of_floor = shown.partition('id="MXS-003"')[2].partition("<section")[0]
    assert '<details class="program"><summary>As a program</summary>' in of_floor
    assert "shared_exponent" in of_floor
    assert (
        "../explorer/index.html#view=row&recipe=mx&rule=floor" in pages[site / "spec/mx.html"].links
    )


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
        of_engine = r"mor_ref\.(schemes\.\w+\.)?engine"
        assert not [name for name in public if re.match(of_engine, modules[name])]
    described = pages[site / "reference" / "api.html"].ids
    assert {f"mor_ref.{type(record).__name__}.dequantize" for record in records} <= described
    shown = re.sub(r"<[^>]*>", "", (site / "reference" / "api.html").read_text())
    assert "TileScales" not in shown
    assert not re.findall(r"\b_\w+: ", shown)
    assert "block_scale: NDArray[uint8]" in shown


@pytest.fixture(scope="module")
def reader(browser):
    return context_of(browser, viewport={"width": WIDTH, "height": HEIGHT})


TASKS = [task for tasks in ROLES.values() for task in tasks]


def test_every_role_has_ten_tasks_of_few_clicks():
    assert {role: len(tasks) for role, tasks in ROLES.items()} == dict.fromkeys(ROLES, 10)
    assert len({task.question for task in TASKS}) == len(TASKS)
    assert max(len(way) for task in TASKS for way in (task.clicks, task.found)) <= CLICKS


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.question)
def test_newcomers_find_the_answer_from_the_front_page(site, reader, task):
    page = front_page(reader, site)
    for name in task.clicks:
        click(page, name)
    assert shows(page, task.answer)
    page.close()


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.question)
def test_newcomers_find_the_answer_by_the_search(site, reader, task):
    page = front_page(reader, site)
    assert task.found[0] in search(page, task.words)
    for name in task.found:
        click(page, name)
    assert shows(page, task.answer)
    page.close()
