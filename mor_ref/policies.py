"""Rungs and policies as data (MOR)."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, cast

from mor_ref.argument_checks import check_name, known_name
from mor_ref.definitions.blocks import Cut, as_cut
from mor_ref.definitions.catalogue import Catalogue
from mor_ref.definitions.roles import Role
from mor_ref.definitions.scales import Scaling, scaling_or_usual
from mor_ref.metrics import (
    ByTensor,
    FitsRange,
    FunctionMetric,
    MeanRelativeError,
    Metric,
    NotWorseThan,
    Threshold,
    WithThreshold,
)
from mor_ref.metrics.metric import accepts
from mor_ref.metrics.squares import OfSums
from mor_ref.metrics.thresholds import is_by_tensor, threshold_for
from mor_ref.metrics.unit import NumbersOfUnit, units_of
from mor_ref.representations import (
    Representation,
    RepresentationLike,
    as_representation,
    uses_blocks,
)

# Of the e4m3 rung, or by the names of rungs; each may be a table by the roles of tensors.
Thresholds = Threshold | Mapping[str, Threshold | ByTensor]

PREFIX = "mor:"  # of the names of policies among recipes
MEANT_BY_THRESHOLD = "e4m3"  # the rung, if a threshold has no name


@dataclass(frozen=True)
class Rung:
    """A representation and the metric by which a unit takes it.

    The metric may be a function of a `Unit`, or of a unit and a state.

    >>> Rung("mxfp8", MeanRelativeError(0.03)).representation.block
    32
    >>> Rung("mxfp8", lambda unit: unit.sqnr > 25).name
    'mxfp8'
    """

    representation: Representation
    metric: Metric

    def __init__(
        self,
        representation: RepresentationLike,
        metric: Metric | Callable[..., object],
    ) -> None:
        """`representation` is a name, a scaled format, a function or a record (MOR-007)."""
        object.__setattr__(self, "representation", as_representation(representation))
        object.__setattr__(self, "metric", _as_metric(metric))

    @property
    def name(self) -> str:
        """The name of its representation."""
        return self.representation.name

    def accepts(
        self,
        own: Any,
        errors: Mapping[str, Any],
        amax: float,
        amin: float,
        numbers: Mapping[str, NumbersOfUnit] | None = None,
        index: tuple[int, int] = (0, 0),
    ) -> bool:
        """Return whether the metric accepts a unit that loses nothing."""
        units = units_of({**errors, self.name: own}, amax, amin, numbers, index)
        return accepts(self.metric, units[self.name], units, amax, amin)

    @property
    def takes_threshold(self) -> bool:
        """Whether it is the rung that a threshold without a name is given for."""
        return self.name == MEANT_BY_THRESHOLD and isinstance(self.metric, MeanRelativeError)


def _as_metric(given: object) -> Metric:
    """Return the metric that is given, by itself or by its function."""
    is_class = isinstance(given, type)
    # isinstance reads each member in Python 3.11, and a limit that depends on tensors has no value.
    if Metric in type(given).__mro__ or (isinstance(given, Metric) and not is_class):
        return cast("Metric", given)
    if callable(given) and not is_class:
        return FunctionMetric(given)
    lacks = ", which has accepts but is of no subclass of Metric"
    raise TypeError(
        f"metric is {given!r}{lacks if hasattr(given, 'accepts') and not is_class else ''}; give "
        "MeanRelativeError, RelativeFrobenius, Sqnr, Cosine, LargestByRow, NotWorseThan, "
        "FitsRange, a function of a unit, or an object of a subclass of Metric"
    )


@dataclass(frozen=True)
class Policy:
    """A ladder of rungs; a unit takes the first that accepts it, and else stays bfloat16.

    `block` is the scaling block. With gam scaling, a `group` shares a mantissa. `unit` is "tensor"
    or "block": there is a decision for each.

    >>> Policy("mine", (Rung("e5m2", MeanRelativeError("0.1")),), unit="block").names
    ('e5m2', 'bf16')
    """

    name: str
    ladder: tuple[Rung, ...]
    unit: Literal["tensor", "block"] = "tensor"
    block: Cut = (128, 128)
    group: Cut = "tensor"

    def __post_init__(self) -> None:
        check_name(self.name)
        known_name("unit", self.unit, ("tensor", "block"))
        if not self.ladder or not all(isinstance(rung, Rung) for rung in self.ladder):
            raise TypeError(f"ladder is {self.ladder!r}; give a tuple of at least one Rung")
        if len(set(self.names)) < len(self.names):
            raise ValueError(f"ladder names {', '.join(self.names)}; give each only once")
        self._check_yardsticks()
        object.__setattr__(self, "block", as_cut("block", self.block))
        object.__setattr__(self, "group", as_cut("group", self.group))

    def _check_yardsticks(self) -> None:
        """Refuse two representations of one name, as results are found by name."""
        known: dict[str, Representation] = {}
        for one in self.mentioned:
            if not isinstance(one, Representation):
                raise TypeError(
                    f"yardsticks of a metric has {one!r}; give representations, such as "
                    "mor_ref.representations.as_representation('e5m2')"
                )
            if known.setdefault(one.name, one) != one:
                raise ValueError(
                    f"ladder has two representations named {one.name!r}; give one another name"
                )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The representations in order, the fallback last."""
        return (*(rung.name for rung in self.ladder), "bf16")

    @property
    def mentioned(self) -> tuple[Representation, ...]:
        """The representations of all rungs, and then the yardsticks."""
        yardsticks = (one for rung in self.ladder for one in rung.metric.yardsticks)
        return (*(rung.representation for rung in self.ladder), *yardsticks)

    @cached_property
    def tried(self) -> tuple[Representation, ...]:
        """Every representation that the decisions need, each once, in the order of the rungs."""
        return tuple({one.name: one for one in self.mentioned}.values())

    @cached_property
    def uses_scaling(self) -> bool:
        """Whether the kind of scales matters to a representation that it tries."""
        return any(uses_blocks(one) for one in self.tried)

    def scaling_for(self, given: Scaling | None) -> Scaling:
        """Return the kind of scales, gam if none is given; refuse one that matters to no rung."""
        scaling = scaling_or_usual(given)
        if given is not None and not self.uses_scaling:
            raise ValueError(
                f"scaling is {given!r}, but the representations of policy {self.name!r} have their "
                "own scales; omit scaling, or give a policy with a format such as e4m3"
            )
        return scaling

    def for_tensor(self, role: Role | None = None) -> "Policy":
        """Return the policy for a tensor of this role, whose metrics have one threshold each.

        Functions are given the role, and its memory. A policy for a tensor stays as it is. Without
        a role, nothing is known of the tensor.

        >>> by_kind = {"e4m3": {"*": 0.045, "gradient": 0.09}}
        >>> policy = POLICIES["tensor"].with_threshold(by_kind)
        >>> policy.for_tensor(Role(kind="gradient")).ladder[0].metric.threshold
        0.09
        """
        if not self.depends_on_role:
            return self
        known = Role() if role is None else role
        metrics = [rung.metric.for_tensor(known) for rung in self.ladder]
        rungs = zip(self.ladder, metrics, strict=True)
        return replace(self, ladder=tuple(replace(rung, metric=new) for rung, new in rungs))

    @cached_property
    def depends_on_role(self) -> bool:
        """Whether a metric is another one for another tensor."""
        return self.asks_functions or any(is_by_tensor(rung.metric) for rung in self.ladder)

    @cached_property
    def asks_by_unit(self) -> bool:
        """Whether a metric is asked unit by unit: it may read x and y."""
        return any(rung.metric.is_asked_by_unit for rung in self.ladder)

    def thresholds_for(self, role: Role) -> dict[str, Threshold]:
        """Return the threshold of each rung that has a table by roles, for a tensor (MOR-015)."""
        return {
            name: threshold_for(metric.threshold, role)
            for name, metric in _rungs_with_threshold(self).items()
            if isinstance(metric.threshold, Mapping)
        }

    @cached_property
    def asks_functions(self) -> bool:
        """Whether a metric is a function, which sees the role of a tensor."""
        return any(isinstance(rung.metric, FunctionMetric) for rung in self.ladder)

    @property
    def compares_on_host(self) -> bool:
        """Whether a metric reads sums or numbers that kernels of CUDA do not return."""
        return self.asks_functions or any(
            isinstance(rung.metric, WithThreshold)
            and not isinstance(rung.metric, OfSums)
            and rung.metric.is_asked_by_unit
            for rung in self.ladder
        )

    @property
    def needs_whole_tensors(self) -> bool:
        """Whether a tensor cannot be decided some rows at a time: a metric sees x, y or a place."""
        return self.asks_functions or (self.asks_by_unit and self.unit == "tensor")

    @property
    def has_state(self) -> bool:
        """Whether a function has a state, which `mor_ref.torch` keeps between steps (MOR-016)."""
        metrics = (rung.metric for rung in self.ladder)
        return any(isinstance(metric, FunctionMetric) and metric.has_state for metric in metrics)

    def with_threshold(self, threshold: Thresholds) -> "Policy":
        """Return the policy with other thresholds: of the e4m3 rung, or by rung (MOR-005).

        >>> POLICIES["nvfp4"].with_threshold({"nvfp4": 0.18}).ladder[0].metric
        MeanRelativeError(threshold=0.18)
        """
        given = threshold if isinstance(threshold, Mapping) else {MEANT_BY_THRESHOLD: threshold}
        known = _rungs_with_threshold(self)
        if not given:
            raise ValueError(f"threshold is {threshold!r}, which names no rung; {_advice(known)}")
        for name in given:
            if name not in known:
                raise ValueError(
                    f"threshold is given, but policy {self.name!r} has no threshold of "
                    f"{name!r}; {_advice(known)}"
                )
        metrics = {name: known[name].with_threshold(each) for name, each in given.items()}
        return replace(
            self,
            ladder=tuple(
                replace(rung, metric=metrics.get(rung.name, rung.metric)) for rung in self.ladder
            ),
        )


