"""Units under a policy, number by number: what each rung makes of them, and what is asked of it."""

from mor_docs.shown.markup import binary32, code_hex, number, table
from mor_ref import formats
from mor_ref.exact.policies import mix
from mor_ref.exact.quantization import error_term
from mor_ref.partition import partition
from mor_ref.recipes import NVFP4, POLICIES, MeanRelativeError, Policy, name_of


def unit(name: str, *given: str) -> str:
    """One unit: codes, errors and the output in bits, and then each rung (MOR-001, MOR-002)."""
    policy, row = POLICIES[name], binary32(given)
    found = mix([row], policy, "gam", partition((1, len(row)), block="tensor"))
    decision = found.decisions[0, 0]
    head, rows = ["x"], [[number(x)] for x in row]
    for tried, elements in found.tried.items():
        fmt = formats["e2m1" if tried == NVFP4 else tried]
        head += [f"{tried} code", "y", "u"]
        for x, element, cells in zip(row, elements[0], rows, strict=True):
            u = str(error_term(x, element.y).u) if x else "—"
            cells += [code_hex(element.code, fmt), number(element.y), u]
    for code, cells in zip(found.output[0], rows, strict=True):
        cells.append(code_hex(code, formats["bf16"]))
    asked = [
        _asked(policy, rung, *(decision.errors[name].sum, decision.errors[name].nonzero))
        for rung, name in enumerate(policy.names[:-1])
    ]
    taken = f"The unit takes **{policy.names[decision.choice]}** (choice {decision.choice})."
    shown = table([*head, "output, bf16"], rows)
    return f":::{{div}} codes\n{shown}:::\n\n{'; '.join(asked)}. {taken}\n"


def _asked(policy: Policy, rung: int, total: int, nonzero: int) -> str:
    """What the metric of a rung compares, with its numbers."""
    metric = policy.ladder[rung].metric
    if not isinstance(metric, MeanRelativeError):
        raise TypeError(f"{policy.name} asks for another thing than a mean")
    bound = metric.limit * nonzero
    sign = "<" if total < bound else "≥"
    name = name_of(policy.ladder[rung].representation)
    return f"{name}: sum = {total} {sign} {metric.limit} · {nonzero} = {bound}"
