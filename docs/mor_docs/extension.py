"""The extension of Sphinx for rules, sources, and computed content."""

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util import logging

from mor_docs import addresses, consoles, explorer, formulas, links, rules, sources
from mor_docs.computed import Computed
from mor_docs.shown import checkpoint, reports
from mor_docs.trace import ROOT, own_trace, trace
from mor_docs.typography import Typography

# NDArray[float32], and NDArray[unsignedinteger[Any]].
_ARRAY = re.compile(
    r"~?numpy\.ndarray\[tuple\[~?typing\.Any, \.\.\.\], "
    r"~?numpy\.dtype\[([~\w.]+)(?:\[~?typing\.Any\])?\]\]"
)
# DTypeLike: all that NumPy takes for a dtype, from a type to a str.
_DTYPE = re.compile(r"~?type\[[^=]*_DTypeDict \| str\b")
# A parameter that is not for users, in the constructor of a record.
_PRIVATE = re.compile(r", _\w+: (?:[^][(),]|\[[^][]*\])+")
_SHORT_ARRAY = re.compile(r"ndarray\[tuple\[Any, \.\.\.\], dtype\[(\w+)(?:\[Any\])?\]\]")
LOG = logging.getLogger(__name__)


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the extension to Sphinx, which calls this."""
    app.setup_extension("sphinx.ext.autodoc")  # whose signatures are shown in another way
    app.add_config_value("trace_root", Path(app.confdir).parent, "env", (Path,))
    app.add_config_value("trace_suites", None, "env", (dict, type(None)))
    app.add_config_value("source_url", "", "html", (str,))
    formulas.connect(app)
    consoles.connect(app)
    app.connect("builder-inited", _read_trace)
    app.connect("source-read", _with_chapters)
    # sphinx-needs registers its directives when the configuration is known: this one comes after.
    app.connect("config-inited", _register_rule, priority=900)
    app.connect("html-collect-pages", sources.pages)
    app.connect("build-finished", _write_own_pages)
    app.connect("build-finished", addresses.write)
    app.connect("build-finished", _drop_needless)
    # When all files are there: sphinx-needs writes its own at the end, too.
    app.connect("build-finished", links.check, priority=900)
    app.connect("autodoc-process-signature", _as_written)
    app.connect("doctree-resolved", _properties_as_written)
    app.connect("doctree-resolved", rules.unlink_in_print)
    app.add_transform(rules.MoveNotes)
    app.add_transform(rules.LinkRules)
    app.add_transform(Typography)
    app.add_directive("trace-table", rules.TraceTable)
    app.add_directive("computed", Computed)
    return {"parallel_read_safe": False, "parallel_write_safe": True}


def _register_rule(app: Sphinx, config: Config) -> None:
    del config
    app.add_directive("rule", rules.RuleDirective, override=True)


def _with_chapters(app: Sphinx, page: str, text: list[str]) -> None:
    """Write the chapters where a page says CHAPTERS: those that the repository lists, in order."""
    if page == "specification":
        listed = Path(app.srcdir) / "spec" / "README.md"
        app.env.note_dependency(str(listed))
        chapters = re.findall(r"\((\w+)\.md\)", listed.read_text(encoding="utf-8"))
        text[0] = text[0].replace("CHAPTERS", "\n".join(f"spec/{name}" for name in chapters))


def _write_own_pages(app: Sphinx, failure: Exception | None) -> None:
    """Write the files of the site that are not pages of Sphinx, if the project is this one."""
    is_html = app.builder.format == "html"
    if failure is None and is_html and (Path(app.srcdir) / "explorer").is_dir():
        explorer.write(Path(app.outdir) / "explorer")
        reports.write(Path(app.outdir))
        checkpoint.write(Path(app.outdir))


def _as_written(*found: Any) -> tuple[str | None, str | None]:
    """Return a signature with the types as the code writes them, not as NumPy spells them.

    Fields of a record whose names begin with an underscore do not count.
    """
    shown = (part and _ARRAY.sub(r"~numpy.typing.NDArray[\1]", part) for part in found[-2:])
    shown = (part and _DTYPE.sub("~numpy.typing.DTypeLike", part) for part in shown)
    signature, returned = shown
    return signature and _PRIVATE.sub("", signature), returned


def _properties_as_written(_: Sphinx, page: nodes.document, __: str) -> None:
    """Write the types of properties, which no signature has, in the same way."""
    for type_of in page.findall(addnodes.desc_annotation):
        spelt_out = type_of.astext()
        if _SHORT_ARRAY.search(spelt_out):
            type_of[:] = [nodes.Text(_SHORT_ARRAY.sub(r"NDArray[\1]", spelt_out))]


def _drop_needless(app: Sphinx, _: Exception | None) -> None:
    """Remove what sphinx-needs leaves: a page that redirects to a rule, and a log."""
    for name in ("permalink.html", "schema_violations.json"):
        (Path(app.outdir) / name).unlink(missing_ok=True)


def _read_trace(app: Sphinx) -> None:
    root, suites = app.config.trace_root, app.config.trace_suites
    found = own_trace() if root == ROOT and suites is None else trace(root, suites)
    app.env.rule_trace = found  # type: ignore[attr-defined]
    for problem in found.problems():
        LOG.warning("%s", problem, type="trace")
