"""The formulas of the chapters on MX and NVFP4."""

import math

from mor_docs.checked.check import Check, Entry, Names, value_of
from mor_docs.checked.formats import symbols_of
from mor_docs.exact_values import Number, number
from mor_ref.definitions.formats import as_format
from mor_ref.definitions.nvfp4 import PROFILES
from mor_ref.exact.encoding import encode

_GLOBAL_SCALES = {"S_enc": "global_encode_scale", "S_dec": "global_decode_scale"}
_FACTORS = {"encode": "encode_scale", "decode": "decode_scale"}


def _of_block(entry: Entry) -> Names:
    magnitudes = [abs(x) for x in entry["x"] if not math.isnan(x)]
    fmt = entry.fmt
    return symbols_of(fmt) | {
        "block_amax": max(magnitudes, default=number(0)),
        "P": number(math.frexp(fmt.largest)[1] - 1),
        "n": number(fmt.mantissa_bits - (fmt.sign == "twos-complement")),
    }


def _has_nan(entry: Entry) -> bool:
    return any(map(math.isnan, entry["x"]))


def _has_no_nan(entry: Entry) -> bool:
    return not _has_nan(entry)


def _of_scales_in_mx(entry: Entry) -> Names:
    return {
        "an element is NaN": _has_nan(entry),
        "with the rules floor": entry.parameters["scale_rule"] != "rceil",
    }


def _is_usual(entry: Entry) -> bool:
    """Return whether the amax of a block has an exponent, and no element is NaN."""
    has_exponent = 0 < _of_block(entry)["block_amax"] < math.inf
    return has_exponent and not _has_nan(entry)


def _is_unusual(entry: Entry) -> bool:
    return not _is_usual(entry)


def _of_mx_element(entry: Entry) -> Names:
    v = value_of(entry["code"], entry.parameters["format"])
    return {"x": entry.fields.get("x"), "c": entry["scale"], "v": v}


def _code_of_e4m3(x: Number) -> Number:
    return number(encode(float(x), as_format("e4m3")))


def _clamp(x: Number, low: Number, high: Number) -> Number:
    return x if math.isnan(x) else min(max(x, low), high)


def _of_tile(entry: Entry) -> Names:
    return {
        "amax": entry["amax"],
        "block_amax": entry["block_amax"],
        "Q": number(PROFILES[entry.parameters["profile"]].range),
        "S_enc": entry["global_encode_scale"],
        "S_dec": entry["global_decode_scale"],
        "w": value_of(entry["block_scale"], "e4m3"),
        "code": _code_of_e4m3,
        "clamp": _clamp,
    }


def _of_nvfp4_element(entry: Entry) -> Names:
    factors = {name: entry.fields.get(field) for name, field in _FACTORS.items()}
    return factors | {"x": entry["x"], "v": value_of(entry["code"], "e2m1")}


CHECKS = (
    *(
        Check(
            f"{rule} MXS-002",
            "mx_blocks",
            {"c": "scale"},
            _of_block,
            _of_scales_in_mx,
            cases={"scale_rule": (name,)},
            entries=_is_usual,
            by_row=True,
        )
        for rule, name in (("MXS-003", "floor"), ("MXS-004", "ceil"), ("MXS-005", "even"))
    ),
    Check(
        "MXS-002",
        "mx_blocks",
        {"c": "scale"},
        lambda entry: {**_of_block(entry), "p": number(128)},
        _of_scales_in_mx,
        cases={"scale_rule": ("floor", "ceil", "even")},
        entries=_is_unusual,
        by_row=True,
    ),
    Check(
        "MXS-006",
        "mx_blocks",
        {"c": "scale"},
        _of_block,
        cases={"scale_rule": ("rceil",)},
        entries=_has_no_nan,
        by_row=True,
    ),
    Check("MXS-007 MXS-008", "mx_blocks", {"xs": "xs", "y": "y"}, _of_mx_element),
    Check("MXS-008", "mx_decoding", {"y": "y"}, _of_mx_element),
    *(
        Check(
            rules,
            "nvfp4_blocks",
            {"block_scale": "block_scale", **results},
            _of_tile,
            cases={"profile": (profile,)},
            by_row=True,
            is_rounded=True,
        )
        for rules, profile, results in (
            ("NVF-003 NVF-004", "te", _GLOBAL_SCALES | _FACTORS),
            ("NVF-005", "te_2_13", {}),
            ("NVF-007", "torchao", _FACTORS),
            ("NVF-008", "modelopt", {"decode": "decode_scale"}),
            ("NVF-009", "compressed_tensors", {"decode": "decode_scale"}),
        )
    ),
    Check(
        "NVF-006",
        "nvfp4_blocks",
        {"s6": "six.block_scale", "s4": "four.block_scale"},
        _of_tile,
        cases={"profile": tuple(name for name in PROFILES if "4over6" in name)},
        by_row=True,
        is_rounded=True,
    ),
    Check(
        "NVF-010",
        "nvfp4_blocks",
        {"xs": "xs", "y": "y"},
        _of_nvfp4_element,
        lambda entry: {"in profiles that divide": PROFILES[entry.parameters["profile"]].divides},
        is_rounded=True,
    ),
)
