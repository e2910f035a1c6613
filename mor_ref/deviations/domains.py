"""Which suites have to tell a deviation from the reference: those that reach its step."""

from mor_ref.format import Format

NVFP4_TE = (
    "nvfp4_te",
    "nvfp4_te_2_13",
    "nvfp4_te_row",
    "nvfp4_te_4over6_mae",
    "nvfp4_te_4over6_mse",
    "nvfp4_te_4over6_mae_448",
    "nvfp4_te_4over6_mse_448",
)
NVFP4 = (*NVFP4_TE, "nvfp4_torchao", "nvfp4_modelopt", "nvfp4_compressed_tensors")
IN_NVFP4 = ("nvfp4_blocks", *NVFP4)
IN_MX = ("mx_blocks", "mx")
IN_SCALES = ("quantize_blocks", "quantize")
SCALES = ("scale_steps", *IN_SCALES)
ELEMENTS = ("encode", "quantize_steps", *IN_SCALES, *IN_NVFP4, *IN_MX)
ENCODING = ("encode", "quantize_steps")
IN_BINARY32 = ("encode", "quantize_steps", *IN_SCALES, *IN_MX)
OUTPUT = ("policies",)
STOCHASTIC = ("encode_stochastic",)
DECODING = ("decode",)
ERRORS = ("error_steps", *IN_SCALES)
DECISIONS = ("decisions", "policies")

_NARROW = 8  # bits


def is_narrow(fmt: Format) -> bool:
    """Whether numbers are quantized to a format, and not merely stored in it."""
    return fmt.bits <= _NARROW and not fmt.is_power_of_two
