"""Domains: the suites that reach the step of a deviation, and so have to expose it."""

from mor_ref.definitions.format import Format

LARGE = ("quantize_large", "policies_large", "nvfp4_large", "mx_large")
POLICIES = ("policies", "policies_large")
IN_SCALES = ("quantize_blocks", "quantize", "quantize_large", *POLICIES)
SCALES = ("scale_steps", *IN_SCALES)
SCALED = ("quantize_steps", *IN_SCALES)
ERRORS = ("error_steps", *IN_SCALES)

NVFP4_4OVER6 = (
    "nvfp4_te_4over6_mae",
    "nvfp4_te_4over6_mse",
    "nvfp4_te_4over6_mae_448",
    "nvfp4_te_4over6_mse_448",
)
NVFP4_TE = ("nvfp4_te", "nvfp4_te_2_13", "nvfp4_te_row", *NVFP4_4OVER6)
NVFP4_FOREIGN = ("nvfp4_torchao", "nvfp4_modelopt", "nvfp4_compressed_tensors")
NVFP4 = (*NVFP4_TE, *NVFP4_FOREIGN, "nvfp4_large")
IN_NVFP4 = ("nvfp4_blocks", *NVFP4, *POLICIES)
MX = ("mx", "mx_large")
IN_MX = ("mx_blocks", *MX)

TENSORS = ("quantize", "quantize_large", *POLICIES, *NVFP4, *MX)
BLOCKS = ("quantize_blocks", "nvfp4_blocks", "mx_blocks", *TENSORS)
# A group of (8, 16) is a run in a tensor of one row.
RUNS = ("quantize", *POLICIES, *NVFP4, *MX)

ROUNDED = ("encode", "encode_presets", "quantize_steps", *BLOCKS)
ENCODED = ("encode_stochastic", *ROUNDED)
NANS = tuple(name for name in ENCODED if name not in LARGE)
COMPUTED_NANS = tuple(
    name for name in NANS if not name.startswith("encode") and name not in POLICIES
)
OVERFLOWS = (
    "encode",
    "encode_presets",
    "encode_stochastic",
    "quantize_steps",
    "policies",
    "nvfp4_blocks",
    *NVFP4_TE,  # scales of tiles, where amax is infinite
    "nvfp4_large",
    *IN_MX,
)
# Those with a field in binary32 that can be NaN: xs, y, d, a scale, or the value of a code.
NANS_IN_BINARY32 = ("decode", *COMPUTED_NANS)
STORED = ("encode", "encode_presets", *POLICIES)
STOCHASTIC = ("encode_stochastic",)
DECODED = ("decode",)
DECISIONS = ("decisions", *POLICIES)

_NARROW = 8  # bits


def is_narrow(fmt: Format) -> bool:
    """Return whether a format is one that numbers are quantized to, and not only stored in."""
    return fmt.bits <= _NARROW and not fmt.is_power_of_two