def _rungs_with_threshold(policy: Policy) -> dict[str, WithThreshold]:
    """Return the metrics that have a threshold, by the names of their rungs."""
    metrics = {rung.name: rung.metric for rung in policy.ladder}
    return {name: one for name, one in metrics.items() if isinstance(one, WithThreshold)}


def _advice(known: Collection[str]) -> str:
    """Return the thresholds that a policy takes, as advice."""
    if not known:
        names = [name for name in POLICIES.specified if _rungs_with_threshold(POLICIES[name])]
        return f"omit it, or give the policy {' or '.join(names)}"
    return f"give one for {' or '.join(known)}"


_MEAN = Rung("e4m3", MeanRelativeError(0.045))
_BETTER_THAN_E5M2 = Rung("e4m3", NotWorseThan("e5m2"))

# From the paper, and with NVFP4 in front (MOR-005).
POLICIES: Catalogue[Policy] = Catalogue(
    "policy",
    Policy,
    (
        Policy("tensor", (_MEAN,)),
        Policy("two_way", (_BETTER_THAN_E5M2,), unit="block"),
        Policy("three_way", (_BETTER_THAN_E5M2, Rung("e5m2", FitsRange("e5m2"))), unit="block"),
        Policy("nvfp4", (Rung("nvfp4", MeanRelativeError("0.20")), _MEAN), unit="block"),
    ),
    {  # as recipes of training have them
        "mortensor": ("tensor",),
        "mortwoway": ("two_way",),
        "morthreeway": ("three_way",),
    },
)
