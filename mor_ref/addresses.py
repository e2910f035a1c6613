"""Addresses on the site that do not move: of each rule, and of each cause of mismatches.

`make docs` writes a page at each. Without the address of a site, they are paths from its root.
"""

from collections.abc import Iterable
from importlib import metadata

_SEE = "see on the site"


def rule_path(rule: str) -> str:
    """Return the path of a rule.

    >>> rule_path("ENC-003")
    'spec/ENC-003'
    """
    return f"spec/{rule}"


def cause_path(cause: str) -> str:
    """Return the path of a cause of mismatches.

    >>> cause_path("ENC-003/ties-away")
    'causes/ENC-003/ties-away'
    """
    return f"causes/{cause}"


def own_site() -> str | None:
    """Return the address of the documentation that the installed package names, if it does."""
    try:
        urls = metadata.metadata("mor-ref").get_all("Project-URL") or []
    except metadata.PackageNotFoundError:
        return None
    named = (str(url).partition(", ") for url in urls)
    return next((url for name, _, url in named if name.lower() == "documentation"), None)


def on_site(path: str) -> str:
    """Return a path below the address of the site, if the package names one."""
    site = own_site()
    return path if site is None else f"{site.rstrip('/')}/{path}"


def see(paths: Iterable[str]) -> str:
    """Return where to read about rules and causes, as a line of a report.

    >>> see([cause_path("ENC-003/ties-away"), rule_path("ENC-003")])
    'see on the site: causes/ENC-003/ties-away, spec/ENC-003'
    """
    return f"{_SEE}: {', '.join(map(on_site, paths))}"
