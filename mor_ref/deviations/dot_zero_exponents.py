"""Dot products that differ: exponents of products and groups that are zero."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from mor_ref.definitions.dot import DotProfile
from mor_ref.deviations.deviation import Change, Deviation, deviation
from mor_ref.deviations.domains import DOTS, IN_SCALED_DOTS
from mor_ref.exact import dot_amd, dot_nvidia
from mor_ref.exact.dot_terms import Product, Term, cut, fraction_bits

Reference = Callable[..., Any]


def _changes(has_exponent: Callable[[Product], bool]) -> tuple[Change, ...]:
    """Return the steps in which products have the exponent of their factors, if this says so."""

    def product(reference: Reference, one: Product, profile: DotProfile) -> Term:
        found: Term = reference(one, profile)
        exponents = one.a.exponent, one.b.exponent, one.scale_a.exponent, one.scale_b.exponent
        return Term(found.value, sum(exponents)) if has_exponent(one) else found

    def group(reference: Reference, part: list[Product], profile: DotProfile) -> Term:
        found: Term = reference(part, profile)
        exponent = part[0].scale_a.exponent + part[0].scale_b.exponent
        return Term(found.value, exponent) if any(map(has_exponent, part)) else found

    def products(
        reference: Reference, part: list[Product], profile: DotProfile
    ) -> tuple[Fraction, int | None]:
        exponents = [one.a.exponent + one.b.exponent for one in part if has_exponent(one)]
        if not exponents:
            return Fraction(0), None
        del reference
        unit = max(exponents) - fraction_bits(profile)
        values = (Fraction(one.element_product) for one in part)
        return sum(cut(value, unit) for value in values) * Fraction(2) ** unit, max(exponents)

    return (
        Change(dot_nvidia.term_of_product, product),
        Change(dot_nvidia.term_of_group, group),
        Change(dot_amd.cut_products, products),
    )


def _zeros_are_of(operand: str) -> Deviation:
    """Return the deviation in which the test for zero reads only one operand."""
    return Deviation(
        f"dot_zeros_are_of_{operand}",
        f"A product counts as zero only if its element of {operand} is zero.",
        ("DOT-007", "DOT-009", "DOT-017"),
        DOTS,
        _changes(lambda one: bool(getattr(one, operand).value != 0)),
    )


DOT_ZEROS_ARE_OF_A, DOT_ZEROS_ARE_OF_B = map(_zeros_are_of, "ab")


DOT_ZEROS_KEEP_EXPONENTS = Deviation(
    "dot_zeros_keep_exponents",
    "A product that is zero has the sum of the exponents of its factors; a filling zero has 0.",
    ("DOT-007", "DOT-009", "DOT-017"),
    DOTS,
    _changes(lambda _: True),
)


@deviation(dot_nvidia.term_of_group, rules=("DOT-009",), domain=IN_SCALED_DOTS)
def dot_cancelled_groups_have_e0(
    reference: Reference, group: list[Product], profile: DotProfile
) -> Term:
    """A group has the exponent e0 if its sum is zero, also if its products are not."""
    found: Term = reference(group, profile)
    return found._replace(exponent=profile.zero_exponent) if found.value == 0 else found


DEVIATIONS = tuple(value for value in tuple(globals().values()) if isinstance(value, Deviation))
