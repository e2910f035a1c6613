"""The formulas of the chapter on FP8-LM."""

import math

from mor_docs.checked.check import Check, Entry, Names
from mor_docs.exact_values import number


def _of_scale(entry: Entry) -> Names:
    return {"ratio": entry["ratio"], "m": number(entry.parameters["margin"])}


CHECKS = (
    Check(
        "FLM-004",
        "fp8lm_scales",
        {"e": "exponent", "s": "scale"},
        _of_scale,
        cases={"profile": ("exact",)},
        entries=lambda entry: not math.isnan(entry["exponent"]),  # the scale before stays
    ),
)
