"""Mistakes of amaxes: of tensors and blocks, of NVFP4, and of MX, and of all three."""

from collections.abc import Iterator

from mor_ref.exact import mx, nvfp4, scales
from mor_ref.mistakes.mistake import Mistake
from mor_ref.mistakes.operators_of_blocks import OPERATORS_OF_BLOCKS
from mor_ref.mistakes.source import sites_of

_STEPS = (scales.amax, nvfp4.amax_of, mx.amax_of)
# Operators that are the rule itself in a step, or change nothing there.
_NO_MISTAKES = {
    "SCL-001": ("infinities-left-out",),  # they do not count
    # A block with a NaN has the scale NaN, whatever its amax is.
    "MXS-002": ("nan-blanks", "nan-of-first"),
}


def mistakes_of_amaxes() -> Iterator[Mistake]:
    """Yield the mistakes of amaxes: of one step, and of all."""
    sites = [site for step in _STEPS for site in sites_of(step)]
    for operator in OPERATORS_OF_BLOCKS["measured"]:
        there = [site for site in sites if operator.name not in _NO_MISTAKES.get(site.rule, ())]
        yield from (Mistake((site,), operator) for site in there)
        yield Mistake(tuple(there), operator)
