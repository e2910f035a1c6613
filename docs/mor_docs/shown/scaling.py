"""Scales: the ideal one in bits, three kinds side by side, and the decrement as a picture."""

import math
from fractions import Fraction

from mor_docs.shown.markup import binary32, box, f32_hex, line, number, picture, table, text
from mor_ref import formats
from mor_ref.definitions.scales import Scaling
from mor_ref.exact.scales import group_mantissa, ideal_scale, scale_of_block

_KINDS: tuple[Scaling, ...] = ("gam", "e8m0", "fp32")


def ideal(name: str, *amaxes: str) -> str:
    """Show ideal scales in bits (SCL-002)."""
    fmt = formats[name]
    rows = []
    for amax in binary32(amaxes):
        found = ideal_scale(fmt.largest, amax)
        quotient = f"{number(fmt.largest)} / {number(amax)}"
        rows.append([number(amax), quotient, f"`0x{found.mantissa:06X}`", number(found.exponent)])
        rows[-1] += [f"(1 + {found.mantissa} / 2^23) · 2^{found.exponent}".replace("-", "−")]
    return table(["amax a", "q_amax / a", "m", "e", f"ideal scale under {name}"], rows)


def blocks(name: str, *amaxes: str) -> str:
    """Show a group of blocks with these maxima: their scales under the three kinds."""
    fmt, given = formats[name], binary32(amaxes)
    shared = group_mantissa(fmt.largest, max(given))
    rows = []
    for amax in given:
        own = ideal_scale(fmt.largest, amax) if amax else None
        scales = [scale_of_block(kind, fmt.largest, amax, shared) for kind in _KINDS]
        rows.append(
            [
                number(amax),
                f"`0x{own.mantissa:06X}`,\N{NO-BREAK SPACE}{own.exponent}" if own else "none",
                "yes" if own and shared > own.mantissa else "no",
                f"`0x{scales[0].exponent_code:02X}`",
                *(f"{number(scale.value)} {f32_hex(scale.value)}" for scale in scales),
            ]
        )
    head = ["amax of block", "own m, e", "m of group greater", "stored e + 127", *_KINDS]
    said = f"A group with amax {number(max(given))} under {name} shares m = `0x{shared:06X}`.\n\n"
    return said + table(head, rows)


def _arrow(start: float, end: float, y: float) -> list[str]:
    """Return an arrow from the circle to the square, if there is room between them."""
    return [line(start, y, end + 6, y, "arrow")] if start - end > 14 else []


def decrement(name: str, *amaxes: str) -> str:
    """Draw ideal scales of blocks, and those rebuilt from the mantissa of the group, on a line."""
    fmt, given = formats[name], binary32(amaxes)
    shared = group_mantissa(fmt.largest, max(given))
    ideals = [float(ideal_scale(fmt.largest, amax).value) for amax in given]
    low = math.floor(math.log2(min(ideals))) - 1
    high = math.floor(math.log2(max(ideals))) + 1
    left, width, row = 150, 540, 52

    def at(x: float) -> float:
        return left + width * (math.log2(x) - low) / (high - low)

    bottom = 30 + row * len(given)
    shapes = []
    for exponent in range(low, high + 1):
        x = at(2.0**exponent)
        shapes += [
            line(x, 16, x, bottom, "grid"),
            text(x, bottom + 18, f"2^{exponent}".replace("-", "−")),
        ]
        rebuilt = float((1 + Fraction(shared, 2**23)) * Fraction(2) ** exponent)
        if exponent < high:
            shapes.append(line(at(rebuilt), 16, at(rebuilt), bottom, "candidate"))
    for i, (amax, own) in enumerate(zip(given, ideals, strict=True)):
        y = 44 + row * i
        scale = scale_of_block("gam", fmt.largest, amax, shared)
        e = ideal_scale(fmt.largest, amax).exponent
        lowered = scale.exponent_code != e + 127
        shapes += [
            text(left - 12, y - 4, f"amax {number(amax)}", "name", "end"),
            text(left - 12, y + 12, "decrement" if lowered else "e stays", "", "end"),
            *_arrow(at(own), at(scale.value), y),
            f'<circle cx="{at(own):g}" cy="{y}" r="6" class="hollow"/>',
            box(at(scale.value) - 5, y - 5, 10, 10, "filled"),
        ]
    return picture(
        left + width + 30,
        bottom + 30,
        "The GAM decrement",
        shapes,
        "Circles are the ideal scales of blocks, dashed lines the scales that the group's mantissa "
        "allows, squares the scale that each block gets: the nearest of these that is not above "
        "its own (GAM-003).",
    )
