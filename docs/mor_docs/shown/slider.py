"""The GAM decrement while the amax of a block moves: a slider over pictures computed before."""

import math
from fractions import Fraction

from mor_docs.shown.markup import box, data, f32_hex, line, number, text
from mor_ref import formats
from mor_ref.definitions.format import Format
from mor_ref.exact.arithmetic import rn32
from mor_ref.exact.scales import group_mantissa, ideal_scale, scale_of_block

_LEFT, _WIDTH, _LINE = 20, 640, 96
_STEPS = 48
_SCRIPT = """<script>
(() => {
  const figure = document.currentScript.parentElement;
  const slider = figure.querySelector("input");
  const frames = figure.querySelectorAll("svg > g");
  const show = () => frames.forEach(
    (frame, i) => frame.classList.toggle("shown", i === Number(slider.value)));
  slider.addEventListener("input", show);
  figure.classList.add("moved");
  show();
})();
</script>"""


def decrement(name: str, group: str) -> str:
    """Draw the ideal and the rebuilt scale of a block for amaxes over two binades (GAM-003)."""
    fmt, top = formats[name], rn32(Fraction(group))
    shared = group_mantissa(fmt.largest, top)
    amaxes = [
        rn32(Fraction(top) * Fraction(step, _STEPS)) for step in range(_STEPS // 4, _STEPS + 1)
    ]
    frames = "".join(f"<g>{_frame(fmt, amax, shared)}</g>" for amax in amaxes)
    said = (
        f"The amax of the group is {number(top)}. The circle is the ideal scale of the block, the "
        "dashed lines are the scales with the mantissa of the group, the square is the scale that "
        "the block gets: the nearest dashed line that is not above the circle."
    )
    height = _LINE + 120
    drawn = (
        '```{raw} html\n<figure class="drawing"><div class="scroll" tabindex="0">'
        f'<svg viewBox="0 0 {_WIDTH + 40} {height}" style="min-width: 512px; max-width: '
        f'{_WIDTH + 40}px" role="img" aria-label="The decrement">{frames}</svg></div>'
        '<label class="fine">amax of the block <input type="range" min="0" '
        f'max="{len(amaxes) - 1}" value="{len(amaxes) // 2}"></label>'
        f"<figcaption>{said}</figcaption>{_SCRIPT}</figure>\n```\n"
    )
    head = ["amax", "ideal scale", "m_block", "decrement", "stored", "scale"]
    return drawn + data("decrement", head, [_row(fmt, amax, shared) for amax in amaxes])


def _row(fmt: Format, amax: float, shared: int) -> list[object]:
    """Return the numbers of a position: whether m of the group is greater, and the scale."""
    own = ideal_scale(fmt.largest, amax)
    scale = scale_of_block("gam", fmt.largest, amax, shared)
    is_lower = shared > own.mantissa
    return [amax, float(own.value), own.mantissa, is_lower, scale.exponent_code, scale.value]


def _frame(fmt: Format, amax: float, shared: int) -> str:
    own = ideal_scale(fmt.largest, amax)
    scale = scale_of_block("gam", fmt.largest, amax, shared)
    is_lower = shared > own.mantissa
    base = math.floor(math.log2(fmt.largest / amax))
    low, high = base - 1, base + 2
    shapes = [line(_LEFT, _LINE, _LEFT + _WIDTH, _LINE, "axis")]
    for exponent in range(low, high + 1):
        x = _at(2.0**exponent, low, high)
        shapes += [line(x, _LINE - 24, x, _LINE + 24, "grid")]
        shapes += [text(x, _LINE + 42, f"2^{exponent}".replace("-", "−"))]
        if exponent < high:
            rebuilt = _at(float((1 + Fraction(shared, 2**23)) * 2**exponent), low, high)
            shapes.append(line(rebuilt, _LINE - 24, rebuilt, _LINE + 24, "candidate"))
    ideal, taken = _at(float(own.value), low, high), _at(scale.value, low, high)
    verdict = "m > m_block: e − 1" if is_lower else "m ≤ m_block: e stays"
    shapes += [
        text(_LEFT, 22, f"amax {number(amax)}", "name", "start"),
        text(_LEFT, 44, f"ideal scale {number(own.value)}, e = {own.exponent}", "", "start"),
        text(_LEFT + _WIDTH, 22, verdict, "name", "end"),
        text(
            _LEFT + _WIDTH,
            44,
            f"scale {number(scale.value)} {f32_hex(scale.value)[1:-1]}",
            "",
            "end",
        ),
        *([line(ideal, _LINE, taken + 6, _LINE, "arrow")] if ideal - taken > 14 else []),
        f'<circle cx="{ideal:.1f}" cy="{_LINE}" r="6" class="hollow"/>',
        box(round(taken - 5, 1), _LINE - 5, 10, 10, "filled"),
        text(
            _LEFT,
            _LINE + 76,
            f"stored {scale.exponent_code}; xs of amax {number(amax * scale.value)}",
            "",
            "start",
        ),
    ]
    return "".join(shapes)


def _at(x: float, low: int, high: int) -> float:
    return _LEFT + _WIDTH * (math.log2(x) - low) / (high - low)
