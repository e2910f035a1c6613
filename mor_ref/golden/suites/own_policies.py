"""A suite for a policy, made from its text alone."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from mor_ref.definitions.blocks import Cut, in_parameters
from mor_ref.definitions.formats import formats
from mor_ref.definitions.roles import KINDS, Role
from mor_ref.exact.errors import SUMS
from mor_ref.golden.inputs.edges import Bits
from mor_ref.golden.inputs.formula_blocks import next_to_turns
from mor_ref.golden.inputs.next_to_decisions import next_to_decisions
from mor_ref.golden.inputs.shapes_of_blocks import (
    Parts,
    in_each_shape,
    with_lanes,
    with_specials,
)
from mor_ref.golden.inputs.tensors import Tensor
from mor_ref.golden.model.suite import Case, Size, Suite, suite
from mor_ref.metrics import FitsRange
from mor_ref.operations import OPERATIONS
from mor_ref.operations.fields import Field
from mor_ref.policies import POLICIES, Policy
from mor_ref.recipes import Mor, policy_text
from mor_ref.recipes.policy_text import METRIC_TYPES
from mor_ref.recipes.tensor_recipe import Situation
from mor_ref.representations import (
    REPRESENTATIONS,
    FormulaBlocks,
    Representation,
    ScaledFormat,
    formulas_of,
)

OPERATION = "mor"
_UNKNOWN = "other"  # a tensor of no kind that is known
_MOST = 1 << 11  # numbers of a tensor, as the exact model has each rung for each of them


def policy_of(recipe: Mor) -> Policy:
    """Return the policy of a recipe, with its thresholds."""
    return recipe.policy_in(Situation())


def for_each_kind(recipe: Mor) -> dict[str, Policy]:
    """Return the policies for the kinds of tensors, each once, by the names of its kinds.

    >>> from mor_ref.recipes import as_tensor_recipe
    >>> by_kind = {"e4m3": {"*": "0.045", "gradient": "0.09"}}
    >>> list(for_each_kind(Mor("tensor", threshold=by_kind)))
    ['weight_activation_other', 'gradient']
    >>> list(for_each_kind(Mor("tensor")))
    ['']
    """
    policy = policy_of(recipe)
    if not policy.depends_on_role:
        return {"": policy}
    kinds: dict[str, tuple[Policy, list[str]]] = {}
    for word, role in (*((kind, Role(kind=kind)) for kind in KINDS), (_UNKNOWN, Role())):
        try:
            own = policy.for_tensor(role)
        except ValueError:  # the table has no threshold for it
            continue
        kinds.setdefault(policy_text(own), (own, []))[1].append(word)
    return {"_".join(words): own for own, words in kinds.values()}


def parameters_of_policy(recipe: Mor) -> dict[str, Mapping[str, Any]]:
    """Return the parameters of cases but the source, by the kinds of tensors."""
    return {words: _parameters(recipe, policy) for words, policy in for_each_kind(recipe).items()}


def _parameters(recipe: Mor, policy: Policy) -> Mapping[str, Any]:
    return {
        "policy": _as_parameter(policy),
        "scaling": recipe.scales,
        "block": in_parameters(recipe.block),
    }


def _as_parameter(policy: Policy) -> str:
    """Return the name of a policy of the specification, and the text of any other."""
    text = policy_text(policy)
    is_specified = policy.name in POLICIES.specified and text == policy_text(POLICIES[policy.name])
    return policy.name if is_specified else text


def suite_of_policy(recipe: Mor) -> Suite:
    """Return the suite of a policy, with its name."""
    policy = policy_of(recipe)
    _refuse_what_no_text_carries(policy)
    calls_functions = any(
        isinstance(one, FormulaBlocks) and one.block_format.functions for one in policy.tried
    )
    of_functions = ", whose functions have one implementation" if calls_functions else ""
    names = tuple(one.name for one in policy.tried)
    sums = (f"{name}.{field}" for name in names for field in SUMS)
    about = {"MOR-001", "MOR-007", *(rung.metric.rule for rung in policy.ladder)}
    made = suite(
        policy.name,
        f"Tensors under the policy {policy.name}{of_functions}",
        OPERATION,
        (*sorted(about), *(["BLF-010"] if calls_functions else [])),
        partial(_cases, recipe),
        ("amax", "amin", *sums, "choice", "output"),
        normative=False,
        tried=names,
    )
    return replace(made, fields=tuple(_described(policy, field) for field in made.fields))


def _described(policy: Policy, field: Field) -> Field:
    """Return a field with the words of the policy."""
    if field.name == "choice":
        rungs = ", ".join(f"{place} is {name}" for place, name in enumerate(policy.names))
        return replace(field, meaning=f"the rung that each unit takes: {rungs}")
    return field


def _refuse_what_no_text_carries(policy: Policy) -> None:
    """Refuse rungs that are Python of the user, formats of --rows, and thresholds by layer."""
    for rung in policy.ladder:
        metric = rung.metric
        if METRIC_TYPES.get(metric.name) is not type(metric):
            raise ValueError(
                f"policy {policy.name!r} asks {metric.name!r} about rung {rung.name!r}, which is "
                "Python that no directory of vectors carries; give a metric of mor_ref with a "
                "threshold, or make the vectors of the rungs"
            )
        threshold = getattr(metric, "threshold", None)
        keys = [*threshold] if isinstance(threshold, Mapping) else []
        for key in keys:
            if key not in (*KINDS, "*"):
                raise ValueError(
                    f"policy {policy.name!r} has a threshold for the layers {key!r}, and vectors "
                    "are of tensors of a kind; give the thresholds of one layer, by kinds alone"
                )
        if isinstance(metric, FitsRange) and metric.bound.name not in formats.specified:
            raise _of_rows(policy, metric.bound.name)
    for one in policy.tried:
        if isinstance(one, ScaledFormat) and one.fmt.name not in formats.specified:
            raise _of_rows(policy, one.name)
        if one.name in REPRESENTATIONS and one.name not in REPRESENTATIONS.specified:
            raise _of_rows(policy, one.name)


def _of_rows(policy: Policy, name: str) -> ValueError:
    return ValueError(
        f"policy {policy.name!r} names {name!r}, a row of --rows, which no directory of vectors "
        "carries; give a block format in its place, whose text has its formats"
    )


def _cases(recipe: Mor, size: Size) -> Iterator[Case]:
    for n, (words, policy) in enumerate(for_each_kind(recipe).items()):
        parameters = _parameters(recipe, policy)
        for tensor in _tensors(recipe, policy, parameters, size, is_first=n == 0):
            name = f"{tensor.name}.{words}" if words else tensor.name
            yield Case(name, {**parameters, "source": tensor.source}, {"x": tensor.x})


def _tensors(
    recipe: Mor, policy: Policy, parameters: Mapping[str, Any], size: Size, *, is_first: bool
) -> Iterator[Tensor]:
    """Yield tensors next to the decisions of a policy, of each shape, and, once, all others."""
    parts = Parts(recipe.block, () if policy.group == recipe.block else (policy.group,), _MOST)
    yield from next_to_decisions(
        len(policy.ladder), partial(_choice, parameters), recipe.block, size
    )
    yield from in_each_shape(parts, size)
    if is_first:
        yield from with_specials(parts, size)
        yield from with_lanes(parts, size)
        yield from _next_to_turns(recipe, policy.tried, policy.group, size)


def _choice(parameters: Mapping[str, Any], x: Bits) -> int:
    """Return the rung that a tensor of one unit takes, by the exact model."""
    own = {**parameters, "source": "f32"}
    choice: Any = OPERATIONS[OPERATION].exact(own, {"x": x})["choice"]
    return int(np.ravel(choice)[0])


def _next_to_turns(
    recipe: Mor, tried: Sequence[Representation], group: Cut, size: Size
) -> Iterator[Tensor]:
    """Yield tensors next to the turns of the scales of each rung that has formulas."""
    for representation in tried:
        formulas = formulas_of(representation, recipe.scales, recipe.block, group)
        if formulas is not None:
            for tensor in next_to_turns(replace(formulas, before=()), size):
                yield tensor._replace(name=f"{representation.name}_{tensor.name}")
