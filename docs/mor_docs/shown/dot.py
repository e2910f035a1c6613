"""Profiles of dot products as a table, and one dot product under some of them."""

from mor_docs.shown.markup import f32_hex, number, table
from mor_ref.definitions.dot import DOT_PROFILES, DotProfile
from mor_ref.definitions.formats import formats
from mor_ref.exact.dot import dot, dot_chunks

# Codes of e4m3, 33 pairs: the second chunk has one. Small products meet a large one.
_A = [0x60, 0x38, 0x3A, 0x01, *[0x33] * 28, 0x39]
_B = [0x60, 0xB8, 0x3C, 0x08, *[0xB3] * 28, 0x3B]


def _numbers(profile: DotProfile) -> list[str]:
    """Return L, F, e0, I and the rounding with n of a row; a dash if the family has none."""
    has_e0 = profile.zero_exponent != 0
    if profile.result == "f16":
        rounding = "to nearest, f16"
    else:
        rounding = f"toward zero, {profile.kept_bits}" if has_e0 else "to nearest"
    length = profile.chunk or "\N{EN DASH}"
    bits = profile.fraction_bits or "\N{EN DASH}"
    exponent = profile.zero_exponent if has_e0 else "\N{EN DASH}"
    every = profile.flushed_every or "\N{EN DASH}"
    signed = str(exponent).replace("-", "\N{MINUS SIGN}")
    return [str(length), str(bits), signed, str(every), rounding]


def profiles() -> str:
    """Show the rows of all profiles of the specification."""
    rows = []
    for name in DOT_PROFILES.specified:
        profile = DOT_PROFILES[name]
        scales = ", ".join(f"{fmt} of {size or 'K'}" for fmt, size in profile.scales)
        admitted = " ".join(profile.formats) or "all"
        rows.append([f"`{name}`", profile.family, admitted, scales, *_numbers(profile)])
    head = ["profile", "family", "formats", "scales", "L", "F", "e₀", "I", "rounding of a chunk, n"]
    return table(head, rows)


def chunks(name: str, fmt: str) -> str:
    """Show the fields of the chunks of a dot product."""
    of = formats[fmt], formats[fmt]
    found = dot_chunks(_A, _B, 0.0, DOT_PROFILES[name], of)
    rows = [
        [str(k), str(one.exponent), str(one.cut_sum), f"{number(one.c)} {f32_hex(one.c)}"]
        for k, one in enumerate(found)
    ]
    return table(["chunk", "exponent", "cut_sum", "c"], rows)


def compared(fmt: str, *names: str) -> str:
    """Show a dot product with some profiles."""
    of = formats[fmt], formats[fmt]
    found = [dot(_A, _B, 0.0, DOT_PROFILES[name], of) for name in names]
    rows = [[f"`{name}`", number(x), f32_hex(x)] for name, x in zip(names, found, strict=True)]
    return table(["profile", "result", "bits"], rows)
