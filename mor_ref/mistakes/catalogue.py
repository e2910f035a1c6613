"""All causes by their ids: mistakes of the model, and deviations that are written by hand."""

from collections.abc import Mapping
from dataclasses import replace

from mor_ref.deviations import DEVIATIONS, Deviation
from mor_ref.deviations.domains import OWN_SCALES
from mor_ref.mistakes.scales import mistakes_of_scales

# The names that golden/v1 has for mistakes of the model, which had names before they had ids.
FORMER_IDS: Mapping[str, str] = {
    "scale_by_rounded_reciprocal": "SCL-002/quotient-by-reciprocal",
    "scale_as_inverse_of_a_quotient": "SCL-002/inverted",
    "scale_truncated": "SCL-002/significand-truncated",
    "scale_by_truncated_reciprocal": "SCL-002/quotient-by-truncated-reciprocal",
    "scale_is_subnormal": "SCL-002/floor-left-out",
    "scale_aims_at_240": "SCL-002/quotient-of-ieee",
    "scale_aims_at_a_power_of_two": "SCL-002/quotient-of-power",
    "scale_overflows_to_infinity": "SCL-004/limit-left-out",
    "e8m0_scale_rounded_up": "SCL-005/ideal-rounded-up",
    "e8m0_scale_rounded_to_nearest": "SCL-005/ideal-to-nearest-power",
    "zero_block_has_scale_zero": "SCL-004+SCL-005+GAM-002/zeros-smallest",
    "gam_without_decrement": "GAM-003/comparison-never",
    "gam_decrement_at_equality": "GAM-003/comparison-with-equals",
    "gam_decrement_the_wrong_way": "GAM-003/comparison-reversed",
    "gam_clamped_before_decrement": "GAM-004/limit-first",
    "gam_mantissa_of_7_bits": "GAM-001/mantissa-of-7-bits",
    "gam_with_the_own_mantissa": "GAM-005/shared-own",
    "gam_mantissa_of_amax": "GAM-001/quotient-of-second",
    "gam_zero_block_stores_0": "GAM-002/zeros-smallest",
    "gam_zero_block_is_decremented": "GAM-005/ideal-of-zeros",
    "exponent_of_the_inverse_stored": "SCL-005+GAM-004/stored-inverse",
    "stored_exponent_has_bias_128": "SCL-005+GAM-004/stored-one-more",
}


def _modelled() -> dict[str, Deviation]:
    """Return the wrong programs of modelled chapters; the domain is the suites that reach them."""
    former = {now: name for name, now in FORMER_IDS.items()}
    found = {}
    for one in (mistake.deviation for mistake in mistakes_of_scales()):
        said = f" Its name in golden/v1: {former[one.name]}." if one.name in former else ""
        found[one.name] = replace(one, summary=f"{one.summary}{said}", domain=OWN_SCALES)
    return found


MODELLED = _modelled()
CAUSES: dict[str, Deviation] = {**DEVIATIONS, **MODELLED}


def id_of(name: str) -> str:
    """Return the id of a cause, given its id or its name in golden/v1."""
    return FORMER_IDS.get(name, name)
