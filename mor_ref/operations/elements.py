"""The elements of tensors, as the exact model has them."""

import math

from mor_ref.exact.quantization import Element
from mor_ref.operations.call import Results
from mor_ref.operations.results import each

_MOST_WITH_STEPS = 1 << 14  # numbers; the steps of larger tensors would take most of their room


def has_steps(shape: tuple[int, ...]) -> bool:
    """Return whether a tensor is so small that its suite has xs, d, r and u (VEC-001)."""
    return math.prod(shape) <= _MOST_WITH_STEPS


def element_results(elements: list[list[Element]], shape: tuple[int, ...]) -> Results:
    """Return the results of the elements of a tensor, without xs if the tensor is large."""
    return each(elements, *(("xs", "code", "y") if has_steps(shape) else ("code", "y")))
