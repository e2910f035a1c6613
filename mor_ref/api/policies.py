"""MoR itself: the public function and its record."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.api.border import public
from mor_ref.api.decoding import decode
from mor_ref.api.dequantization import Tried
from mor_ref.api.errors import ErrorSums, error_sums, percent
from mor_ref.api.plans import Plans
from mor_ref.arrays import (
    BF16,
    Bits,
    Numbers,
    copied_to,
    dequantized_dtype,
    described,
    numbers_from,
    room_for,
)
from mor_ref.definitions.blocks import Cut, CutLike, Partition, check_unit, is_plain, partition
from mor_ref.definitions.scales import (
    WHOLE,
    GivenAmaxes,
    Scaling,
    ScalingBlocks,
    check_group,
)
from mor_ref.metrics.metric import asked_by_unit
from mor_ref.policies import Policy, Thresholds
from mor_ref.recipes import as_policy
from mor_ref.records import NumbersRecord, Values, made_later
from mor_ref.tracing import untraced

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from mor_ref.engine.policies import Errors
    from mor_ref.engine.scales import Extremes
    from mor_ref.engine.unit_sums import NumbersOfUnits

_CODE = np.dtype(np.uint16)


@dataclass(frozen=True, eq=False, repr=False)
class MorResult(NumbersRecord):
    """The result of MoR for a tensor.

    `choice` has an index into `ladder` for each unit; `output` has the shape of x and holds
    bfloat16 codes. `error` has the error sums of the units and `quantized` the tensor under every
    representation that was tried, by name. `amax` and `amin` are of the units: the largest and
    the smallest magnitude but zero. `blocks` are the scaling blocks, whose scales are of the kind
    `scaling`. Scales are in the records of `quantized`, and each record says which way they go.

    >>> import mor_ref, numpy as np
    >>> result = mor_ref.mor(np.float32([0.3, -1.1]))
    >>> result.dequantize().tolist(), np.asarray(result.quantized["e4m3"]).astype("f2").tolist()
    ([0.294921875, -1.1015625], [0.294677734375, -1.099609375])
    """

    _ENTRIES: ClassVar[str] = "output"

    policy: Policy
    ladder: tuple[str, ...]
    choice: NDArray[np.uint8]
    output: NDArray[np.uint16]
    error: dict[str, ErrorSums]
    quantized: dict[str, Any]
    amax: NDArray[np.float32]
    amin: NDArray[np.float32]
    units: Partition
    source: str
    blocks: Partition
    scaling: Scaling

    @public
    def dequantize(
        self,
        dtype: "np.typing.DTypeLike" = np.float32,
        *,
        out: NDArray[Any] | None = None,
        threads: int | None = None,
    ) -> NDArray[Any]:
        """Return the numbers of `output`, as float32 or as bfloat16; to `out`, if it is given."""
        if dequantized_dtype(dtype) == BF16:
            return copied_to(out, self.output.view(BF16))
        return decode(self.output, "bf16", out=out, threads=threads)

    @property
    @public
    def shares(self) -> dict[str, float]:
        """The share of units that took each representation; 0 for all if there are none."""
        count = max(self.choice.size, 1)
        return {
            name: np.count_nonzero(self.choice == rung) / count
            for rung, name in enumerate(self.ladder)
        }

    @property
    def codes(self) -> NDArray[np.uint16]:
        """The codes of the output, which are those of bfloat16."""
        return self.output

    def _choices(self) -> tuple[NDArray[np.uint8], tuple[str, ...]]:
        return self.choice, self.ladder

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


@public
def mor(
    x: "ArrayLike",
    policy: str | Policy = "tensor",
    *,
    block: CutLike | None = None,
    scaling: Scaling | None = None,
    threshold: Thresholds | None = None,
    out: Bits | None = None,
    threads: int | None = None,
) -> MorResult:
    """Choose a representation for each unit of `x`, and fake-quantize it.

    `policy` is "tensor", "two_way", "three_way", "nvfp4", your own `Policy`, or the text of one
    (MOR-018). `block` and `threshold` replace the values of the policy. `scaling` is the kind of
    scales of formats such as e4m3, "gam" without a word. `threshold` is the limit of the mean
    relative error with e4m3, or a dict of limits by the names of rungs: {"nvfp4": 0.18}. A unit
    that no representation accepts stays in bfloat16. `output` goes to `out`, if it is given.

    >>> import mor_ref, numpy as np
    >>> x = np.linspace(-3, 3, 64, dtype=np.float32).reshape(4, 16)
    >>> mor_ref.mor(x)
    <4x16 float32 by tensor: 1 x 4x16: e4m3 100 %, bf16 0 %; error in e4m3 2.17 %>
    >>> mor_ref.mor(x, "three_way", block=(2, 8)).choice.tolist()
    [[0, 0], [0, 0]]
    """
    rules, kind = _plans(policy, threshold, scaling)
    numbers = numbers_from(x, "x")
    _, dtype, shape = numbers
    cut = rules.block if block is None else block
    cuts = cuts_of(shape, cut, rules.group, rules.unit, kind)
    room, store = room_for(out, shape, _CODE, (numbers.bits,))
    mixed = mix(numbers, rules, kind, cuts, threads, room)
    output = store(room)

    def values() -> Values:
        yield from (rules, rules.names, mixed.choice, output)
        yield {name: error_sums(sums) for name, sums in mixed.sums.items()}
        yield {name: outcome.record for name, outcome in mixed.tried.items()}
        yield from (bits.view(np.float32) for bits in mixed.extremes)
        yield from (cuts.units, described(shape, dtype), cuts.blocks, kind)

    return made_later(MorResult, {"choice": mixed.choice, "output": output}, values)


def _plan(
    policy: str | Policy, threshold: Thresholds | None, scaling: Scaling | None
) -> tuple[Policy, Scaling]:
    rules = as_policy(policy)
    rules = rules if threshold is None else rules.with_threshold(threshold)
    return rules, rules.scaling_for(scaling)


_plans = Plans(_plan)


class Cuts(NamedTuple):
    """The partitions of a tensor that MoR needs; they do not depend on its numbers.

    `blocks` has the groups that share a mantissa, and `blocks_of_units` the same blocks, grouped
    into units.
    """

    blocks: Partition
    blocks_of_units: Partition

    @property
    def units(self) -> Partition:
        """The units."""
        return self.blocks_of_units.groups


def cuts_of(
    shape: tuple[int, ...],
    block: CutLike,
    group: Cut,
    unit: Literal["tensor", "block"],
    scaling: Scaling,
) -> Cuts:
    """Return the partitions of a tensor of that shape; refuse those that do not go together."""
    if is_plain(block):  # as the group of a policy is
        return _kept_cuts(shape, block, group, unit, scaling)  # type: ignore[arg-type]  # as they are
    return _cuts_of(shape, block, group, unit, scaling)


def _cuts_of(
    shape: tuple[int, ...],
    block: CutLike,
    group: Cut,
    unit: Literal["tensor", "block"],
    scaling: Scaling,
) -> Cuts:
    cut = partition(shape, block, group)
    check_group(cut, group, scaling)
    blocks_of_units = cut.regrouped("tensor" if unit == "tensor" else cut.block)
    check_unit("unit", blocks_of_units.group)
    return Cuts(cut, blocks_of_units)


_kept_cuts = lru_cache(maxsize=1024)(_cuts_of)  # those of calls in a loop


class Decided(NamedTuple):
    """The decisions of MoR as the engine has them; sums lie along the last axis."""

    choice: NDArray[np.uint8]
    tried: dict[str, Tried]
    sums: "dict[str, Errors]"
    extremes: "Extremes"


def mix(
    numbers: Numbers,
    policy: Policy,
    scaling: Scaling,
    cuts: Cuts,
    threads: int | None,
    output: NDArray[np.uint16],
) -> Decided:
    """Try every representation (MOR-007), choose one for each unit, and write the output."""
    decision = decided(numbers, policy, scaling, cuts, threads, output)
    _write_other_rungs(
        output, numbers, policy, decision.tried, cuts.units, decision.choice, threads
    )
    return decision


class _Engine(NamedTuple):
    """The functions of the engine that a decision takes."""

    extremes: Callable[..., Any]
    extremes_of_groups: Callable[..., Any]
    over_groups: Callable[..., Any]
    numbers_of_units: Callable[..., Any]
    note_accepted: Callable[..., None]
    keep: Callable[..., None]


@cache
def _engine() -> _Engine:
    from mor_ref.engine.blocks import over_groups  # imports Numba
    from mor_ref.engine.policies import keep, note_accepted
    from mor_ref.engine.scales import extremes, extremes_of_groups
    from mor_ref.engine.unit_sums import NumbersOfUnits

    functions = extremes, extremes_of_groups, over_groups
    return _Engine(*functions, NumbersOfUnits, note_accepted, keep)


def decided(
    numbers: Numbers,
    policy: Policy,
    scaling: Scaling,
    cuts: Cuts,
    threads: int | None,
    output: NDArray[np.uint16] | None = None,
    given: GivenAmaxes = WHOLE,
) -> Decided:
    """Try every representation, and choose one for each unit; `output` takes the first rung.

    Amaxes are given if the numbers are only some rows of a tensor.
    """
    engine = _engine()
    policy = policy.for_tensor()
    extremes_of_blocks = engine.extremes(numbers, cuts.blocks, threads)
    # Named tuples by `tuple`, as their own way of making one takes twice as long.
    known = cuts.blocks, scaling, extremes_of_blocks.amax, given
    blocks = tuple.__new__(ScalingBlocks, known)
    tried: dict[str, Tried] = {}
    first = policy.names[0]  # which most units take
    for representation in policy.tried:
        name = representation.name
        out = output if name == first else None
        tried[name] = representation.engine(numbers, blocks, out, threads)
    units = cuts.blocks_of_units
    seen = None
    if policy.asks_by_unit:
        seen = {
            name: engine.numbers_of_units(numbers, units.groups, outcome, threads)
            for name, outcome in tried.items()
        }
    sums = {name: engine.over_groups(own.sums, units, np.add) for name, own in tried.items()}
    extremes_of_units = engine.extremes_of_groups(extremes_of_blocks, units)
    choice = _choose(policy, sums, extremes_of_units, seen)
    return tuple.__new__(Decided, (choice, tried, sums, extremes_of_units))


def chosen_for_all(policy: Policy, strips: Iterable[Decided]) -> int:
    """Return the rung of a tensor that is one unit: its sums are those of its strips."""
    from mor_ref.engine.scales import Extremes  # imports Numba

    unit, sums = np.uint32(1), dict[str, Any]()
    amax, below_amin = np.zeros((1, 1), np.uint32), np.zeros((1, 1), np.uint32) - unit
    for strip in strips:
        sums = {name: added + sums.get(name, np.uint64(0)) for name, added in strip.sums.items()}
        amax = np.maximum(amax, strip.extremes.amax)
        below_amin = np.minimum(below_amin, strip.extremes.amin - unit)  # 0 stands for none
        del strip  # before the next is made
    return int(_choose(policy, sums, Extremes(amax, below_amin + unit))[0, 0])


def _choose(
    policy: Policy,
    sums: "dict[str, Errors]",
    extremes: "Extremes",
    numbers: "Mapping[str, NumbersOfUnits] | None" = None,
) -> NDArray[np.uint8]:
    """MOR-001: the index of the first rung that accepts each unit, the fallback's if none does."""
    fallback, note = len(policy.ladder), _engine().note_accepted
    choice = np.empty(extremes.amax.shape, np.uint8)
    for index, rung in enumerate(policy.ladder):
        own = sums[rung.name]
        if policy.asks_by_unit and rung.metric.is_asked_by_unit:
            accepted = asked_by_unit(
                rung.metric,
                own,
                sums,
                extremes,
                numbers=numbers,
                asked=choice == fallback if index else None,
            )
        else:
            accepted = rung.metric.engine(own, sums, extremes)
        note(choice, accepted, own, index, fallback)
    return choice


def _write_other_rungs(
    output: Bits,
    numbers: Numbers,
    policy: Policy,
    tried: dict[str, Tried],
    units: Partition,
    choice: NDArray[np.uint8],
    threads: int | None,
) -> None:
    """Write the units that did not take the first rung, whose output is there already."""
    if choice.tobytes().count(0) == choice.size:
        return
    for index, rung in enumerate(policy.ladder[1:], start=1):
        tried[rung.name].write(units, choice, index, output, threads)
    _engine().keep(numbers, units, choice, len(policy.ladder), output, threads)
