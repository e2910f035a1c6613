"""The texts of policies (MOR-018)."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, cast

from mor_ref.definitions.block_formats import table_of_block_format, toml_document
from mor_ref.definitions.blocks import in_parameters
from mor_ref.definitions.formats import formats
from mor_ref.definitions.tables import FrozenTable
from mor_ref.metrics import (
    METRICS,
    Always,
    Cosine,
    FitsRange,
    LargestByRow,
    MeanRelativeError,
    Metric,
    NotWorseThan,
    RelativeFrobenius,
    Sqnr,
    WithThreshold,
)
from mor_ref.policies import Policy, Rung
from mor_ref.recipes.tensor_recipe import REPRESENTATION, checked_digest
from mor_ref.representations import (
    REPRESENTATIONS,
    FormulaBlocks,
    Representation,
    ScaledFormat,
    as_representation,
    words_of,
)

LADDER = "ladder"  # the key of a table that is a policy
METRIC_TYPES: Mapping[str, type[Any]] = {
    metric.name: metric
    for metric in (
        MeanRelativeError,
        RelativeFrobenius,
        Sqnr,
        Cosine,
        LargestByRow,
        NotWorseThan,
        FitsRange,
        Always,
    )
}


def policy_text(policy: Policy) -> str:
    """Return a policy as TOML; equal policies have equal texts (MOR-018).

    >>> from mor_ref.policies import POLICIES
    >>> print(policy_text(POLICIES["three_way"]))
    name = "three_way"
    unit = "block"
    <BLANKLINE>
    [[ladder]]
    representation = "e4m3"
    metric = "not_worse_than"
    yardstick = "e5m2"
    <BLANKLINE>
    [[ladder]]
    representation = "e5m2"
    metric = "fits_range"
    fmt = "e5m2"
    <BLANKLINE>
    """
    return toml_document(table_of_policy(policy), LADDER)


def table_of_policy(policy: Policy) -> dict[str, Any]:
    """Return the fields of a policy that differ from the usual, as TOML has them."""
    table: dict[str, Any] = {"name": policy.name}
    for field in fields(policy):
        value = getattr(policy, field.name)
        if field.name not in ("name", LADDER) and value != field.default:
            table[field.name] = in_parameters(value)
    return {**table, LADDER: [_table_of_rung(rung, policy.name) for rung in policy.ladder]}


def _table_of_rung(rung: Rung, policy: str) -> dict[str, Any]:
    shown = _shown(rung.representation)
    if shown is None:
        raise ValueError(
            f"policy {policy!r} has no text, as rung {rung.name!r} has a representation that "
            "is no row; add it, or its format, first: "
            f"mor_ref.representations.REPRESENTATIONS[{rung.name!r}] = ..."
        )
    metric = _table_of_metric(rung.metric)
    if metric is None:
        raise ValueError(
            f"policy {policy!r} has no text, as the metric of rung {rung.name!r} is "
            f"{rung.metric!r}; give a metric of mor_ref, or a row of mor_ref.METRICS"
        )
    return {REPRESENTATION: shown, **metric}


def _shown(row: Representation) -> str | Mapping[str, Any] | None:
    """Return the name or the table of a representation; None if it has none."""
    if REPRESENTATIONS.known(row.name) == row and row.name not in REPRESENTATIONS.specified:
        return {REPRESENTATION: "row", "of": row.name, "code": checked_digest(row, row.name, "")}
    if isinstance(row, FormulaBlocks):
        return table_of_block_format(row.block_format)
    try:
        if as_representation(row.name) == row:
            return row.name
    except (TypeError, ValueError):
        pass
    words = words_of(row)
    if words is None or isinstance(row, ScaledFormat):  # of a format that has no name here
        return None
    return {REPRESENTATION: words.kind, **words.named, **words.others, "name": row.name}


def _table_of_metric(metric: Metric) -> dict[str, Any] | None:
    """Return the name of a metric and its arguments; None if no text has it."""
    if METRIC_TYPES.get(metric.name) is not type(metric):
        if METRICS.known(metric.name) != metric:
            return None
        return {"metric": metric.name, "code": checked_digest(metric, metric.name, "")}
    table: dict[str, Any] = {"metric": metric.name}
    for field in fields(cast("Any", metric)):
        value = getattr(metric, field.name)
        if isinstance(metric, WithThreshold):
            value = in_texts(value)
        elif isinstance(metric, NotWorseThan):
            value = _shown(value)
        elif isinstance(metric, FitsRange):
            value = metric.bound.name if formats.known(metric.bound.name) == metric.bound else None
        if value is None:
            return None
        table[field.name] = value
    return table


def in_texts(threshold: object) -> str | FrozenTable[Any]:
    """Return a threshold as a text, or a table of texts."""
    if isinstance(threshold, Mapping):
        return FrozenTable({key: in_texts(own) for key, own in threshold.items()})
    return str(threshold)


def with_thresholds_in_texts(policy: Policy) -> Policy:
    """Return a policy whose thresholds are as its text has them."""
    ladder = (
        replace(rung, metric=rung.metric.with_threshold(in_texts(rung.metric.threshold)))
        if isinstance(rung.metric, WithThreshold)
        else rung
        for rung in policy.ladder
    )
    return replace(policy, ladder=tuple(ladder))
