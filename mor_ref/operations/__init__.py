"""The operations of the suites: one declaration for each, which everything else reads.

A declaration has the parameters, the fields and the three implementations. An operation on single
numbers or blocks also declares random inputs; suites make tensors.
"""

from typing import TYPE_CHECKING

from mor_ref.operations.operation import Operation, RandomInputs
from mor_ref.schemes import collected_later

if TYPE_CHECKING:
    from mor_ref.operations.catalogue import OPERATIONS

__all__ = ["OPERATIONS", "Operation", "RandomInputs"]

__getattr__ = collected_later(__name__, "OPERATIONS")
