"""Which golden vectors check which formulas of the rules; a module for each group of chapters."""

from itertools import chain

from mor_docs.checked import (
    affine,
    block_scales,
    formats,
    fp8lm,
    levels,
    mixed,
    policies,
    scales,
    shared,
)
from mor_docs.checked.check import Check

_MODULES = (formats, scales, block_scales, policies, shared, levels, affine, mixed, fp8lm)
CHECKS: tuple[Check, ...] = tuple(chain.from_iterable(module.CHECKS for module in _MODULES))
