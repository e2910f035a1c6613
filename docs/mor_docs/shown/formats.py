"""The formats: layouts, values, number lines, and how finely they resolve."""

import math

from mor_docs.shown.markup import (
    box,
    code_bits,
    code_hex,
    fields_of,
    line,
    number,
    path,
    picture,
    table,
    text,
)
from mor_ref import exact, formats
from mor_ref.definitions.format import Format

SMALL = [fmt for fmt in formats.values() if fmt.bits <= 8]
_KIND = {"S": "sign", "E": "exponent", "M": "mantissa", "I": "mantissa"}
_SIGN = {"sign-magnitude": "yes", "none": "no", "twos-complement": "two's complement"}
_MEANING = {"S": "sign", "E": "exponent", "M": "mantissa", "I": "two's complement integer"}


def rows() -> str:
    """Show the rows of the catalogue (FMT-009)."""
    head = ["name", "E", "M", "B", "special codes", "sign"]
    given = (
        (
            fmt.name,
            fmt.exponent_bits,
            fmt.mantissa_bits,
            fmt.bias,
            fmt.specials,
            _SIGN[fmt.sign],
        )
        for fmt in formats.values()
    )
    return table(head, given)


def layouts() -> str:
    """Show the bit layout of every format."""
    cell, left, row = 21, 110, 34
    shapes = []
    for i, fmt in enumerate(formats.values()):
        y, bit = 8 + i * row, fmt.bits
        shapes.append(text(left - 10, y + 16, fmt.name, "name", "end"))
        for letter, width in fields_of(fmt):
            for _ in range(width):
                bit -= 1
                x = left + (fmt.bits - 1 - bit) * cell
                hint = f"{fmt.name}: bit {bit}, {_MEANING[letter]}"
                shapes.append(box(x, y, cell - 1, 22, _KIND[letter], hint))
            middle = left + (fmt.bits - bit - width / 2) * cell
            shapes.append(text(middle, y + 16, f"{letter}{width}" if width > 1 else letter))
    size = left + 32 * cell + 4, len(formats) * row + 8
    return picture(
        *size,
        "Bit layouts",
        shapes,
        "Bit layouts, the most significant bit at the left: S sign, E exponent, M mantissa, "
        "I an integer in two's complement.",
    )


def facts() -> str:
    """Show the numbers that follow from each row of the catalogue."""
    rows = []
    for fmt in formats.values():
        nans = sum(map(len, fmt.nan_codes))
        infinity, nan = fmt.infinity_code, fmt.canonical_nan_code
        rows.append(
            [
                fmt.name,
                fmt.bias,
                f"{number(fmt.largest)} ({code_hex(fmt.largest_code, fmt)})",
                number(fmt.smallest_normal) if fmt.smallest_normal else "—",
                number(fmt.smallest_subnormal) if fmt.smallest_subnormal else "—",
                "—" if infinity is None else code_hex(infinity, fmt),
                "—" if nan is None else code_hex(nan, fmt),
                nans or "—",
            ]
        )
    head = ["format", "bias", "largest", "smallest normal", "smallest subnormal", "infinity"]
    return table([*head, "canonical NaN", "NaNs"], rows)


def decoded(name: str, *codes: str) -> str:
    """Show codes, field by field, and the numbers that they stand for."""
    fmt = formats[name]
    rows = []
    for given in codes:
        code = int(given, 16)
        bits = exact.decode(code, fmt)
        rows.append([code_hex(code, fmt), code_bits(code, fmt), _how(code, fmt)])
        rows[-1] += [number(fmt.value(code)), f"`0x{bits:08X}`"]
    return table([f"code of {name}", "bits", "by the rule", "number", "as binary32"], rows)


def _how(code: int, fmt: Format) -> str:
    """Return the formula that decodes a code, with its numbers put in."""
    value = fmt.value(code)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "infinity"
    if fmt.is_power_of_two:
        return f"2^({code} − {fmt.bias}), FMT-007"
    if fmt.sign == "twos-complement":
        steps = code - (fmt.code_count if code & fmt.sign_bit else 0)
        power = 1 - fmt.bias - fmt.mantissa_bits
        return f"{steps} · 2^{power}".replace("-", "−") + ", FMT-008"
    e, m = divmod(code & ~fmt.sign_bit, 1 << fmt.mantissa_bits)
    sign = "−" if code & fmt.sign_bit else ""
    if e == 0:
        return f"{sign}({m} / {1 << fmt.mantissa_bits}) · 2^(1 − {fmt.bias}), FMT-002"
    return f"{sign}(1 + {m} / {1 << fmt.mantissa_bits}) · 2^({e} − {fmt.bias}), FMT-001"


