"""What Sphinx is told about rules, sources, and what is computed."""

import shutil
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util import logging

from mor_docs import links, rules, sources
from mor_docs.computed import Computed
from mor_docs.trace import trace
from mor_docs.typography import Typography

LOG = logging.getLogger(__name__)


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.add_config_value("trace_root", Path(app.confdir).parent, "env", (Path,))
    app.add_config_value("trace_suites", None, "env", (dict, type(None)))
    app.add_config_value("source_url", "", "html", (str,))
    app.connect("builder-inited", _read_trace)
    # sphinx-needs registers its directives when the configuration is known: this one comes after.
    app.connect("config-inited", _register_rule, priority=900)
    app.connect("html-collect-pages", sources.pages)
    app.connect("build-finished", _copy_explorer)
    app.connect("build-finished", _drop_needless)
    # When all files are there: sphinx-needs writes its own at the end, too.
    app.connect("build-finished", links.check, priority=900)
    app.add_transform(rules.LinkRules)
    app.add_transform(Typography)
    app.add_directive("trace-table", rules.TraceTable)
    app.add_directive("computed", Computed)
    return {"parallel_read_safe": False, "parallel_write_safe": True}


def _register_rule(app: Sphinx, config: Config) -> None:
    del config
    app.add_directive("rule", rules.RuleDirective, override=True)


def _copy_explorer(app: Sphinx, failure: Exception | None) -> None:
    """The format explorer is a page of its own, which works from files as it is."""
    explorer = Path(app.srcdir) / "explorer"
    if failure is None and explorer.is_dir():
        shutil.copytree(explorer, Path(app.outdir) / "explorer", dirs_exist_ok=True)


def _drop_needless(app: Sphinx, _: Exception | None) -> None:
    """What sphinx-needs leaves: a page that leads on to a rule, as its anchor does, and a log."""
    for name in ("permalink.html", "schema_violations.json"):
        (Path(app.outdir) / name).unlink(missing_ok=True)


def _read_trace(app: Sphinx) -> None:
    found = trace(app.config.trace_root, app.config.trace_suites)
    app.env.rule_trace = found  # type: ignore[attr-defined]
    for problem in found.problems():
        LOG.warning("%s", problem, type="trace")
