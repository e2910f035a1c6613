"""Rungs and policies as data (MOR)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from mor_ref.argument_checks import check_name, known_name
from mor_ref.definitions.blocks import Cut, as_cut
from mor_ref.definitions.catalogue import Catalogue
from mor_ref.definitions.format import Format
from mor_ref.metrics import FitsRange, MeanRelativeError, Metric, NotWorseThan, Threshold
from mor_ref.metrics.metric import accepts
from mor_ref.representations import Representation, as_representation

Thresholds = Threshold | Mapping[str, Threshold]  # of the e4m3 rung, or by the names of rungs

_RUNG_MEANT = "e4m3"  # by a threshold without a name


@dataclass(frozen=True)
class Rung:
    """A representation and the metric by which a unit takes it.

    >>> Rung("mxfp8", MeanRelativeError(0.03)).representation.block
    32
    """

    representation: Representation
    metric: Metric

    def __init__(self, representation: str | Format | Representation, metric: Metric) -> None:
        """`representation` is a name, a scaled format or a record (MOR-007)."""
        object.__setattr__(self, "representation", as_representation(representation))
        object.__setattr__(self, "metric", metric)
        if not isinstance(metric, Metric):
            raise TypeError(
                f"metric is {metric!r}; give MeanRelativeError, NotWorseThan, FitsRange, or an "
                "object of a subclass of Metric"
            )

    @property
    def name(self) -> str:
        """The name of its representation."""
        return self.representation.name

    def accepts(self, own: Any, errors: Mapping[str, Any], amax: float, amin: float) -> bool:
        """Return whether the metric accepts a unit that loses nothing."""
        return accepts(self.metric, own, errors, amax, amin)

    @property
    def takes_threshold(self) -> bool:
        """Whether it is the rung that a threshold without a name is given for."""
        return self.name == _RUNG_MEANT and isinstance(self.metric, MeanRelativeError)


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

    def with_threshold(self, threshold: Thresholds) -> "Policy":
        """Return the policy with other thresholds: of the e4m3 rung, or by rung (MOR-005).

        >>> POLICIES["nvfp4"].with_threshold({"nvfp4": 0.18}).ladder[0].metric
        MeanRelativeError(threshold=0.18)
        """
        given = threshold if isinstance(threshold, Mapping) else {_RUNG_MEANT: threshold}
        metrics = {name: MeanRelativeError(each) for name, each in given.items()}
        known = _mean_rungs(self)
        if not metrics:
            raise ValueError(f"threshold is {threshold!r}, which names no rung; {_advice(known)}")
        for name in metrics:
            if name not in known:
                raise ValueError(
                    f"threshold is given, but policy {self.name!r} has no mean relative error of "
                    f"{name!r}; {_advice(known)}"
                )
        return replace(
            self,
            ladder=tuple(
                replace(rung, metric=metrics.get(rung.name, rung.metric)) for rung in self.ladder
            ),
        )


def _mean_rungs(policy: Policy) -> list[str]:
    """Return the names of the rungs that have a threshold."""
    return [rung.name for rung in policy.ladder if isinstance(rung.metric, MeanRelativeError)]


def _advice(known: list[str]) -> str:
    """Return the thresholds that a policy takes, as advice."""
    if not known:
        names = [name for name in POLICIES.specified if _mean_rungs(POLICIES[name])]
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
)


def as_policy(policy: str | Policy) -> Policy:
    """Return the policy itself, or the one of that name."""
    return policy if isinstance(policy, Policy) else POLICIES[policy]
