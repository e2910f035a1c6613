"""The theorems in numbers: blocks of one group, and ideal scales in two formats."""

from mor_docs.shown.markup import binary32, code_hex, f32_hex, number, table
from mor_ref import formats
from mor_ref.exact.encoding import floor_log2
from mor_ref.exact.quantization import quantize_element
from mor_ref.exact.scales import group_mantissa, ideal_scale, scale_of_block


def group(name: str, *amaxes: str) -> str:
    """Show blocks of a group: their own scales, those they get, and their largest elements."""
    fmt, given = formats[name], binary32(amaxes)
    shared = group_mantissa(fmt.largest, max(given))
    rows = []
    for amax in given:
        own = ideal_scale(fmt.largest, amax)
        scale = scale_of_block("gam", fmt.largest, amax, shared)
        element = quantize_element(amax, scale.value, fmt)
        e = (scale.exponent_code or 0) - 127
        rows.append([number(amax), f"`0x{own.mantissa:06X}`,\N{NO-BREAK SPACE}{own.exponent}"])
        rows[-1] += [str(e), "its own" if own.value == scale.value else "smaller"]
        rows[-1] += [f"{number(element.xs)} {f32_hex(element.xs)}", code_hex(element.code, fmt)]
    said = f"A group with amax {number(max(given))} in {name} shares m = `0x{shared:06X}`.\n\n"
    head = ["amax of block", "own m, e", "e with gam", "scale", "xs of amax", "its code"]
    return said + table(head, rows)


def exponents(first: str, second: str, *amaxes: str) -> str:
    """Draw exponents of ideal scales over those of amax, and the mantissas under two formats."""
    compared = formats[first], formats[second]
    rows = []
    for amax in binary32(amaxes):
        significand = amax / 2.0 ** floor_log2(amax)
        rows.append([f"{number(amax)} {f32_hex(amax)}", number(significand)])
        for fmt in compared:
            top, own = floor_log2(fmt.largest), ideal_scale(fmt.largest, amax)
            less = " − 1" if significand > fmt.largest / 2.0**top else ""
            exponent = floor_log2(amax)
            taken = f"({exponent})" if exponent < 0 else exponent
            e = f"{top} − {taken}{less} = {own.exponent}"
            rows[-1] += [e.replace("-", "−"), f"`0x{own.mantissa:06X}`"]
    head = ["amax a", "s(a)"]
    for fmt in compared:
        head += [f"e under {fmt.name}", "m"]
    return table(head, rows)
