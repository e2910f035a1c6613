"""The rungs of a policy as operations, so that their codes and scales can be stored."""

from collections.abc import Mapping
from typing import Any

from mor_ref.definitions.blocks import Cut
from mor_ref.policies import as_policy
from mor_ref.representations import Representation, ScaledFormat
from mor_ref.treatments.of_representations import fields_of
from mor_ref.treatments.rows import Scaled, in_parameters
from mor_ref.treatments.treatment import Asked


def rungs_of(asked: Asked) -> dict[str, Asked]:
    """Return the operations of the representations that a policy tries, by their names.

    There is none if the operation has no policy. A representation that no operation is, such as one
    of a user, is left out.

    >>> policy = {"policy": "nvfp4", "scaling": "gam", "block": [64, 64]}
    >>> [(name, one.operation) for name, one in rungs_of(Asked("mor", policy)).items()]
    [('nvfp4', 'nvfp4'), ('e4m3', 'quantize')]
    """
    given = asked.parameters
    if "policy" not in given:
        return {}
    policy = as_policy(given["policy"])
    source = {"source": given["source"]} if "source" in given else {}
    found = {}
    for one in policy.tried:
        rung = _operation(one, given, policy.group)
        if rung is not None:
            found[one.name] = Asked(rung.operation, {**rung.parameters, **source})
    return found


def _operation(one: Representation, given: Mapping[str, Any], group: Cut) -> Asked | None:
    """Return the operation of a representation under the parameters of a policy."""
    if isinstance(one, ScaledFormat):
        asked = Scaled(one.name, given["block"], given["scaling"]).asked
        return Asked(asked.operation, {**asked.parameters, "group": in_parameters(group)})
    found = fields_of(one)
    return None if found is None else found.kind(**found.named, **found.others).asked
