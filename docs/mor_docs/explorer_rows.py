"""Rows of the catalogue of the explorer, under the names that its scripts have."""

import dataclasses
from typing import Any

from mor_ref.definitions.format import Format
from mor_ref.definitions.mx import mx_element
from mor_ref.definitions.scales import scaled_format
from mor_ref.exact.arithmetic import rn32_of_binary64
from mor_ref.operations.bits import f32_array


def format_row(fmt: Format) -> dict[str, Any]:
    """Return a row of the catalogue, and the codes that follow from it."""
    return {
        "name": fmt.name,
        "layout": fmt.describe_layout(),
        "exponentBits": fmt.exponent_bits,
        "mantissaBits": fmt.mantissa_bits,
        "bias": fmt.bias,
        "specials": fmt.specials,
        "sign": fmt.sign,
        "bits": fmt.bits,
        "codeCount": fmt.code_count,
        "signBit": fmt.sign_bit,
        "smallestExponent": fmt.smallest_exponent,
        "largestCode": fmt.largest_code,
        "infinityCode": fmt.infinity_code,
        "nanCodes": [[codes[0], codes[-1]] for codes in fmt.nan_codes],
        "canonicalNanCode": fmt.canonical_nan_code,
        "isPowerOfTwo": fmt.is_power_of_two,
        "isScaled": _is_taken(scaled_format, fmt),
        "isMxElement": _is_taken(mx_element, fmt),
    }


def _is_taken(check: Any, fmt: Format) -> bool:
    try:
        check(fmt)
    except ValueError:
        return False
    return True


def fields_of_row(row: Any, *more: str) -> dict[str, Any]:
    """Return the fields of a row, under the names of scripts."""
    names = [*(field.name for field in dataclasses.fields(row)), *more]
    return {_camel(name): getattr(row, name) for name in names}


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def bits_of_number(number: float) -> int:
    """Return the bits of a number, rounded to binary32."""
    return int(f32_array([rn32_of_binary64(number)])[0])
