"""The streams and the console of the program: no text of a file reaches a terminal as a command."""

import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

import rich.console
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment

from mor_ref.cli.statuses import Status
from mor_ref.printable import printable_lines


class _Guarded:
    """A stream that ends the program with a sentence if it cannot be written."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with ending_if_unwritable(self._stream):
            return self._stream.write(text)

    def flush(self) -> None:
        with ending_if_unwritable(self._stream):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Stream(_Guarded):
    """A stream that shows control characters in place of sending them."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        # Consoles take it, as they have commands of their own.
        self.rich_proxied_file = _Guarded(stream)

    def write(self, text: str) -> int:
        return super().write(printable_lines(text))


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
def ending_if_unwritable(stream: TextIO) -> Iterator[None]:
    """End the program if a stream cannot be written, with a sentence that says which and why.

    If nobody reads it any more, as `head` does not after its lines, the status is that of a program
    which SIGPIPE ends: 1 would say that bits differ.
    """
    try:
        yield
    except OSError as error:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        is_error = stream.fileno() == sys.__stderr__.fileno() if sys.__stderr__ else False
        os.dup2(nowhere, stream.fileno())  # for what is still in the buffer
        os.close(nowhere)
        if isinstance(error, BrokenPipeError):
            raise SystemExit(Status.CLOSED_PIPE) from None
        name = "error" if is_error else "output"
        print(
            f"mor-ref: the standard {name} cannot be written ({error.strerror}); free space on its "
            "disk, or send it to another file",
            file=sys.stderr,
        )
        raise SystemExit(Status.WRONG_CALL) from None


@contextmanager
def former_names_printed() -> Iterator[None]:
    """Print the sentence of each former name to the standard error; Python hides most of them."""
    with warnings.catch_warnings():
        others = warnings.showwarning

        def show(message: Warning | str, kind: type[Warning], *rest: Any) -> None:
            if issubclass(kind, DeprecationWarning):
                print(f"mor-ref: {message}", file=sys.stderr)
            else:
                others(message, kind, *rest)

        warnings.filterwarnings("always", ".* the former name goes in", DeprecationWarning)
        warnings.showwarning = show  # type: ignore[assignment]
        yield


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
        try:
            sys.stdout.flush()
        finally:
            sys.stdout, sys.stderr = streams


def status_of(program: Callable[[], object]) -> Status:
    """Run a program; say an error in one sentence, and return the exit status.

    An exception that is not the user's has its traceback before the sentence: Python alone would
    end with 1, which says that bits differ.
    """
    try:
        program()
    except RecursionError:
        return _fault()
    except (ValueError, TypeError, OSError, RuntimeError) as error:
        print(f"mor-ref: {' '.join(str(error).splitlines())}", file=sys.stderr)
        return Status.WRONG_CALL
    except MemoryError as error:
        said = f" ({error})" if str(error) else ""
        sentence = f"there is not enough memory{said}; free some, or give smaller tensors"
        print(f"mor-ref: {sentence}", file=sys.stderr)
        return Status.NOT_RUN
    except Exception:  # noqa: BLE001 (whatever it is, it is reported)
        return _fault()
    return Status.DONE


def _fault() -> Status:
    """Print the exception that is handled, and whose fault it is."""
    from mor_ref.workers.added_rows import modules_of_rows

    traceback.print_exc()
    own = modules_of_rows()
    whose = f"mor_ref, or of {', '.join(own)}" if own else "mor_ref"
    print(
        f"mor-ref: this is a fault of {whose}, and says nothing about your bits; report it to the "
        "maintainers of mor_ref, with the lines above, the call, and `mor-ref --version`",
        file=sys.stderr,
    )
    return Status.FAULT
