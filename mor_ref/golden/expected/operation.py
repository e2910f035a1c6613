"""An operation of the suites, as the exact model has it."""

from collections.abc import Callable
from dataclasses import dataclass

from mor_ref.golden.model.suite import Arrays, Parameters


@dataclass(frozen=True)
class Operation:
    """What is done to the inputs of a case.

    Where `by_row` is true, the entries along the first axis of the inputs have nothing to do with
    each other, so that some of them can be looked at alone.
    """

    function: Callable[[Parameters, Arrays], Arrays]
    by_row: bool

    @property
    def name(self) -> str:
        """What suites call it."""
        return self.function.__name__
