"""The specification as a document: what `make spec-pdf` makes of its chapters."""

import re
import zipfile
from xml.etree import ElementTree as ET

import pytest
from extras import skip_without
from mor_docs import document, epub
from site_of_docs import ROOT, RULES, Page, build

import mor_ref

TEXT = "<p>It is.</p>"
MADE = (
    '<div class="body" role="main"><section id="whole"><h1>All</h1>{}</section>'
    '<div class="clearer"></div>'
)
CHAPTERS = (
    '<span id="document-spec/one"></span><section id="one">'
    '<h1>1. One<a class="headerlink" href="#x">¶</a></h1>{}'
    "</section>"
    '<section id="two"><h1>2. Two</h1><p><a href="spec/one.html#TIN-001">it</a></p></section>'
)
RULE = '<section class="rule" id="TIN-001"><h2><code>TIN-001</code> A rule</h2></section>'


def test_a_document_has_a_title_page_contents_and_links_within():
    made = document.compose(MADE.format(CHAPTERS.format(RULE)))
    assert f"Version {mor_ref.__version__}" in made
    contents, chapters = made.split('<div class="contents">')[1].split("</div>", 1)
    assert re.findall(r'href="#([^"]+)">([^<]+)<', contents) == [
        ("one", "1. One"),
        ("TIN-001", "TIN-001 A rule"),
        ("two", "2. Two"),
    ]
    assert contents.count("<ol>") == contents.count("</ol>") == 2
    assert contents.count("<li>") == contents.count("</li>") == 3
    assert '<a href="#TIN-001">it</a>' in chapters
    assert "headerlink" not in chapters


def test_a_page_of_another_builder_is_refused():
    with pytest.raises(ValueError, match="singlehtml -t print"):
        document.compose(TEXT)


def test_an_epub_says_which_pages_have_formulas(tmp_path):
    item = '<item id="{0}" href="{0}.xhtml" media-type="application/xhtml+xml" />'
    files = {
        "mimetype": "application/epub+zip",
        "content.opf": "".join(map(item.format, ("a", "b", "c"))),
        "a.xhtml": "<p><math/><svg/></p>",
        "b.xhtml": "<svg/>",
        "c.xhtml": TEXT,
    }
    with zipfile.ZipFile(tmp_path / "made.epub", "w") as made:
        for name, text in files.items():
            made.writestr(name, text)
    epub.mark(tmp_path / "made.epub", tmp_path / "marked.epub")
    with zipfile.ZipFile(tmp_path / "marked.epub") as marked:
        found = dict(re.findall(r'href="(\w)\.xhtml"[^>]*?(?: properties="(.*?)")?/>', opf(marked)))
        first = marked.infolist()[0]
        assert (first.filename, first.compress_type) == ("mimetype", zipfile.ZIP_STORED)
        assert {name: marked.read(name).decode() for name in files if "opf" not in name} == {
            name: text for name, text in files.items() if "opf" not in name
        }
    assert found == {"a": "mathml svg", "b": "svg", "c": ""}


def opf(book):
    return book.read("content.opf").decode()


@pytest.mark.tier("full")
def test_a_document_is_printed(tmp_path):
    skip_without("chromium")
    document.print_pdf(document.compose(MADE.format(CHAPTERS.format(RULE))), tmp_path / "it.pdf")
    printed = (tmp_path / "it.pdf").read_bytes()
    assert printed.startswith(b"%PDF-")
    assert printed.count(b"/Type /Page\n") == 4  # the title, the contents, two chapters


@pytest.fixture(scope="module")
def doctrees(tmp_path_factory):
    """Return a directory for the pages as both builders read them."""
    return tmp_path_factory.mktemp("doctrees")


def built(out, doctrees, *options):
    done = build(ROOT / "docs", out, "-t", "print", "-d", doctrees, *options)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def page(tmp_path_factory, doctrees):
    out = tmp_path_factory.mktemp("page")
    built(out, doctrees, "-b", "singlehtml", "-D", "html_theme=basic")
    made = out / "document.html"
    made.write_text(document.compose((out / "specification.html").read_text()))
    return Page(made)


@pytest.mark.tier("full")
def test_the_document_has_every_rule_and_no_dead_link(page):
    assert {rule.id for rule in RULES} <= page.ids
    assert {link for link in page.links if not link.startswith(("#", "https:"))} == set()
    assert {link[1:] for link in page.links if link.startswith("#")} - page.ids == set()


@pytest.mark.tier("full")
def test_the_pages_of_the_epub_are_xml(tmp_path, doctrees):
    built(tmp_path / "out", doctrees, "-b", "epub")
    epub.mark(tmp_path / "out" / "mor_ref-spec.epub", tmp_path / "it.epub")
    with zipfile.ZipFile(tmp_path / "it.epub") as book:
        pages = [name for name in book.namelist() if name.endswith((".xhtml", ".opf", ".ncx"))]
        for name in pages:
            ET.fromstring(book.read(name))  # noqa: S314, made here
        assert 'href="spec/mx.xhtml" media-type="application/xhtml+xml" properties="mathml"' in opf(
            book
        )
    assert {f"spec/{rule.chapter}.xhtml" for rule in RULES} <= set(pages)
