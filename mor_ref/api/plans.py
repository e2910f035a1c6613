"""Plans of calls: what follows from arguments without numbers is made once, and kept."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Generic, TypeVar

from mor_ref.definitions.catalogue import Catalogue

Plan = TypeVar("Plan")


class Plans(Generic[Plan]):
    """The plans that a function makes of arguments; it refuses wrong ones each time.

    Arguments of one type that are equal have one plan, as long as no row of a catalogue changes.
    What can be given in several types that are equal, such as sides in a tuple, is not for a plan.
    """

    def __init__(self, make: Callable[..., Plan]) -> None:
        self.make = make
        self._kept = lru_cache(maxsize=1024, typed=True)(lambda _, *given: make(*given))

    def __call__(self, *given: Any) -> Plan:
        """Return the plan of these arguments."""
        try:
            return self._kept(Catalogue.changes, *given)
        except TypeError:  # a list, which cannot be looked up, or an argument that is refused
            return self.make(*given)

    @property
    def count(self) -> int:
        """How many plans were made."""
        return self._kept.cache_info().misses
