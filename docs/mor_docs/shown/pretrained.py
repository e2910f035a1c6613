"""Tables and a picture of the second experiment, from the results that are committed."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from statistics import fmean

from experiments.pretrained.arms import OPERANDS
from experiments.pretrained.results import COMMITTED, MARGIN, Result, answers, firsts, losses, read
from experiments.statistics import Differences, is_real
from mor_docs.shown.experiment import NOT_YET
from mor_docs.shown.markup import line, picture, table, text
from mor_docs.shown.plots import Axes, round_numbers

_WIDTH = 480
# The kinds of layers of a BERT, by the ends of their names; the first that fits counts.
_KINDS = {
    "query, key, value": ("self.query", "self.key", "self.value"),
    "attention output": ("attention.output.dense",),
    "intermediate": ("intermediate.dense",),
    "output": ("output.dense",),
}
_BY_LAYER = ("mor_tensor", "mor_channel", "mxfp8", "nvfp4")


@cache
def results_of() -> Mapping[str, Result]:
    """Return the committed results of all arms."""
    return read(COMMITTED)


def compared() -> dict[str, Differences]:
    """Return the losses of all arms but bf16, in percent."""
    results = results_of()
    if "bf16" not in results:
        return {}
    baseline = results["bf16"]
    return {name: losses(one, baseline) for name, one in results.items() if one is not baseline}


def conclusion() -> str:
    """Return the recipes by the answer of their test, with their losses."""
    found, by_answer = compared(), dict[str, list[str]]()
    for name, (_, answer) in answers(results_of()).items() if found else ():
        by_answer.setdefault(answer, []).append(f"`{name}` {found[name].mean:+.2f} %")
    lines = [f"* {answer}: {', '.join(recipes)}\n" for answer, recipes in by_answer.items()]
    return "".join(lines) or NOT_YET


def beyond_noise() -> str:
    """Return the recipes whose loss is more than that of noise (statistics.is_real)."""
    found = compared()
    if "matched_noise" not in found:
        return NOT_YET
    noise = found.pop("matched_noise")
    real = [f"`{name}`" for name, one in found.items() if is_real(one, noise)]
    return f"More than noise makes, or less: {', '.join(real) or 'none'}.\n"


def retrieval() -> str:
    """Return the losses in MRR@10 with their intervals, and the answers of the tests."""
    results, found = results_of(), compared()
    if not found:
        return NOT_YET
    tested = answers(results)
    rows: list[list[object]] = [["`bf16`", f"{results['bf16'].mrr:.4f}", *["—"] * 4, "baseline"]]
    for name, one in found.items():
        p, answer = tested.get(name, (None, "not tested"))
        low, high = one.interval
        shown = f"{one.mean:+.3f}", f"{low:+.3f} to {high:+.3f}", f"{one.upper_bound:+.3f}"
        rows.append([f"`{name}`", f"{results[name].mrr:.4f}", *shown, _p(p), answer])
    head = ("arm", "MRR@10", "loss, %", "95 % interval", "upper bound", "p, adjusted", "answer")
    return table(head, rows)


def _p(p: float | None) -> str:
    return "—" if p is None else f"{p:.4f}" if p >= 0.0001 else "< 0.0001"


def firsts_and_cosines() -> str:
    """Return the secondary figures: documents found first, and cosines to the vectors in bf16."""
    head = ("arm", "first, %", "less than in bf16, points", "only in bf16", "only in the arm")
    rows = list(_secondary()) if compared() else []
    return table((*head, "mean cosine", "1 of 100 below"), rows) if rows else NOT_YET


def _secondary() -> Iterator[list[object]]:
    baseline = results_of()["bf16"]
    for name, result in results_of().items():
        share = f"{100 * fmean(result.is_first):.2f}"
        if result is baseline:
            yield [f"`{name}`", share, *["—"] * 5]
            continue
        found, cosines = firsts(result, baseline), result.document["cosines"]
        low, high = found.interval
        lost, won = (sum(pair == sign for pair in found.values) for sign in (100, -100))
        mean = f"{cosines['mean']:.5f} ± {cosines['half']:.5f}"
        points = f"{found.mean:+.2f} ({low:+.2f} to {high:+.2f})"
        yield [f"`{name}`", share, points, lost, won, mean, f"{cosines['low']:.5f}"]


def fallbacks() -> str:
    """Return how many units each MoR recipe did not keep in the representation it tries first."""
    lines = [_fallback(name, one) for name, one in results_of().items() if name.startswith("mor_")]
    return "".join(lines) or NOT_YET


def _fallback(name: str, result: Result) -> str:
    found = [result.document["operands"][operand]["choices"] for operand in OPERANDS]
    counts = {rung: sum(sum(one[rung]) for one in found) for rung in found[0]}
    total, (_, *others) = sum(counts.values()), counts
    said = ", ".join(f"{counts[rung]:,} in {rung}" for rung in others)
    return f"* `{name}`: of {total:,} units, {said}\n"


def operands() -> str:
    """Return the error and the SQNR of each kind of layer, by operand."""
    recipes = [name for name in _BY_LAYER if name in results_of()]
    rows: list[list[object]] = [
        [kind, operand, *(_cell(results_of()[name], operand, kind) for name in recipes)]
        for kind in _KINDS
        for operand in OPERANDS
    ]
    head = ("layer", "operand", *(f"`{name}`" for name in recipes))
    return table(head, rows) if recipes else NOT_YET


def _cell(result: Result, operand: str, kind: str) -> str:
    """Return the mean error and the mean SQNR over the layers of a kind."""
    found = result.document["operands"]
    places = [i for i, layer in enumerate(found["layers"]) if _kind_of(layer) == kind]
    error, sqnr = (fmean(found[operand][key][i] for i in places) for key in ("error", "sqnr"))
    return f"{error:.2f} %, {sqnr:.1f} dB"


def _kind_of(layer: str) -> str:
    return next(kind for kind, ends in _KINDS.items() if layer.endswith(ends))


def gaps() -> str:
    """Draw the loss and its 95 % interval of each arm, with the margin."""
    found = compared()
    if not found:
        return NOT_YET
    edges = [x for one in found.values() for x in one.interval]
    low, high = min(-0.5, *edges), max(1.2 * MARGIN, *edges)
    axes = Axes(124, 24, _WIDTH - 140, 24.0 * len(found), (low, high), (len(found), 0))
    shapes = [*axes.grid(round_numbers(low, high), ())]
    shapes += [*axes.mark(0, "bf16"), *axes.mark(MARGIN, f"+{MARGIN:g} %")]
    for row, (name, one) in enumerate(found.items()):
        _, y = axes.at(0, row + 0.5)
        (left, _), (right, _), (middle, _) = (axes.at(x, row) for x in (*one.interval, one.mean))
        shapes.append(text(116, y + 4, name, "name", "end"))
        shapes += [line(left, y, right, y, "strong"), line(middle, y - 7, middle, y + 7)]
    below = (
        f"Loss of MRR@10 against bf16, in percent, over {_queries()} queries: the stroke is the "
        "mean, the line its 95 % interval. To the left of the margin is better."
    )
    return picture(_WIDTH, axes.top + axes.height + 30, "Losses of MRR@10", shapes, below)


def _queries() -> str:
    return f"{len(results_of()['bf16'].ranks):,}"


def made_with() -> str:
    """Return a line on the results: queries, time and versions."""
    results = results_of()
    if "bf16" not in results:
        return NOT_YET
    made = results["bf16"].document["made_with"]
    seconds: Iterable[float] = (one.document["seconds"] for one in results.values())
    versions = ", ".join(f"{name} {at}" for name, at in made.items() if name != "device")
    return (
        f"{_queries()} queries and as many documents, {len(results)} arms, "
        f"{sum(seconds) / 60:.0f} minutes on one core of {made['device']}. Made with {versions}.\n"
    )
