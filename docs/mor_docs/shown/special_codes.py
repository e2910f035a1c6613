"""The codes of each format that an encoder or decoder treats apart."""

from mor_docs.shown.markup import code_hex, table
from mor_ref import formats
from mor_ref.definitions.format import Format

_HEAD = ("format", "zero", "first normal", "largest", "lowest", "infinity", "NaN")


def special_codes() -> str:
    """Show zeros, ends, infinities and NaNs of each format as codes (FMT-002 to FMT-008)."""
    return table(_HEAD, (_row(fmt) for fmt in formats.values()))


def _row(fmt: Format) -> list[str]:
    return [
        fmt.name,
        _shown(fmt, _zeros(fmt)),
        _shown(fmt, _first_normal(fmt)),
        _shown(fmt, [fmt.largest_code]),
        _shown(fmt, _lowest(fmt)),
        _shown(fmt, _both_signs(fmt, fmt.infinity_code)),
        _nans(fmt),
    ]


def _shown(fmt: Format, codes: list[int]) -> str:
    return ", ".join(code_hex(code, fmt) for code in codes) or "—"


def _zeros(fmt: Format) -> list[int]:
    """Return the codes of 0 and -0."""
    if fmt.is_power_of_two:
        return []
    return [0] if fmt.specials == "fnuz" or fmt.sign != "sign-magnitude" else [0, fmt.sign_bit]


def _first_normal(fmt: Format) -> list[int]:
    """Return the code of the smallest normal number."""
    has_normal = fmt.exponent_bits > 0 and not fmt.is_power_of_two
    return [1 << fmt.mantissa_bits] if has_normal else []


def _lowest(fmt: Format) -> list[int]:
    """Return the code of the lowest number that an encoder writes (ENC-015)."""
    if fmt.sign == "none":
        return [0]
    if fmt.sign == "twos-complement":
        return [fmt.code_count - fmt.largest_code]
    return [fmt.largest_code | fmt.sign_bit]


def _both_signs(fmt: Format, code: int | None) -> list[int]:
    if code is None:
        return []
    return [code, code | fmt.sign_bit] if fmt.sign == "sign-magnitude" else [code]


def _nans(fmt: Format) -> str:
    """Return the codes of NaN, as ranges from the first to the last."""
    ranges = ([codes[0], codes[-1]] for codes in fmt.nan_codes)
    shown = (" to ".join(code_hex(c, fmt) for c in dict.fromkeys(ends)) for ends in ranges)
    return ", ".join(shown) or "—"
