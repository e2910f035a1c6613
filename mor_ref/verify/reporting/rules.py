"""Rules in reports: their chapters and titles, and their addresses on a site."""

import json
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import resources
from typing import NamedTuple

from mor_ref.addresses import own_site, rule_path


class Rule(NamedTuple):
    """A rule of the specification."""

    id: str
    chapter: str
    title: str


@cache
def _known() -> dict[str, Rule]:
    text = resources.files("mor_ref.verify.reporting").joinpath("rules.json").read_text("utf-8")
    return {id_: Rule(id_, *row) for id_, row in json.loads(text).items()}


def rule_named(name: str) -> Rule | None:
    """Return a rule of the specification; None for one that a user added.

    >>> rule_named("SCL-002")
    Rule(id='SCL-002', chapter='scales', title='The ideal scale')
    """
    return _known().get(name)


def known_among(names: Iterable[str]) -> Iterator[Rule]:
    """Yield the rules of the specification among these names, each once, in order."""
    yield from (_known()[name] for name in sorted(set(names)) if name in _known())


def link_to(path: str, site: str) -> str:
    """Return the link from a report to a path of a site; one in a directory needs the file."""
    file = "/index.html" if site.startswith(".") else ""
    return f"{site.rstrip('/')}/{path}{file}"


def address_of(rule: Rule, site: str | None) -> str:
    """Return the address of a rule: on the site, or in the list at the end of the page."""
    return f"#rule-{rule.id}" if site is None else link_to(rule_path(rule.id), site)


def as_site(site: str | None) -> str | None:
    """Return the address of a site that links can lead to, or refuse it."""
    if site is None:
        return own_site()
    if not site.startswith(("https://", "http://", "./", "../")) or any(map(str.isspace, site)):
        raise ValueError(
            f"site is {site!r}; give its address, such as https://example.org/mor_ref, or a way "
            "to it from the report, such as ./docs"
        )
    return site
