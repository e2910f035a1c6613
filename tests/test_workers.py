"""Workers: shards that fail, die or come late, and executors that end."""

import os
import pickle
import signal
import sys
import threading
import weakref
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from dataclasses import replace
from types import SimpleNamespace

import pytest
from worker_pools import dying_once, pid_among, threads, two_processes, wait_until

from mor_ref.workers import pools as workers
from mor_ref.workers import shards
from mor_ref.workers.package_digest import digest_of_sources
from mor_ref.workers.pools import Workers, processes, workers_named
from mor_ref.workers.progress import step_done
from mor_ref.workers.shards import WorkersError

__all__ = ["two_processes"]  # a fixture


@pytest.mark.parametrize("releases", ["the first result", "the last shard"])
def test_results_come_in_the_order_of_the_shards(releases):
    """The first shard is not done before another is."""
    asked, released = [(n,) for n in range(8)], threading.Event()

    def square(number):
        if number == 0:
            released.wait()
        elif number == 7 and releases == "the last shard":
            released.set()
        return number * number

    if releases == "the first result":
        found = threads().as_done(square, asked)
        first = next(found)
        assert first[0] != 0
        released.set()
        assert sorted([first, *found]) == [(n, n * n) for n in range(8)]
    else:
        assert list(threads().in_order(square, asked)) == [n * n for n in range(8)]
    assert list(threads().in_order(square, [])) == []


def test_a_killed_process_loses_nothing(tmp_path):
    asked = [(tmp_path / "killed", n) for n in range(6)]
    assert list(processes().in_order(dying_once, asked)) == list(range(6))
    assert (tmp_path / "killed").exists()


def stepping(folder, number):
    step_done(f"step {number}")
    wait_until((folder / f"step {number}").exists)
    return number


def test_steps_are_reported_while_their_shards_run(tmp_path):
    """Each shard waits until its step was heard."""
    found = processes(lambda name: (tmp_path / name).touch())
    assert list(found.in_order(stepping, [(tmp_path, n) for n in range(5)])) == list(range(5))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_error_of_who_hears_steps_stops_no_process():
    """A pipe that nobody reads would be full after so many."""

    def raising(name):
        raise ArithmeticError(name)

    assert list(processes(raising).in_order(stepping_often, [(1,)])) == [1]
    assert list(threads().in_order(stepping_often, [(2,)])) == [2], "nobody hears a thread"


def stepping_often(number):
    for _ in range(20_000):
        step_done("a")
    return number


@pytest.mark.parametrize("count", [1, 3])
def test_there_are_as_many_processes_as_processors(monkeypatch, tmp_path, count):
    """Of those that this process may use, not of the machine."""
    most = []

    class Noted(workers._Processes):
        def __init__(self, max_workers, **options):
            most.append(max_workers)
            super().__init__(max_workers, **options)

    monkeypatch.setattr(workers, "available_threads", lambda: count)
    monkeypatch.setattr(workers, "_Processes", Noted)
    pids = set(processes().in_order(pid_among, [(tmp_path, count)] * 12))
    assert (most, len(pids)) == ([count], count)


def dying(_):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.tier("full")
def test_a_shard_that_kills_every_worker_is_given_up():
    with pytest.raises(WorkersError, match="every worker that took a shard was lost"):
        list(processes().in_order(dying, [(1,)]))


def refusing(number):
    if number == 3:
        raise ValueError("number is 3; give another")
    return number


def test_what_a_shard_raises_is_raised():
    found = threads().in_order(refusing, [(n,) for n in range(6)])
    with pytest.raises(ValueError, match="number is 3"):
        list(found)


class TwoPartsError(Exception):
    """As many are: it cannot be made again of its message."""

    def __init__(self, one, other):
        super().__init__(f"{one} and {other}")


def unsendable(number):
    if number == 3:
        raise TwoPartsError("this", "that")
    return (lambda: number) if number == 4 else number


@pytest.mark.parametrize(
    ("number", "said"),
    [(3, "this and that$"), (4, "cannot send the result of a shard")],
)
def test_what_cannot_be_sent_is_reported_of_its_shard(number, said):
    """And takes no process with it. Dask, once imported, makes every error one that can be sent."""
    found = processes().in_order(unsendable, [(n,) for n in (0, 1, number, 5, 6)])
    assert [next(found), next(found)] == [0, 1]
    with pytest.raises((WorkersError, TwoPartsError), match=said):
        next(found)


def test_results_that_changed_on_the_way_are_noticed(monkeypatch):
    """Of whatever they are."""
    honest = shards.Outcome.of.__func__
    monkeypatch.setattr(
        shards.Outcome,
        "of",
        classmethod(
            lambda cls, given: replace(honest(cls, given), written=pickle.dumps(given + 1))
        ),
    )
    with pytest.raises(WorkersError, match="the result of a shard changed on its way"):
        next(threads().in_order(pow, [(3, 2)]))


