"""Tables of the experiment, next to the paper's numbers, from the results that are committed."""

import math
from collections.abc import Callable, Iterable
from functools import cache
from statistics import fmean, median

from experiments import statistics
from experiments.results import COMMITTED, Arm, Results, read
from experiments.runs import (
    ARMS,
    OPERANDS,
    PARTITIONS,
    SCALINGS,
    TENSOR,
    Family,
    Setting,
    planned,
)
from experiments.shares import (
    Measured,
    early,
    late,
    measured_in,
    share,
    shares_of_blocks,
    shares_of_seeds,
)
from experiments.statistics import Differences
from mor_docs.shown.markup import table

NOT_YET = "*These runs are not done yet.*\n"
THRESHOLDS = ("0.03", "0.04", "0.045", "0.05", "0.06")
# What the paper reports, in percent: arXiv 2512.22804, configuration 1.
_PAPERS_SHARE = {"tensor/channel/gam": "98.38"}
_PAPERS_LOSS = {"mor_block": "+0.19", "mor_tensor": "+0.14", "mor_channel": "+0.21"}


@cache
def results_of(name: str) -> Results:
    """Return the committed results of a size and steps, such as A-1200; no arms if not yet run."""
    return read(COMMITTED / name)


def table_of(name: str, rows: Callable[[Results], Iterable[list[object]]], *head: str) -> str:
    """Return a table of results, or that they are not there yet."""
    found = list(rows(results_of(name)))
    return table(head, found) if found else NOT_YET


def said(cut: object) -> str:
    """Return a partition in words."""
    return f"blocks of {cut}x{cut}" if isinstance(cut, int) else f"per {cut}"


def measurements(results: Results, arm: str, setting: Setting) -> list[Measured]:
    """Return what an arm measured, nothing if it has no runs."""
    return measured_in(results.arms[arm], setting) if arm in results.arms else []


def _spread(shares: list[float]) -> str:
    return f"{fmean(shares):.2f} ({min(shares):.2f} to {max(shares):.2f})"


# ---------------------------------------------------------------------- shares


def partitions(name: str) -> str:
    """Return the share of tensors in E4M3 by partition, on the operands of bf16 and of MoR."""
    own = {arm.measured[0]: arm.name for arm in ARMS.values() if arm.family == "main"}

    def rows(results: Results) -> Iterable[list[object]]:
        for setting in PARTITIONS:
            found = measurements(results, "bf16", setting)
            if found:
                of_arm = measurements(results, own.get(setting, ""), setting)
                trained = _spread(shares_of_seeds(of_arm)) if of_arm else "—"
                paper = _PAPERS_SHARE.get(setting.name, "—")
                yield [said(setting.cut), paper, _spread(shares_of_seeds(found)), trained]

    return table_of(name, rows, "partition", "the paper, %", "bf16 runs, %", "own runs, %")


def operands(name: str) -> str:
    """Return the share of tensors in E4M3 by operand and layer, over all blocks of the model."""

    def rows(results: Results) -> Iterable[list[object]]:
        found = measurements(results, "mor_tensor", TENSOR)
        for kind in dict.fromkeys(one.layer.partition(".")[2] for one in found):
            of_layer = [one for one in found if one.layer.endswith(f".{kind}")]
            by_operand = ([o for o in of_layer if o.operand == name] for name in OPERANDS)
            yield [f"`{kind}`", *(f"{share(each):.2f}" for each in by_operand)]

    return table_of(name, rows, "layer", *OPERANDS)


def thresholds(name: str) -> str:
    """Return the share of tensors in E4M3 at each threshold, replayed from the same runs."""

    def rows(results: Results) -> Iterable[list[object]]:
        for setting in PARTITIONS:
            found = measurements(results, "bf16", setting)
            if found:
                yield [said(setting.cut), *(f"{share(found, at):.2f}" for at in THRESHOLDS)]

    head = (f"{100 * float(at):g} %" for at in THRESHOLDS)
    return table_of(name, rows, "partition", *head)


