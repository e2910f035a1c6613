"""Pieces of HTML: what is not markup by its type is escaped, so that nothing can be forgotten."""

import html

_MOST = 300  # characters of a text that is shown


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


DASH = Html("\N{EN DASH}")


def plain(text: str) -> str:
    """A text without what cannot be seen, and not too long."""
    seen = "".join(c if c.isprintable() else _visible(c) for c in text[:_MOST])
    return f"{seen}… ({len(text):,} characters)" if len(text) > _MOST else seen


def markup(content: str) -> Html:
    """Markup as it is; any other text escaped."""
    return content if isinstance(content, Html) else Html(html.escape(plain(content)))


def joined(*pieces: str, between: str = "") -> Html:
    """Pieces behind one another."""
    return Html(markup(between).join(map(markup, pieces)))


def element(tag: str, *pieces: str, **attributes: str | int | bool | None) -> Html:
    """An element; an attribute `data_label` is data-label, `class_` is class, None is left out."""
    shown = "".join(
        f" {name.strip('_').replace('_', '-')}" + ("" if value is True else f'="{_quoted(value)}"')
        for name, value in attributes.items()
        if value is not None and value is not False
    )
    return Html(f"<{tag}{shown}>{joined(*pieces)}</{tag}>")


def code(text: str) -> Html:
    """A name, or bits."""
    return element("code", text)


def rule_list(rules: tuple[str, ...]) -> Html:
    """The ids of rules."""
    return joined(*(element("span", rule, class_="rule") for rule in rules), between=", ")


def items(pieces: list[Html], most: int, **attributes: str) -> Html:
    """A list of the first pieces, and how many are left out."""
    left = len(pieces) - most
    rest = [element("li", f"and {left:,} more", class_="muted")] if left > 0 else []
    return element("ul", *(element("li", piece) for piece in pieces[:most]), *rest, **attributes)


def _visible(character: str) -> str:
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")


def _quoted(value: str | int) -> str:
    return html.escape(value if isinstance(value, Html) else plain(str(value)))
