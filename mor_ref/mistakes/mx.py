"""Mistakes of MX: the sites of its steps, and the operators there."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from mor_ref.exact import mx
from mor_ref.mistakes.mistake import Mistake
from mor_ref.mistakes.operators_of_blocks import OPERATORS_OF_BLOCKS, always
from mor_ref.mistakes.source import SourceSite, alike, sites_of

_STEPS = (mx.scale_code, mx.shared_exponent, mx.quantize_element, mx.restored)
_OF_ANY_CODES = mx.decoded  # codes that no quantizer makes have mistakes of their own
RULES: Mapping[str, str] = {
    "floor": "MXS-003",
    "ceil": "MXS-004",
    "even": "MXS-005",
    "rceil": "MXS-006",
}
_SCALE_OF_254 = "The factor 2^127 is not the inverse of a scale there: it is the scale of code 254."

# Pairs of a site and an operator that are no mistake of their own, each with the reason.
NO_MISTAKES: Mapping[str, str] = {
    "MXS-002/inputs-flushed": "It is MXS-002/amax-flushed.",
    "MXS-003/of-bits": "A subnormal block_amax has the code 0, with each exponent below -126.",
    "MXS-005/natural-logarithm": "Under even, MXS-005/log2-in-binary32 stands for all logarithms.",
    "MXS-004/infinity-as-largest": "The largest number has the exponent 128 under ceil.",
    "MXS-005/infinity-as-largest": "The largest number has the exponent 128 under even.",
    "MXS-003+MXS-004+MXS-005/infinity-as-largest": "It is MXS-003/infinity-as-largest.",
    "MXS-007/product-saturated": "A finite number under its scale is not far above its format.",
    "MXS-003/threshold-without-equals": "Under floor, no amax is rounded.",
    **{
        f"{rule}/threshold-one-bit-{more}": "Only even rounds block_amax to some bits."
        for rule in ("MXS-003", "MXS-004")
        for more in ("more", "less")
    },
    **{
        f"{rules}/power-{name}": _SCALE_OF_254
        for rules in ("MXS-008", "MXS-007+MXS-008")
        for name in ("at-most-inverse-of-normal", "one-for-code-0", "inverse-of-flushed")
    },
}


@dataclass(frozen=True)
class _Under:
    """Whether a step, whose last argument is a scale rule, is called with one rule."""

    rule: str

    def __call__(self, *arguments: object) -> bool:
        return arguments[-1] == self.rule


def mistakes_of_mx() -> list[Mistake]:
    """Return the mistakes of MX, each once."""
    return [
        mistake for mistake in pairs_of_sites_and_operators() if mistake.name not in NO_MISTAKES
    ]


def pairs_of_sites_and_operators() -> Iterator[Mistake]:
    """Yield each operator at each site, under one rule where rules differ, and at alike sites."""
    sites = [site for step in _STEPS for site in sites_of(step) if site.kind != "value"]
    sites += [site for site in sites_of(_OF_ANY_CODES) if site.kind == "value"]
    for site in sites:
        yield from (
            Mistake(there, operator)
            for there in _under_rules(site)
            for operator in OPERATORS_OF_BLOCKS[site.kind]
        )
        if site.kind == "code":
            for rule, number in RULES.items():
                yield Mistake((replace(site, rule=number),), always(rule))
    for same in alike(sites):
        yield from (Mistake(same, operator) for operator in OPERATORS_OF_BLOCKS[same[0].kind])


def _under_rules(site: SourceSite) -> Iterator[tuple[SourceSite, ...]]:
    """Yield a site under each scale rule that has an exponent, and under all of them."""
    if site.step is not mx.shared_exponent:
        yield (site,)
        return
    under = {
        rule: replace(site, rule=number, where=_Under(rule))
        for rule, number in RULES.items()
        if rule != "rceil"
    }
    for rule, there in under.items():
        yield (replace(there, words=f"under {rule},"),)
    if site.kind == "exponent":
        yield (*under.values(),)
