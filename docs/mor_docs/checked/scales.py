"""The formulas of the chapters on scales, on quantization and on errors."""

import numpy as np

from mor_docs.checked.check import Check, Entry, Names, formulas_of, is_finite, value_of
from mor_docs.checked.formats import symbols_of
from mor_docs.evaluation import values_of
from mor_docs.exact_values import Number, number


def _of_group(entry: Entry) -> Names:
    return symbols_of(entry.fmt) | {"a": entry["group_amax"]}


def _of_block(entry: Entry) -> Names:
    return symbols_of(entry.fmt) | {"a": entry["block_amax"], "amax": entry["block_amax"]}


def _of_gam(entry: Entry) -> Names:
    (ideal,) = formulas_of("SCL-002")
    of_block = values_of(ideal, _of_block(entry))
    return {"m": entry["mantissa"], "m_block": of_block["m"], "e": of_block["e"]}


def _as_stored(entry: Entry) -> Names:
    return {"m": entry["mantissa"], "e": number(int(entry["exponent"]) - 127)}


def _of_element(entry: Entry) -> Names:
    v = value_of(entry["code"], entry.parameters["format"])
    return {"x": entry["x"], "scale": entry["scale"], "v": v}


def _of_error(entry: Entry) -> Names:
    return {"x": entry["x"], "y": entry["y"], "bits": _bits}


def _bits(x: Number) -> Number:
    return number(int(np.float32(float(x)).view(np.uint32)))


def _has_amax(entry: Entry) -> bool:
    return bool(entry["block_amax"])


def _is_of_zeros(entry: Entry) -> bool:
    return not entry["block_amax"]


CHECKS = (
    Check(
        "SCL-002",
        "scale_steps",
        {"m": "mantissa"},
        _of_group,
        cases={"scaling": ("gam",)},
        entries=lambda entry: entry["group_amax"] != 0,
    ),
    *(
        Check(
            rule if is_zero else f"SCL-002 {rule}",
            "scale_steps",
            {"scale": "scale"},
            _of_block,
            cases={"scaling": (scaling,)},
            entries=_is_of_zeros if is_zero else _has_amax,
        )
        for rule, scaling in (("SCL-004", "fp32"), ("SCL-005", "e8m0"))
        for is_zero in (False, True)
    ),
    Check(
        "GAM-003 GAM-004",
        "scale_steps",
        {"exponent": "exponent"},
        _of_gam,
        cases={"scaling": ("gam",)},
        entries=_has_amax,
    ),
    Check(
        "GAM-005",
        "scale_steps",
        {"scale": "scale"},
        _as_stored,
        cases={"scaling": ("gam",)},
    ),
    Check("QNT-001 QNT-002", "quantize_steps", {"xs": "xs", "y": "y"}, _of_element),
    Check(
        "ERR-001",
        "error_steps",
        {"d": "d", "r": "r", "u": "u"},
        _of_error,
        lambda entry: {"y is infinite or NaN": not is_finite(entry["y"])},
        entries=lambda entry: is_finite(entry["x"]) and entry["x"] != 0,
    ),
)
