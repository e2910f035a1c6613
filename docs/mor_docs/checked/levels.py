"""The formulas of the chapter on levels."""

from collections.abc import Callable
from fractions import Fraction

from mor_docs.checked.check import Check, Entry, Names, is_finite
from mor_docs.evaluation import rounded_to_binary32
from mor_docs.exact_values import Number, number
from mor_ref.definitions.formats import as_format
from mor_ref.exact.arithmetic import nearest_in
from mor_ref.schemes.levels.definition import CLIP, LEVEL_KINDS


def _rounded_to_bfloat16(a: Number) -> Number:
    return number(nearest_in(float(rounded_to_binary32(a)), as_format("bf16")))


_ARITHMETICS: dict[str, Callable[[Number], Number]] = {
    "f32": rounded_to_binary32,
    "bf16": _rounded_to_bfloat16,
}


def _of_weight(entry: Entry) -> Names:
    kind = LEVEL_KINDS[entry.parameters["kind"]]
    rounded = _ARITHMETICS[entry.parameters["arithmetic"]]
    sizes = {
        "b": kind.bits,
        "n": kind.steps,
        "s": kind.shift,
        "Qn": kind.lowest,
        "Qp": kind.highest,
    }
    return {
        "w": rounded(entry["x"]),
        "alpha": entry["used_alpha"],
        "RN": rounded,
        "c": rounded(Fraction(str(CLIP))),
        **{name: number(size) for name, size in sizes.items()},
    }


def _of_gradient(entry: Entry) -> Names:
    ratio, inside = entry["ratio"], bool(entry["inside"])
    return {
        "elastic1": entry.parameters["kind"] == "elastic1",
        "ratio is NaN": not is_finite(ratio),
        "inside": inside,
        "ratio < low": not inside and ratio < 0,
    }


CHECKS = (
    *(
        Check(
            rule,
            "levels_steps",
            {name: name for name in ("ratio", "clipped", "level", "y")},
            _of_weight,
            cases={"kind": kinds},
        )
        for rule, kinds in (
            ("LVL-004", ("lsq4", "lsq3")),
            ("LVL-005", ("seq2", "seq1.58")),
            ("LVL-006", ("elastic1",)),
        )
    ),
    Check(
        "LVL-007",
        "levels_steps",
        {"alpha_term": "alpha_term"},
        lambda entry: {**_of_weight(entry), "ratio": entry["ratio"], "level": entry["level"]},
        _of_gradient,
    ),
)
