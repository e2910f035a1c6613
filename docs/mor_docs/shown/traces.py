"""The trace as pages, and the runs on a GPU."""

import json
import re
from pathlib import Path

from mor_docs.shown.markup import links_to_suites, table
from mor_docs.trace import Rule, Trace, own_trace

_ROOT = Path(__file__).resolve().parents[3]
_EVIDENCE = _ROOT / "docs" / "gpu-evidence.json"
# The chapters in their order.
CHAPTERS = re.findall(r"\((\w+)\.md\)", (_ROOT / "spec" / "README.md").read_text())


def chapters() -> str:
    """Show a table of the trace for each chapter that has rules."""
    with_rules = {rule.chapter for rule in own_trace().rules.values()}
    shown = [chapter for chapter in CHAPTERS if chapter in with_rules]
    return "\n".join(f"## {_title(name)}\n\n```{{trace-table}} {name}\n```\n" for name in shown)


def _title(chapter: str) -> str:
    first = (_ROOT / "spec" / f"{chapter}.md").read_text().split("\n", 1)[0]
    return first.removeprefix("# ")


def without_gpu() -> str:
    """List the rules that no run on a GPU has shown, of those that a kernel can show.

    `docs/gpu-evidence.json` is what `mor-ref verify cuda --report` has written, if it is there: a
    suite that matched there shows its rules.
    """
    found = own_trace()
    shown = _shown_on_a_gpu(found)
    wanted = [rule for rule in found.rules.values() if "cuda" not in rule.reasons]
    wanted.sort(key=lambda rule: CHAPTERS.index(rule.chapter))
    missing = [rule for rule in wanted if rule.id not in shown]
    said = f"{len(missing)} of the {len(wanted)} rules that kernels have were not shown on a GPU."
    if not _EVIDENCE.exists():
        said += " The kernels match every suite where their sources run on a CPU"
        said += " (`mor-ref verify cuda-host`); no result of a GPU is kept here yet."
    rows = [
        [
            rule.id,
            rule.title,
            ", ".join(dict.fromkeys(Path(p.path).name for p in found.of("cuda", rule.id))),
            _what_would_show(found, rule),
        ]
        for rule in missing
    ]
    return f"{said}\n\n{table(['rule', '', 'CUDA source that names it', 'suites'], rows)}"


def _what_would_show(found: Trace, rule: Rule) -> str:
    """Return the suites of a rule as links, or the reason why none can show it."""
    suites = found.suites.get(rule.id)
    return links_to_suites(suites) if suites else f"none: {rule.reasons['suites']}"


def _shown_on_a_gpu(found: Trace) -> set[str]:
    if not _EVIDENCE.exists():
        return set()
    results = json.loads(_EVIDENCE.read_text())["results"]
    matched = {result["suite"] for result in results if result["verdict"] == "match"}
    return {rule for rule, suites in found.suites.items() if matched.intersection(suites)}