def scalings(name: str) -> str:
    """Return errors and shares under the three kinds of scales, on the same operands."""

    def rows(results: Results) -> Iterable[list[object]]:
        for cut in dict.fromkeys(setting.cut for setting in SCALINGS):
            for scaling in ("gam", "e8m0", "fp32"):
                setting = Setting("tensor", cut, scaling)
                found = measurements(results, "bf16", setting)
                if found:
                    errors = [one.error for one in found]
                    yield [said(cut), scaling, f"{fmean(errors):.3f}", f"{share(found):.2f}"]

    return table_of(name, rows, "partition", "scales", "mean error, %", "in E4M3, %")


def blocks(name: str) -> str:
    """Return how many blocks take each representation, two-way and three-way."""

    def rows(results: Results) -> Iterable[list[object]]:
        for arm, setting in _by_block():
            found = measurements(results, arm, setting)
            for operand in OPERANDS if found else ():
                of_operand = shares_of_blocks(o for o in found if o.operand == operand)
                e4m3, *e5m2, bf16 = (f"{each:.2f}" for each in of_operand)
                policy = setting.policy.replace("_", "-")
                cells = [policy, said(setting.cut), f"`{arm}`", operand]
                yield [*cells, e4m3, *(e5m2 or ["—"]), bf16]

    head = ("policy", "units", "on operands of", "operand", "E4M3, %", "E5M2, %", "bf16, %")
    return table_of(name, rows, *head)


def _by_block() -> Iterable[tuple[str, Setting]]:
    for arm in ARMS.values():
        yield from ((arm.name, one) for one in arm.measured if not one.is_by_tensor)


def errors(name: str) -> str:
    """Return the errors per tensor early and late in a run, by operand."""

    def rows(results: Results) -> Iterable[list[object]]:
        found = measurements(results, "bf16", TENSOR)
        for operand in OPERANDS if found else ():
            for when, chosen in (("early", early(results)), ("late", late(results))):
                there = [one for one in found if one.operand == operand and chosen(one)]
                worst = max(there, key=lambda one: one.error)
                ordered = sorted(one.error for one in there)
                high = ordered[math.ceil(0.95 * len(ordered)) - 1]
                numbers = (f"{x:.2f}" for x in (median(ordered), high, worst.error))
                yield [operand, when, *numbers, f"`{worst.layer}`", f"{100 - share(there):.2f}"]

    head = ("operand", "when", "median, %", "95 of 100 below, %", "largest, %", "where")
    return table_of(name, rows, *head, "above 4.5 %: share, %")


# ---------------------------------------------------------------------- losses


def compared(results: Results, family: Family) -> dict[str, Differences]:
    """Return the differences to bf16 of the arms of a family with at least two pairs."""
    if "bf16" not in results.arms:
        return {}
    baseline = results.arms["bf16"].losses
    arms = (results.arms[name] for name, arm in ARMS.items() if arm.family == family
            and name in results.arms)  # fmt: skip
    return {
        arm.name: statistics.differences(arm.losses, baseline)
        for arm in arms
        if len(arm.losses.keys() & baseline.keys()) > 1
    }


def _tested(results: Results, family: Family) -> Iterable[tuple[str, Differences, str, str]]:
    """Yield the arms of a family with their differences, adjusted p-values and answers."""
    found = compared(results, family)
    adjusted = statistics.holm({arm: each.p_value for arm, each in found.items()})
    for arm, each in found.items():
        if family == "null":
            yield arm, each, "—", "not tested"
        else:
            yield arm, each, f"{adjusted[arm]:.4f}", statistics.verdict(each, adjusted[arm])


