"""The paper's findings, next to the committed results: which of them are seen here."""

from statistics import fmean
from typing import NamedTuple

from experiments.results import Results
from experiments.runs import PARTITIONS, TENSOR, Setting
from experiments.shares import Measured, early, late, share, shares_of_seeds
from experiments.statistics import differences
from mor_docs.shown.experiment import NOT_YET, measurements, results_of, said

_PAPERS_SHARE = 98.38  # percent of the tensors, with scales per channel
_BLOCK = 128


class Claim(NamedTuple):
    """A finding of the paper and the numbers here, in words."""

    is_seen: bool
    paper: str
    here: str


def against_the_paper(name: str) -> str:
    """Return a line for each finding of the paper that can be compared."""
    found = [claim for claim in (make(results_of(name)) for make in _CLAIMS) if claim]
    return "".join(f"* {_line(claim)}\n" for claim in found) or NOT_YET


def _line(claim: Claim) -> str:
    answer = "As in the paper" if claim.is_seen else "**Not as in the paper**"
    return f"{answer}, where {claim.paper}: here {claim.here}."


def _share_per_channel(results: Results) -> Claim | None:
    measured = {one.cut: measurements(results, "bf16", one) for one in PARTITIONS}
    shares = {cut: f"{share(each):.2f} % {_where(cut)}" for cut, each in measured.items() if each}
    if "channel" not in shares:
        return None
    seeds = shares_of_seeds(measured["channel"])
    is_seen = min(seeds) <= _PAPERS_SHARE <= max(seeds)
    return Claim(is_seen, f"{_PAPERS_SHARE} % of the tensors are in E4M3 per channel",
                 f"it is {', '.join(shares.values())}")  # fmt: skip


def _where(cut: object) -> str:
    return f"in {said(cut)}" if isinstance(cut, int) else said(cut)


def _input_of_fc2(results: Results) -> Claim | None:
    of_inputs = (o for o in measurements(results, "bf16", TENSOR) if o.operand == "input")
    found = [one for one in of_inputs if one.layer.endswith(".fc2")]
    if not found:
        return None
    first, last = (100 - share(filter(when(results), found)) for when in (early, late))
    return Claim(first > last, "the input of FC2 is worst early in training",
                 f"{first:.2f} % of it is above 4.5 % early, and {last:.2f} % late")  # fmt: skip


def _gradients_by_depth(results: Results) -> Claim | None:
    by_depth: dict[int, list[Measured]] = {}
    for one in measurements(results, "bf16", TENSOR):
        if one.operand == "grad_output":
            by_depth.setdefault(int(one.layer.partition(".")[0]), []).append(one)
    if not by_depth:
        return None
    errors = {depth: fmean(one.error for one in each) for depth, each in by_depth.items()}
    in_order = ", ".join(f"{errors[depth]:.2f}" for depth in sorted(errors))
    is_seen = errors[0] == max(errors.values())
    return Claim(is_seen, "the gradients of the first layers are worst",
                 f"their mean errors, from the first to the last, are {in_order} %")  # fmt: skip


def _scales(results: Results) -> Claim | None:
    settings = {name: Setting("tensor", _BLOCK, name) for name in ("gam", "e8m0", "fp32")}
    found = {name: measurements(results, "bf16", one) for name, one in settings.items()}
    if not all(found.values()):
        return None
    gam, e8m0, fp32 = (fmean(one.error for one in each) for each in found.values())
    return Claim(fp32 > max(gam, e8m0), "GAM and E8M0 scales are better than FP32 scales, by MMLU",
                 f"the mean errors in {said(_BLOCK)} are {gam:.3f} %, {e8m0:.3f} % and "
                 f"{fp32:.3f} %")  # fmt: skip


def _three_way(results: Results) -> Claim | None:
    arms = results.arms
    if not {"bf16", "mor_three_way"} <= arms.keys():
        return None
    found = differences(arms["mor_three_way"].losses, arms["bf16"].losses)
    low, high = found.interval
    return Claim(high < 0, "three-way has a lower training loss than bf16",
                 f"it differs by {found.mean:+.2f} % ({low:+.2f} to {high:+.2f})")  # fmt: skip


_CLAIMS = (_share_per_channel, _input_of_fc2, _gradients_by_depth, _scales, _three_way)
