"""Signals that end a program: it leaves no unfinished file, and no process that it started."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

_ENDING = (signal.SIGTERM, signal.SIGHUP)
_SOON = 0.05  # seconds until an interrupt comes again that was lost


class EndedError(KeyboardInterrupt):
    """The signal of this number came; the program ends as after an interrupt."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextlib.contextmanager
def signals_unwind() -> Iterator[None]:
    """Let signals that end the program raise an error; at last, it ends by the signal that came.

    One that is ignored stays so. An interrupt in a call that cannot raise, such as a destructor,
    would be lost. It comes again.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual = {number: signal.getsignal(number) for number in _ENDING}
    hook, came = sys.unraisablehook, list[int]()

    def unwind(number: int, _: FrameType | None) -> None:
        came.append(number)
        raise EndedError(number)

    def again(lost: Any) -> None:
        if isinstance(lost.exc_value, KeyboardInterrupt):
            number = getattr(lost.exc_value, "number", signal.SIGINT)
            threading.Timer(_SOON, os.kill, (os.getpid(), number)).start()
        else:
            hook(lost)

    for number, handler in usual.items():
        if handler is signal.SIG_DFL:
            signal.signal(number, unwind)
    sys.unraisablehook = again
    try:
        yield
    finally:
        sys.unraisablehook = hook
        for number, handler in usual.items():
            signal.signal(number, handler)
        if came:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError, ValueError):
                    stream.flush()
            os.kill(os.getpid(), came[0])


@contextlib.contextmanager
def signals_later() -> Iterator[None]:
    """Delay signals that raise, until the end of a call that cannot be interrupted.

    Only the main thread has signals.
    """
    came: list[int] = []
    usual: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for each in (signal.SIGINT, *_ENDING):
            handler = signal.getsignal(each)
            if callable(handler):
                usual[each] = handler
                signal.signal(each, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)
        for before in came:
            signal.raise_signal(before)


def usual_signals() -> None:
    """End this process by signals, as any other; its parent has the work to clean up."""
    for number in _ENDING:
        signal.signal(number, signal.SIG_DFL)
