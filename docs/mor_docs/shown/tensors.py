"""Blocks, quantized elements, their errors, and decisions."""

import random
from decimal import Decimal

from mor_docs.shown.markup import (
    binary32,
    box,
    code_hex,
    f32_hex,
    line,
    number,
    picture,
    table,
    text,
)
from mor_ref import formats
from mor_ref.definitions.blocks import Cut, partition
from mor_ref.exact.arithmetic import rn32_of_binary64
from mor_ref.exact.blocks import cells
from mor_ref.exact.errors import error_sum, error_term
from mor_ref.exact.policies import Decision, mix
from mor_ref.exact.quantization import quantize
from mor_ref.metrics import MeanRelativeError
from mor_ref.policies import POLICIES, Policy


def cut(rows: str, columns: str, block: str, group: str) -> str:
    """Draw the partition of a tensor into blocks and groups (BLK-002, BLK-003)."""
    shape = int(rows), int(columns)
    parts = partition(shape, block=_sides(block), group=_sides(group))
    cell, shapes = 34, []
    for i in range(shape[0]):
        for j in range(shape[1]):
            tile = i // parts.block[0], j // parts.block[1]
            kind = "tile0" if sum(tile) % 2 else "tile1"
            shapes.append(box(4 + j * cell, 4 + i * cell, cell - 1, cell - 1, kind))
            shapes.append(text(4 + (j + 0.5) * cell, 4 + (i + 0.62) * cell, f"{tile[0]},{tile[1]}"))
    for i in range(parts.group_grid[0]):
        for j in range(parts.group_grid[1]):
            top, left = i * parts.group[0], j * parts.group[1]
            size = min(parts.group[1], shape[1] - left), min(parts.group[0], shape[0] - top)
            where = 4 + left * cell - 1, 4 + top * cell - 1
            shapes.append(box(*where, size[0] * cell + 1, size[1] * cell + 1, "outline"))
    said = (
        f"A tensor of {rows} rows and {columns} columns in blocks of {block} and groups of "
        f"{group}: each cell has the row and column of its block, thick lines enclose groups. "
        f"There are "
        f"{parts.grid[0]} x {parts.grid[1]} blocks and {parts.group_grid[0]} x "
        f"{parts.group_grid[1]} groups."
    )
    return picture(shape[1] * cell + 8, shape[0] * cell + 8, "Blocks and groups", shapes, said)


def _sides(given: str) -> Cut:
    if given in ("tensor", "row", "column"):
        return given  # type: ignore[return-value]
    rows, columns = given.split("x")
    return int(rows), int(columns)


