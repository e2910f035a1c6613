"""The shards of a piece of work on their way through executors, which may lose their workers."""

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

from mor_ref.engine.parallel import one_thread
from mor_ref.sources import digest_of_sources

Result = TypeVar("Result")

_SUSPECT = 2  # losses of workers while a shard was waited for, after which it is waited for alone
_MOST_LOST = 3  # and after which it is given up
_UNDONE = (
    "a worker could not take its shard, or send what came of it ({}); see that the workers go on, "
    "and whoever hands out work to them"
)
_LOST = (
    "every worker that took a shard was lost; what it runs may crash, or the machine be short of "
    "memory: see that each worker has enough"
)


class WorkersError(RuntimeError):
    """Workers that cannot be had, or do not do what they are asked."""


@dataclass(frozen=True)
class Outcome(Generic[Result]):
    """What became of a shard: what its function gave, or the error that it raised."""

    given: Result | None = None
    error: Exception | None = None

    def result(self) -> Result:
        """What the function gave; the error is raised."""
        if self.error is not None:
            raise self.error
        return self.given  # type: ignore[return-value]


def run_shard(
    program: str, function: Callable[..., Result], shard: tuple[Any, ...]
) -> Outcome[Result]:
    """Run a shard, if this is the program that asks for it: another one may give something else."""
    if digest_of_sources() != program:
        return Outcome(
            error=WorkersError(
                "a worker runs another version of mor_ref than this program; install the same on "
                "all"
            )
        )
    try:
        with one_thread():
            return Outcome(function(*shard))
    except Exception as error:  # noqa: BLE001 (it is raised where the shard was asked for)
        return Outcome(error=error)


def outcomes(
    opened: Callable[[], AbstractContextManager[Executor]],
    function: Callable[..., Result],
    shards: Sequence[tuple[Any, ...]],
    window: int,
    held: Sized,
) -> Iterator[tuple[int, Outcome[Result]]]:
    """The number and the outcome of each shard, as they are done.

    There are at most `window` that were submitted and whose outcomes were not taken; `held` are
    outcomes that were given here and are not taken yet.
    """
    pending: _Pending[Result] = _Pending(function, shards)
    while pending.is_left:
        pending.is_broken = False
        with opened() as executor:
            try:
                while pending.is_left and not pending.is_broken:
                    pending.fill(executor, window - len(held))
                    done = pending.done()
                    while done:
                        yield done.pop()
            finally:
                pending.cancel()


class _Pending(Generic[Result]):
    """The shards that are not done: those to do, in their order, and those that are waited for."""

    def __init__(self, function: Callable[..., Result], shards: Sequence[tuple[Any, ...]]) -> None:
        self.is_broken = False
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
                run_shard, digest_of_sources(), self._function, self._shards[number]
            )
        except Exception as error:  # noqa: BLE001 (it is what became of this shard)
            failed: Future[Outcome[Result]] = Future()
            failed.set_exception(error)
            return failed

    def done(self) -> list[tuple[int, Outcome[Result]]]:
        """Wait for a shard; what is done then, and the shards that were lost are to do again."""
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
            except BrokenExecutor as error:
                self._losses[number] += 1
                if is_alone and self._losses[number] >= _MOST_LOST:
                    found.append((number, _failed(_LOST, error)))
                else:
                    lost.append(number)
            except Exception as error:  # noqa: BLE001 (those of the shard itself are outcomes)
                found.append((number, _failed(_UNDONE.format(_in_a_line(error)), error)))
        self._to_do.extendleft(sorted(lost, reverse=True))
        return found

    def cancel(self) -> None:
        """Begin no more of what is waited for."""
        for future in self._waiting:
            future.cancel()


def _error_of(future: Future[Any]) -> BaseException | None:
    return CancelledError() if future.cancelled() else future.exception()


def _in_a_line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}".removesuffix(": ")


def _failed(reason: str, error: Exception) -> Outcome[Any]:
    failure = WorkersError(reason)
    failure.__cause__ = error
    return Outcome(error=failure)
