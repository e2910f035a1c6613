"""Workers that run the shards of a large piece of work, on this machine or on many.

A shard is a call of a function of this package. Its result is the same wherever and however often
it is run, so a shard whose worker was lost is run again. The results are in the order of the
shards: they are the same bytes for any workers and any number of them.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

from mor_ref.argument_checks import whole_number
from mor_ref.engine.parallel import available_threads
from mor_ref.signals import usual_signals
from mor_ref.workers.package_digest import digest_of_sources
from mor_ref.workers.progress import OnStep, listening, send_steps_to
from mor_ref.workers.shards import Executors, Outcome, WorkersError, outcomes

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

Result = TypeVar("Result")

_DASK = "dask://"
_PATIENCE = 10.0  # seconds for a scheduler to answer
_PATIENCE_FOR_WORKERS = 10.0  # and for the first worker to come
_DIGEST = (
    "__import__('mor_ref.workers.package_digest', fromlist=['package_digest']).digest_of_sources()"
)
_MOST = 1 << 20  # workers
_FOR_EACH = 4  # shards submitted for each worker: it finds the next one waiting


class Workers:
    """Executors of `concurrent.futures` that run shards; a broken one is opened again."""

    def __init__(
        self,
        opened: Callable[[], AbstractContextManager[Executor]],
        count: int | None = None,
        losses: tuple[type[Exception], ...] = (),
    ) -> None:
        """`count` is how many there are; as many as this process has processors if not given.

        `losses` are the errors that mean no more than that workers were lost; BrokenExecutor does.
        """
        most = available_threads() if count is None else whole_number("count", count, 1, _MOST)
        self._executors = Executors(opened, _FOR_EACH * most, losses)

    @classmethod
    def of(
        cls,
        executor: Executor,
        count: int | None = None,
        losses: tuple[type[Exception], ...] = (),
    ) -> "Workers":
        """Return so many workers of an executor, which its owner closes.

        An executor that breaks is not opened anew: it loses the shards that are not done.
        """
        return cls(lambda: nullcontext(executor), count, losses)

    def as_done(
        self,
        function: Callable[..., Result | Outcome[Result]],
        shards: Sequence[tuple[Any, ...]],
    ) -> Iterator[tuple[int, Result]]:
        """Yield the number of each shard and the function's result for it, as they are done."""
        for number, outcome in outcomes(self._executors, function, shards, ()):
            yield number, outcome.result()

    def in_order(
        self,
        function: Callable[..., Result | Outcome[Result]],
        shards: Sequence[tuple[Any, ...]],
    ) -> Iterator[Result]:
        """Yield the result of the function for each shard, in the order of the shards.

        An error of a shard is raised when its turn comes.
        """
        for outcome in self.outcomes_in_order(function, shards):
            yield outcome.result()

    def outcomes_in_order(
        self,
        function: Callable[..., Result | Outcome[Result]],
        shards: Sequence[tuple[Any, ...]],
    ) -> Iterator[Outcome[Result]]:
        """Yield the outcome of each shard, a result or an error, in the order of the shards."""
        early: dict[int, Outcome[Result]] = {}
        following = 0
        for number, outcome in outcomes(self._executors, function, shards, early):
            early[number] = outcome
            while following in early:
                yield early.pop(following)
                following += 1


# ---------------------------------------------------------------------- this machine


def processes(on_step: OnStep | None = None) -> Workers:
    """Return workers that are processes: one for each processor that this one may use.

    `on_step` is called, in another thread, with the name of each step that a shard says is done.
    """
    return Workers(lambda: _processes(on_step))


@contextmanager
def _processes(on_step: OnStep | None = None) -> Iterator[Executor]:
    listened = nullcontext() if on_step is None else listening(on_step)
    with (
        listened as writer,
        _Processes(available_threads(), initializer=_begin, initargs=(writer,)) as pool,
    ):
        try:
            yield pool
        except BaseException:  # nobody waits for the other results: do not finish them
            for process in dict(pool._processes).values():  # noqa: SLF001 (public in Python 3.14)
                process.kill()
            raise


class _Processes(ProcessPoolExecutor):
    """Processes that are killed if nobody waits for their results, so that no result is cancelled.

    The executor of Python 3.11 prints an error for each that was.
    """

    def submit(self, function: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        future = super().submit(function, *given, **named)
        future.cancel = lambda: False  # type: ignore[method-assign]
        return future


def _begin(writer: "Connection | None") -> None:
    send_steps_to(writer)
    _end_with_parent()


def _end_with_parent() -> None:
    """End this process when its parent is killed; else it would wait for work for ever.

    A parent that is interrupted ends its processes.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    usual_signals()
    parent = multiprocessing.parent_process()

    def wait_and_end() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait_and_end, daemon=True).start()


# ---------------------------------------------------------------------- many machines


@contextmanager
def workers_named(name: str) -> Iterator[Workers | None]:
    """Open the workers that `dask://HOST:PORT` or `mpi` names; give None for `local`."""
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
    with _client_of(address, distributed.Client) as client:
        executor = client.get_executor(pure=False)
        # Dask abandons a shard with the fourth worker that it loses, which may be no fault of it.
        count = sum(client.nthreads().values()) or None  # none, if they are being started anew
        yield Workers.of(executor, count, (distributed.KilledWorker,))


def _client_of(address: str, client: Callable[..., Any]) -> Any:
    """Yield a client of a scheduler whose workers run this program."""
    connected: Future[Any] = Future()

    def connect() -> None:
        try:
            connected.set_result(client(f"tcp://{address}", timeout=_PATIENCE))
        except Exception as error:  # noqa: BLE001 (it is raised where the client is waited for)
            connected.set_exception(error)

    # If the listener is not a scheduler, this waits for ever, even with a timeout.
    threading.Thread(target=connect, daemon=True).start()
    try:
        found = connected.result(2 * _PATIENCE)
    except (OSError, ValueError) as error:
        raise WorkersError(
            f"there is no Dask scheduler at {address} ({error or 'it does not answer'}); start one "
            "with dask scheduler"
        ) from error
    try:
        _check_workers(found, address)
    except BaseException:
        found.close()
        raise
    return found


def _check_workers(client: Any, address: str) -> None:
    try:
        client.wait_for_workers(1, timeout=_PATIENCE_FOR_WORKERS)
    except TimeoutError as error:
        raise WorkersError(
            f"the scheduler at {address} has no workers; start one with dask worker tcp://{address}"
        ) from error
    # A worker that lacks a module of a shard does not refuse it, but is lost without a word.
    digests = client.run(eval, _DIGEST, on_error="return")
    others = sorted(worker for worker, digest in digests.items() if digest != digest_of_sources())
    if others:
        raise WorkersError(
            f"mor_ref is not there, or another version, on the workers {', '.join(others)}; "
            "install the same on all"
        )


@contextmanager
def _of_mpi() -> Iterator[Workers]:
    """Give the first rank its workers: all ranks come here, and the others work and end with it."""
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
            yield Workers.of(executor, MPI.COMM_WORLD.size - 1)
            return
    raise SystemExit(0)
