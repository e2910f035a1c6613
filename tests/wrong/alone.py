"""Reasons why wrong implementations that take one source alone are not found.

Each source has reasons, with patterns of names. The test fails if an implementation with such a
name is found. `NO_AMAX` is computed in the test. Names under `_SEARCHED`, `_LOGARITHMS`, `_MEANS`,
`_TALL`, `_SUMS` and `_CUT` are gaps until an input or a proof is found.
"""

NO_AMAX = "no amax of the source is so close to a threshold: the test tries them"
_EXACT = "numbers of so few bits make both ways exact, or leave no number near a threshold"
_RANGE = "no number of binary16 is that small or that large in binary32"
_TALL = (
    "tensors of 65,600 rows or columns, the unit of 2^24 numbers, and 1,152 dimensions are bfloat16"
)
_CONVERTED = "units that stay are converted to bfloat16, whose one NaN the mistake makes as well"
_STEPS = "d is exact in all but `error_steps`, whose case has no source"
_SEARCHED = "a search found no input: tests/wrong/README.md has over how many it looked"
_SOURCE = "the mistake is in what becomes of numbers that the source does not have"
_SCALES = "tensors of one row with every scale are binary32 alone, as they have 16 numbers for each"
_LOGARITHMS = "a gap: groups of GAM with an amax of largest * 2^29 are binary32 alone"
_NO_NAN = "the profile is of tensors without NaN"
_CUT = "a gap: large rows, columns, squares, groups, grids and odd ends do not have each source"
_GIVEN = "numbers with a scale that is given are binary32 alone, and no other number shows it"
_MEANS = "a gap: rows whose mean is next to a tie are bfloat16 and binary32 alone"
_SUMS = "a gap: blocks whose sums or zero points are so near a tie or an end have one source alone"
_LIMIT = "a limit is a number of binary32 already"
_BEYOND = "tensors of 130x160, beyond a tile of scales and 4,096 numbers, are bfloat16"
_BEHIND = "a gap: a number behind the last vector that is a tie is binary64 alone"
_SQUARE = "the one square grid whose units are not decided alike across its diagonal is bfloat16"

