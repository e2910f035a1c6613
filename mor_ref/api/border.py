"""The border of the public functions: what holds for each of them, whatever it computes."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from mor_ref.api.tracing import untraced
from mor_ref.processor_modes import in_usual_modes

_P = ParamSpec("_P")
_R = TypeVar("_R")


def public(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Make a function public: one that users call.

    It refuses to compute in a thread whose modes of the processor could change a bit, and
    torch.compile calls it as it is. `encode`, `decode` and `quantize_shared`, which are right in
    every mode, are `untraced` alone.
    """
    return untraced(in_usual_modes(function))
