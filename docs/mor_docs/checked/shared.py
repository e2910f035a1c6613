"""The formulas of the chapter on shared exponents."""

import math

from mor_docs.checked.check import Check, Entry, Names
from mor_docs.exact_values import number
from mor_ref.schemes.shared.definition import SHARED_KINDS, SHARED_PROFILES


def _of_element(entry: Entry) -> Names:
    fields = {"E": "shared_exponent", "tau": "tau", "sign": "sign", "M": "magnitude", "x": "x"}
    kind = SHARED_KINDS[entry.parameters["kind"]]
    names = {name: entry[field] for name, field in fields.items()}
    return {"m": number(kind.magnitude_bits), **names}


def _of_block(entry: Entry) -> Names:
    profile = SHARED_PROFILES[entry.parameters["profile"]]
    is_nan_block = profile.nan_blocks and entry["shared_exponent"] == 255
    return {
        "the block is a NaN block": is_nan_block or math.isnan(entry["x"]),
        "x is infinite": math.isinf(entry["x"]),
    }


CHECKS = (Check("SHX-005 SHX-006", "shared_blocks", {"y": "y"}, _of_element, _of_block),)
