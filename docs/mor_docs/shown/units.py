"""Units with a policy, number by number: the results of each rung, and the metric's question."""

import math
from fractions import Fraction

from mor_docs.shown.markup import binary32, bits_hex, code_hex, equation, number, table
from mor_ref import formats
from mor_ref.definitions.blocks import partition
from mor_ref.exact.errors import error_term
from mor_ref.exact.policies import Decision, mix
from mor_ref.policies import POLICIES, Rung


def unit(name: str, *given: str) -> str:
    """Show one unit: codes, errors and the output in bits, and each rung (MOR-001 to MOR-004)."""
    policy, row = POLICIES[name], binary32(given)
    found = mix([row], policy, "gam", partition((1, len(row)), block="tensor"))
    bits = {one.name: one.bits for one in policy.tried}
    decision = found.decisions[0, 0]
    head, rows = ["x"], [[number(x)] for x in row]
    for tried, elements in found.tried.items():
        head += [f"{tried} code", "y", "u"]
        for x, element, cells in zip(row, elements[0], rows, strict=True):
            u = str(error_term(x, element.y).u) if x and math.isfinite(x) else "—"
            cells += [bits_hex(element.code, bits[tried]), number(element.y), u]
    for code, cells in zip(found.output[0], rows, strict=True):
        cells.append(code_hex(code, formats["bf16"]))
    answers = [asked(rung, decision) for rung in policy.ladder]
    taken = f"The unit takes **{policy.names[decision.choice]}** (choice {decision.choice})."
    shown = table([*head, "output, bf16"], rows)
    return f":::{{div}} codes\n{shown}:::\n\n{'; '.join(answers)}. {taken}\n"


def asked(rung: Rung, decision: Decision) -> str:
    """Return the decision on a rung with its numbers: those not finite, or its metric."""
    name = rung.name
    own = decision.errors[name]
    if own.nonfinite:
        return f"{name}: nonfinite = {own.nonfinite} > 0"
    unit = own, decision.errors, decision.amax, decision.amin
    accepts, found = rung.accepts(*unit), rung.metric.compared(*unit)
    if found is None:
        verdict = "accepts" if accepts else "refuses"
        return f"{name}: {f'{rung.metric.name} {verdict}' if own.nonzero else 'nonzero = 0'}"
    right = " · ".join(map(_factor, found.right))
    if len(found.right) > 1:
        bound = math.prod(found.right)
        right = f"{right} = {bound}" if isinstance(bound, int) else equation(right, bound)
    sign = found.signs[0 if accepts else 1]
    return f"{name}: {found.name} = {_factor(found.left)} {sign} {right} {found.note}".rstrip()


def _factor(x: float | Fraction) -> str:
    """Return a count, a number of a tensor, or a ratio in words."""
    if isinstance(x, Fraction):
        mantissa, exponent = math.frexp(x)
        return f"{number(2 * mantissa)} · 2^{exponent - 1}"
    return str(x) if isinstance(x, int) else number(x)
