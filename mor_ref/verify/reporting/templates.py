"""The templates of the page. Their texts are escaped, made visible and cut."""

from functools import cache
from typing import TYPE_CHECKING, Any

from mor_ref.addresses import cause_path, rule_path
from mor_ref.counts_in_words import counted
from mor_ref.mistakes.catalogue import CAUSES
from mor_ref.verify.comparing.distance import shown
from mor_ref.verify.reporting import text
from mor_ref.verify.reporting.paths import without_directories
from mor_ref.verify.reporting.rules import address_of, link_to, rule_named
from mor_ref.verify.reporting.structure_text import identity, structure_lines

if TYPE_CHECKING:
    from jinja2 import Environment

_MOST = 300  # characters of a text that is shown
_MARKS = {
    "match": "✓",
    "match but for ties": "≈",
    "mismatch": "✗",
    "incomplete": "✗",
    "not run": "○",
    "failed": "✗",
}


def rendered(name: str, **values: Any) -> str:
    """Return a template with these values."""
    return _environment().get_template(name).render(values)


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("mor_ref.verify.reporting"),
        autoescape=True,
        finalize=_plain,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {
        "address_of": address_of,
        "cause_path": cause_path,
        "counted": counted,
        "deviations": CAUSES,
        "identity": identity,
        "link_to": link_to,
        "marks": _MARKS,
        "rule_named": rule_named,
        "rule_path": rule_path,
        "shown": shown,
        "structure_lines": structure_lines,
        "text": text,
    }
    environment.filters |= {"grouped": "{:,}".format, "sentence": _sentence, "zip": zip}
    return environment


def _plain(value: Any) -> Any:
    """Return markup as it is; cut other text, without directories and invisible characters."""
    if hasattr(value, "__html__"):
        return value
    said = without_directories(str(value))
    seen = _printable(said[:_MOST])
    return f"{seen}… ({len(said):,} characters)" if len(said) > _MOST else seen


def _printable(said: str) -> str:
    return "".join(c if c.isprintable() else _visible(c) for c in said)


def _visible(character: str) -> str:
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")


def _sentence(line: str) -> str:
    return _printable(f"{line[:1].upper()}{line[1:]}")
