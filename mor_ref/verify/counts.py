"""How numbers of things are worded."""

_IRREGULAR = {
    "entry": "entries",
    "mismatch": "mismatches",
    "field of a case": "fields of cases",
}


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, such as "3 cases".

    >>> counted(1, "case"), counted(1204, "entry")
    ('1 case', '1,204 entries')
    """
    many = _IRREGULAR.get(noun, f"{noun}s")
    return f"{count:,} {noun if count == 1 else many}"
