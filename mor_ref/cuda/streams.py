"""The order between streams: what one has written is there, and not overwritten while it is read.

CuPy and torch keep memory that is let go of for the stream that it was taken on, and give it to
what that stream is given next, whoever may still read it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from mor_ref.cuda.device import USING_MEMORY, cupy, explained


class Moment(NamedTuple):
    """When all is done that a stream was given so far."""

    stream: Any
    event: Any


def now(stream: Any = None) -> Moment:
    """Return the moment of a stream of the current GPU, or of the current stream."""
    stream = stream or cupy().cuda.get_current_stream()
    with explained(*USING_MEMORY):
        event = cupy().cuda.Event(disable_timing=True)
        event.record(stream)
    return Moment(stream, event)


@contextmanager
def current(stream: Any) -> Iterator[None]:
    """Make a stream the current one of the current GPU, and restore the previous one at the end.

    CuPy's own `with stream` forgets what `Stream.use` has set.
    """
    before = cupy().cuda.get_current_stream()
    stream.use()
    try:
        yield
    finally:
        before.use()


@contextmanager
def after(moment: Moment) -> Iterator[None]:
    """Read here on the current stream after the moment, whose stream then waits for the reading."""
    with explained(*USING_MEMORY):
        cupy().cuda.get_current_stream().wait_event(moment.event)
    try:
        yield
    finally:  # kernels that were launched before a failure read as well
        done = now()
        with explained(*USING_MEMORY):
            moment.stream.wait_event(done.event)