def amaxes(name: str, columns: str, block: str, group: str, *given: str) -> str:
    """Show a tensor by rows, and the amax of each of its blocks (BLK-002 to BLK-004)."""
    fmt, flat, width = formats[name], binary32(given), int(columns)
    rows = [flat[start : start + width] for start in range(0, len(flat), width)]
    parts = partition((len(rows), width), block=_sides(block), group=_sides(group))
    found = quantize(rows, fmt, "gam", parts)
    shown = []
    for place, members in cells(parts.rows, parts.columns, parts.block).items():
        i, j = members[0]
        mantissa = found.mantissa[i // parts.group[0], j // parts.group[1]]
        codes = " ".join(code_hex(found.elements[i][j].code, fmt) for i, j in members)
        numbers = ", ".join(number(rows[i][j]) for i, j in members)
        amax, scale = found.amax[place], found.scale[place]
        shown.append([f"{place[0]}, {place[1]}", numbers, f"{number(amax)} {f32_hex(amax)}"])
        shown[-1] += [f"`0x{mantissa:06X}`", f"`0x{scale.exponent_code:02X}`", codes]
    head = ["block", "its numbers, row by row", "amax", "mantissa of group"]
    return table([*head, "stored exponent", f"codes in {name}"], shown)


def elements(name: str, *given: str) -> str:
    """Show one block with gam scaling: xs, code and y of each element (QNT-001, QNT-002)."""
    fmt, row = formats[name], binary32(given)
    found = quantize([row], fmt, "gam", partition((1, len(row)), block="tensor"))
    scale = found.scale[0, 0]
    rows = []
    for x, element in zip(row, found.elements[0], strict=True):
        rows.append([number(x), number(element.xs), f32_hex(element.xs)])
        rows[-1] += [code_hex(element.code, fmt), number(fmt.value(element.code))]
        rows[-1] += [number(element.y), f32_hex(element.y)]
    said = (
        f"One block in {name} with gam scaling: amax {number(found.amax[0, 0])}, scale "
        f"{number(scale.value)} ({f32_hex(scale.value)}).\n\n"
    )
    head = ["x", "xs = RN32(x · scale)", "bits of xs", "code", "v", "y = RN32(v / scale)"]
    return said + table([*head, "bits of y"], rows)


def errors(name: str, *given: str) -> str:
    """Show the error of each element of a block, and their sum (ERR-001, ERR-002)."""
    fmt, row = formats[name], binary32(given)
    found = quantize([row], fmt, "gam", partition((1, len(row)), block="tensor"))
    rows = []
    for x, element in zip(row, found.elements[0], strict=True):
        if x == 0:
            rows.append([number(x), number(element.y), "not counted", "", ""])
            continue
        term = error_term(x, element.y)
        rows.append([number(x), number(element.y), number(term.d), number(term.r), str(term.u)])
    total = error_sum((x, e.y) for x, e in zip(row, found.elements[0], strict=True))
    mean = total.sum / total.nonzero / 2**23
    said = (
        f"\nsum = {total.sum}, nonzero = {total.nonzero}, nonfinite = {total.nonfinite}; the mean "
        f"relative error, sum / nonzero / 2^23, is {number(mean)}.\n"
    )
    return table([f"x, under {name}", "y", "d", "r", "u"], rows) + said


def thresholds(*given: str) -> str:
    """Show thresholds as integers (MOR-002)."""
    rows = [[t, f"{(Decimal(t) * 2**23).normalize():f}", MeanRelativeError(t).limit] for t in given]
    return table(["t as written", "t · 2^23, exactly", "T"], rows)


def ladder(name: str) -> str:
    """Draw a policy as a flow through its rungs."""
    policy = POLICIES[name]
    shapes = [box(10, 10, 170, 40, "plain"), text(95, 35, f"a unit: one {policy.unit}")]
    x, y = 95.0, 50.0
    for rung in policy.ladder:
        taken = rung.name
        asked = [f"nonfinite = 0 under {taken}", *rung.metric.question]
        top, height = y + 24, 18 + 22 * len(asked)
        middle = top + height / 2
        shapes += [
            line(x, y, x, top, "arrow"),
            box(10, top, 250, height, "question"),
            *(text(135, top + 24 + 22 * i, said) for i, said in enumerate(asked)),
            line(260, middle, 330, middle, "arrow"),
            text(292, middle - 7, "yes"),
            box(330, middle - 20, 100, 40, "filled-soft"),
            text(380, middle + 5, taken, "name"),
            text(x + 16, top + height + 16, "no"),
        ]
        y = top + height
    shapes += [
        line(x, y, x, y + 24, "arrow"),
        box(10, y + 24, 170, 40, "filled-soft"),
        text(95, y + 49, "bf16", "name"),
    ]
    said = f"The policy {name}: the first representation that accepts a unit is taken (MOR-001)."
    return picture(440, y + 76, f"Policy {name}", shapes, said)


def ladders() -> str:
    """Draw all policies as flows."""
    return "\n".join(ladder(name) for name in POLICIES)


def decisions(policy: str) -> str:
    """Show the decisions on three blocks of 64 numbers with a policy (MOR)."""
    chosen = POLICIES[policy]
    rows = []
    for said, row in _blocks().items():
        found = _decided(chosen, row)
        sums = [f"{name}: {e.sum} of {e.nonzero}" for name, e in found.errors.items()]
        ratio = number(found.amax / found.amin)
        rows.append([said, "<br/>".join(sums), ratio, f"**{chosen.names[found.choice]}**"])
    head = ["a block of 64 numbers", "sum and nonzero", "amax / amin", f"{policy} takes"]
    return table(head, rows)


def _decided(policy: Policy, row: list[float]) -> Decision:
    return mix([row], policy, "gam", partition((1, len(row)), block="tensor")).decisions[0, 0]


def _blocks() -> dict[str, list[float]]:
    source = random.Random(1)  # noqa: S311, numbers to look at

    def bell() -> float:
        return round(source.gauss(0, 1) * 256) / 256 or 1 / 256

    bells = [bell() for _ in range(64)]
    return {
        "bell-shaped": bells,
        "the same, the last times 2^24": [*bells[:-1], bells[-1] * 2.0**24],
        "from 2^−14 to 2^14, evenly on a logarithmic scale": [
            rn32_of_binary64(source.choice((-1, 1)) * 2.0 ** source.uniform(-14, 14))
            for _ in range(64)
        ],
    }
