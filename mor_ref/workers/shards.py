"""The shards of a piece of work on their way through executors, which may lose their workers."""

import pickle
import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence, Sized
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    wait,
)
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from mor_ref.argument_checks import error_text
from mor_ref.engine.parallel import one_thread
from mor_ref.workers.added_rows import add_rows, digest_of_program, modules_of_rows

Result = TypeVar("Result")

# Losses of workers during a shard: after so many it runs alone, and after so many it is given up.
_SUSPECT, _MOST_LOST = 2, 3
_UNDONE = (
    "a worker failed to take its shard or to return the result ({}); check that the workers and "
    "the scheduler still run"
)
_UNSENT = "a worker cannot send the result of a shard ({}); check that the result can be pickled"
_CHANGED = (
    "the result of a shard changed on its way from the worker; check the network and the memory"
)
_LOST = (
    "every worker that took a shard was lost; the shard may crash, or need more memory: check that "
    "each worker has enough"
)


class WorkersError(RuntimeError):
    """Workers that cannot be started, or that fail to return results."""


@dataclass(frozen=True)
class Outcome(Generic[Result]):
    """The outcome of a shard: the pickled result of its function, or the error raised."""

    written: bytes = b""
    checksum: int = 0
    error: Exception | None = None

    @classmethod
    def of(cls, given: Result) -> "Outcome[Result]":
        """Return the outcome of a function that gave this."""
        try:
            written = pickle.dumps(given)
        except Exception as error:
            raise WorkersError(_UNSENT.format(_in_a_line(error))) from error
        return cls(written, zlib.crc32(written))

    def result(self) -> Result:
        """Return the result of the function, or raise its error."""
        if self.error is not None:
            raise self.error
        if zlib.crc32(self.written) != self.checksum:
            raise WorkersError(_CHANGED)
        given: Result = pickle.loads(self.written)  # noqa: S301 (it is this package that sends)
        return given


@dataclass(frozen=True)
class Executors:
    """Executors: how one is opened, and how many shards it works on at a time.

    An executor that is broken raises BrokenExecutor. One that goes on raises one of `losses` if a
    shard was lost with all workers that had it.
    """

    opened: Callable[[], AbstractContextManager[Executor]]
    window: int
    losses: tuple[type[Exception], ...] = ()


_ANOTHER_VERSION = (
    "a worker runs another version of mor_ref, or of the modules of rows, than this program; "
    "install the same on all"
)


def run_shard(
    program: str,
    rows: tuple[str, ...],
    function: Callable[..., Result | Outcome[Result]],
    shard: tuple[Any, ...],
) -> Outcome[Result]:
    """Run a shard, if this is the program that asks for it: another one may give something else.

    `rows` are the modules whose rows the asking process has. The outcome of another process goes on
    as that one wrote it, so that its checksum is that of the whole way.
    """
    try:
        add_rows(rows)
        if digest_of_program(rows) != program:
            return Outcome(error=WorkersError(_ANOTHER_VERSION))
        with one_thread():
            found = function(*shard)
            return found if isinstance(found, Outcome) else Outcome.of(found)
    except Exception as error:  # noqa: BLE001 (it is raised where the shard was asked for)
        return Outcome(error=_sendable(error))


def _sendable(error: Exception) -> Exception:
    """Return an error that pickle can restore; another breaks the executor that sends it."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 (it was written here)
    except Exception:  # noqa: BLE001 (somebody's error can raise anything)
        return WorkersError(_in_a_line(error))
    return error


def outcomes(
    executors: Executors,
    function: Callable[..., Result | Outcome[Result]],
    shards: Sequence[tuple[Any, ...]],
    held: Sized,
) -> Iterator[tuple[int, Outcome[Result]]]:
    """Yield the number and the outcome of each shard, as they are done.

    At most `executors.window` shards are submitted whose outcomes were not taken; `held` are
    outcomes that were given here and are not taken yet.
    """
    pending: _Pending[Result] = _Pending(function, shards, executors.losses)
    while pending.is_left:
        pending.is_broken = False
        with executors.opened() as executor:
            try:
                while pending.is_left and not pending.is_broken:
                    pending.fill(executor, executors.window - len(held))
                    done = pending.done()
                    while done:
                        yield done.pop()
            finally:
                pending.cancel()


class _Pending(Generic[Result]):
    """The shards that are not done: those to begin, in order, and those that are waited for."""

    def __init__(
        self,
        function: Callable[..., Result | Outcome[Result]],
        shards: Sequence[tuple[Any, ...]],
        losses: tuple[type[Exception], ...],
    ) -> None:
        self.is_broken = False
        self._lost: tuple[type[Exception], ...] = (BrokenExecutor, *losses)
        self._function = function
        self._shards = shards
        self._to_do = deque(range(len(shards)))
        self._waiting: dict[Future[Outcome[Result]], int] = {}
        self._losses = Counter[int]()

    @property
    def is_left(self) -> bool:
        """Whether any shard is not done."""
        return bool(self._to_do or self._waiting)

    def fill(self, executor: Executor, room: int) -> None:
        """Submit shards until so many are waited for; one that may crash is waited for alone."""
        while self._to_do and len(self._waiting) < room and self._may_go():
            number = self._to_do.popleft()
            self._waiting[self._submitted(executor, number)] = number

    def _may_go(self) -> bool:
        numbers = (self._to_do[0], *self._waiting.values())
        return len(numbers) == 1 or all(self._losses[n] < _SUSPECT for n in numbers)

    def _submitted(self, executor: Executor, number: int) -> Future[Outcome[Result]]:
        try:
            return executor.submit(
                run_shard,
                digest_of_program(modules_of_rows()),
                modules_of_rows(),
                self._function,
                self._shards[number],
            )
        except Exception as error:  # noqa: BLE001 (the error is the outcome of this shard)
            failed: Future[Outcome[Result]] = Future()
            failed.set_exception(error)
            return failed

    def done(self) -> list[tuple[int, Outcome[Result]]]:
        """Wait for a shard; return all that are done then. Lost shards are to do again."""
        ended = wait(self._waiting, return_when=FIRST_COMPLETED).done
        self.is_broken = any(isinstance(_error_of(future), BrokenExecutor) for future in ended)
        if self.is_broken:
            ended = wait(self._waiting).done  # the others end with their executor
        is_alone = len(self._waiting) == 1
        found, lost = [], []
        for future in ended:
            number = self._waiting.pop(future)
            try:
                found.append((number, future.result()))
            except self._lost as error:
                is_of_one = isinstance(error, BrokenExecutor)  # and not of many workers in a row
                self._losses[number] += 1 if is_of_one else _SUSPECT
                if is_alone and self._losses[number] >= _MOST_LOST:
                    found.append((number, _failed(_LOST, error)))
                else:
                    lost.append(number)
            except Exception as error:  # noqa: BLE001 (those of the shard itself are outcomes)
                found.append((number, _failed(_UNDONE.format(_in_a_line(error)), error)))
        self._to_do.extendleft(sorted(lost, reverse=True))
        return found

    def cancel(self) -> None:
        """Begin no more of the shards that are waited for."""
        for future in self._waiting:
            future.cancel()


def _error_of(future: Future[Any]) -> BaseException | None:
    return CancelledError() if future.cancelled() else future.exception()


def _in_a_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error_text(error)}".removesuffix(": ")


def _failed(reason: str, error: Exception) -> Outcome[Any]:
    failure = WorkersError(reason)
    failure.__cause__ = error
    return Outcome(error=failure)
