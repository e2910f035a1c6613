"""The index of rules."""

from itertools import groupby

from mor_docs.shown.markup import table
from mor_docs.trace import own_trace


def index() -> str:
    """Show each rule with its title and its origin, below its letters and their chapter."""
    rules = sorted(own_trace().rules.values(), key=lambda rule: rule.id)
    tables = []
    for code, those in groupby(rules, key=lambda rule: rule.id[:3]):
        listed = list(those)
        rows = [[rule.id, rule.title, rule.origin] for rule in listed]
        chapter = f"{{doc}}`/spec/{listed[0].chapter}`"
        tables.append(f"## {code}\n\n{chapter}\n\n" + table(["rule", "title", "origin"], rows))
    return "\n\n".join(tables)
