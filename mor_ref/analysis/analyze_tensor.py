"""The analysis of one tensor with MoR, as a few numbers."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from mor_ref.analysis.decisions import Decisions, decisions
from mor_ref.analysis.large_tensors import How
from mor_ref.api.border import public
from mor_ref.argument_checks import known_name
from mor_ref.arrays import let_go, numbers_from
from mor_ref.definitions.blocks import Cut, Partition, cut_in, partition
from mor_ref.definitions.roles import KINDS, Kind, Role
from mor_ref.definitions.scales import USUAL_SCALING, Scaling
from mor_ref.mapped_files import in_memory
from mor_ref.metrics import ByTensor, MeanRelativeError, Threshold, WithThreshold
from mor_ref.metrics.thresholds import is_by_tensor, written
from mor_ref.policies import Policy, Thresholds
from mor_ref.recipes import as_policy

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Name = TypeVar("Name")
_AT_ONCE = 1 << 20  # elements
_ONE = 2**23  # the unit of limits


@dataclass(frozen=True)
class Settings:
    """Settings of an analysis."""

    policy: Policy
    block: Cut
    scaling: Scaling = USUAL_SCALING
    threads: int | None = None
    kind: Kind = "weight"

    def for_tensor(self, name: str) -> "Settings":
        """Return the settings for a tensor of a file, by its name (MOR-015)."""
        return replace(self, policy=self.policy.for_tensor(role_of(name, self.kind)))

    @property
    def first(self) -> str:
        """The representation of the first rung, whose error is reported."""
        return self.policy.names[0]

    @property
    def limit(self) -> float | None:
        """The limit of the mean relative error for the first rung, if its metric has one.

        The limit is the threshold in units of 2^-23, which decides.
        """
        metric = self.policy.ladder[0].metric
        if not isinstance(metric, MeanRelativeError) or is_by_tensor(metric):
            return None
        return metric.limit / _ONE

    @property
    def mean_thresholds(self) -> dict[str, float]:
        """The threshold of the mean relative error of each rung that has one for all tensors."""
        return {
            rung.name: rung.metric.value
            for rung in self.policy.ladder
            if isinstance(rung.metric, MeanRelativeError) and not is_by_tensor(rung.metric)
        }

    @property
    def thresholds(self) -> dict[str, Any]:
        """The threshold of each rung that has one, as written; a table by the roles of tensors."""
        return {
            rung.name: _as_people_read(rung.metric.threshold)
            for rung in self.policy.ladder
            if isinstance(rung.metric, WithThreshold)
        }


def role_of(name: str, kind: Kind) -> Role:
    """Return the role of a tensor of a file: its layer is its name, without .weight at the end.

    >>> role_of("layers.0.up.weight", "weight").layer
    'layers.0.up'
    """
    return Role(name.removesuffix(".weight"), kind)


def _as_people_read(threshold: Threshold | ByTensor) -> Any:
    """Return a threshold as a number, or a table of numbers."""
    if isinstance(threshold, Mapping):
        return {key: _as_people_read(each) for key, each in threshold.items()}
    return float(written(threshold))


@public
def settings_for(
    policy: str | Policy = "tensor",
    *,
    block: str | None = None,
    threshold: Thresholds | None = None,
    scaling: str | None = None,
    threads: int | None = None,
    kind: Kind = "weight",
) -> Settings:
    """Return the settings for arguments as people write them; None means the default of the policy.

    >>> settings_for("two_way", block="64x32").block
    (64, 32)
    """
    rules = as_policy(policy)
    if threshold is not None:
        rules = rules.with_threshold(threshold)
    chosen = rules.scaling_for(cast("Scaling | None", scaling))  # which refuses other names
    cut = rules.block if block is None else _cut(block)
    partition((1, 1), cut)  # refuses sides of 0
    known_name("kind", kind, KINDS)
    return Settings(rules, cut, chosen, threads, kind)


def _cut(text: str) -> Cut:
    cut = cut_in(text)
    if cut is None:
        raise ValueError(
            f"block is {text!r}; give tensor, row, column, or rows and columns such as 128x128"
        )
    return cut


@dataclass(frozen=True)
class TensorReport:
    """The report of one tensor.

    A binary64 counts as the binary32 that MoR takes it for. `decision` is None where each block
    has its own, or there is nothing to decide; `units` says how many took each representation.
    `error` is the mean relative error with the first rung, and `errors` with every
    representation that was tried. `distance` is how far it is above the
    limit, None if there is no limit or nothing to compare. `overflows` counts finite numbers that
    the first rung would make infinite. `amax` and `amin` are the largest and the smallest finite
    magnitude but zero, None if there is none.
    """

    file: str
    name: str
    shape: tuple[int, ...]
    dtype: str
    decision: str | None
    units: dict[str, int]
    taken: dict[str, int]
    error: float
    errors: dict[str, float]
    distance: float | None
    zeros: int
    nonfinite: int
    overflows: int
    amax: float | None
    amin: float | None

    @property
    def elements(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def shares(self) -> dict[str, float]:
        """The share of numbers that took each representation; 0 for all if there are none."""
        return shares_of(self.taken)

    @property
    def unit_shares(self) -> dict[str, float]:
        """The share of units that took each representation; 0 for all if there are none."""
        return shares_of(self.units)

    @property
    def minority(self) -> int:
        """The number of units outside of the most frequent representation."""
        return sum(self.units.values()) - max(self.units.values())

    @property
    @public
    def dynamic_range(self) -> float | None:
        """The largest magnitude over the smallest."""
        return None if self.amax is None or self.amin is None else self.amax / self.amin

    @property
    @public
    def log2_dynamic_range(self) -> float | None:
        """The dynamic range in binades."""
        return None if self.dynamic_range is None else math.log2(self.dynamic_range)


@dataclass(frozen=True, eq=False)
class BlockMap:
    """The scaling blocks of a tensor: a row of the grid for each row of blocks.

    `error` is the mean relative error of each block with the first rung. `choice` has an index
    into the ladder for each block, or None where one decision is for the whole tensor.
    """

    error: NDArray[np.float64]
    choice: NDArray[np.uint8] | None
    block: tuple[int, int]


@dataclass(frozen=True, eq=False)
class Analysis:
    """A report, and its block map."""

    report: TensorReport
    blocks: BlockMap


@public
def analyze(
    x: "ArrayLike", settings: Settings, *, file: str = "", name: str = "", dtype: str = ""
) -> Analysis:
    """Report the decisions of MoR for a tensor, which is any input that `mor` takes.

    >>> x = np.linspace(-3, 3, 64, dtype=np.float32).reshape(4, 16)
    >>> report = analyze(x, settings_for("tensor")).report
    >>> report.decision, report.zeros, round(report.log2_dynamic_range, 2)
    ('e4m3', 0, 5.98)
    """
    numbers, settings = numbers_from(x, "x"), settings.for_tensor(name)
    array = numbers.bits.view(numbers.dtype).reshape(numbers.shape)
    how = How(settings.policy, settings.block, settings.scaling)
    found = decisions(numbers, how, settings.policy, settings.threads)
    report = _report(array, settings, found, file, name, dtype or str(array.dtype))
    is_by_block = settings.policy.unit == "block"
    cut = partition(array.shape, settings.block)
    block_error = found.of_blocks.mean_relative_error
    return Analysis(report, BlockMap(block_error, found.choice if is_by_block else None, cut.block))


def _report(
    x: NDArray[Any], settings: Settings, found: Decisions, file: str, name: str, dtype: str
) -> TensorReport:
    sums, ladder = found.error[settings.first], settings.policy.names
    nonfinite = _count_nonfinite(x)
    units, taken = counts_of(found.choice, found.units, ladder)
    is_decided = settings.policy.unit == "tensor" and found.choice.size
    magnitudes = found.amin[found.amin > 0]
    return TensorReport(
        file,
        name,
        x.shape,
        dtype,
        ladder[int(found.choice.flat[0])] if is_decided else None,
        units,
        taken,
        sums.overall,
        {name: one.overall for name, one in found.error.items()},
        None if settings.limit is None or not sums.nonzero.any() else sums.overall - settings.limit,
        x.size - nonfinite - int(sums.nonzero.sum()),
        nonfinite,
        int(sums.nonfinite.sum()) - nonfinite,
        float(found.amax.max()) if magnitudes.size else None,
        float(magnitudes.min()) if magnitudes.size else None,
    )


def counts_of(
    choice: NDArray[np.uint8], cut: Partition, names: Sequence[str]
) -> tuple[dict[str, int], dict[str, int]]:
    """Count the units that took each representation, and the numbers of these units."""
    units = np.zeros(len(names), np.int64)
    taken = units.copy()
    (high, wide), (below, across) = cut.block, choice.shape
    sides_of_rows = (slice(-1), high), (slice(-1, None), cut.rows - high * (below - 1))
    sides_of_columns = (slice(-1), wide), (slice(-1, None), cut.columns - wide * (across - 1))
    for (rows, height), (columns, width) in itertools.product(sides_of_rows, sides_of_columns):
        found = np.bincount(choice[rows, columns].ravel(), minlength=len(units))
        units += found
        taken += found * (height * width)
    named = (dict(zip(names, counts.tolist(), strict=True)) for counts in (units, taken))
    return next(named), next(named)


def _count_nonfinite(x: NDArray[Any]) -> int:
    """Count the elements that are not finite as binary32, in pieces, as x may exceed the memory."""
    flat = x.reshape(-1)
    found = 0
    with np.errstate(all="ignore"):  # neither a signalling NaN nor an overflow is an error here
        for start in range(0, flat.size, _AT_ONCE):
            piece = in_memory(flat[start : start + _AT_ONCE]).astype(np.float32, copy=False)
            found += piece.size - int(np.count_nonzero(np.isfinite(piece)))
            let_go(x)
    return found


@public
def shares_of(counts: dict[Name, int]) -> dict[Name, float]:
    """Return the share of each count; 0 for all if nothing was counted."""
    count = max(sum(counts.values()), 1)
    return {name: taken / count for name, taken in counts.items()}


def in_percent(share: float) -> str:
    """Return a share with one decimal; "0.0" means none, and "100.0" means all.

    >>> in_percent(1.0), in_percent(0.99999), in_percent(0.123)
    ('100.0', '>99.9', '12.3')
    """
    if 0 < share < 0.001:
        return "<0.1"
    if 0.999 < share < 1:
        return ">99.9"
    return f"{100 * share:.1f}"


def worth_a_map(report: TensorReport) -> tuple[int, float, float]:
    """Return a key that is largest for the tensor whose block map shows most.

    The key compares the most divided tensor first, then the largest share beyond the first rung,
    then the largest error.
    """
    _, *beyond = report.shares.values()
    return report.minority, sum(beyond), report.error
