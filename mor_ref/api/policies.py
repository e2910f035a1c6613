"""MoR itself: the public function and its record."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mor_ref.api.nvfp4 import Nvfp4, nvfp4_with
from mor_ref.api.quantization import (
    ErrorSums,
    Quantized,
    describe,
    error_sums,
    percent,
    quantized_with,
)
from mor_ref.api.tracing import untraced
from mor_ref.arguments import known_name
from mor_ref.arrays import Numbers, numbers_from
from mor_ref.definitions.blocks import Cut, Partition, check_unit, partition
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import as_format
from mor_ref.definitions.nvfp4 import PROFILES
from mor_ref.definitions.policies import (
    NVFP4,
    FitsRange,
    MeanRelativeError,
    NotWorseThan,
    Policy,
    Rung,
    Thresholds,
    as_policy,
    name_of,
)
from mor_ref.definitions.scales import SCALINGS, Scaling, check_group, scaled_format

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from mor_ref.engine.policies import Accepted
    from mor_ref.engine.scales import Extremes
    from mor_ref.engine.strips import TileScales

Representation = Quantized | Nvfp4


@dataclass(frozen=True, eq=False, repr=False)
class MorResult:
    """What MoR makes of a tensor.

    `choice` has an index into `ladder` for each unit; `output` has the shape of x and holds
    bfloat16 codes. `error` has the error sums of the units and `quantized` the tensor under every
    representation that was tried, by name. `amax` and `amin` are of the units: the largest and
    the smallest magnitude but zero.
    """

    policy: Policy
    ladder: tuple[str, ...]
    choice: NDArray[np.uint8]
    output: NDArray[np.uint16]
    error: dict[str, ErrorSums]
    quantized: dict[str, Representation]
    amax: NDArray[np.float32]
    amin: NDArray[np.float32]
    units: Partition
    source: str

    @property
    @untraced
    def shares(self) -> dict[str, float]:
        """The share of units that took each representation; 0 for all if there are none."""
        count = max(self.choice.size, 1)
        return {
            name: np.count_nonzero(self.choice == rung) / count
            for rung, name in enumerate(self.ladder)
        }

    @untraced
    def __repr__(self) -> str:
        rows, columns = self.units.block
        units = f"{self.choice.size} x {rows}x{columns}"
        shares = ", ".join(f"{name} {percent(share)}" for name, share in self.shares.items())
        first = next(iter(self.error))
        lost = int(self.error[first].nonfinite.sum())
        return (
            f"<{self.source} by {self.policy.name}: {units}: {shares}; "
            f"error in {first} {percent(self.error[first].overall)}"
            f"{f', {lost} non-finite' if lost else ''}>"
        )


@untraced
def mor(
    x: "ArrayLike",
    policy: str | Policy = "tensor",
    *,
    block: Cut | None = None,
    scaling: Scaling = "gam",
    threshold: Thresholds | None = None,
    threads: int | None = None,
) -> MorResult:
    """Choose a representation for each unit of `x`, and fake-quantize it.

    `policy` is "tensor", "two_way", "three_way", "nvfp4" or a `Policy` of one's own; `block` and
    `threshold` (of the mean relative error under e4m3, or a dict of thresholds by the names of
    rungs: {"nvfp4": 0.18}) take the place of the policy's. A unit that no representation is
    accepted for stays bfloat16.

    >>> import mor_ref, numpy as np
    >>> x = np.linspace(-3, 3, 64, dtype=np.float32).reshape(4, 16)
    >>> mor_ref.mor(x)
    <4x16 float32 by tensor: 1 x 4x16: e4m3 100 %, bf16 0 %; error in e4m3 2.17 %>
    >>> mor_ref.mor(x, "three_way", block=(2, 8)).choice.tolist()
    [[0, 0], [0, 0]]
    """
    rules = as_policy(policy)
    if threshold is not None:
        rules = rules.with_threshold(threshold)
    known_name("scaling", scaling, SCALINGS)
    numbers = numbers_from(x, "x")
    cut = partition(numbers.shape, rules.block if block is None else block, rules.group)
    check_group(cut, rules.group, scaling)
    units = cut.regrouped("tensor" if rules.unit == "tensor" else cut.block)
    check_unit("unit", units.group)
    return _Mixing(numbers, rules, scaling, cut, units, threads).result()


class _Mixing:
    """One call on its way."""

    def __init__(
        self,
        numbers: Numbers,
        policy: Policy,
        scaling: Scaling,
        cut: Partition,
        units: Partition,
        threads: int | None,
    ) -> None:
        from mor_ref.engine.scales import extremes

        self._numbers = numbers
        self._policy = policy
        self._scaling = scaling
        self._cut = cut
        self._units = units
        self._threads = threads
        self._extremes = extremes(numbers, cut, threads)
        self._output = np.empty(numbers.bits.size, np.uint16)

    def result(self) -> MorResult:
        from mor_ref.engine.blocks import over_groups
        from mor_ref.engine.policies import first_accepting
        from mor_ref.engine.scales import Extremes, amin_of_groups

        tried = {name_of(r): self._try(r) for r in self._policy.tried}
        sums = {
            name: over_groups(_entries(found.error), self._units, np.add)
            for name, (found, _) in tried.items()
        }
        extremes = Extremes(
            over_groups(self._extremes.amax, self._units, np.maximum),
            amin_of_groups(self._extremes.amin, self._units),
        )
        rungs = self._policy.ladder
        choice = first_accepting(
            [_accepted(rung, sums, extremes) for rung in rungs],
            [sums[name_of(rung.representation)] for rung in rungs],
        )
        self._write_output(choice, tried)
        return MorResult(
            self._policy,
            self._policy.names,
            choice,
            self._output.reshape(self._numbers.shape),
            {name: error_sums(found) for name, found in sums.items()},
            {name: found for name, (found, _) in tried.items()},
            extremes.amax.view(np.float32),
            extremes.amin.view(np.float32),
            Partition(self._units.rows, self._units.columns, self._units.group, self._units.group),
            describe(self._numbers.shape, self._numbers.dtype),
        )

    def _try(self, representation: str | Format) -> "tuple[Representation, TileScales]":
        """The tensor under a representation, and its scales for the engine.

        What the first rung gives is written as output at once.
        """
        is_first = name_of(representation) == self._policy.names[0]
        out = self._output if is_first else None
        if representation == NVFP4:
            return nvfp4_with(self._numbers, PROFILES["te"], (1, 16), self._cut, out, self._threads)
        fmt = scaled_format(representation)
        return quantized_with(
            self._numbers, fmt, self._scaling, self._cut, self._extremes.amax, out, self._threads
        )

    def _write_output(
        self, choice: NDArray[np.uint8], tried: "dict[str, tuple[Representation, TileScales]]"
    ) -> None:
        """Every unit that did not take the first rung, whose output is there already."""
        from mor_ref.engine.policies import keep, render

        units = Partition(self._cut.rows, self._cut.columns, self._units.group, self._units.group)
        for rung, name in enumerate(self._policy.names[1:-1], start=1):
            found, scales = tried[name]
            codes = found.codes.reshape(-1)
            render(codes, found.fmt, scales, units, choice, rung, self._output, self._threads)
        fallback = len(self._policy.ladder)
        keep(self._numbers, units, choice, fallback, self._output, self._threads)


def _entries(errors: ErrorSums) -> NDArray[np.uint64]:
    return np.stack([errors.sum, errors.nonzero, errors.nonfinite], axis=-1)


def _accepted(rung: Rung, sums: dict[str, NDArray[np.uint64]], extremes: "Extremes") -> "Accepted":
    """Which units the metric of a rung accepts."""
    from mor_ref.engine.policies import fits_range, is_below, is_not_worse

    own = sums[name_of(rung.representation)]
    match rung.metric:
        case MeanRelativeError() as metric:
            return is_below(own, metric.limit)
        case NotWorseThan(yardstick):
            return is_not_worse(own, sums[name_of(yardstick)])
        case FitsRange(fmt):
            return fits_range(own, extremes, as_format(fmt))
