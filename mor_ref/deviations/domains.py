"""Domains: the suites that reach the step of a deviation, and so have to expose it."""

from mor_ref.definitions.format import Format
from mor_ref.definitions.nvfp4 import PROFILES
from mor_ref.schemes import in_schemes


def joined(domain: str) -> tuple[str, ...]:
    """Return the suites of schemes that join a domain of this name: `JOINS` of their `domain`."""
    return tuple(name for module in in_schemes("domain") for name in module.JOINS.get(domain, ()))


LARGE = ("quantize_large", "policies_large", "nvfp4_large", "mx_large", *joined("LARGE"))
POLICY_SUITES = ("policies", "policies_large")
IN_SCALES = ("quantize_blocks", "quantize", "quantize_large", *POLICY_SUITES)
SCALES = ("scale_steps", *IN_SCALES)
OWN_SCALES = (*SCALES, *joined("OWN_SCALES"))  # suites with ideal scales, or with binary32 scales
SCALED = ("quantize_steps", *IN_SCALES, *joined("SCALED"))
IN_SUMS = (*IN_SCALES, *joined("IN_SUMS"))
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

DOTS_ALONE = ("dot_chunks", "dot")  # without scales
IN_PRODUCTS = ("matmul",)
IN_SCALED_DOTS = ("dot_scaled", *IN_PRODUCTS)
IN_DOT = ("dot", *IN_SCALED_DOTS)
DOTS = ("dot_chunks", *IN_DOT)
DOT_INTEGERS = ("dot_integers",)

ACCEPTANCE = ("acceptance",)
IN_UNIT_SUMS = ("unit_sums", *ACCEPTANCE)

SCALED_TENSORS = ("quantize", "quantize_large", *POLICY_SUITES, *NVFP4, *MX)
TENSORS = (*SCALED_TENSORS, *joined("TENSORS"), *ACCEPTANCE)
IN_ROWS = (*TENSORS, *joined("IN_ROWS"))
BLOCKS = ("quantize_blocks", "nvfp4_blocks", "mx_blocks", *SCALED_TENSORS)
# A group of (8, 16) is a run in a tensor of one row.
RUNS = ("quantize", *POLICY_SUITES, *NVFP4, *MX, *joined("RUNS"))

ROUNDED = ("encode", "encode_presets", "quantize_steps", *BLOCKS, *joined("ROUNDED"))
ENCODED = ("encode_stochastic", *ROUNDED)
COMPUTED_NANS = tuple(
    name for name in ENCODED if not name.startswith("encode") and name not in POLICY_SUITES
)
OVERFLOWS = (
    "encode",
    "encode_presets",
    "encode_stochastic",
    "quantize_steps",
    *joined("OVERFLOWS"),
    "policies",
    "nvfp4_blocks",
    *NVFP4_TE,  # scales of tiles, where amax is infinite
    "nvfp4_large",
    *IN_MX,
)
ANY_OVERFLOWS = (*OVERFLOWS, *joined("ANY_OVERFLOWS"))  # also overflows of infinities alone
# Suites with a binary32 field that can be NaN: xs, y, d, a scale, or the value of a code.
NANS_IN_BINARY32 = (
    "decode",
    *(name for name in COMPUTED_NANS if name not in joined("CODES_ALONE")),
    *DOTS,
    *DOT_INTEGERS,
    *MX_DECODED,
    *joined("NANS_IN_BINARY32"),
)
STORED = ("encode", "encode_presets", *POLICY_SUITES)
STOCHASTIC = ("encode_stochastic",)
ASKED_TO_ENCODE = (*STORED, *STOCHASTIC)
IN_POWERS = ("encode", "encode_presets", *IN_MX)
DECODED = ("decode",)
DECISIONS = ("decisions", *POLICY_SUITES)
THAT_LOSE_NOTHING = (*DECISIONS, *ACCEPTANCE)

_NARROW = 8  # bits


def is_narrow(fmt: Format) -> bool:
    """Return whether numbers are quantized to this format, and not only stored in it."""
    return fmt.bits <= _NARROW and not fmt.is_power_of_two
