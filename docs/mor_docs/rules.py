"""Rules on the site: their marks and traces, links where an id is named, and tables of traces."""

import re
from itertools import takewhile
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx_needs.directives.need import NeedDirective
from sphinx_needs.nodes import Need

from mor_docs import programs, sources
from mor_docs.addresses import anchor_of
from mor_docs.checked import counts
from mor_docs.naming import NO_IDS
from mor_docs.trace import Place, Rule, Trace
from mor_ref.mistakes.catalogue import CAUSES

LOG = logging.getLogger(__name__)
ID = re.compile(r"\b[A-Z]{3}-\d{3}\b")

ORIGINS = {
    "ours": "a choice of this reference, where paper and standards leave one",
    "paper": "arXiv 2512.22804",
    "standard": "IEEE 754, or OCP's specifications of FP8 and MX",
    "vendor": "what widely used hardware or software does",
    "theorem": "follows from the other rules",
}
# The columns of the trace as they are called on the pages. Examples are few, and have no column.
COLUMNS = {"code": "Code", "cuda": "CUDA", "tests": "Tests", "suites": "Suites"}
SOURCES = ("code", "cuda", "tests", "examples")
# What every name of a column would begin with.
DIRECTORIES_LEFT_OUT = r"^(mor_ref/cuda/kernels/|mor_ref/|tests/|examples/)"
WIDTHS = (18, 24, 20, 24, 20)
# Where an id is not a mention of a rule.
_APART = (
    *(nodes.literal, nodes.literal_block, nodes.reference, nodes.raw, nodes.title),
    *(nodes.math, nodes.math_block),
)


def _trace_of(env: BuildEnvironment) -> Trace:
    found: Trace = env.rule_trace  # type: ignore[attr-defined]
    return found


def _linked(app: Sphinx, docname: str, column: str, rule: str) -> list[nodes.Node]:
    """Return the places of a rule in one column, as links: one link a file, with its lines."""
    found: list[nodes.Node] = []
    last = ""
    for place in _trace_of(app.env).of(column, rule):
        file = re.sub(DIRECTORIES_LEFT_OUT, "", place.path)
        name = str(place.line) if place.path == last else f"{file}:{place.line}"
        last = place.path
        uri = sources.link_to(app, docname, place)
        title = f"{place.path}, line {place.line}"
        found += [nodes.reference("", name, refuri=uri, internal=True, reftitle=title)]
        found += [nodes.Text(", ")]
    return found[:-1]


def _cell(app: Sphinx, docname: str, column: str, rule: str) -> list[nodes.Node]:
    """Return the links of a rule in one column, or the reason why it has none."""
    is_suite = column == "suites"
    links = _suites(app, docname, rule) if is_suite else _linked(app, docname, column, rule)
    reason = _trace_of(app.env).rules[rule].reasons.get(column)
    return [nodes.emphasis("", f"none: {reason}")] if reason else links


def _deviations(app: Sphinx, docname: str, rule: str) -> list[nodes.Node]:
    """Return the deviations that break a rule, as links to their descriptions."""
    found: list[nodes.Node] = []
    page = app.builder.get_relative_uri(docname, "spec/deviations")
    for deviation in CAUSES.values():
        if rule in deviation.rules:
            uri = f"{page}#{anchor_of(deviation.name)}"
            link = nodes.reference("", deviation.name, refuri=uri, internal=True)
            link["reftitle"] = deviation.summary
            found += [link, nodes.Text(", ")]
    return found[:-1]


def _entries(rule: str) -> list[nodes.Node]:
    """Return on how many entries the formulas of a rule were evaluated, if they were."""
    entries = counts.known_counts().get(rule)
    return [nodes.Text(f"evaluated on {entries:,} entries of the vectors")] if entries else []


def _suites(app: Sphinx, docname: str, rule: str) -> list[nodes.Node]:
    """Return the suites of a rule, as links to their descriptions."""
    found: list[nodes.Node] = []
    page = app.builder.get_relative_uri(docname, "reference/suites")
    for suite in _trace_of(app.env).suites.get(rule, []):
        uri = f"{page}#suite-{suite.replace('_', '-')}"
        found += [nodes.reference("", suite, refuri=uri, internal=True), nodes.Text(", ")]
    return found[:-1]