# Names for two sources: only the third source has large blocks of this shape.
_IN_ROWS = ("*_in_a_row*", "first_64_rows_of_blocks_*")
_IN_COLUMNS = ("*_in_a_column*", "mor.amax_of_2048_rows.*")
_IN_WHOLE_ONES = ("block_of_65536_numbers_*", "mor.amax_of_65536_numbers.*")
_IN_SQUARES = ("*_in_a_square*",)
_IN_TENSORS = ("amax_of_2048_*_in_a_tensor_*", "mor.scaled_by_2048_*_in_a_tensor.*")
_LATE_IN_COLUMNS = ("mor.chosen_by_losses_of_2048_columns.*",)
_LATE_IN_ROWS = ("mor.chosen_by_losses_of_2048_rows.*",)
_LATE_SPECIALS = ("nan_clamped_*",)
_INFINITE_AMAX = ("nvfp4.infinities_of_512_*",)
_OF_WHOLE_FOURS = tuple(
    f"nvfp4.amax_of_whole_fours.{profile}"
    for profile in ("te", "te_2_13", "te_4over6_*", "torchao", "modelopt", "compressed_tensors")
)
_IN_GROUPS = ("groups_of_*", "blocks_of_128_columns_*")
_IN_GRIDS = ("mor.1024_rows_of_units*", "mor.1024_columns_of_units*")
_LATER_RUNGS = ("mor.bf16_of_{}_*", "mor.e5m2_of_{}_*")
_IN_TALL_RUNGS = (
    *(name.format("1024_rows") for name in _LATER_RUNGS),
    "mor.e4m3_of_1024_rows_*.nvfp4",
)
_IN_WIDE_RUNGS = (
    *(name.format(end) for name in _LATER_RUNGS for end in ("1024_columns", "65536_numbers")),
    "mor.nvfp4_of_1024_columns_*",
    *(f"mor.nvfp4_of_65536_numbers_{scaling}.nvfp4" for scaling in ("fp32", "e8m0")),
)
# Names for both bfloat16 and binary16.
_SCALES_OF_BOTH = ("nvfp4.table_*.16x16", "nvfp4.table_*.te_row.1x16")
_EXACT_OF_BOTH = (
    "nvfp4.scale_times_amax_first.*",
    "nvfp4.mean_of_errors.*",
    "nvfp4.decode_of_the_error_first.te_4over6_mse.*",
    "mx.torchao_rceil",
    "mx.log2_in_binary32",
    "mx.reciprocal_of_largest",
    "mx.quotient_in_binary64",
    "mx.ceil_of_log2_in_binary32",
    "shared.log2_of_amax",
)
_SEARCHED_FOR_BOTH = (
    "r_with_residual",
    "nvfp4.torchao_without_saturation.torchao.1x16",
    "nvfp4.modelopt_without_saturation.modelopt.1x16",
    "mor.mean_by_torch",
    "mor.mean_by_warps",
    "mor.mean_by_a_loop",
    "mor.mean_of_ratios",
    "mor.mean_by_torch_of_steps",
    "mor.mean_of_ratios_of_steps",
    "mor.mean_of_sums",
    "mor.limits_cut",
    "mor.limits_raised",
    "mor.mean_at_its_limit",
    "mor.fits_in_binary32",
    "mor.fits_by_logarithms",
    "mor.fits_by_wide_logarithms",
    "mor.fits_strictly",
)
_SUMS_IN_BINARY64 = ("affine.fused_in_binary64",)
_IN_NARROW_DTYPES = (
    "affine.integers_added_in_binary32",
    "affine.zero_point_added_in_binary32",
    "affine.code_not_rounded",
    "affine.difference_in_integers",
    "affine.way_back_in_binary32",
)
# Names for both binary16 and binary32.
_OF_TALL_ONES = (
    "affine.grid_of16_bits",
    "affine.sort_in_blocks_of1024",
    "shared.grid_of_16_bits",
    "grid_of_65535",
    "loop_of_16_bits",
    "columns_of_2048",
    "rows_of_2048",
    "nvfp4.first_65535_rows.*",
    "mx.grid_of_16_bits",
    "mx.blocks_a_thread",
    "mor.first_65535_rows",
    "mor.nonzero_in_binary32",
    "mor.amax_counted_in_binary32_gam",
    "nvfp4.amax_of_65536_rows.*",
    "nvfp4.amax_of_65536_columns.*",
    "mor.amax_of_65536_rows.*",
    "mor.amax_of_65536_columns.*",
)
_WITH_A_GIVEN_SCALE = (
    "affine.nan_is_the_zero_point",
    "affine.saturates_in_int64",
    "affine.zero_point_in_int64",
)
_OF_NANS_KEPT = ("mor.kept_ones_cast", "mor.kept_ones_quiet")

