"""What the exact model gives for the inputs of a case: the values that suites expect."""

from mor_ref.golden.expected import blocks, steps, tensors
from mor_ref.golden.expected.operation import Operation

OPERATIONS: dict[str, Operation] = {
    operation.name: operation
    for operation in (*steps.OPERATIONS, *tensors.OPERATIONS, *blocks.OPERATIONS)
}

__all__ = ["OPERATIONS", "Operation"]