def number_line(name: str) -> str:
    """Draw the numbers from 0 up: on a linear axis, and on one with binades of equal length."""
    fmt = formats[name]
    codes = range(fmt.largest_code + 1)
    values = [fmt.value(code) for code in codes]
    left, width = 24, 672
    shapes = []
    if not fmt.is_power_of_two:
        shapes += _ticks([(v, left + width * v / fmt.largest) for v in values], fmt, 34)
        for share in (0, 0.25, 0.5, 0.75, 1):
            shapes.append(text(left + width * share, 56, number(fmt.largest * share)))
    positive = [v for v in values if v > 0]
    low, high = math.log2(positive[0]), math.log2(positive[-1])
    places = [(v, left + width * (math.log2(v) - low) / ((high - low) or 1)) for v in positive]
    top = 34 if fmt.is_power_of_two else 104
    shapes += _ticks(places, fmt, top)
    first, last = math.ceil(low), math.floor(high)
    for exponent in range(first, last + 1, max(1, (last - first) // 8)):
        x = left + width * (exponent - low) / ((high - low) or 1)
        shapes.append(text(x, top + 22, f"2^{exponent}".replace("-", "−")))
    scales = "on a logarithmic scale" if fmt.is_power_of_two else "on a linear scale and, below, "
    scales += "" if fmt.is_power_of_two else "on a logarithmic one without zero"
    return picture(
        width + 2 * left + 12,
        top + 32,
        f"Number line of {name}",
        shapes,
        f"The {len(values)} numbers of {name} that are not negative, {scales}; subnormal numbers "
        "are the shorter lines."
        if fmt.smallest_subnormal and fmt.exponent_bits
        else f"The {len(values)} numbers of {name} that are not negative, {scales}.",
    )


def _ticks(places: list[tuple[float, float]], fmt: Format, y: float) -> list[str]:
    shapes = [line(places[0][1], y, places[-1][1], y, "axis")]
    for value, x in places:
        is_low = fmt.smallest_normal is not None and value < fmt.smallest_normal
        shapes.append(line(x, y - (12 if is_low else 24), x, y, "soft" if is_low else "strong"))
    return shapes


def codes(name: str) -> str:
    """Show all codes of a format: the upper bits choose the row, the lower bits the column."""
    fmt = formats[name]
    low = fmt.bits // 2 if fmt.bits > 4 else 3
    head = ["", *(f"…{column:0{low}b}" for column in range(1 << low))]
    rows = []
    for row in range(fmt.code_count >> low):
        cells = [_short(fmt.value(row << low | column)) for column in range(1 << low)]
        rows.append([f"**`0x{row << low:02X}`** {row:0{fmt.bits - low}b}…", *cells])
    return f":::{{div}} codes\n{table(head, rows)}:::\n"


def _short(value: float) -> str:
    if value == 0:
        return "−0" if math.copysign(1, value) < 0 else "0"
    if 2**-6 <= abs(value) < 1e5 or not math.isfinite(value):
        return number(value)
    mantissa, exponent = math.frexp(abs(value))
    shown = f"{2 * mantissa:g}·" if mantissa != 0.5 else ""
    return f"{'−' if value < 0 else ''}{shown}2^{exponent - 1}".replace("^-", "^−")


def small_formats() -> str:
    """Show each format of at most eight bits: its numbers, and all of its codes."""
    parts = []
    for fmt in SMALL:
        parts.append(f"## {fmt.name}\n\n{number_line(fmt.name)}\n")
        parts.append(f"::::{{dropdown}} All {fmt.code_count} codes of {fmt.name}\n")
        parts.append(f"{codes(fmt.name)}\n::::\n")
    return "\n".join(parts)


def relative_error(*names: str) -> str:
    """Draw the relative error of rounding to nearest in one binade, for normal numbers."""
    left, width, height, top = 52, 620, 90, 20
    shapes = []
    for i, name in enumerate(names):
        fmt = formats[name]
        base = top + i * (height + 44)
        points = []
        limit = 2.0 ** -(fmt.mantissa_bits + 1)
        for step in range(513):
            x = 1 + step / 512
            value = fmt.value(exact.encode(x, fmt, "rne"))
            error = abs(value - x) / x / limit
            points.append((left + width * (x - 1), base + height * (1 - error)))
        shapes += [
            line(left, base + height, left + width, base + height, "axis"),
            path(points, "curve"),
            text(left - 6, base + 8, f"2^−{fmt.mantissa_bits + 1}", "", "end"),
            text(left - 6, base + height + 4, "0", "", "end"),
            text(left + width, base + 6, name, "name", "end"),
            *(text(left + width * k / 4, base + height + 16, 1 + k / 4) for k in range(5)),
        ]
    return picture(
        left + width + 30,
        top + len(names) * (height + 44),
        "Relative error over a binade",
        shapes,
        f"The relative error of rounding to nearest over the binade from 1 to 2, for "
        f"{', '.join(names)}: it is zero at their numbers, and largest at the first midpoint.",
    )