class RuleDirective(NeedDirective):
    """A need of sphinx-needs as a section: a heading, the rule, its program and its trace."""

    def run(self) -> list[nodes.Node]:  # noqa: D102, what every directive does
        rule = str(self.options.get("id"))
        origin = str(self.options.get("origin"))
        if not set(origin.split(" + ")) <= ORIGINS.keys():
            raise self.error(f"origin of {rule} is none of {', '.join(ORIGINS)}")
        known = _trace_of(self.env)
        for column in SOURCES:
            places = known.of(column, rule)
            self.options[column] = ", ".join(f"{place.path}:{place.line}" for place in places)
        self.options["suites"] = ", ".join(known.suites.get(rule, []))
        explored = str(self.options.get("explore") or "")  # sphinx-needs takes options away
        contents = [part for made in super().run() if isinstance(made, Need) for part in made]
        title = nodes.title("", "", nodes.literal("", rule), nodes.Text(f" {self.arguments[0]}"))
        mark = nodes.paragraph("", origin, classes=["origin"])
        box = nodes.container("", mark, *contents, classes=["rule-box"])
        box += [*self._try_it(explored), *self._program(rule), self._trace(rule)]
        # The search leads from an id to its rule: it finds entries of the index by their name.
        entry = addnodes.index(entries=[("single", rule, rule, "main", None)])
        return [nodes.section("", title, entry, box, ids=[rule], classes=["rule"])]

    def _try_it(self, given: str) -> list[nodes.Node]:
        """Return a link to the explorer, if the rule says what to look at there."""
        if not given or self.env.app.tags.has("print"):
            return []
        address = f"{'../' * self.env.docname.count('/')}explorer/index.html#{given}"
        link = nodes.reference("", "Try it in the explorer", refuri=address, internal=True)
        return [nodes.paragraph("", "", link, classes=["try-it"])]

    def _program(self, rule: str) -> list[nodes.Node]:
        """Return the lines of the exact model, in a fold."""
        places = _trace_of(self.env).of("code", rule)
        pieces = programs.pieces_of(self.env.config.trace_root, places)
        if not pieces:
            return []
        opening = '<details class="program"><summary>As a program</summary>'
        made: list[nodes.Node] = [nodes.raw("", opening, format="html")]
        for piece in pieces:
            place = Place(piece.path, piece.line)
            uri = sources.link_to(self.env.app, self.env.docname, place)
            name = f"{piece.path}, line {piece.line}"
            link = nodes.reference("", name, refuri=uri, internal=True)
            is_linked = not self.env.app.tags.has("print")
            made.append(nodes.paragraph("", "", link if is_linked else nodes.Text(name)))
            made.append(nodes.literal_block(piece.text, piece.text, language="python"))
        return [*made, nodes.raw("", "</details>", format="html")]

    def _trace(self, rule: str) -> nodes.container:
        app, docname = self.env.app, self.env.docname
        columns = {name: _cell(app, docname, key, rule) for key, name in COLUMNS.items()}
        columns["Formulas"] = _entries(rule)
        columns["RTL and C"] = _linked(app, docname, "examples", rule)
        columns["Broken by"] = _deviations(app, docname, rule)
        found = nodes.container(classes=["rule-trace"])
        for name, links in columns.items():
            if links:
                found += nodes.paragraph("", "", nodes.strong("", f"{name} "), *links)
        if app.tags.has("print"):  # what the links lead to is on the site
            for link in list(found.findall(nodes.reference)):
                link.parent.replace(link, nodes.Text(link.astext()))
        return found


class MoveNotes(SphinxTransform):
    """The notes after a rule, up to the next heading, become a part of its section."""

    default_priority = 400

    def apply(self, **_: Any) -> None:  # noqa: D102, what every transform does
        for section in list(self.document.findall(nodes.section)):
            if "rule" in section["classes"]:
                around = section.parent
                after = around[around.index(section) + 1 :]
                notes = list(takewhile(lambda node: not isinstance(node, nodes.section), after))
                for note in notes:
                    around.remove(note)
                section.extend(notes)


class LinkRules(SphinxTransform):
    """Every id of a rule in the text becomes a link to it; an unknown one is a warning."""

    default_priority = 500

    def apply(self, **_: Any) -> None:  # noqa: D102, what every transform does
        known = _trace_of(self.env)
        for text in list(self.document.findall(nodes.Text)):
            if not any(isinstance(above, _APART) for above in _ancestors(text)):
                parts = self._linked(str(text), known.rules)
                if len(parts) > 1:
                    text.parent.replace(text, parts)

    def _linked(self, text: str, rules: dict[str, Rule]) -> list[nodes.Node]:
        parts: list[nodes.Node] = []
        end = 0
        for found in ID.finditer(text):
            if found[0] in NO_IDS:
                continue
            rule = rules.get(found[0])
            if rule is None:
                LOG.warning("%s is not a rule of the specification", found[0], location=self._where)
                continue
            page = self.app.builder.get_relative_uri(self.env.docname, f"spec/{rule.chapter}")
            link = nodes.reference(
                "", rule.id, refuri=f"{page}#{rule.id}", internal=True, reftitle=rule.title
            )
            parts += [nodes.Text(text[end : found.start()]), link]
            end = found.end()
        return [*parts, nodes.Text(text[end:])]

    @property
    def _where(self) -> str:
        return self.env.docname


def unlink_in_print(app: Sphinx, document: nodes.document, _: str) -> None:
    """Make plain text of links to other pages of the site, where only the chapters are printed."""
    if app.tags.has("print"):
        ids = {name for node in document.findall(nodes.Element) for name in node["ids"]}
        for link in list(document.findall(nodes.reference)):
            uri = link.get("refuri", "#" + link.get("refid", ""))
            if uri.startswith("#") and not uri.startswith("#document-") and uri[1:] not in ids:
                link.parent.replace(link, link.children)


class TraceTable(SphinxDirective):
    """The trace of one chapter as a table: a row for each rule."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:  # noqa: D102, what every directive does
        app, docname = self.env.app, self.env.docname
        rows = []
        for rule in _trace_of(self.env).rules.values():
            if rule.chapter == self.arguments[0]:
                cells = [_cell(app, docname, column, rule.id) for column in COLUMNS]
                rows.append([[nodes.Text(f"{rule.id} {rule.title}")], *cells])
        return [_table(["Rule", *COLUMNS.values()], rows)]


def _table(head: list[str], rows: list[list[list[nodes.Node]]]) -> nodes.table:
    group = nodes.tgroup("", *(nodes.colspec(colwidth=width) for width in WIDTHS), cols=len(head))
    group += nodes.thead("", _row([[nodes.Text(name)] for name in head]))
    group += nodes.tbody("", *(_row(cells) for cells in rows))
    return nodes.table("", group, classes=["trace", "colwidths-given"])


def _row(cells: list[list[nodes.Node]]) -> nodes.row:
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", "", *cell)) for cell in cells))


def _ancestors(node: nodes.Node) -> list[nodes.Node]:
    above = []
    while node.parent is not None:
        node = node.parent
        above.append(node)
    return above
