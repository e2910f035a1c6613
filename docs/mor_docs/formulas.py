"""Formulas of the pages: MathML in place of the notation of the sources (`mor_docs.notation`)."""

from typing import Any, NoReturn

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

from mor_docs.notation import NotationError, to_mathml

LOG = logging.getLogger(__name__)


def connect(app: Sphinx) -> None:
    """Make this the one way in which a formula is shown in HTML: nothing is loaded for it."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))


def _inline(translator: Any, node: nodes.math) -> NoReturn:
    translator.body.append(_shown(node, block=False))
    raise nodes.SkipNode


def _block(translator: Any, node: nodes.math_block) -> NoReturn:
    translator.body.append(f'<div class="formula">{_shown(node, block=True)}</div>')
    raise nodes.SkipNode


def _shown(node: nodes.Element, *, block: bool) -> str:
    """Return a formula as MathML; warn of one that cannot be read, which stops the build."""
    try:
        return to_mathml(node.astext(), block=block)
    except NotationError as problem:
        LOG.warning("the formula %s", problem, location=node)
        return ""
