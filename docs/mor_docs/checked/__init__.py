"""Which golden vectors check which formulas of the rules; a module for each group of chapters."""

from mor_docs.checked import block_scales, formats, policies, scales
from mor_docs.checked.check import Check

CHECKS: tuple[Check, ...] = (
    *formats.CHECKS,
    *scales.CHECKS,
    *block_scales.CHECKS,
    *policies.CHECKS,
)
