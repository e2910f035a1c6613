"""Pictures of the experiment, from the results that are committed."""

import math
from collections.abc import Callable, Sequence
from statistics import fmean

from experiments.runs import ARMS, OPERANDS, PARTITIONS, TENSOR, Family
from experiments.shares import Measured, early, late, measured_in, share
from mor_docs.shown.experiment import NOT_YET, compared, measurements, results_of, said
from mor_docs.shown.markup import line, picture, text
from mor_docs.shown.plots import Axes, Point, cell, dot, key, round_numbers

_WIDTH = 640
_FAMILIES: tuple[Family, ...] = ("null", "main", "beyond")


def gaps(name: str) -> str:
    """Draw every pair, the mean and the 95 % interval of each arm."""
    results = results_of(name)
    found = {arm: one for family in _FAMILIES for arm, one in compared(results, family).items()}
    finite = {arm: one for arm, one in found.items() if not one.has_diverged}
    if not finite:
        return NOT_YET
    edges = [x for one in finite.values() for x in (*one.values, *one.interval)]
    low, high = min(0.0, *edges), max(0.6, *edges)
    axes = Axes(150, 24, _WIDTH - 170, 26.0 * len(found), (low, high), (len(found), 0))
    shapes = [*axes.grid(round_numbers(low, high), ())]
    shapes += [*axes.mark(0, "bf16"), *axes.mark(0.5, "+0.5 %")]
    for row, (arm, one) in enumerate(found.items()):
        _, y = axes.at(0, row + 0.5)
        shapes.append(text(142, y + 4, arm, "name", "end"))
        if arm in finite:
            (left, _), (right, _) = (axes.at(x, row) for x in one.interval)
            middle, _ = axes.at(one.mean, row)
            shapes += [line(left, y, right, y, "strong"), line(middle, y - 8, middle, y + 8)]
            shapes += [dot(axes.at(pair, row)[0], y) for pair in one.values]
        else:
            shapes.append(text(axes.left + 6, y + 4, "diverged", anchor="start"))
    said_below = (
        "Difference in training loss to bf16 of the same seed, in percent: each pair is a dot, the "
        "upright stroke is their mean, and the line the 95 % interval of the mean."
    )
    height = axes.top + axes.height + 30
    return picture(_WIDTH, height, "Differences in loss", shapes, said_below)


def sweep(name: str) -> str:
    """Draw the share in E4M3 against the threshold, for each partition."""
    points = [2 + i / 10 for i in range(41)]

    def curve(found: list[Measured]) -> list[Point]:
        return [(at, share(found, f"{at / 100:.4f}")) for at in points]

    below = (
        "Share of tensors in E4M3 against the threshold, replayed exactly from the recorded "
        "integers of the bf16 runs."
    )
    return _of_partitions(name, curve, (2, 6), ([2, 3, 4, 5, 6], ((4.5, "4.5 %"),)), below)


def course(name: str) -> str:
    """Draw the share in E4M3 at 4.5 % over the steps, for each partition."""

    def curve(found: list[Measured]) -> list[Point]:
        steps = sorted({one.step for one in found})
        return [(at, share(one for one in found if one.step == at)) for at in steps]

    steps = results_of(name).steps
    below = "Share of tensors in E4M3 at the threshold of 4.5 % over the steps of the bf16 runs."
    ticks = [round(steps * i / 4) for i in range(5)]
    return _of_partitions(name, curve, (0, steps), (ticks, ()), below)