def conclusion(name: str) -> str:
    """Return the recipes by the answer of their test, with their differences to bf16."""
    by_answer: dict[str, list[str]] = {}
    families: tuple[Family, ...] = ("main", "beyond")
    for family in families:
        for arm, found, _, answer in _tested(results_of(name), family):
            by_answer.setdefault(answer, []).append(f"`{arm}` {found.mean:+.2f} %")
    lines = [f"* {answer}: {', '.join(arms)}\n" for answer, arms in by_answer.items()]
    return "".join(lines) or NOT_YET


def losses(name: str, *families: Family) -> str:
    """Return the differences in loss with their intervals, and the answers of the tests."""

    def rows(results: Results) -> Iterable[list[object]]:
        for family in families:
            for arm, found, p, answer in _tested(results, family):
                paper = _PAPERS_LOSS.get(arm, "—")
                yield [f"`{arm}`", len(found.values), paper, *_shown(found), p, answer]

    head = ("arm", "pairs", "the paper, %", "difference, %", "95 % interval", "upper bound")
    return table_of(name, rows, *head, "p, adjusted", "answer")


def _shown(found: Differences) -> tuple[str, str, str]:
    low, high = found.interval
    return f"{found.mean:+.3f}", f"{low:+.3f} to {high:+.3f}", f"{found.upper_bound:+.3f}"


def validation(name: str) -> str:
    """Return the differences in loss on the validation text, without a test."""

    def rows(results: Results) -> Iterable[list[object]]:
        for arm in _with_pairs(results):
            baseline = results.arms["bf16"].validation
            found = statistics.differences(arm.validation, baseline)
            yield [f"`{arm.name}`", len(found.values), *_shown(found)[:2]]

    return table_of(name, rows, "arm", "pairs", "difference, %", "95 % interval")


def _with_pairs(results: Results) -> list[Arm]:
    families: tuple[Family, ...] = ("null", "main", "beyond")
    return [results.arms[name] for family in families for name in compared(results, family)]


def recipes_apart(name: str) -> str:
    """Return the differences between recipes of the main family, and whether they are real."""

    def rows(results: Results) -> Iterable[list[object]]:
        noise = compared(results, "null").get("matched_noise")
        names = list(compared(results, "main")) if noise else []
        for i, one in enumerate(names):
            for other in names[i + 1 :]:
                pair = (results.arms[other].losses, results.arms[one].losses)
                found = statistics.differences(*pair)
                is_real = noise is not None and statistics.is_real(found, noise)
                answer = "real" if is_real else "too small to say"
                yield [f"`{other}` against `{one}`", *_shown(found)[:2], answer]

    return table_of(name, rows, "recipes", "difference, %", "95 % interval", "answer")


def costs(name: str) -> str:
    """Return the seconds of a step in each arm, and against bf16."""

    def rows(results: Results) -> Iterable[list[object]]:
        seconds = {
            arm.name: median(run["seconds_per_step"] for run in arm.runs.values())
            for arm in results.arms.values()
        }
        for arm, each in seconds.items():
            ratio = f"{each / seconds['bf16']:.2f}" if "bf16" in seconds else "—"
            yield [f"`{arm}`", f"{each:.3f}", ratio]

    return table_of(name, rows, "arm", "seconds a step", "bf16 = 1")


def made_with(name: str) -> str:
    """Return the versions that made the results, and how many runs there are."""
    results = results_of(name)
    runs = [run for arm in results.arms.values() for run in arm.runs.values()]
    if not runs:
        return NOT_YET
    used = {tuple(sorted(run["made_with"].items())) for run in runs}
    shown = "; ".join(", ".join(f"{key} {at}" for key, at in each) for each in sorted(used))
    parameters = runs[0]["parameters"]
    said = f"{len(runs)} runs of {results.steps:,} steps, {parameters:,} parameters; {shown}.\n"
    lacking = len(planned(results.size, results.steps)) - len(runs)
    if lacking > 0:
        said += (
            f"\nThe plan has {lacking} more runs. Until they are done, no answer below is final: a "
            "test before the planned end rejects too often.\n"
        )
    return said
