"""Text of files and of users, as terminals and spreadsheets can show it without obeying it."""

_OF_FORMULAS = ("=", "+", "-", "@")  # as the first letter of a cell


def printable(text: str) -> str:
    r"""Return a text with escapes in place of control characters, and of others without a look.

    >>> print(printable("a\x1b[2Jb"))
    a\x1b[2Jb
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def printable_lines(text: str) -> str:
    """Return a text whose lines are printable; ends of lines and tabs stay."""
    if text.isprintable():
        return text
    return "".join(each if each in "\n\t" else printable(each) for each in text)


def cell(content: object) -> object:
    """Return what a cell of a CSV file has: a text that is printable and not a formula.

    >>> cell("=1+1"), cell(-1)
    ("'=1+1", -1)
    """
    if not isinstance(content, str):
        return content
    return f"'{printable(content)}" if content.startswith(_OF_FORMULAS) else printable(content)
