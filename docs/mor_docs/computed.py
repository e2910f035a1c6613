"""The directive for tables, pictures and worked examples that are computed with the site."""

import importlib
from typing import TYPE_CHECKING

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from collections.abc import Callable


class Computed(SphinxDirective):
    """Insert the result of a function of `mor_docs.shown` returns, as MyST.

    `{computed} scaling.ideal e4m3 1` calls `ideal("e4m3", "1")` of `mor_docs.shown.scaling`.
    """

    required_arguments = 1
    optional_arguments = 20

    def run(self) -> list[nodes.Node]:  # noqa: D102, what every directive does
        name, *arguments = self.arguments
        module, function = name.split(".")
        shown: Callable[..., str] = getattr(
            importlib.import_module(f"mor_docs.shown.{module}"), function
        )
        return self.parse_text_to_nodes(shown(*arguments), allow_section_headings=True)
