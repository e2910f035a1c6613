"""The streams and the console of the program: no text of a file reaches a terminal as a command."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

import rich.console
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment

from mor_ref.printable import printable_lines


class _Stream:
    """A stream that shows control characters in place of sending them."""

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream  # consoles take it, as they have commands of their own
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(printable_lines(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Console(rich.console.Console):
    """A console that shows the control characters of a text, and sends those of styles and bars."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield the segments of something; all text goes through here."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield segment._replace(text=printable_lines(segment.text))


@contextmanager
def printable_streams() -> Iterator[None]:
    """Let all that is printed be printable, also on a terminal that has ASCII alone."""
    streams = sys.stdout, sys.stderr
    for stream in streams:
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    sys.stdout, sys.stderr = (_Stream(stream) for stream in streams)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams


def status_of(program: Callable[[], object]) -> int:
    """Run a program; say an error in one sentence, and return the exit status."""
    try:
        program()
    except (ValueError, TypeError, OSError, RuntimeError) as error:
        print(f"mor-ref: {' '.join(str(error).splitlines())}", file=sys.stderr)
        return 2
    except MemoryError as error:
        said = f" ({error})" if str(error) else ""
        sentence = f"there is not enough memory{said}; free some, or give smaller tensors"
        print(f"mor-ref: {sentence}", file=sys.stderr)
        return 3
    return 0
