"""Thresholds as they are written: one number, or numbers by the role of a tensor."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from difflib import get_close_matches
from fractions import Fraction
from typing import Any, Self

from mor_ref.argument_checks import hint_of, shown, text_of
from mor_ref.definitions.roles import KINDS, Role, is_layer
from mor_ref.definitions.tables import FrozenTable
from mor_ref.metrics.metric import Metric
from mor_ref.processor_modes import in_usual_modes

Threshold = float | str | Decimal | Fraction
ByTensor = Mapping[str, Threshold]  # by kinds, patterns of layers, or PATTERN:KIND (MOR-015)

_SHORT_KINDS = {"act": ("activation",), "acts": ("activation",), "grad": ("gradient",)}
_ALIKE = 0.8
_SMALLEST = -30  # as an exponent of ten
_NO_FRACTION = Fraction(0)


class WithThreshold(Metric):
    """A metric with a threshold, which may depend on the role of a tensor (MOR-015).

    A subclass is a frozen dataclass with a field `threshold`.
    """

    threshold: Threshold | ByTensor

    @property
    @abstractmethod
    def bounds(self) -> tuple[int, int, str]:
        """The bound below all thresholds, the largest, and words for both."""

    def __post_init__(self) -> None:
        """Check the threshold, or each of a table."""
        if not isinstance(self.threshold, Mapping):
            self._check(self.threshold)
            return
        if not self.threshold:
            raise ValueError("threshold is an empty table; give a number for '*'")
        for key, threshold in self.threshold.items():
            _check_key(key)
            self._check(threshold)
        object.__setattr__(self, "threshold", FrozenTable(self.threshold))

    def _check(self, threshold: Any) -> None:
        above, most, words = self.bounds
        try:
            is_threshold = above < written(threshold) <= most
        except (TypeError, ValueError, ArithmeticError):
            is_threshold = False
        if not is_threshold:
            raise ValueError(f"threshold is {shown(threshold)}; give {words}")

    def with_threshold(self, threshold: Threshold | ByTensor) -> Self:
        """Return the metric with another threshold."""
        return replace(self, threshold=threshold)  # type: ignore[type-var]  # of a dataclass

    def for_tensor(self, role: Role) -> Self:
        """Return the metric with the threshold of a tensor alone."""
        if not isinstance(self.threshold, Mapping):
            return self
        return self.with_threshold(threshold_for(self.threshold, role))

    @property
    def written(self) -> Decimal | Fraction:
        """The threshold of a tensor without a role, as it was written."""
        threshold = self.threshold
        return written(
            threshold_for(threshold, Role()) if isinstance(threshold, Mapping) else threshold
        )

    @property
    @in_usual_modes
    def value(self) -> float:
        """The threshold as people read it; decisions use the exact one."""
        return float(self.written)

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The threshold as it is written."""
        return {"threshold": str(self.threshold)}


def _check_key(key: object) -> None:
    """Refuse what is no key of a table, and what is almost a kind: no layer would fit it."""
    is_text = isinstance(key, str) and key != ""
    kind = str(key).rpartition(":")[2]
    meant = hint_of(kind, KINDS, _SHORT_KINDS) if is_text and kind not in KINDS else ""
    if (
        is_text and kind.isalpha() and kind not in KINDS and not meant
    ):  # two letters exchanged, as in wieght
        near = get_close_matches(kind, KINDS, 1, _ALIKE)
        meant = "".join(f"did you mean {one!r}? " for one in near)
    if not is_text or meant:
        raise (ValueError if is_text else TypeError)(
            f"threshold has the key {key!r}; {meant}give a kind ({', '.join(KINDS)}), a pattern "
            "of layers, or both as 'layers.0:weight'"
        )


def is_by_tensor(metric: Metric) -> bool:
    """Return whether a metric has a threshold for each role of a tensor, and so none of its own."""
    return isinstance(metric, WithThreshold) and isinstance(metric.threshold, Mapping)


def threshold_for(table: ByTensor, role: Role) -> Threshold:
    """Return the last threshold of a table that is for such a tensor (MOR-015)."""
    fitting = [threshold for key, threshold in table.items() if _is_for(key, role)]
    if not fitting:
        which = "a tensor whose kind is not known"
        if role.kind is not None:
            which = f"{'an' if role.kind == 'activation' else 'a'} {role.kind}"
        where = f" of layer {role.layer!r}" if role.layer else ""
        raise ValueError(
            f"threshold is given for {', '.join(table)}, but not for {which}{where}; give one for "
            "it, or for all others as '*', which comes first"
        )
    return fitting[-1]


def _is_for(key: str, role: Role) -> bool:
    if key in KINDS:
        return key == role.kind
    pattern, colon, kind = key.rpartition(":")
    if colon and kind in KINDS:
        return kind == role.kind and is_layer(role.layer, [pattern])
    return is_layer(role.layer, [key])


@in_usual_modes
def written(threshold: Threshold) -> Decimal | Fraction:
    """Return a threshold as it was written: a decimal, or a fraction such as "1/22"."""
    text = text_of(threshold)
    is_fraction = "/" in text or isinstance(threshold, Fraction)
    return Fraction(text) if is_fraction else Decimal(text)


def as_fraction(number: Decimal | Fraction) -> Fraction:
    """Return a threshold as a fraction; 0 if it is below 1e-30, whose digits could fill memory."""
    if isinstance(number, Decimal) and number.adjusted() < _SMALLEST:
        return _NO_FRACTION
    return Fraction(number)
