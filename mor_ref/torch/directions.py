"""Tensors that are read the other way: policies and blocks of the transpose."""

from dataclasses import replace
from typing import Any

from mor_ref.definitions.blocks import Cut
from mor_ref.policies import Policy
from mor_ref.representations import is_turnable

_TURNED = {"tensor": "tensor", "row": "column", "column": "row"}


def turned(policy: Policy, cut: Cut) -> tuple[Policy, Cut] | None:
    """Return the policy and the block of the transpose; None if it has to be laid out anew."""
    if not all(is_turnable(one) for one in policy.tried):
        return None
    return replace(policy, group=_turned(policy.group)), _turned(cut)


def _turned(cut: Cut) -> Any:
    return _TURNED[cut] if isinstance(cut, str) else cut[::-1]
