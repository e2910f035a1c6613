"""The steps of a shard: a process of this machine says that one is done while the shard runs."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import Pipe
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

OnStep = Callable[[str], None]

_END = b""
_writer: "Connection | None" = None  # in a process whose steps are listened to


def step_done(name: str) -> None:
    """Say that a step of this name is done; only a process of `listening` is heard.

    So short a message is written whole or not at all, so processes share the pipe without a lock.
    A process that is killed would never release a lock.
    """
    if _writer is not None:
        with suppress(OSError):  # the listener has ended
            _writer.send_bytes(name.encode("utf-8"))


def send_steps_to(writer: "Connection | None") -> None:
    """Send the steps of this process there from now on."""
    global _writer  # noqa: PLW0603 (it is of the process, as its pipe is)
    _writer = writer


@contextmanager
def listening(on_step: OnStep) -> "Iterator[Connection]":
    """Open a pipe for the steps of processes, and call a function with each, in a thread."""
    reader, writer = Pipe(duplex=False)
    listener = threading.Thread(target=_listen, args=(reader, on_step), daemon=True)
    with reader, writer:
        listener.start()
        try:
            yield writer
        finally:
            writer.send_bytes(_END)
            listener.join()


def _listen(reader: "Connection", on_step: OnStep) -> None:
    names = iter(reader.recv_bytes, _END)
    try:
        for name in names:
            on_step(name.decode("utf-8"))
    finally:
        for _ in names:  # if `on_step` raised: a full pipe would stop the processes
            pass