def _of_partitions(
    name: str,
    curve: Callable[[list[Measured]], list[Point]],
    across: Point,
    ticks_and_marks: tuple[Sequence[float], Sequence[tuple[float, str]]],
    below: str,
) -> str:
    results, (ticks, marks) = results_of(name), ticks_and_marks
    found = {said(one.cut): measurements(results, "bf16", one) for one in PARTITIONS}
    curves = [curve(each) for each in found.values() if each]
    if not curves:
        return NOT_YET
    lowest = 10 * math.floor(min(y for points in curves for _, y in points) / 10)
    lowest = min(lowest, 90)
    axes = Axes(52, 24, 380, 240, across, (lowest, 100))
    step = 2 if lowest == 90 else 10 if lowest >= 40 else 20
    shapes = [*axes.grid(ticks, range(lowest, 101, step), " %")]
    for x, words in marks:
        shapes += axes.mark(x, words)
    shapes += [axes.curve(points, number) for number, points in enumerate(curves)]
    names = [name for name, each in found.items() if each]
    shapes += key(axes.left, 306, names)  # below, where a narrow screen shows it
    return picture(450, 306 + 18 * len(names), "Share of tensors in E4M3", shapes, below)


def histogram(name: str) -> str:
    """Draw how many tensors have which error, early and late, for each operand."""
    results = results_of(name)
    found = measurements(results, "bf16", TENSOR)
    if not found:
        return NOT_YET
    shapes: list[str] = []
    times = {"early": early(results), "late": late(results)}
    for number, operand in enumerate(OPERANDS):
        curves = [
            _counted([one for one in found if one.operand == operand and chosen(one)])
            for chosen in times.values()
        ]
        highest = max(y for points in curves for _, y in points)
        axes = Axes(12, 44 + 150 * number, 424, 100, (1.5, 6), (0, highest))
        shapes += axes.grid([2, 3, 4, 5, 6], [])
        for x in (2.25, 4.5):
            shapes += axes.mark(x, f"{x} %")
        shapes += [axes.curve(points, i) for i, points in enumerate(curves)]
        shapes.append(text(axes.at(3.4, 0)[0], axes.top - 6, operand, "name"))
    shapes += key(12, 490, list(times))
    below = (
        "Tensors by their mean relative error under E4M3, in percent, in the first and the last "
        "fifth of the bf16 runs, per tensor; errors above 6 % are in the last bin."
    )
    return picture(450, 520, "Errors early and late", shapes, below)


def _counted(tensors: list[Measured]) -> list[Point]:
    """Return the share of tensors in each tenth of a percent, as corners of a curve."""
    bins = [0] * 45
    for one in tensors:
        bins[min(max(int(10 * (one.error - 1.5)), 0), 44) if one.error < 6 else 44] += 1
    corners = [(1.5 + (i + side) / 10, count) for i, count in enumerate(bins) for side in (0, 1)]
    return [(x, y / max(len(tensors), 1)) for x, y in corners]


def layers(name: str) -> str:
    """Draw the share of each operand of each layer that stays in bf16 under mor_tensor."""
    results = results_of(name)
    arm = ARMS["mor_tensor"].name
    if arm not in results.arms:
        return NOT_YET
    by_place: dict[tuple[str, str], list[Measured]] = {}
    for one in measured_in(results.arms[arm], TENSOR):
        by_place.setdefault((one.layer, one.operand), []).append(one)
    names = list(dict.fromkeys(layer for layer, _ in by_place))
    shapes = [text(166 + 104 * i, 18, operand, "name") for i, operand in enumerate(OPERANDS)]
    for row, layer in enumerate(names):
        y = 28 + 22 * row
        shapes.append(text(108, y + 15, layer, "name", "end"))
        for i, operand in enumerate(OPERANDS):
            left = 100 - share(by_place[layer, operand])
            error = fmean(one.error for one in by_place[layer, operand])
            hint = f"{layer}, {operand}: {left:.2f} % in bf16, mean error {error:.2f} %"
            shapes.append(cell(115 + 104 * i, y, 102, 20, left / 100, hint))
            shapes.append(text(166 + 104 * i, y + 15, f"{left:.1f} %"))
    below = "Share of tensors that stay in bf16 under mor_tensor, by block and layer, in percent."
    return picture(430, 34 + 22 * len(names), "Layers that fall back", shapes, below)
