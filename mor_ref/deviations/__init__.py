"""Deviations: named wrong or foreign behaviours, each with replaced steps of the exact model.

Tests show that the suites expose each of them; diagnoses name the mistakes of a candidate.
"""

from mor_ref.deviations import (
    affine,
    affine_blocks,
    affine_zeros,
    amax,
    blocks,
    decoding,
    dot,
    dot_families,
    dot_integers,
    dot_scales,
    dot_zeros,
    encoding,
    encoding_overflow,
    encoding_presets,
    encoding_rounding,
    errors,
    fp8lm,
    fp8lm_state,
    gguf,
    levels,
    matmul,
    mixed,
    mx,
    mx_torchao,
    nan_bits,
    nvfp4,
    nvfp4_four_over_six,
    packed,
    policies,
    quantization,
    scales,
    selection,
    shared,
    shared_numbers,
)
from mor_ref.deviations.deviation import Deviation, applied

DEVIATIONS: dict[str, Deviation] = {
    deviation.name: deviation
    for deviation in (
        *encoding_rounding.DEVIATIONS,
        *encoding_overflow.DEVIATIONS,
        *encoding.DEVIATIONS,
        *encoding_presets.DEVIATIONS,
        *nan_bits.DEVIATIONS,
        *decoding.DEVIATIONS,
        *amax.DEVIATIONS,
        *blocks.DEVIATIONS,
        *scales.DEVIATIONS,
        *quantization.DEVIATIONS,
        *errors.DEVIATIONS,
        *policies.DEVIATIONS,
        *nvfp4.DEVIATIONS,
        *mx.DEVIATIONS,
        *mx_torchao.DEVIATIONS,
        *gguf.DEVIATIONS,
        *nvfp4_four_over_six.DEVIATIONS,
        *dot.DEVIATIONS,
        *dot_families.DEVIATIONS,
        *dot_integers.DEVIATIONS,
        *dot_scales.DEVIATIONS,
        *dot_zeros.DEVIATIONS,
        *matmul.DEVIATIONS,
        *shared.DEVIATIONS,
        *shared_numbers.DEVIATIONS,
        *levels.DEVIATIONS,
        *affine.DEVIATIONS,
        *affine_blocks.DEVIATIONS,
        *affine_zeros.DEVIATIONS,
        *mixed.DEVIATIONS,
        *selection.DEVIATIONS,
        *packed.DEVIATIONS,
        *fp8lm.DEVIATIONS,
        *fp8lm_state.DEVIATIONS,
    )
}

__all__ = ["DEVIATIONS", "Deviation", "applied"]
