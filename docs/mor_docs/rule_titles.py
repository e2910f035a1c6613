"""The chapter and the title of each rule, which reports name.

`PYTHONPATH=docs python -m mor_docs.rule_titles` writes them for the package.
"""

import json

from mor_docs.trace import ROOT, rules_of

FILE = ROOT / "mor_ref" / "verify" / "reporting" / "rules.json"


def titles() -> str:
    """Return the chapter and the title of each rule, as JSON."""
    rules = sorted(rules_of(ROOT / "spec"), key=lambda rule: rule.id)
    rows = (f" {json.dumps(rule.id)}: {json.dumps([rule.chapter, rule.title])}" for rule in rules)
    return "{\n" + ",\n".join(rows) + "\n}\n"


if __name__ == "__main__":
    FILE.write_text(titles(), encoding="utf-8")
