"""Workers that run the shards of a large piece of work, on this machine or on many.

A shard is a call of a function of this package. It gives the same wherever and however often it is
run: one whose worker was lost is run again, and the results in the order of the shards are the same
bytes for any workers and any number of them.
"""

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, as_completed
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeVar

from mor_ref.sources import digest_of_sources

Result = TypeVar("Result")

_DASK = "dask://"
_MOST_LOST = 3  # times that workers are lost without any shard being done in between
_LOST = (
    "every worker that took a shard was lost; what it runs may crash, or the machine be short of "
    "memory: see that each worker has enough"
)


class WorkersError(RuntimeError):
    """Workers that cannot be had, or do not do what they are asked."""


def threads_of_worker(threads: int | None) -> int:
    """How many a shard uses: one if none are asked for, as other workers share the machine."""
    return 1 if threads is None else threads


class Workers:
    """What runs shards: executors of `concurrent.futures`, opened anew where one is broken."""

    def __init__(
        self,
        opened: Callable[[], AbstractContextManager[Executor]],
        given_up: tuple[type[Exception], ...] = (),
    ) -> None:
        """`given_up` is raised by executors that run a shard again themselves, at last."""
        self.opened = opened
        self._given_up = given_up

    def as_done(
        self, function: Callable[..., Result], shards: Sequence[tuple[Any, ...]]
    ) -> Iterator[tuple[int, Result]]:
        """The number of each shard and what the function gives for it, as they are done."""
        left = set(range(len(shards)))
        lost = 0
        while left:
            with self.opened() as executor:
                waiting = {
                    executor.submit(run_shard, digest_of_sources(), function, shards[n]): n
                    for n in sorted(left)
                }
                try:
                    for number, result in _results(waiting):
                        left.remove(number)
                        lost = 0
                        yield number, result
                except BrokenExecutor as error:
                    lost += 1
                    if lost == _MOST_LOST:
                        raise WorkersError(_LOST) from error
                except self._given_up as error:
                    raise WorkersError(_LOST) from error
                finally:
                    for future in waiting:
                        future.cancel()

    def in_order(
        self, function: Callable[..., Result], shards: Sequence[tuple[Any, ...]]
    ) -> Iterator[Result]:
        """What the function gives for each shard, in the order of the shards."""
        early: dict[int, Result] = {}
        following = 0
        for number, result in self.as_done(function, shards):
            early[number] = result
            while following in early:
                yield early.pop(following)
                following += 1


def _results(waiting: dict[Future[Result], int]) -> Iterator[tuple[int, Result]]:
    for future in as_completed(waiting):
        yield waiting[future], future.result()


def run_shard(program: str, function: Callable[..., Result], shard: tuple[Any, ...]) -> Result:
    """Run a shard, if this is the program that asks for it: another one may give something else."""
    if digest_of_sources() != program:
        raise WorkersError(
            "a worker runs another version of mor_ref than this program; install the same on all"
        )
    return function(*shard)


# ---------------------------------------------------------------------- this machine


def processes() -> Workers:
    """Processes of this machine, one for each processor."""
    return Workers(lambda: ProcessPoolExecutor(initializer=_end_with_parent))


def _end_with_parent() -> None:
    """Left alone by one that is killed, they would wait for work for ever."""
    parent = multiprocessing.parent_process()

    def wait_and_end() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait_and_end, daemon=True).start()


# ---------------------------------------------------------------------- many machines


@contextmanager
def workers_named(name: str) -> Iterator[Workers | None]:
    """The workers that are meant by `dask://HOST:PORT` or `mpi`; None for `local`, this process."""
    if name == "local":
        yield None
    elif name == "mpi":
        with _of_mpi() as workers:
            yield workers
    elif name.startswith(_DASK) and len(name) > len(_DASK):
        with _of_dask(name.removeprefix(_DASK)) as workers:
            yield workers
    else:
        raise ValueError(f"executor is {name!r}; give local, dask://HOST:PORT or mpi")


@contextmanager
def _of_dask(address: str) -> Iterator[Workers]:
    try:
        import distributed
    except ImportError as error:
        raise WorkersError(
            "executor dask needs Dask; install it with pip install 'mor-ref[dask]'"
        ) from error
    try:
        client: Any = distributed.Client(f"tcp://{address}")
    except (OSError, ValueError) as error:
        raise WorkersError(
            f"there is no Dask scheduler at {address} ({error}); start one with dask scheduler"
        ) from error
    with client:
        executor = client.get_executor(pure=False)
        yield Workers(lambda: nullcontext(executor), (distributed.KilledWorker,))


@contextmanager
def _of_mpi() -> Iterator[Workers]:
    """All ranks come here; the first goes on, the others work for it and end with it."""
    try:
        from mpi4py import MPI
        from mpi4py.futures import MPICommExecutor
    except (ImportError, RuntimeError) as error:
        raise WorkersError(
            f"executor mpi needs mpi4py and an MPI library ({error}); install them with "
            "pip install mpi4py mpich"
        ) from error
    if MPI.COMM_WORLD.size < 2:
        raise WorkersError(
            "executor mpi needs more than one process; start it with mpiexec -n 5 mor-ref .."
        )
    with MPICommExecutor(MPI.COMM_WORLD, root=0) as found:
        if found is not None:
            executor: Any = found  # with the methods of an Executor, and not of that class
            yield Workers(lambda: nullcontext(executor))
            return
    raise SystemExit(0)
