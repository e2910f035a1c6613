"""Tables and pictures as MyST, and bits as people read them."""

import csv
import io
import math
import re
import struct
from collections.abc import Iterable, Sequence
from fractions import Fraction
from html import escape
from urllib.parse import quote

from mor_ref.definitions.format import Format
from mor_ref.exact.arithmetic import rn32_of_binary64

# At the end of a text in a drawing: 2^8.
_POWER = re.compile(r"\^([-−]?\w+)$")


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table of MyST."""
    lines = [head, ["---"] * len(head), *rows]
    if any(len(line) != len(head) for line in lines):
        raise ValueError(f"the rows of a table have other cells than its head, {', '.join(head)}")
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines) + "\n"


def _cell(content: object) -> str:
    return str(content).replace("|", "\\|")


def links_to_suites(names: Iterable[str]) -> str:
    """Return the names of suites, each as a link to its description."""
    return ", ".join(f"[{name}](#suite-{name.replace('_', '-')})" for name in names)


def picture(width: float, height: float, title: str, shapes: Iterable[str], caption: str) -> str:
    """Return a drawing of SVG with its caption; its classes have light and dark colours (site.css).

    sphinxcontrib-bitfield and graphviz draw in black, which cannot be seen in the dark.
    """
    drawn = "".join(shapes)
    return (
        f"```{{raw}} html\n"
        '<figure class="drawing"><div class="scroll" tabindex="0">'
        f'<svg viewBox="0 0 {width:g} {height:g}" '
        f'style="min-width: {min(width, 640) * 0.8:g}px; max-width: {width:g}px" role="img" '
        f'aria-label="{escape(title)}">{drawn}</svg></div>'
        f"<figcaption>{escape(caption)}</figcaption></figure>\n```\n"
    )


def data(name: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a link to the numbers of a picture: a file of CSV, which the link itself holds."""
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows([head, *rows])
    address = f"data:text/csv;charset=utf-8,{quote(written.getvalue())}"
    return (
        f'```{{raw}} html\n<p class="fine"><a download="{name}.csv" '
        f'href="{address}">The numbers as CSV</a></p>\n```\n'
    )


def text(x: float, y: float, content: object, kind: str = "", anchor: str = "middle") -> str:
    """Return a line of text with raised powers."""
    raised = _POWER.sub(r'<tspan class="power" dy="-5">\1</tspan>', escape(str(content)))
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" class="{kind}">{raised}</text>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str = "") -> str:
    """Return a straight line; an arrow has its head at the second end."""
    drawn = f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" class="{kind}"/>'
    return drawn + _head(x1, y1, x2, y2) if kind == "arrow" else drawn


def _head(x1: float, y1: float, x2: float, y2: float) -> str:
    length = math.hypot(x2 - x1, y2 - y1)
    dx, dy = 8 * (x2 - x1) / length, 8 * (y2 - y1) / length
    sides = (x2 - dx - dy / 2, y2 - dy + dx / 2), (x2 - dx + dy / 2, y2 - dy - dx / 2)
    corners = " ".join(f"{x:g},{y:g}" for x, y in ((x2, y2), *sides))
    return f'<polygon points="{corners}" class="head"/>'


def box(x: float, y: float, width: float, height: float, kind: str = "", hint: str = "") -> str:
    """Return a rectangle with a tooltip."""
    inner = f"<title>{escape(hint)}</title>" if hint else ""
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" class="{kind}">{inner}'
        "</rect>"
    )


def path(points: Iterable[tuple[float, float]], kind: str = "") -> str:
    """Return a line through points."""
    return f'<polyline points="{" ".join(f"{x:g},{y:g}" for x, y in points)}" class="{kind}"/>'


def fields_of(fmt: Format) -> list[tuple[str, int]]:
    """Return the fields of a code from the top bit down: their letters and widths."""
    if fmt.sign == "twos-complement":
        return [("I", fmt.bits)]
    sign = fmt.bits - fmt.exponent_bits - fmt.mantissa_bits
    fields = [("S", sign), ("E", fmt.exponent_bits), ("M", fmt.mantissa_bits)]
    return [(letter, width) for letter, width in fields if width]


def code_bits(code: int, fmt: Format) -> str:
    """Return a code in binary, with spaces between its fields."""
    digits, parts = f"{code:0{fmt.bits}b}", []
    for _, width in fields_of(fmt):
        parts.append(digits[:width])
        digits = digits[width:]
    return f"`{' '.join(parts)}`"


def code_hex(code: int, fmt: Format) -> str:
    """Return a code in hexadecimal, as wide as the format."""
    return bits_hex(code, fmt.bits)


def bits_hex(code: int, bits: int) -> str:
    """Return a code of so many bits in hexadecimal."""
    return f"`0x{code:0{-(-bits // 4)}X}`"


def f32_hex(x: float) -> str:
    """Return the bits of a binary32 number in hexadecimal (DEC-002)."""
    return f"`0x{0x7FFFFFFF if math.isnan(x) else int.from_bytes(struct.pack('>f', x)):08X}`"


def binary32(given: Iterable[str]) -> list[float]:
    """Round numbers to binary32, as the functions of tensors take them (QNT-004)."""
    return [rn32_of_binary64(float(x)) for x in given]


def number(x: float | Fraction) -> str:
    """Return a number in the fewest digits that identify it among binary32 numbers."""
    x = float(x)
    if math.isnan(x):
        return "NaN"
    if math.isinf(x):
        return "∞" if x > 0 else "−∞"
    mantissa, exponent = math.frexp(x)
    if abs(mantissa) == 0.5 and not 2**-10 <= abs(x) <= 2**20:
        return f"{'−' if x < 0 else ''}2^{exponent - 1}".replace("-", "−")
    return _digits(x).replace("-", "−")


def equation(name: str, x: float | Fraction) -> str:
    """Return an equation, such as "f = 0.5", or "f ≈ 0.6" if digits are left out."""
    shown = number(x)
    return f"{name} {shown}" if shown.startswith("≈") else f"{name} = {shown}"


def _digits(x: float) -> str:
    if rn32_of_binary64(x) != x:
        return repr(x) if len(repr(x)) <= 12 else f"≈ {x:.7g}"
    shown = (f"{x:.{digits}g}" for digits in range(1, 10))
    told = next(text for text in shown if rn32_of_binary64(float(text)) == x)
    return f"{float(told):.9g}" if abs(x) < 1e9 else _large(x, told)


def _large(x: float, told: str) -> str:
    """Return a large number: its digits, the largest of a format by powers of two, or about."""
    if float(told) == x:
        return told
    whole = int(abs(x))
    zeros = (whole & -whole).bit_length() - 1
    ones = whole >> zeros
    if ones & (ones + 1):
        return f"≈ {told}"
    return f"{'-' if x < 0 else ''}(2^{ones.bit_length()} - 1) · 2^{zeros}"
