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
    "launches",
    "tilings",
    "fusions",
)
REGISTERED: list[Kernel] = [
    kernel for name in _MODULES for kernel in import_module(f"wrong.{name}").KERNELS
]
