"""Whole wrong kernels whose mistake is a deviation: the diagnosis names it."""

import pytest
from wrong import REGISTERED

from mor_ref.golden import bundled_files
from mor_ref.verify.candidates.python_function import PythonFunction
from mor_ref.verify.running.run import verify
from mor_ref.verify.running.suites import suites_in

KERNELS = {kernel.name: kernel for kernel in REGISTERED}
# The deviation of each kernel, and a suite in which it explains all that differs.
NAMED = {
    "affine.zero_point_rounded_after_the_sum": (
        "affine_zero_point_rounded_after_the_sum", "affine_groups",
    ),
    "affine.fused_in_binary64": ("affine_fused_in_binary64", "affine"),
    "affine.float_zero_fused_in_binary64": ("affine_fused_in_binary64", "affine_float_zeros"),
    "affine.scaled_in_binary64": ("affine_exact_quotient", "affine_steps"),
    "affine.xs_in_bfloat16": ("affine_xs_in_bf16", "affine_groups"),
    "affine.xs_in_binary16": ("affine_xs_in_f16", "affine_groups"),
    "affine.half_added": ("affine_half_added", "affine_groups"),
    "affine.amax_is_the_maximum": ("affine_scale_of_the_maximum", "affine_groups"),
    "affine.scale_in_bfloat16": ("affine_scale_in_bf16", "affine_groups"),
    "affine.scale_in_binary16": ("affine_scale_in_f16", "affine_groups"),
    "affine.scale_up_to_a_power_of_two": ("affine_scale_up_to_a_power_of_two", "affine_groups"),
    "affine.scale_to_the_nearest_power_of_two": (
        "affine_scale_to_the_nearest_power_of_two", "affine_groups",
    ),
    "affine.scale_at_least1e5": ("affine_scale_at_least_1e_5", "affine_groups"),
    "affine.scale_at_least_eps": ("affine_scale_at_least_binary32_eps", "affine_groups"),
    "affine.range_at_least1e5": ("affine_range_at_least_1e_5", "affine_groups"),
    "fp8lm_adam.decay_added": ("fp8lm_decay_subtracted", "fp8lm_adam"),
    "fp8lm_adam.lerp": ("fp8lm_moments_by_lerp", "fp8lm_adam"),
    "fp8lm_adam.lr_for_the_rate": ("fp8lm_first_correction_left_out", "fp8lm_adam"),
    "fp8lm_adam.no_correction": ("fp8lm_second_correction_left_out", "fp8lm_adam"),
    "fp8lm_adam.no_corrections": ("fp8lm_corrections_left_out", "fp8lm_adam"),
    "fp8lm_adam.update_fused": ("fp8lm_update_fused", "fp8lm_adam"),
    "fp8lm_adam.decay_fused": ("fp8lm_decay_in_binary64", "fp8lm_adam"),
    "levels.alpha_in_bfloat16": ("levels_alpha_in_bf16", "levels_steps"),
    "levels.max_of_both_signs": ("levels_alpha_of_the_maximum", "levels"),
    "select.place_before": ("selection_place_before", "selections"),
    "select.from_one": ("selection_place_from_one", "selections"),
    "fp8lm_window.late": ("fp8lm_windows_one_step_late", "fp8lm_windows"),
}  # fmt: skip
QUICK = ["[select.place_before]", "[fp8lm_window.late]", "[affine.fused_in_binary64]"]


@pytest.mark.tier("full", but=QUICK)
@pytest.mark.parametrize("name", NAMED)
def test_the_mistake_of_a_whole_kernel_is_named(name):
    deviation, suite = NAMED[name]
    candidate = PythonFunction("wrong", KERNELS[name].run)
    (found,) = verify(candidate, suites_in(bundled_files(), [suite])).diagnosis.suites
    assert (deviation,) in [one.deviations for one in found.explanations if one.is_whole]
