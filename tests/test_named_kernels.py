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
