"""Suites of a user's block formats and policies, each made from its text alone."""

from collections.abc import Mapping
from typing import Any

from mor_ref.definitions.block_formats import BlockFormat, parameters_of_blocks
from mor_ref.golden.model.suite import Suite
from mor_ref.golden.suites import block_formats, own_policies
from mor_ref.golden.suites.block_formats import block_format_of_suite, suite_of
from mor_ref.golden.suites.own_policies import parameters_of_policy, policy_of, suite_of_policy
from mor_ref.recipes import Mor, as_policy

Own = BlockFormat | Mor  # a policy has its blocks and its kind of scales in a recipe


def name_of_own(own: Own) -> str:
    """Return the name of a block format, or of a policy, which its suite has."""
    return own.name if isinstance(own, BlockFormat) else policy_of(own).name


def suite_of_own(own: Own) -> Suite:
    """Return the suite of a block format or of a policy."""
    return suite_of(own) if isinstance(own, BlockFormat) else suite_of_policy(own)


def own_of_suite(name: str, entry: Mapping[str, Any]) -> Own | None:
    """Return what the suite of an entry was made for; None if it was for neither.

    A policy with thresholds by kind is that of the first kind.
    """
    if entry["operation"] == own_policies.OPERATION:
        first = next(iter(entry["cases"].values()))
        policy = as_policy(first["policy"])
        if policy.name != name:
            return None
        block = first["block"]
        cut = tuple(block) if isinstance(block, list) else block
        scaling = {"scaling": first["scaling"]} if policy.uses_scaling else {}
        return Mor(policy, cut, **scaling)
    return block_format_of_suite(name, entry)


def is_made_for(own: Own, entry: Mapping[str, Any]) -> bool:
    """Return whether an entry of a manifest is of the suite of a block format or a policy."""
    wanted = (
        [parameters_of_blocks(own)]
        if isinstance(own, BlockFormat)
        else [*parameters_of_policy(own).values()]
    )
    given = [_without_source(parameters) for parameters in entry["cases"].values()]
    operation = block_formats if isinstance(own, BlockFormat) else own_policies
    return entry["operation"] == operation.OPERATION and _distinct(given) == _distinct(wanted)


def _without_source(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in parameters.items() if name != "source"}


def _distinct(rows: list[Any]) -> set[str]:
    return {repr(sorted(row.items())) for row in rows}
