"""Domains: the suites that reach the step of a deviation, and so have to expose it."""

from mor_ref.definitions.format import Format
from mor_ref.definitions.nvfp4 import PROFILES

LARGE = (
    "quantize_large",
    "policies_large",
    "nvfp4_large",
    "mx_large",
    "shared_large",
    "levels_large",
    "affine_large",
    "mixed_large",
)
POLICY_SUITES = ("policies", "policies_large")
MIXED = ("mixed", "mixed_large")
MIXED_STEPS = ("mixed_steps", "mixed_layers")
IN_MIXED = (*MIXED_STEPS, *MIXED)
IN_SCALES = ("quantize_blocks", "quantize", "quantize_large", *POLICY_SUITES)
SCALES = ("scale_steps", *IN_SCALES)
OWN_SCALES = (*SCALES, *MIXED)  # suites with ideal scales, or with binary32 scales
SCALED = ("quantize_steps", *IN_SCALES, *MIXED)
AFFINE = ("affine", "affine_large")
ONE_BY_ONE = ("affine_steps", *AFFINE)  # the suites of integers that have every profile
AFFINE_BLOCKS = ("affine_groups", *AFFINE)
IN_AFFINE = ("affine_steps", *AFFINE_BLOCKS)
FLOAT_ZEROS = ("affine_float_zeros",)
IN_SUMS = (*IN_SCALES, *AFFINE_BLOCKS)
ERRORS = ("error_steps", *IN_SUMS)

_RULES = {f"nvfp4_{name}": PROFILES[name].scales for name in PROFILES.specified}
NVFP4_4OVER6 = tuple(suite for suite, rule in _RULES.items() if rule.error)
NVFP4_TE = tuple(suite for suite, rule in _RULES.items() if rule.global_scale == "S_enc")
NVFP4_FOREIGN = tuple(suite for suite in _RULES if suite not in NVFP4_TE)
NVFP4 = (*NVFP4_TE, *NVFP4_FOREIGN, "nvfp4_large")
IN_NVFP4 = ("nvfp4_blocks", *NVFP4, *POLICY_SUITES)
MX = ("mx", "mx_large")
IN_MX = ("mx_blocks", *MX)
MX_DECODED = ("mx_decoding",)
SHARED = ("shared", "shared_large")
IN_SHARED = ("shared_blocks", *SHARED)
LEVELS = ("levels", "levels_large")
IN_LEVELS = ("levels_steps", *LEVELS)

DOTS_ALONE = ("dot_chunks", "dot")  # without scales
IN_PRODUCTS = ("matmul",)
IN_SCALED_DOTS = ("dot_scaled", *IN_PRODUCTS)
IN_DOT = ("dot", *IN_SCALED_DOTS)
DOTS = ("dot_chunks", *IN_DOT)
DOT_INTEGERS = ("dot_integers",)

ACCEPTANCE = ("acceptance",)
IN_UNIT_SUMS = ("unit_sums", *ACCEPTANCE)

SCALED_TENSORS = ("quantize", "quantize_large", *POLICY_SUITES, *NVFP4, *MX)
TENSORS = (*SCALED_TENSORS, *SHARED, *AFFINE, *MIXED, *ACCEPTANCE)
IN_ROWS = (*TENSORS, *LEVELS, "affine_groups", "selections")
BLOCKS = ("quantize_blocks", "nvfp4_blocks", "mx_blocks", *SCALED_TENSORS)
# A group of (8, 16) is a run in a tensor of one row.
RUNS = ("quantize", *POLICY_SUITES, *NVFP4, *MX, *SHARED, *AFFINE)

FP8LM_CODES = ("fp8lm_casts", "fp8lm_recasts", "fp8lm_sums")
FP8LM_CAST = (*FP8LM_CODES, "fp8lm_steps")
ROUNDED = ("encode", "encode_presets", "quantize_steps", *FP8LM_CAST, *BLOCKS, *MIXED)
ENCODED = ("encode_stochastic", *ROUNDED)
COMPUTED_NANS = tuple(
    name for name in ENCODED if not name.startswith("encode") and name not in POLICY_SUITES
)
OVERFLOWS = (
    "encode",
    "encode_presets",
    "encode_stochastic",
    "quantize_steps",
    *FP8LM_CODES,
    "policies",
    "nvfp4_blocks",
    *NVFP4_TE,  # scales of tiles, where amax is infinite
    "nvfp4_large",
    *IN_MX,
)
ANY_OVERFLOWS = (*OVERFLOWS, *MIXED)  # also overflows of infinities alone
# Suites with a binary32 field that can be NaN: xs, y, d, a scale, or the value of a code.
NANS_IN_BINARY32 = (
    "decode",
    *(name for name in COMPUTED_NANS if name not in ("fp8lm_sums", "fp8lm_steps")),
    *DOTS,
    *DOT_INTEGERS,
    *MX_DECODED,
    "shared_blocks",
    "shared",
    *IN_LEVELS,
    *FLOAT_ZEROS,
    *IN_AFFINE,
    "fp8lm_scales",
    "fp8lm_adam",
    "fp8lm_stored",
)
STORED = ("encode", "encode_presets", *POLICY_SUITES)
STOCHASTIC = ("encode_stochastic",)
DECODED = ("decode",)
DECISIONS = ("decisions", *POLICY_SUITES)
THAT_LOSE_NOTHING = (*DECISIONS, *ACCEPTANCE)

_NARROW = 8  # bits


def is_narrow(fmt: Format) -> bool:
    """Return whether numbers are quantized to this format, and not only stored in it."""
    return fmt.bits <= _NARROW and not fmt.is_power_of_two
