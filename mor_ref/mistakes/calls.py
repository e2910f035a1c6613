"""Which kinds of calls of steps are made, of those that mistakes are about."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from mor_ref.exact.step import Step, replaced

KindOfCall = tuple[Step, Callable[..., bool]]  # a step, and what its arguments are


@contextmanager
def calls_made(kinds: Iterable[KindOfCall]) -> Iterator[set[KindOfCall]]:
    """Collect those of some kinds of calls that are made inside of a `with`."""
    found = set[KindOfCall]()
    waiting: dict[Step, list[Callable[..., bool]]] = {}
    for step, where in kinds:
        waiting.setdefault(step, []).append(where)

    def watching(step: Step) -> Callable[..., Any]:
        left = waiting[step]

        def watch(reference: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
            if left:
                there = [where for where in left if where(*arguments, **named)]
                found.update((step, where) for where in there)
                left[:] = [where for where in left if where not in there]
            return reference(*arguments, **named)

        return watch

    with replaced([(step, watching(step)) for step in waiting]):
        yield found
