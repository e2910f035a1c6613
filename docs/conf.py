"""The site: the specification, the guide and the reference, with content that the code computes."""

import sys
from contextlib import suppress
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.append(str(HERE.parent))  # the experiment, whose results are shown, is not installed
# The chapters are pages of the site. The link is made here, as not all that copies a repository
# keeps links, and archives have none.
with suppress(FileExistsError):
    (HERE / "spec").symlink_to("../spec")

import mor_ref  # noqa: E402, found by its own name; mor_docs by the path above

project = "mor_ref"
author = "the authors of mor_ref"
release = version = mor_ref.__version__
extensions = [
    "myst_parser",
    "sphinx_needs",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "sphinx_design",
    "mor_docs.extension",
]
# The list of chapters in the repository is the table of contents here.
exclude_patterns = ["explorer", "mor_docs", "spec/README.md"]
# make spec-pdf: the specification alone, as a document to print and to read offline.
if tags.has("print"):  # noqa: F821, Sphinx defines it
    root_doc = "specification"
    include_patterns = ["specification.md", "spec/*.md"]
    epub_basename, epub_title = "mor_ref-spec", "The specification of mor_ref"
    epub_copyright = "the authors of mor_ref, Apache-2.0"
    epub_description = "The specification of small number formats, MX, NVFP4 and MoR, bit by bit."
    epub_identifier, epub_uid = f"urn:mor_ref:specification:{version}", "edition"
    epub_show_urls = "no"
    epub_exclude_files = ["needs.json", "permalink.html", "schema_violations.json"]
    # Links to the other pages of the site.
    suppress_warnings = ["ref.doc", "myst.xref_missing", "epub.unknown_project_files"]
html_theme = "furo"
html_title = f"mor_ref {release}"
html_static_path = ["_static"]
html_css_files = ["site.css", "rules.css"]
html_search_scorer = str(HERE / "mor_docs" / "search_scores.js")
html_show_copyright = False
html_show_sourcelink = False
html_copy_source = False
# The colours of code are those of the theme in light and dark.
pygments_style = "friendly"
pygments_dark_style = "github-dark"

# Types of others, whose pages are elsewhere; pages make no requests, so nothing is looked up there.
nitpick_ignore_regex = [
    ("py:class", r"(numpy|decimal|fractions|collections|contextlib|os|pathlib|torch)\..*"),
    ("py:class", r"ArrayLike|Figure|type\[.*|Supports(Float|Index)"),
    ("py:class", r"mor_ref\.definitions\.(blocks|dot|formats|integer_grids|nvfp4)\..*"),
    ("py:class", r"mor_ref\.(records\.Transposed|api\.coded_blocks\.CodedBlocks)"),
    ("py:class", r"mor_ref\.operations\.(fields\.Field|nearest\.Operand)"),
    # Of overloads, whose types are shown as they are written.
    ("py:class", r"Bits|CutLike|FormatLike|Given|GivenOfScales|Scaling|Threshold"),
    # What metrics are given by each implementation, which is imported when it is called.
    ("py:class", r"mor_ref\.metrics\.unit\.NumbersOfUnit|NDArray|np\.float32"),
    ("py:class", r"ErrorSum|Errors|Extremes|Accepted|Array|Device|o[nf]_device\..*"),
]
autodoc_member_order = "bysource"
# The reference of mor_ref.torch is made without torch. What stands for its types has no operator |,
# so annotations that have it are strings.
autodoc_mock_imports = ["torch"]
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True

myst_enable_extensions = ["attrs_block", "colon_fence", "deflist", "dollarmath"]
myst_update_mathjax = False
myst_heading_anchors = 3
# Links lead to pages and to names of Python; to look for each one in C++ as well takes long.
myst_ref_domains = ["std", "py"]

# A rule is a need: its id is its anchor, and needs.json has all of them with their traces.
needs_types = [{"directive": "rule", "title": "Rule", "prefix": "", "color": "", "style": ""}]
needs_id_regex = r"^[A-Z]{3}-\d{3}$"
needs_id_required = True
_FIELDS = {
    "origin": "where the rule comes from",
    "untestable": "why the rule has no test",
    "suiteless": "why no suite covers it",
    "host": "why no kernel has it",
    "explore": "what the explorer shows of it, as the end of an address",
    "code": "the programs that implement it",
    "cuda": "the CUDA sources that implement it",
    "tests": "the tests that hold it",
    "examples": "the examples in other languages that name it",
    "suites": "the suites of golden vectors that cover it",
}
needs_fields = {
    name: {"description": meaning, "nullable": True, "schema": {"type": "string"}}
    for name, meaning in _FIELDS.items()
}
needs_css = "blank.css"  # rules.css has the look of rules, which are sections
needs_build_json = True
