"""What whole wrong kernels are named: the ids of mistakes of the model that have their bits.

The kernels were written from the specification, before the model was. So each is a second opinion
on an operator of the model, in NumPy.
"""

# By the names of kernels; those of formats end with it.
OF_SCALES = {
    "floor_log2f": "SCL-002/exponent-by-log2f",
    "ceil_log2f": "SCL-002/exponent-by-ceil-log2f",
    "biased_exponents": "SCL-002/exponent-of-operands",
    "at_or_above": "SCL-002/exponent-below-powers",
    "ceil_of_decode_scale": "SCL-002/exponent-of-field-of-inverse",
    "ceil_of_product": "SCL-002/exponent-of-field-of-product",
    "upper_halves": "SCL-002/amax-cut-to-bf16",
    "floor_log_base_e": "SCL-002/exponent-by-logarithm",
    "rounded_reciprocal": "SCL-002/quotient-by-reciprocal",
    "inverse_of_decode": "SCL-002/inverted",
    "inverse_of_product": "SCL-002/quotient-inverse-of-product",
    "clamped_amax": "SCL-002/amax-at-least-1e-12",
    "uncapped_ratio": "SCL-004/limit-left-out",
    "one_where_infinite": "SCL-004/limit-one-instead",
    "flushed_amax": "SCL-002/amax-flushed",
    "equal_too": "GAM-003/comparison-with-equals",
    "capped_before": "GAM-004/limit-first",
    "gam_in_binary32": "SCL-002/quotient-in-binary32",
    "by_ratio": "GAM-003/comparison-by-quotient",
    "gam_log2f": "SCL-002/exponent-by-log2f",
    "gam_truncated": "GAM-001/significand-truncated",
    "smaller_of_two": "GAM-005/shared-smaller",
    "zeros_have_one": "GAM-005/shared-none-for-zeros",
    "e_of_the_rounded": "SCL-002/exponent-of-inverse",
    "gam_log_base_e": "SCL-002/exponent-by-logarithm",
    "epsilon": "GAM-001/amax-at-least-normal",
}