_BEYOND_TILES = (
    "swizzled.*",
    "select.first_32_rows",
    "select.first_64_rows",
    "select.mask_of_64_columns",
    "select.sorted_2048",
    "affine.ranges_of16_rows",
    "mix.squares_of_4096",
    "mix.amax_of_4096",
)
_BEHIND_VECTORS = ("encode.ties_away_behind_*",)
REASONS: dict[str, dict[str, tuple[str, ...]]] = {
    "bf16": {
        _BEHIND: _BEHIND_VECTORS,
        _CUT: (
            *_IN_ROWS,
            *_IN_COLUMNS,
            *_IN_GROUPS,
            *_LATE_IN_COLUMNS,
            *_LATE_SPECIALS,
            *_IN_WHOLE_ONES,
            *_IN_WIDE_RUNGS,
        ),
        NO_AMAX: (
            "floor_log2f_*",
            "ceil_log2f_*",
            "by_ratio_*",
            "gam_log2f_*",
            "e_of_the_rounded_*",
            "upper_halves_*",
        ),
        _EXACT: (
            *_EXACT_OF_BOTH,
            "shared.twice",
            "affine.divided_by127",
            "affine.errors_in_bfloat16",
            "affine.extremes_in_bfloat16",
            "amax_in_half",
            "nvfp4.amax_in_bfloat16.*",
            "nvfp4.tile_amax_in_bfloat16.*",
            "nvfp4.compressed_statistics_in_bfloat16.*",
            "nvfp4.divided_by_range_then_six.te_4over6_mae.*",
        ),
        _SUMS: (
            *_SUMS_IN_BINARY64,
            "affine.zero_point_not_limited",
            "affine.zero_point_added_in_binary32",
        ),
        _GIVEN: _WITH_A_GIVEN_SCALE,
        _SOURCE: (
            "affine.smallest_scale_of_binary32",
            "lost_infinities",
            "lost_above_tie",
            "lost_above_largest",
            "mor.kept_ones_cut",
            "mor.kept_ones_half_up",
            "mor.kept_nan_rounded",
            "mor.lost_at_infinity",
            "mor.lost_above_the_last_bf16",
            "mor.lost_in_nvfp4",
            "mor.lost_by_e4m3_for_nvfp4",
            "mx.restored_in_bf16",
            "mx.through_f16",
            "levels.weights_not_rounded",
        ),
        _NO_NAN: ("nvfp4.nan_keeps_its_sign.modelopt.1x16",),
        _LOGARITHMS: ("gam_log_base_e_*",),
        _SCALES: _SCALES_OF_BOTH,
        _STEPS: ("exact_distance",),
        _SEARCHED: (
            *_SEARCHED_FOR_BOTH,
            "mor.fits_by_exponents",
            "mor.fits_with_subnormals",
        ),
    },
    "f16": {
        _BEHIND: _BEHIND_VECTORS,
        _BEYOND: _BEYOND_TILES,
        _CUT: (
            *_IN_ROWS,
            *_IN_COLUMNS,
            *_IN_SQUARES,
            *_IN_GRIDS,
            *_IN_WHOLE_ONES,
            *_IN_TALL_RUNGS,
            *_IN_WIDE_RUNGS,
            *_LATE_IN_COLUMNS,
            *_LATE_IN_ROWS,
            *_LATE_SPECIALS,
            *_INFINITE_AMAX,
            "mor.nvfp4_of_65536_numbers_gam.nvfp4",
            *_OF_WHOLE_FOURS,
        ),
        _SQUARE: ("mor.choice_turned",),
        NO_AMAX: (
            "floor_log2f_*",
            "ceil_log2f_*",
            "by_ratio_*",
            "gam_log2f_*",
            "e_of_the_rounded_*",
            "ceil_of_decode_scale_*",
            "ceil_of_product_*",
            "floor_log_base_e_*",
            "gam_log_base_e_*",
            "capped_before_*",
        ),
        _SUMS: _SUMS_IN_BINARY64,
        _GIVEN: (*_WITH_A_GIVEN_SCALE, "affine.saturates_at127"),
        _RANGE: (
            "affine.inverse_of_a_subnormal_scale_flushed",
            "affine.inputs_flushed",
            "affine.scale_flushed",
            "affine.y_flushed",
            "levels.ratio_flushed",
            "levels.weights_flushed",
            "mor.lost_x_alone",
            "uncapped",
            "clamped_amax",
            "uncapped_ratio",
            "one_where_infinite",
            "flushed_amax",
            "flushed_y",
            "flushed_x",
            "flushed_distance",
            "gam_in_binary32",
            "guarded_by_maximum",
            "added_exponents",
            "own_if_largest",
            "nothing_subnormal",
            "nvfp4.subnormal_amax_is_zero.*",
            "nvfp4.flushed.*",
            "nvfp4.compressed_g_of_zeros_only.*",
            "nvfp4.divided_by_range_then_six.te_4over6_mae.*",
            "nvfp4.divided_by_six_then_range.te_4over6_mae.*",
            "mx.rceil_of_any_mantissa",
            "mx.rceil_flushed",
            "mx.floor_of_natural_logarithms",
            "mx.ceil_of_fields",
            "mx.code_as_exponent_field",
            "mx.even_on_raw_bits",
            "mx.y_flushed",
            "mx.inputs_flushed",
            "mor.amin_flushed",
            "mor.fits_by_flushed_products",
            "mor.differences_flushed",
            "mor.output_flushed",
            "lost_infinities",
            "lost_above_tie",
            "lost_above_largest",
            "lost_inputs",
            "mx.table_36.*",
            "mx.table_78.*",
            "mx.table_203.*",
            "nvfp4.infinite_keeps_six.*",
            "mor.lost_at_infinity",
            "mor.lost_above_the_last_bf16",
            "mor.lost_in_the_yardstick",
            "mor.lost_by_the_yardstick_alone",
            "mor.lost_by_e4m3_alone",
            "mor.lost_in_nvfp4",
            "mor.lost_by_e4m3_for_nvfp4",
            "shared.carries_into_infinity",
            "shared.units_flushed",
            "shared.subnormal_numbers_stay",
            "shared.minus_128_in_the_last_binade",
        ),
        _EXACT: (
            *_EXACT_OF_BOTH,
            "affine.divided_by127",
            "affine.back_in_binary64",
            "affine.amax_by127_first",
            "nvfp4.decode_of_the_error_first.te_4over6_mae.*",
            "nvfp4.element_times_amax_first.*",
            "levels.sum_in_binary64",
        ),
        _SOURCE: ("mx.restored_in_bf16",),
        _NO_NAN: (
            "nvfp4.nan_keeps_its_sign.torchao.1x16",
            "nvfp4.nan_keeps_its_sign.modelopt.1x16",
        ),
        _SCALES: _SCALES_OF_BOTH,
        _TALL: _OF_TALL_ONES,
        _CONVERTED: _OF_NANS_KEPT,
        _MEANS: ("levels.parts_in_binary64", "levels.reciprocal_in_binary64"),
        _STEPS: ("exact_distance",),
        _SEARCHED: (
            *_SEARCHED_FOR_BOTH,
            "mor.tiles_of_units",
            "newton_corrected",
            "fdividef",
            "rcp_with_residual_e4m3",
            "rcp_with_residual_e5m2",
            "rcp_with_residual_e2m1",
            "rcp_with_residual_e2m3",
            "rcp_with_residual_e3m2",
            "significand_first_e4m3",
            "significand_first_e5m2",
            "significand_first_e2m1",
            "significand_first_e2m3",
            "significand_first_e3m2",
            "quotient_then_power_e4m3",
            "quotient_then_power_e5m2",
            "quotient_then_power_e2m1",
            "quotient_then_power_e2m3",
            "quotient_then_power_e3m2",
            "power_then_quotient_e4m3",
            "power_then_quotient_e5m2",
            "power_then_quotient_e2m1",
            "power_then_quotient_e2m3",
            "power_then_quotient_e3m2",
            "not_clipped",
            "zero_for_infinite",
            "scaled_distance",
            "stored_decode",
            "mor.yardstick_by_torch",
            "mor.yardstick_by_warps",
            "mor.yardstick_of_ratios",
            "mor.yardstick_of_bf16",
            "mor.lost_ones_have_no_error",
            "mor.lost_in_x_alone",
            "mor.a_thread_an_element",
        ),
    },
    "f32": {
        _BEHIND: _BEHIND_VECTORS,
        _BEYOND: _BEYOND_TILES,
        _CUT: (
            *_IN_TENSORS,
            *_IN_SQUARES,
            *_IN_GROUPS,
            *_IN_GRIDS,
            *_IN_TALL_RUNGS,
            *_LATE_IN_ROWS,
            *_INFINITE_AMAX,
        ),
        _SQUARE: ("mor.choice_turned",),
        _SOURCE: (
            "affine.y_in_binary32",
            "affine.torchao_in_binary32",
            "affine.torch_in_own_dtype",
            "affine.smallest_scale_of_binary32",
            "affine.errors_before_the_dtype",
            *_IN_NARROW_DTYPES,
        ),
        _TALL: _OF_TALL_ONES,
        _CONVERTED: _OF_NANS_KEPT,
        _LIMIT: ("select.limit_in_the_source",),
        _STEPS: ("exact_distance",),
    },
}
