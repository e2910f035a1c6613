"""All causes by their ids: mistakes of the model, and deviations that are written by hand."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain

from mor_ref.deviations import DEVIATIONS, Deviation
from mor_ref.deviations.domains import (
    ACCEPTANCE,
    ANY_OVERFLOWS,
    ASKED_TO_ENCODE,
    DECISIONS,
    DECODED,
    ENCODED,
    IN_MX,
    IN_NVFP4,
    IN_POWERS,
    IN_SCALES,
    IN_UNIT_SUMS,
    MX_DECODED,
    NANS_IN_BINARY32,
    NVFP4,
    NVFP4_4OVER6,
    OWN_SCALES,
    POLICY_SUITES,
    ROUNDED,
    SCALED,
    STOCHASTIC,
    THAT_LOSE_NOTHING,
    joined,
)
from mor_ref.mistakes.amaxes import mistakes_of_amaxes
from mor_ref.mistakes.encoding import mistakes_of_encoding
from mor_ref.mistakes.mistake import Mistake
from mor_ref.mistakes.mx import mistakes_of_mx
from mor_ref.mistakes.nvfp4 import mistakes_of_nvfp4
from mor_ref.mistakes.policies import mistakes_of_policies
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
    "amax_without_magnitude": "SCL-001+NVF-002+MXS-002/amax-signed",
    "amax_stops_at_infinity": "SCL-001+NVF-002+MXS-002/amax-infinities-largest",
    "amax_ignores_infinity": "NVF-002+MXS-002/amax-infinities-left-out",
    "nan_blanks_amax": "SCL-001+NVF-002/amax-nan-blanks",
    "amax_has_a_floor": "SCL-001+NVF-002+MXS-002/amax-at-least-1e-12",
    "amax_in_bf16": "SCL-001+NVF-002+MXS-002/amax-in-bf16",
    "subnormal_amax_is_zero": "SCL-001+NVF-002+MXS-002/amax-flushed",
    "mx_as_floor": "MXS-003/always",
    "mx_as_ceil": "MXS-004/always",
    "mx_as_even": "MXS-005/always",
    "mx_as_rceil": "MXS-006/always",
    "mx_zero_block_is_127": "MXS-002/zeros-one",
    "mx_ignores_nan": "MXS-002/nan-left-out",
    "mx_infinity_is_nan": "MXS-002/infinities-nan",
    "mx_underflow_is_one": "MXS-006/underflow-one",
    "mx_stores_the_inverse": "MXS-002/inverse",
    "mx_log2_in_floating_point": "MXS-003/log2-in-binary32",
    "mx_rceil_by_log2": "MXS-006/log2-in-binary32",
    "mx_element_exponent_left_out": "MXS-002/largest-left-out",
    "mx_scale_by_a_shift": "MXS-008/scale-by-shift",
    "mx_products_saturate": "MXS-008/product-saturated",
    "mx_lowest_integer_is_the_next": "MXS-009/lowest-as-next",
    "mx_infinite_elements_are_nan": "MXS-009/infinities-nan",
    "mx_nan_elements_are_zero": "MXS-009/nan-zero",
    "mx_subnormal_inputs_are_zeros": "MXS-002+MXS-007/inputs-flushed",
    "mx_even_adds_to_subnormal_bits": "MXS-005/of-bits",
    "ties_away": "ENC-003/ties-away",
    "truncation": "ENC-003/truncated",
    "ties_toward_zero": "ENC-003/ties-toward-zero",
    "ties_to_odd": "ENC-003/ties-to-odd",
    "ties_toward_positive": "ENC-003/ties-toward-positive",
    "bf16_truncated": "ENC-003/bf16-truncated",
    "bf16_ties_away": "ENC-003/bf16-ties-away",
    "directed_roundings_ignore_the_sign": "ENC-003/directed-by-magnitude",
    "e8m0_rounds_down": "ENC-013/truncated",
    "stochastic_with_greater": "ENC-005/threshold-without-equals",
    "stochastic_fraction_rounded": "ENC-005/fraction-rounded",
    "stochastic_word_at_the_wrong_end": "ENC-005/word-of-32-bits",
    "stochastic_below_the_fraction": "ENC-005/word-below-fraction",
    "saturates_in_every_mode": "ENC-007/saturated",
    "no_saturation": "ENC-006/not-saturated",
    "first_code_above_is_kept": "ENC-006/first-above-kept",
    "infinity_stops_at_the_largest": "ENC-007/direction-ignored",
    "int8_reaches_128": "ENC-015/lowest-reached",
    "overflow_before_rounding": "ENC-007/judged-before-rounding",
    "rounded_through_bf16": "ENC-001/inputs-through-bf16",
    "rounded_through_f16": "ENC-001/inputs-through-f16",
    "rounded_through_f32": "ENC-001/inputs-through-f32",
    "special_cases_ignored": "ENC-016/special-cases-ignored",
    "subnormal_inputs_flushed": "ENC-002/inputs-flushed",
    "subnormal_codes_flushed": "ENC-002/subnormals-flushed",
    "negative_zero_lost": "ENC-011/negative-zero-lost",
    "nan_sign_kept": "ENC-009/nan-sign-kept",
    "nan_is_negative": "ENC-009/nan-negative",
    "signed_nan_is_negative": "ENC-007+ENC-010/nan-negative",
    "quiet_nan_of_one_bit": "ENC-009/nan-of-one-bit",
    "nan_payload_truncated": "ENC-009/nan-payload-truncated",
    "nan_swallowed_by_a_clamp": "ENC-009/nan-clamped",
    "nan_becomes_zero": "ENC-009/nan-zero",
    "subnormals_decode_to_zero": "DEC-001/subnormals-zero",
    "hidden_bit_in_subnormals": "DEC-001/subnormals-with-hidden-bit",
    "nan_codes_decode_as_numbers": "DEC-002/nan-as-number",
    "e8m0_decoded_by_a_shift": "DEC-003/by-shift",
    "negative_zero_decodes_to_zero": "DEC-001+QNT-002+NVF-010+MXS-008/negative-zero-lost",
    "nan_is_7fc00000": "ART-003/nan-7fc00000",
    "nan_is_ffc00000": "ART-003/nan-ffc00000",
    "block_scale_at_least_smallest": "NVF-002/scale-at-least-smallest",
    "block_scale_at_least_smallest_normal": "NVF-002/scale-at-least-normal",
    "zero_block_scale_is_one": "NVF-002/scale-zero-one",
    "block_scale_truncated": "NVF-002/scale-truncated",
    "block_scale_rounded_up": "NVF-002/scale-rounded-up",
    "global_scale_inverted": "NVF-003/global-exchanged",
    "global_scale_by_reciprocal": "NVF-003/global-of-reciprocal-of-amax",
    "global_decode_scale_by_division": "NVF-003/global-decode-by-division",
    "global_scale_left_out": "NVF-010/global-left-out",
    "global_scale_applied_twice": "NVF-010/global-twice",
    "block_scale_applied_twice": "NVF-010/tile-twice",
    "encode_scale_by_division": "NVF-004/factors-encode-by-division",
    "nvfp4_divides": "NVF-010/by-decode",
    "nibbles_swapped": "NVF-011/swapped",
    "errors_summed_from_the_right": "NVF-006/sum-from-right",
    "rows_summed_one_by_one": "NVF-006/sum-rows-in-turn",
    "rows_summed_in_pairs": "NVF-006/sum-rows-by-neighbours",
    "accepts_at_the_threshold": "MOR-002/with-equals",
    "mean_in_floating_point": "MOR-002/mean-in-binary32",
    "threshold_in_binary32": "MOR-002/threshold-in-binary32",
    "products_in_32_bits": "MOR-002/product-of-32-bits",
    "nothing_accepts_a_unit_of_zeros": "MOR-002/test-left-out",
    "strict_not_worse_than": "MOR-003/comparison-without-equals",
    "range_with_subnormals": "MOR-004/with-subnormals",
    "range_by_rounded_quotient": "MOR-004/by-quotient",
    "amin_of_zeros": "MOR-004/amin-of-zeros",
    "lost_elements_are_accepted": "MOR-001/losses-ignored",
    "fallback_rounded_again": "MOR-006/encoded-again",
    "unit_sums_in_binary32": "MOR-009/in-binary32",
    "unit_sums_in_binary64": "MOR-009/in-binary64",
    "unit_sums_lose_carries": "MOR-009/carries-lost",
    "noise_of_unrounded_distances": "MOR-009/noise-of-unrounded-distances",
    "subnormal_numbers_are_not_summed": "MOR-009/subnormals-left-out",
    "products_without_signs": "MOR-009/products-without-signs",
    "last_numbers_are_not_summed": "MOR-009/tail-left-out",
    "infinite_errors_are_left_out": "MOR-009/infinite-left-out",
    "frobenius_at_the_threshold": "MOR-010/comparison-with-equals",
    "frobenius_by_a_root": "MOR-010/root-in-binary64",
    "sqnr_above_the_threshold": "MOR-011/comparison-without-equals",
    "sqnr_by_a_logarithm": "MOR-011/decibels-in-binary64",
    "cosine_above_the_threshold": "MOR-012/threshold-without-equals",
    "cosine_by_a_root": "MOR-012/root-in-binary64",
    "cosine_of_either_sign": "MOR-012/guard-left-out",
    "largest_at_the_threshold": "MOR-013/comparison-with-equals",
    "largest_by_unit": "MOR-013/of-unit",
    "largest_without_the_last_row": "MOR-013/last-row-left-out",
    "part_of_amax_in_binary32": "MOR-013/limit-in-binary32",
    "units_of_zeros_are_refused": "MOR-010+MOR-011+MOR-012/zeros-refused",
}


# The suites that reach what a rule says; the others of a chapter have those of its first letters.
_REACHED: Mapping[str, tuple[str, ...]] = {
    "SCL-001": (*IN_SCALES, *joined("AMAXES")),
    "SCL": OWN_SCALES,
    "GAM": OWN_SCALES,
    "NVF-006": ("nvfp4_blocks", *NVFP4_4OVER6, "nvfp4_large"),
    "NVF-007": ("nvfp4_blocks", "nvfp4_torchao"),
    "NVF-008": ("nvfp4_blocks", "nvfp4_modelopt"),
    "NVF-009": ("nvfp4_blocks", "nvfp4_compressed_tensors"),
    "NVF-011": NVFP4,
    "NVF": IN_NVFP4,
    "MXS-008": (*MX_DECODED, *IN_MX),
    "MXS-009": MX_DECODED,
    "MXS": IN_MX,
    "ENC-003": ROUNDED,
    "ENC-005": STOCHASTIC,
    "ENC-006": ANY_OVERFLOWS,
    **dict.fromkeys(("ENC-007", "ENC-008", "ENC-010"), ASKED_TO_ENCODE),
    **dict.fromkeys(("ENC-012", "ENC-013", "ENC-014"), IN_POWERS),
    "ENC-015": (*STOCHASTIC, "encode", *IN_MX),
    "ENC-016": ASKED_TO_ENCODE,
    "ENC": ENCODED,
    "QNT": SCALED,
    "DEC": DECODED,
    "ART": NANS_IN_BINARY32,
    "MOR-001": THAT_LOSE_NOTHING,
    "MOR-006": POLICY_SUITES,
    "MOR-009": IN_UNIT_SUMS,
    **dict.fromkeys(("MOR-010", "MOR-011", "MOR-012", "MOR-013"), ACCEPTANCE),
    "MOR": DECISIONS,
}


def _domain(rules: Iterable[str]) -> tuple[str, ...]:
    """Return the suites that reach mistakes in some rules."""
    suites = (_REACHED.get(rule, _REACHED[rule[:3]]) for rule in rules)
    return tuple(dict.fromkeys(chain.from_iterable(suites)))


def _mistakes() -> Iterator[Mistake]:
    yield from mistakes_of_encoding()
    yield from mistakes_of_scales()
    yield from mistakes_of_amaxes()
    yield from mistakes_of_mx()
    yield from mistakes_of_nvfp4()
    yield from mistakes_of_policies()


def _modelled() -> dict[str, Deviation]:
    """Return the wrong programs of modelled chapters."""
    former = {now: name for name, now in FORMER_IDS.items()}
    found = {}
    for mistake in _mistakes():
        one = mistake.deviation
        said = f" Its name in golden/v1: {former[one.name]}." if one.name in former else ""
        summary = f"{one.summary}{said}"
        found[one.name] = replace(one, summary=summary, domain=_domain(one.rules))
    return found


MODELLED = _modelled()
CAUSES: dict[str, Deviation] = {**DEVIATIONS, **MODELLED}


def id_of(name: str) -> str:
    """Return the id of a cause, given its id or its name in golden/v1."""
    return FORMER_IDS.get(name, name)
