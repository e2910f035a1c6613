"""The way of a tensor through MoR, as a picture: each step with its formula, number and rule."""

from collections.abc import Iterator

from mor_docs.shown.markup import box, line, number, picture, text
from mor_docs.shown.one_tensor import PARTS, ROWS
from mor_docs.trace import ROOT, rules_of
from mor_ref import formats
from mor_ref.exact.policies import mix
from mor_ref.exact.quantization import quantize
from mor_ref.policies import POLICIES

_WIDTH, _HEIGHT, _GAP = 180, 92, 30
_COLUMNS = 4
Step = tuple[str, str, str, str]


def diagram() -> str:
    """Draw the steps from the tensor to bfloat16, with the numbers of the right block."""
    shapes: list[str] = []
    steps = _steps()
    for i, step in enumerate(steps):
        shapes += _drawn(step, *_place(i), "filled-soft" if i in (0, len(steps) - 1) else "plain")
        if i:
            shapes.append(_arrow(_place(i - 1), _place(i)))
    rows = -(-len(steps) // _COLUMNS)
    size = _COLUMNS * (_WIDTH + _GAP) - _GAP + 20, rows * (_HEIGHT + _GAP) - _GAP + 20
    said = (
        "The steps of MoR, each with its rule. The numbers are those of the right block in e4m3, "
        "of its last element, and of its decision under three_way."
    )
    return picture(*size, "From a tensor to bfloat16", shapes, said)


def _place(i: int) -> tuple[float, float]:
    """Return the corner of a step: every second row runs to the left."""
    row, column = divmod(i, _COLUMNS)
    column = _COLUMNS - 1 - column if row % 2 else column
    return 10 + column * (_WIDTH + _GAP), 10 + row * (_HEIGHT + _GAP)


def _arrow(start: tuple[float, float], end: tuple[float, float]) -> str:
    (x1, y1), (x2, y2) = start, end
    if y1 != y2:
        return line(x1 + _WIDTH / 2, y1 + _HEIGHT, x2 + _WIDTH / 2, y2 - 2, "arrow")
    middle = y1 + _HEIGHT / 2
    edges = (x1 + _WIDTH, x2 - 2) if x2 > x1 else (x1, x2 + _WIDTH + 2)
    return line(edges[0], middle, edges[1], middle, "arrow")


def _drawn(step: Step, x: float, y: float, kind: str) -> Iterator[str]:
    name, formula, shown, rule = step
    yield box(x, y, _WIDTH, _HEIGHT, kind)
    yield text(x + 10, y + 22, name, "name", "start")
    yield text(x + 10, y + 43, formula, "", "start")
    yield text(x + 10, y + 62, shown, "", "start")
    chapter = next(each.chapter for each in rules_of(ROOT / "spec") if each.id == rule)
    link = text(x + _WIDTH - 10, y + 82, rule, "rule", "end")
    yield f'<a href="../spec/{chapter}.html#{rule}">{link}</a>'


def _steps() -> list[Step]:
    """Return each step: its name, its formula, its numbers, and its rule."""
    e4m3 = formats["e4m3"]
    found = quantize(ROWS, e4m3, "gam", PARTS)
    block, last = (0, 1), found.elements[1][3]
    scale, error = found.scale[block], found.error[block]
    decision = mix(ROWS, POLICIES["three_way"], "gam", PARTS).decisions[block]
    taken = POLICIES["three_way"].names[decision.choice]
    e = (scale.exponent_code or 0) - 127
    return [
        ("tensor", "bfloat16, rows x columns", "2 x 4", "BLK-001"),
        ("blocks", "one scale for each", "2 blocks of 2 x 2", "BLK-002"),
        ("amax", "largest |x| of a block", f"amax = {number(found.amax[block])}", "SCL-001"),
        (
            "(m, e)",
            "m of the group, e its own",
            f"0x{found.mantissa[0, 0]:06X}, {e}",
            "GAM-003",
        ),
        ("xs", "x · (1 + m / 2²³) · 2ᵉ", f"xs = {number(last.xs)}", "GAM-005"),
        ("codes", "xs to e4m3, to nearest", f"0x{last.code:02X}", "QNT-001"),
        ("y", "the code's number / scale", f"y = {number(last.y)}", "QNT-002"),
        ("sums", "of |x − y| / |x|, as integers", f"sum = {error.sum}", "ERR-002"),
        ("ladder", "the first rung that accepts", f"takes {taken}", "MOR-001"),
        ("bf16", "y rounded, or x unchanged", "2 x 4, as at the start", "MOR-006"),
    ]