class LostError(Exception):
    """The log of an executor that has lost some workers and goes on."""


@pytest.mark.parametrize(
    ("numbers", "losses", "is_given_up"),
    [
        (range(20), [BrokenExecutor] * 3, True),
        (range(20), [BrokenExecutor, LostError], False),
        ([2], [BrokenExecutor] * 3, True),
        ([2], [BrokenExecutor] * 2, False),
    ],
)
def test_a_shard_is_given_up_at_the_third_loss_if_it_was_alone(numbers, losses, is_given_up):
    """After the second it runs alone: with others, it would not be sure whose fault the loss is."""
    taken, left = [], list(losses)

    class Losing(Executor):
        def __init__(self):
            taken.append([])

        def submit(self, function, *call):
            future, number = Future(), call[-1][0]
            taken[-1].append(number)
            if number == 2 and left:
                future.set_exception(left.pop(0)())
            else:
                future.set_result(function(*call))
            return future

    found = Workers(Losing, 1, (LostError,)).as_done(pow, [(n, 2) for n in numbers])
    if is_given_up:
        with pytest.raises(WorkersError, match="every worker that took a shard was lost"):
            list(found)
        assert (len(taken[1]) > 1) == (len(numbers) > 1)
        assert taken[2] == [2]
    else:
        assert sorted(found) == [(k, n * n) for k, n in enumerate(numbers)]
    assert not left


def test_losses_that_an_executor_reports_are_made_good():
    """One that is reported twice, the second time of a shard that was alone, is the shard's own."""
    for most, fails in ((1, False), (2, True)):
        left = {2: most}

        def fail(future, left=left):
            left[2] -= 1
            future.set_exception(LostError("many workers"))

        class Losing(Failing):
            def submit(self, function, *call, left=left):
                if left.get(call[-1][0], 0) > 0:
                    return super().submit(function, *call)
                return ThreadPoolExecutor.submit(self, function, *call)

        with Losing(fail) as executor:
            found = Workers.of(executor, 2, (LostError,)).in_order(pow, [(n, 2) for n in range(9)])
            if fails:
                assert [next(found), next(found)] == [0, 1]
                with pytest.raises(WorkersError, match="every worker that took a shard was lost"):
                    next(found)
            else:
                assert list(found) == [n * n for n in range(9)]


def test_another_program_is_refused(monkeypatch):
    digests = iter(["ours", "theirs"])
    monkeypatch.setattr(shards, "digest_of_program", lambda _: next(digests))
    with pytest.raises(WorkersError, match="another version of mor_ref"):
        list(threads(1).in_order(pow, [(1, 2)]))


class BreakingInTheEnd(ThreadPoolExecutor):
    """Breaks at its fifth submission, as a pool does one of whose processes was killed."""

    def __init__(self):
        super().__init__(1)
        self.left = 5

    def submit(self, *call):
        self.left -= 1
        if self.left < 1:
            raise BrokenExecutor
        return super().submit(*call)


def test_workers_that_are_lost_while_shards_are_submitted():
    found = Workers(BreakingInTheEnd).in_order(pow, [(n, 2) for n in range(50)])
    assert list(found) == [n * n for n in range(50)]
    with BreakingInTheEnd() as executor:
        lasting = Workers.of(executor)
        found = lasting.in_order(pow, [(n, 2) for n in range(50)])
        with pytest.raises(WorkersError, match="every worker that took a shard was lost"):
            list(found)


@pytest.mark.parametrize("count", [0, -1, 1.5])
def test_as_many_workers_as_there_can_be(count):
    """With fewer than one, nothing would ever be handed out."""
    with ThreadPoolExecutor(1) as executor, pytest.raises((ValueError, TypeError), match="count"):
        Workers.of(executor, count)


ALIVE = weakref.WeakSet()


def test_an_executor_stays_open():
    with ThreadPoolExecutor(2) as executor:
        for _ in range(2):
            found = Workers.of(executor, 2).in_order(pow, [(n, 2) for n in range(50)])
            assert list(found) == [n * n for n in range(50)]
            assert next(Workers.of(executor).in_order(pow, [(3, 2), (4, 2)])) == 9
        assert executor.submit(pow, 2, 3).result() == 8


def test_what_nobody_waits_for_any_more_is_not_begun():
    """Whose executor goes on for others."""
    begun, released = [], threading.Event()

    def failing(number):
        begun.append(number)
        if number > 0:
            released.wait()
        raise ValueError

    with ThreadPoolExecutor(1) as executor:
        with pytest.raises(ValueError):  # noqa: PT011
            next(Workers.of(executor, 2).in_order(failing, [(n,) for n in range(8)]))
        released.set()
    assert begun in ([0], [0, 1])


