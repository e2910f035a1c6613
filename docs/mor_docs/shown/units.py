"""Units under a policy, number by number: what each rung makes of them, and what is asked of it."""

import math
from fractions import Fraction

from mor_docs.shown.markup import binary32, bits_hex, code_hex, equation, number, table
from mor_ref import formats
from mor_ref.definitions.blocks import partition
from mor_ref.definitions.formats import as_format
from mor_ref.definitions.policies import POLICIES, Rung
from mor_ref.exact.errors import error_term
from mor_ref.exact.policies import Decision, mix
from mor_ref.metrics import FitsRange, MeanRelativeError, NotWorseThan


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
    asked = [_asked(rung, decision) for rung in policy.ladder]
    taken = f"The unit takes **{policy.names[decision.choice]}** (choice {decision.choice})."
    shown = table([*head, "output, bf16"], rows)
    return f":::{{div}} codes\n{shown}:::\n\n{'; '.join(asked)}. {taken}\n"


def _asked(rung: Rung, decision: Decision) -> str:
    """Return the decision on a rung with its numbers: those not finite, or its metric."""
    name = rung.name
    own = decision.errors[name]
    if own.nonfinite:
        return f"{name}: nonfinite = {own.nonfinite} > 0"
    if not own.nonzero and not isinstance(rung.metric, NotWorseThan):
        return f"{name}: nonzero = 0"
    match rung.metric:
        case MeanRelativeError() as metric:
            bound = metric.limit * own.nonzero
            sign = "<" if own.sum < bound else "≥"
            return f"{name}: sum = {own.sum} {sign} {metric.limit} · {own.nonzero} = {bound}"
        case NotWorseThan(yardstick):
            other = decision.errors[yardstick.name].sum
            sign = "≤" if own.sum <= other else ">"
            return f"{name}: sum = {own.sum} {sign} {other} under {yardstick.name}"
        case FitsRange(fmt):
            ends = as_format(fmt)
            ratio = Fraction(ends.largest) / Fraction(ends.smallest_normal or 1)
            most = Fraction(decision.amin) * ratio
            sign = "≤" if decision.amax <= most else ">"
            mantissa, exponent = math.frexp(ratio)
            product = f"{number(decision.amin)} · {number(2 * mantissa)} · 2^{exponent - 1}"
            return f"{name}: amax = {number(decision.amax)} {sign} {equation(product, most)}"
    raise TypeError(f"metric is {rung.metric!r}, which has no words")
