"""The formulas of the chapter on mixtures."""

from collections.abc import Callable

from mor_docs.checked.check import Check, Entry, Names, is_finite
from mor_docs.evaluation import rounded_to_binary32
from mor_docs.exact_values import Logarithm, Number, difference, number


def _of_candidate(field: str) -> Callable[[Entry], Names]:
    """Return the names of the error of a candidate whose y is a field."""

    def names(entry: Entry) -> Names:
        amax = entry["amax"]
        exponent = Logarithm(amax).exponent() if amax else number(0)
        return {"d": _distance(entry, field), "e": exponent}

    return names


def _is_lost(field: str) -> Callable[[Entry], Names]:
    def texts(entry: Entry) -> Names:
        return {
            "x is not finite": not is_finite(entry["x"]) or entry["amax"] == 0,
            "d is not finite": not is_finite(_distance(entry, field)),
        }

    return texts


def _distance(entry: Entry, field: str) -> Number:
    """Return the d of ERR-001."""
    distance = rounded_to_binary32(difference(entry["x"], entry[field]))
    return -distance if distance < 0 else distance


CHECKS = tuple(
    Check("MFQ-002", "mixed_steps", {"u": f"{field}_u"}, _of_candidate(field), _is_lost(field))
    for field in ("first", "second")
)
