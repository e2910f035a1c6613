"""All of them, by the three people who wrote them."""

from importlib import import_module

from wrong.kernel import Kernel

_MODULES: tuple[str, ...] = (
    "scaling",
    "powers",
    "ratios",
    "mantissas",
    "conversions",
    "encoders",
    "stochastic",
    "decoders",
    "elements",
    "terms",
    "losses",
    "distances",
    "launches",
    "reaches",
    "reaches_in_blocks",
    "late",
    "tails",
    "tilings",
    "fusions",
    "nvfp4_right",
    "nvfp4_scales",
    "nvfp4_global",
    "nvfp4_elements",
    "nvfp4_differences",
    "nvfp4_sums",
    "nvfp4_four_over_six",
    "nvfp4_ties",
    "nvfp4_quotients",
    "nvfp4_others",
    "nvfp4_compressed",
    "nvfp4_launches",
    "nvfp4_tables",
    "mx_right",
    "mor_right",
    "mx_scales",
    "mx_rounded",
    "mx_elements",
    "mx_integers",
    "mx_launches",
    "mx_specials",
    "decisions",
    "mor_means",
    "mor_counts",
    "mor_losses",
    "mor_errors",
    "mor_outputs",
    "mor_rungs",
    "mor_launches",
)
REGISTERED: list[Kernel] = [
    kernel for name in _MODULES for kernel in import_module(f"wrong.{name}").KERNELS
]
