"""The steps of the model that a computation takes: a deviation of another step changes nothing."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from mor_ref.exact.step import Replacement, replaced

Step = Callable[..., Any]


@contextmanager
def reached(steps: Iterable[Step]) -> Iterator[set[Step]]:
    """Collect those of some steps that a `with` takes, even if they are replaced."""
    found: set[Step] = set()
    with replaced([_noted(step, found) for step in steps]):
        yield found


def _noted(step: Step, found: set[Step]) -> Replacement:
    def note(original: Step, *args: Any, **kwargs: Any) -> Any:
        found.add(step)
        return original(*args, **kwargs)

    return step, note