class Failing(ThreadPoolExecutor):
    """Takes two shards, and fails at the third on purpose."""

    def __init__(self, fail):
        super().__init__(1)
        self.fail = fail

    def submit(self, function, *call):
        if call[-1][0] < 2:  # the shard
            return super().submit(function, *call)
        future = Future()
        self.fail(future)
        return future


def cancelled(future):
    future.cancel()
    future.set_running_or_notify_cancel()


@pytest.mark.parametrize(
    ("fail", "said"),
    [
        (cancelled, r"\(CancelledError\)"),
        (lambda future: future.set_exception(OSError("lost the way")), r"\(OSError: lost the way"),
        (lambda future: future.set_exception(ImportError("no a")), r"\(ImportError: no a\)"),
        (lambda future: future.absent, r"\(AttributeError: 'Future' object"),
    ],
)
def test_what_becomes_of_executors_is_a_sentence(fail, said):
    """Also a scheduler that ends, and a worker that lacks what a shard is made of."""
    found = Workers(lambda: Failing(fail)).in_order(pow, [(n, 2) for n in range(5)])
    assert [next(found), next(found)] == [0, 1]
    with pytest.raises(WorkersError, match=said):
        next(found)


class Kept(shards.Outcome):
    def __init__(self, *given, **named):
        super().__init__(*given, **named)
        ALIVE.add(self)


class OneSlow(Executor):
    """Runs a shard as it is submitted; only the slow one when nothing else is left to wait for."""

    def __init__(self, slow):
        self.slow, self.late = slow, None

    def submit(self, function, *call):
        future = Future()

        def run():
            future.set_result(function(*call))

        if call[-1][0] == self.slow:  # the shard
            self.late = run
        else:
            run()
        return future

    def wait(self, futures, **options):
        if not any(future.done() for future in futures):
            self.late()
        return wait(futures, **options)


@pytest.mark.parametrize("slow", [None, 0, 30])
def test_few_results_are_kept(monkeypatch, slow):
    """Whether those who take them are slow, or one of the shards is."""
    monkeypatch.setattr(shards, "Outcome", Kept)
    most, count = 0, 2
    executor = OneSlow(slow)
    monkeypatch.setattr(shards, "wait", executor.wait)
    found = Workers.of(executor, count).in_order(abs, [(n,) for n in range(60)])
    for number, result in enumerate(found):
        assert result == number
        most = max(most, len(ALIVE))
    assert number == 59
    assert 4 <= most <= 4 * count + 2, "as many as are submitted, and two that are at hand"


def dying_second(folder, number):
    """Kill the worker of shard 1; the first two times the other shards wait for that."""
    if number == 1:
        (folder / str(os.getpid())).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    wait_until(lambda: len(list(folder.iterdir())) >= 2)
    return number


def test_a_crash_is_reported_of_the_shard_that_crashes(tmp_path):
    """In its turn, and after the results of other shards, which are not done when it happens."""
    found = processes().in_order(dying_second, [(tmp_path, n) for n in range(4)])
    assert next(found) == 0
    with pytest.raises(WorkersError, match="every worker that took a shard was lost"):
        next(found)
    found = threads().in_order(refusing, [(n,) for n in range(6)])
    assert [next(found), next(found), next(found)] == [0, 1, 2]
    with pytest.raises(ValueError, match="number is 3"):
        next(found)


@pytest.mark.parametrize("name", ["", "dask", "dask://", "mpi2", "localhost", "Local"])
def test_unknown_executors(name):
    with (
        pytest.raises(ValueError, match="give local, dask://HOST:PORT or mpi"),
        workers_named(name),
    ):
        pass


def test_a_cluster_whose_workers_begin_anew_has_workers(monkeypatch):
    """It says that it has none, and is taken to have as many as this machine."""

    class Client:
        def __init__(self, address, timeout):
            assert (address, timeout > 0) == ("tcp://here:1", True)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def wait_for_workers(self, count, timeout):
            assert (count, timeout > 0) == (1, True)

        def run(self, *_, on_error):
            assert on_error == "return"
            return {"a worker": digest_of_sources()}

        def get_executor(self, pure):
            assert not pure
            return executor

        def nthreads(self):
            return {}

    module = SimpleNamespace(Client=Client, KilledWorker=LostError)
    monkeypatch.setitem(sys.modules, "distributed", module)
    with ThreadPoolExecutor(1) as executor, workers_named("dask://here:1") as found:
        assert list(found.in_order(pow, [(n, 2) for n in range(9)])) == [n * n for n in range(9)]


def test_local_is_this_process():
    with workers_named("local") as found:
        assert found is None
