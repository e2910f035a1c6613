"""Mistakes of scales: the sites of their steps, and the operators there."""

from collections.abc import Iterator, Mapping

from mor_ref.exact import scales
from mor_ref.mistakes.mistake import Mistake, Place
from mor_ref.mistakes.operators import OPERATORS
from mor_ref.mistakes.source import alike, sites_of

_STEPS = (
    scales.ideal_scale,
    scales.group_mantissa,
    scales.scale_of_block,
    scales.fp32_scale,
    scales.e8m0_scale,
    scales.gam_scale,
)
_OF_GROUPS = Place(scales.group_mantissa, "GAM-001", "for the shared mantissa,")
_OF_MANTISSAS = ("quotient", "significand")


# Pairs of a site and an operator that are no mistake of their own, each with the reason.
NO_MISTAKES: Mapping[str, str] = {
    "SCL-004/ideal-of-zeros": "A block of zeros has the scale 1 (SCL-004).",
    "SCL-005/ideal-of-zeros": "A block of zeros has the scale 1 (SCL-005).",
    "SCL-005/ideal-rounded-down": "An e8m0 scale is the power of two below the ideal scale.",
    "SCL-004+SCL-005+GAM-005/ideal-of-zeros": "It is GAM-005/ideal-of-zeros.",
    "GAM-001/quotient-in-binary32": "It is SCL-002/quotient-in-binary32: an exponent ends at 127.",
}


def mistakes_of_scales() -> list[Mistake]:
    """Return the mistakes of scales, each once."""
    return [
        mistake for mistake in pairs_of_sites_and_operators() if mistake.name not in NO_MISTAKES
    ]


def pairs_of_sites_and_operators() -> Iterator[Mistake]:
    """Yield each operator at each site, in groups alone, and at all alike sites."""
    sites = [site for step in _STEPS for site in sites_of(step)]
    for site in sites:
        yield from (Mistake((site,), operator) for operator in OPERATORS[site.kind])
    for site in sites:
        if site.step is scales.ideal_scale and site.kind in _OF_MANTISSAS:
            for operator in OPERATORS[site.kind]:
                yield Mistake((site,), operator, _OF_GROUPS)
    for same in alike(sites):
        yield from (Mistake(same, operator) for operator in OPERATORS[same[0].kind])
