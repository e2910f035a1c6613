"""How numbers of things, and their names, are worded."""

from collections.abc import Sequence

_IRREGULAR = {
    "amax": "amaxes",
    "entry": "entries",
    "mismatch": "mismatches",
    "field of a case": "fields of cases",
    "more field of a case": "more fields of cases",
}
_NAMES = 10  # of a list


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, such as "3 cases".

    >>> counted(1, "case"), counted(1204, "entry")
    ('1 case', '1,204 entries')
    """
    many = _IRREGULAR.get(noun, f"{noun}s")
    return f"{count:,} {noun if count == 1 else many}"


def differing_in_case(entries: int, fields: int) -> str:
    """Say how many entries of a case differ, and how many of its fields cannot be compared.

    >>> differing_in_case(1, 0), differing_in_case(3, 2)
    ('1 entry differs', '3 entries differ and 2 fields cannot be compared')
    """
    parts = [f"{counted(entries, 'entry')} {'differs' if entries == 1 else 'differ'}"]
    parts = parts if entries else []
    parts += [f"{counted(fields, 'field')} cannot be compared"] if fields else []
    return " and ".join(parts)


def percent(explained: int, of: int) -> str:
    """Return a share in percent; 100.0 % only if it is all."""
    return f"{1000 * explained // of / 10:.1f} %"


def joined(names: Sequence[str], last: str = "or") -> str:
    """Return names with commas, and a word before the last one.

    >>> joined(["a", "b", "c"]), joined(["a", "b"], "and"), joined(["a"])
    ('a, b or c', 'a and b', 'a')
    """
    return f" {last} ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def listed(names: Sequence[str]) -> str:
    """List the first of some names, and how many more there are."""
    left = len(names) - _NAMES
    return ", ".join(names[:_NAMES]) + (f" and {left:,} more" if left > 0 else "")
