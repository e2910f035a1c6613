"""Copies of the sources that the trace links to, as pages with a name for each line."""

import functools
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_for_filename
from sphinx.application import Sphinx

from mor_docs.trace import Place, Trace

FOLDER = "source"


def page_of(path: str) -> str:
    """Return the name of the page that shows a source."""
    return f"{FOLDER}/{path}"


def link_to(app: Sphinx, docname: str, place: Place) -> str:
    """Return a link to a line: in the repository if its address is configured, else in the copy."""
    if app.config.source_url:
        return str(app.config.source_url).format(path=place.path, line=place.line)
    return f"{app.builder.get_relative_uri(docname, page_of(place.path))}#L-{place.line}"


def pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield a page for each source that the trace names, unless links go to the repository."""
    if app.config.source_url or app.tags.has("print"):
        return
    trace: Trace = app.env.rule_trace  # type: ignore[attr-defined]
    named = {
        place.path
        for column in trace.places.values()
        for places in column.values()
        for place in places
    }
    navigation = functools.cache(functools.partial(_navigation, app))
    for path in sorted(named):
        code = (app.config.trace_root / path).read_text()
        formatter = HtmlFormatter(linenos="inline", lineanchors="L", anchorlinenos=True)
        lexer = get_lexer_for_filename("x.cpp" if path.endswith((".cu", ".cuh")) else path)
        body = f"<h1><code>{path}</code></h1>{highlight(code, lexer, formatter)}"
        folder = str(PurePosixPath(page_of(path)).parent)
        context: dict[str, Any] = {"title": path, "body": body, "parents": []}
        context["toctree"] = functools.partial(navigation, folder)
        yield page_of(path), context, "page.html"


def _navigation(app: Sphinx, folder: str, **options: Any) -> str:
    """Return the list of pages for one directory: Sphinx makes it for each page."""
    builder: Any = app.builder
    return str(builder._get_local_toctree(f"{folder}/page", **options))  # noqa: SLF001
