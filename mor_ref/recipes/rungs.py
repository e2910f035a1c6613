"""The rungs of a policy as operations, so that their codes and scales can be stored."""

from mor_ref.definitions.blocks import as_cut
from mor_ref.recipes.recipe_text import as_policy
from mor_ref.representations import Asked, asked_of


def rungs_of(asked: Asked) -> dict[str, Asked]:
    """Return the operations of the representations that a policy tries, by their names.

    There is none if the operation has no policy. A representation that is not an operation is left
    out.

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
        rung = asked_of(one, given["scaling"], as_cut("block", given["block"]), policy.group)
        if rung is not None:
            found[one.name] = Asked(rung.operation, {**rung.parameters, **source})
    return found
