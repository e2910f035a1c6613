"""Tables and bars on a terminal, for all commands."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)

from mor_ref.cli.output_text import Console

_NARROWEST = 80  # columns


def plain_console(*, of_errors: bool = False, width: int | None = None) -> Console:
    """Return a console that prints text as it is: `l:fire:w` does not become a picture."""
    return Console(stderr=of_errors, width=width, markup=False, emoji=False, highlight=False)


def console_of_some_width() -> Console:
    """Return a console of at least 80 columns: long lines wrap, and tables stay complete."""
    console = plain_console()
    return console if console.width >= _NARROWEST else plain_console(width=_NARROWEST)


class Bars(Progress):
    """Progress bars on the standard error: the count, the total and the time, or other columns.

    If the standard error is not a terminal, they show nothing: it may be joined to the results.
    """

    def __init__(self, *columns: ProgressColumn, hidden: bool = False) -> None:
        first = TextColumn("{task.description}", markup=False), BarColumn()
        others = columns or (MofNCompleteColumn(), TimeElapsedColumn())
        is_hidden = hidden or not sys.stderr.isatty()
        super().__init__(*first, *others, console=plain_console(of_errors=True), disable=is_hidden)


@contextmanager
def bar(doing: str, done: str, total: int) -> Iterator[Callable[[str], None]]:
    """Show a bar, and yield a function to call with the name of each item that is done."""
    with Bars() as bars:
        task = bars.add_task(doing, total=total)
        yield lambda name: bars.update(task, advance=1, description=f"{done} {name}")
