"""The order between streams: a stream reads memory after it is written, before it is overwritten.

CuPy and torch keep freed memory for the stream that allocated it. The next work of that stream may
get the memory while another stream still reads it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from mor_ref.cuda.device import USING_MEMORY, cupy, explained


class Moment(NamedTuple):
    """The moment when a stream has done all its work so far."""

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

    CuPy's own `with stream` does not restore a stream that `Stream.use` has set.
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
