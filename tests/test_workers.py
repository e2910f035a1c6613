"""Work in shards: the same bytes for all workers, also where some are killed on the way."""

import contextlib
import importlib
import importlib.util
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from extras import imported, reason, skip_without

from mor_ref import encode, formats
from mor_ref.analysis.files import analyses_of
from mor_ref.analysis.tensor_files import tensors_in
from mor_ref.analysis.tensors import settings_for
from mor_ref.engine import blocks as parts
from mor_ref.engine import dispatch as conversions
from mor_ref.engine import parallel
from mor_ref.engine.parallel import thread_count
from mor_ref.golden import kept_files
from mor_ref.golden.all_inputs.digests import CHUNK, Case
from mor_ref.golden.making.make import make
from mor_ref.golden.model.suite import Size
from mor_ref.verify.all_inputs.engine_codes import chunks_of_workers, coded, engine_codes
from mor_ref.verify.all_inputs.verify import verify_chunks, verify_chunks_by
from mor_ref.verify.candidates.candidate import Engine, PythonFunction, opened
from mor_ref.verify.reporting import files
from mor_ref.verify.running.ask import asked_by, asked_here
from mor_ref.verify.running.run import verify
from mor_ref.workers import pools as workers
from mor_ref.workers import shards
from mor_ref.workers.pools import Workers, processes, workers_named
from mor_ref.workers.shards import WorkersError

# Dask leaves sockets to the garbage collector, and remarks on ports that are taken.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:Port .* is already in use"),
]
SMALL = ("decisions", "error_steps", "decode")


def threads(count=2):
    return Workers(lambda: ThreadPoolExecutor(count), count)


@pytest.fixture(autouse=True)
def _two_processes(monkeypatch):
    """More show nothing more, on a machine of any size."""
    monkeypatch.setattr(workers, "available_threads", lambda: 2)


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


def dying_once(path, number):
    """Kills the worker the first time that it is called with 2."""
    if number == 2:
        with contextlib.suppress(FileExistsError), path.open("x"):
            os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_a_killed_process_loses_nothing(tmp_path):
    asked = [(tmp_path / "killed", n) for n in range(6)]
    assert list(processes().in_order(dying_once, asked)) == list(range(6))
    assert (tmp_path / "killed").exists()


def test_there_are_as_many_processes_as_processors(monkeypatch):
    """Of those that this process may use, not of the machine."""
    for count in (1, 3):
        monkeypatch.setattr(workers, "available_threads", lambda count=count: count)
        assert len(set(processes().in_order(pid_after, [(0.01,)] * 40))) <= count


def pid_after(seconds):
    time.sleep(seconds)
    return os.getpid()


def dying(_):
    os.kill(os.getpid(), signal.SIGKILL)


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
    """As many are: it cannot be made again of what it says."""

    def __init__(self, one, other):
        super().__init__(f"{one} and {other}")


def unsendable(number):
    if number == 3:
        raise TwoPartsError("this", "that")
    return (lambda: number) if number == 4 else number


@pytest.mark.parametrize(
    ("number", "said"),
    [(3, "^TwoPartsError: this and that$"), (4, "cannot send what a shard gave")],
)
def test_what_cannot_be_sent_is_told_of_its_shard(number, said):
    """And takes no process with it."""
    found = processes().in_order(unsendable, [(n,) for n in (0, 1, number, 5, 6)])
    assert [next(found), next(found)] == [0, 1]
    with pytest.raises(WorkersError, match=said):
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
    with pytest.raises(WorkersError, match="in other bytes than sent"):
        next(threads().in_order(pow, [(3, 2)]))


class LostError(Exception):
    """What an executor says that has lost some workers and goes on."""


def test_losses_that_an_executor_tells_of_are_made_good():
    """One that is told of twice, the second time of a shard that was alone, is the shard's own."""
    for most, fails in ((1, False), (2, True)):
        left = {2: most}

        def fail(future, left=left):
            left[2] -= 1
            future.set_exception(LostError("many workers"))

        class Losing(Failing):
            def submit(self, function, program, task, shard, left=left):
                if left.get(shard[0], 0) > 0:
                    return super().submit(function, program, task, shard)
                return ThreadPoolExecutor.submit(self, function, program, task, shard)

        with Losing(fail) as executor:
            found = Workers.of(executor, 2, (LostError,)).in_order(pow, [(n, 2) for n in range(9)])
            if fails:
                assert [next(found), next(found)] == [0, 1]
                with pytest.raises(WorkersError, match="every worker that took a shard was lost"):
                    next(found)
            else:
                assert list(found) == [n * n for n in range(9)]


def test_another_program_is_refused(monkeypatch):
    monkeypatch.setattr(shards, "digest_of_sources", iter(["ours", "theirs"]).__next__)
    with pytest.raises(WorkersError, match="another version of mor_ref"):
        list(threads(1).in_order(pow, [(1, 2)]))


class Breaking(ThreadPoolExecutor):
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
    found = Workers(Breaking).in_order(pow, [(n, 2) for n in range(50)])
    assert list(found) == [n * n for n in range(50)]
    with Breaking() as executor:
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
    """Takes two shards, and fails at the third as it is told to."""

    def __init__(self, fail):
        super().__init__(1)
        self.fail = fail

    def submit(self, function, program, task, shard):
        if shard[0] < 2:
            return super().submit(function, program, task, shard)
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


def large(number, seconds):
    time.sleep(seconds)
    return number


@pytest.mark.parametrize("slow", [0, 30])
def test_few_results_are_kept(monkeypatch, slow):
    """Whether those who take them are slow, or one of the shards is."""
    monkeypatch.setattr(shards, "Outcome", Kept)
    most, count = 0, 2
    asked = [(n, 0.2 if n == slow else 0) for n in range(60)]
    for number, found in enumerate(threads(count).in_order(large, asked)):
        assert found == number
        if number in (0, 20):
            while len(ALIVE) < 4:
                time.sleep(0.01)
            time.sleep(0.2)  # in which there must not be too many
        most = max(most, len(ALIVE))
    assert number == 59
    assert 4 <= most <= 4 * count + 2, "as many as are submitted, and two that are at hand"


def dying_second(number):
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.3)
    return number


def test_a_crash_is_told_of_the_shard_that_crashes():
    """In its turn, and after what other shards give, which are not done when it happens."""
    found = processes().in_order(dying_second, [(n,) for n in range(4)])
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


def test_local_is_this_process():
    with workers_named("local") as found:
        assert found is None


# ---------------------------------------------------------------------- what is split


CASES = [
    Case(formats["e4m3"], "rne", "satfinite"),
    Case(formats["bf16"], "rtp", "ieee"),
    Case(formats["e8m0"], "rtz", "satfinite"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_codes_of_workers_are_those_of_the_engine(case):
    """In chunks of all kinds: subnormal, normal, and of NaN."""
    chunks = (0, 0x3F, 0x7F, 0x80, 0xC1, 0xFF)
    made = chunks_of_workers(case, threads(), None, chunks)
    for chunk, found in zip(chunks, made, strict=True):
        assert bytes(found) == bytes(engine_codes(case, range(chunk * CHUNK, (chunk + 1) * CHUNK)))


def test_codes_that_changed_on_the_way_are_noticed(monkeypatch):
    def spoiled(case, chunk, threads):
        found = coded(case, chunk, threads)
        return found._replace(codes=found.codes ^ found.codes.dtype.type(1))

    monkeypatch.setattr("mor_ref.verify.all_inputs.engine_codes.coded", spoiled)
    with pytest.raises(WorkersError, match="chunk 0 came from its worker in other bytes"):
        next(chunks_of_workers(CASES[0], threads(), None))


@pytest.mark.parametrize(("given", "used"), [(None, {1}), (2, {2})])
def test_a_worker_leaves_the_other_processors_to_others(monkeypatch, tmp_path, given, used):
    """Unless it is told how many threads to use; those who give it work have theirs still."""
    many = np.ones((1 << 10, 1 << 10), np.float32)
    np.save(tmp_path / "x.npy", many)
    stored = [("x.npy", *tensors_in(str(tmp_path / "x.npy")))]
    found = []

    def counted(threads, size):
        found.append(thread_count(threads, size))
        return found[-1]

    monkeypatch.setattr(parallel, "available_threads", lambda: 2)
    for module in (parts, conversions):
        monkeypatch.setattr(module, "thread_count", counted)
    with contextlib.chdir(tmp_path):
        list(analyses_of(stored, settings_for("tensor", threads=given), threads(1)))
    assert set(found) == used
    found.clear()
    list(chunks_of_workers(CASES[0], threads(1), given, (0,)))
    assert set(found) == used
    encode(many, "e4m3")
    assert found[-1] == 2
    if given is None:
        found.clear()
        list(verify_chunks_by(threads(1), "numba", 60.0, CASES[0], range(1)))
        assert set(found) == used


def test_made_suites_are_the_same_bytes(tmp_path):
    """And those that are kept."""
    make(SMALL, tmp_path / "a", Size())
    make(SMALL, tmp_path / "b", Size(), workers=threads())
    for path in sorted((tmp_path / "a").rglob("*.*")):
        if path.is_file():
            assert (tmp_path / "b" / path.relative_to(tmp_path / "a")).read_bytes() == (
                path.read_bytes()
            )
    for name in SMALL:
        assert (tmp_path / "b" / f"{name}.safetensors").read_bytes() == (
            kept_files() / f"{name}.safetensors"
        ).read_bytes()


def test_small_suites_come_first_and_then_the_largest(tmp_path):
    """By their elements: something shows early, and no large suite is waited for alone."""
    begun = []

    class Noting(Workers):
        def as_done(self, _, shards):
            begun.extend(name for name, _ in shards)
            return iter(())

    names = ["decisions", "mx", "encode", "error_steps", "quantize"]
    make(names, tmp_path, Size(), workers=Noting(lambda: ThreadPoolExecutor(1)))
    assert begun == ["error_steps", "decisions", "encode", "mx", "quantize"]


def test_suites_that_changed_on_the_way_are_noticed(tmp_path, monkeypatch):
    from mor_ref.golden.making import make as module

    def spoiled(name, size):
        files, entry = module_made(name, size)
        return {path: content[:-1] + b"?" for path, content in files.items()}, entry

    module_made = module.made
    monkeypatch.setattr(module, "made", spoiled)
    with pytest.raises(WorkersError, match="suite error_steps came from its worker in other"):
        make(["error_steps"], tmp_path, Size(), workers=threads())
    assert not list(tmp_path.glob("*.safetensors"))


CANDIDATE = """
from mor_ref.verify.candidates.engine import OPERATIONS

def wrong(operation, parameters, inputs):
    found = dict(OPERATIONS[operation](parameters, inputs))
    if operation == "decide":
        found["accepted"] = found["accepted"] ^ 1
    return found

def failing(operation, parameters, inputs):
    if operation == "error_term":
        raise RuntimeError("no")
    return wrong(operation, parameters, inputs)
"""


@pytest.fixture
def candidate(tmp_path, monkeypatch):
    (tmp_path / "candidate_of_workers.py").write_text(CANDIDATE)
    monkeypatch.syspath_prepend(tmp_path)

    def named(function):
        module = __import__("candidate_of_workers")
        return PythonFunction(f"candidate_of_workers:{function}", getattr(module, function))

    return named


@pytest.mark.parametrize("function", ["wrong", "failing"])
def test_what_workers_find_is_what_is_found_here(candidate, function):
    """Also if a candidate fails in some cases."""
    found = [
        verify(candidate(function), kept_files(), list(SMALL), ask=ask)
        for ask in (asked_here, asked_by(threads(), 60.0))
    ]
    assert found[0] == found[1]
    assert found[0].verdict == {"wrong": "mismatch", "failing": "failed"}[function]


def test_candidates_of_all_kinds_by_processes(tmp_path, monkeypatch):
    """Processes pickle what is asked and answered, and know no folder but the one that is told."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    shutil.copy(kept_files() / "decisions.safetensors", "results")
    (tmp_path / "objects_of_workers.py").write_text(OBJECTS)
    (tmp_path / "skips.sh").write_text(
        "while read word rest; do test $word = run && echo skip; done"
    )
    for name in ("dir:results", "objects_of_workers:function", "exec:sh ./skips.sh"):
        with opened(name) as candidate:
            found = [
                verify(candidate, kept_files(), ["decisions", "error_steps"], ask=ask)
                for ask in (asked_here, asked_by(processes(), 60.0))
            ]
        assert files.as_json(found[0]) == files.as_json(found[1])


OBJECTS = """
import numpy as np

def function(operation, parameters, inputs):
    return {"accepted": np.array([lambda: 0] * 3)} if operation == "decide" else None
"""


def test_a_candidate_that_ends_its_workers_fails_in_that_suite(monkeypatch, tmp_path):
    """What was compared before stays; so does it if a worker cannot open the candidate."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ends_workers.py").write_text(CRASHING)
    monkeypatch.syspath_prepend(tmp_path)
    for function, said in (
        ("crashing", "the process of the candidate was ended by SIGKILL"),
        ("absent", "on the wor"),
    ):
        candidate = PythonFunction(f"ends_workers:{function}", lambda *_: None)
        found = verify(
            candidate, kept_files(), ["decisions", "error_steps"], ask=asked_by(processes(), 60.0)
        )
        assert found.verdict == "failed"
        assert said in found.failures[0].message
        assert len(found.results) == 2
        assert len(found.failures) == (1 if function == "crashing" else 2)


CRASHING = """
import os, signal
from mor_ref.verify.candidates.engine import OPERATIONS

def crashing(operation, parameters, inputs):
    if operation == "error_term":
        os.kill(os.getpid(), signal.SIGKILL)
    return OPERATIONS[operation](parameters, inputs)
"""


CORRECTED = """
import numpy as np
from mor_ref.verify.candidates.engine import OPERATIONS

def function(operation, parameters, inputs):
    return dict(OPERATIONS[operation](parameters, inputs)){wrong}
"""


def test_workers_that_outlive_a_run_ask_what_is_there_now(tmp_path, monkeypatch):
    """What a file says after it was corrected, and what the same name means in another folder."""
    name = "corrected_of_workers:function"
    with ProcessPoolExecutor(1) as executor:
        here = executor.submit(Path.cwd).result()
        ask = asked_by(Workers.of(executor), 60.0)
        for folder, wrong, verdict in (
            ("a", " | {'accepted': np.zeros(3, np.uint8)}", "mismatch"),
            ("a", "", "match"),
            ("b", " | 1", "failed"),
        ):
            (tmp_path / folder).mkdir(exist_ok=True)
            (tmp_path / folder / "corrected_of_workers.py").write_text(
                CORRECTED.format(wrong=wrong)
            )
            monkeypatch.chdir(tmp_path / folder)
            candidate = PythonFunction(name, lambda *_: None)
            assert verify(candidate, kept_files(), ["decisions"], ask=ask).verdict == verdict
        assert executor.submit(Path.cwd).result() == here


def test_a_folder_that_a_worker_has_not(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    monkeypatch.setattr(Path, "cwd", lambda: tmp_path / "gone")
    ask = asked_by(threads(), 60.0)
    found = verify(PythonFunction("a:b", lambda *_: None), kept_files(), ["decisions"], ask=ask)
    assert "gone is not there (No such file or directory)" in found.failures[0].message


def test_chunks_of_a_candidate_by_workers():
    """Up to the first that differs, whoever is done first."""
    case, chunks = CASES[0], range(0x3D, 0x41)
    assert list(verify_chunks_by(threads(), "numba", 60.0, case, chunks)) == list(
        verify_chunks(Engine(), case, chunks)
    )


def test_analyses_by_workers(tmp_path):
    random = np.random.default_rng(0)
    for name in ("a.npy", "b.npy"):
        np.save(tmp_path / name, random.standard_normal((40, 30), dtype=np.float32))
    np.savez(tmp_path / "c.npz", x=np.ones((3, 4), np.float16), y=np.zeros((2, 2)))
    files = [str(tmp_path / name) for name in ("a.npy", "b.npy", "c.npz", "a.npy")]
    stored = [(file, tensor) for file in files for tensor in tensors_in(file)]
    settings = settings_for("two_way", block="16x16")
    ours = list(analyses_of(stored, settings, None))
    theirs = list(analyses_of(stored, settings, processes()))
    assert [one.report for one in ours] == [one.report for one in theirs]
    for one, other in zip(ours, theirs, strict=True):
        assert np.array_equal(one.blocks.error, other.blocks.error)
        assert np.array_equal(one.blocks.choice, other.blocks.choice)
    with contextlib.chdir(tmp_path):
        found = list(analyses_of([("a.npy", *tensors_in("a.npy"))], settings, processes()))
    assert found[0].report == replace(ours[0].report, file="a.npy", name="a.npy")


def test_workers_read_what_is_in_a_file_now(tmp_path):
    """And say so if it is not what was listed here."""
    settings = settings_for("tensor")
    x, both = str(tmp_path / "x.npy"), str(tmp_path / "both.npz")
    with ProcessPoolExecutor(1) as executor:
        lasting = Workers.of(executor)
        for dtype, name, more in ((np.float32, "f32", {}), (np.float16, "f16", {"b": np.ones(2)})):
            np.save(x, np.ones((3, 4), dtype))
            np.savez(both, a=np.ones(3, dtype), **more)
            stored = [(file, tensor) for file in (x, both) for tensor in tensors_in(file)]
            found = [one.report.dtype for one in analyses_of(stored, settings, lasting)]
            assert found == [name, name, *("f64" for _ in more)]
        np.save(x, np.ones((3, 5)))
        np.savez(both, b=np.ones(3))
        for tensor, said in (
            (stored[0], "x.npy is 3x4 f16 here, .* it is 3x5 f64; give all the same file"),
            (stored[1], "a in .*both.npz is 3 f16 here, .* it is not there; give all"),
        ):
            with pytest.raises(WorkersError, match=said):
                list(analyses_of([tensor], settings, lasting))


# ---------------------------------------------------------------------- clusters


LONG = "1000 hours"
NO_LIMITS = {
    "distributed.comm.timeouts.connect": LONG,
    "distributed.comm.timeouts.tcp": LONG,
    "distributed.deploy.lost-worker-timeout": LONG,
    "distributed.scheduler.worker-ttl": None,
}
# All of a group are run by the same process, so that there is one cluster and not many.
one_cluster = pytest.mark.xdist_group("cluster")


class Cluster(NamedTuple):
    address: str
    client: Any
    found: Any

    def pids(self):
        return list(self.client.run(os.getpid).values())

    def wait_for_both(self):
        """However long a worker takes to come, unless the nanny that starts it gave up."""
        while len(self.found.scheduler.workers) < 2:
            states = {nanny.status.name for nanny in self.found.workers.values()}
            assert states <= {"init", "starting", "running", "undefined"}, states
            time.sleep(0.05)


@pytest.fixture(scope="module")
def cluster():
    """A scheduler and two workers, each a process of its own."""
    distributed = imported("distributed")
    with (
        pytest.MonkeyPatch.context() as patch,
        importlib.import_module("dask").config.set(NO_LIMITS),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as found,
        distributed.Client(found, timeout=LONG) as client,
    ):
        patch.setattr(workers, "_PATIENCE", 1e6)
        patch.setattr(workers, "_PATIENCE_FOR_WORKERS", 1e6)
        yield Cluster(found.scheduler_address.removeprefix("tcp://"), client, found)


def dying_at_work(path, number):
    """So long that both workers have some mostly, and the third shard kills its worker."""
    time.sleep(0.05)
    return dying_once(path, number)


@one_cluster
def test_a_cluster_that_loses_a_worker(cluster, tmp_path):
    cluster.wait_for_both()
    before = set(cluster.pids())
    assert len(before) == 2
    with workers_named(f"dask://{cluster.address}") as found:
        asked = [(tmp_path / "killed", n) for n in range(12)]
        assert list(found.in_order(dying_at_work, asked)) == list(range(12))
    assert (tmp_path / "killed").exists()
    cluster.wait_for_both()
    assert set(cluster.pids()) != before


def dying_often(folder, number):
    """Kills its worker four times, with which Dask gives it up."""
    if number == 2 and len(killed := list(folder.iterdir())) < 4:
        (folder / str(len(killed))).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


@one_cluster
def test_a_cluster_that_loses_workers_again_and_again(cluster, tmp_path):
    cluster.wait_for_both()
    with workers_named(f"dask://{cluster.address}") as found:
        assert list(found.in_order(dying_often, [(tmp_path, n) for n in range(6)])) == list(
            range(6)
        )
    assert len(list(tmp_path.iterdir())) == 4


def kill_at_the_next_suite():
    """The worker that this runs on dies while it makes a suite, as its functions go by name."""
    from mor_ref.golden.making import make as module

    module.made = lambda *_: os.kill(os.getpid(), signal.SIGKILL)


@one_cluster
def test_a_cluster_makes_the_same_bytes_while_a_worker_is_killed(cluster, tmp_path):
    cluster.wait_for_both()
    doomed, pid = next(iter(cluster.client.run(os.getpid).items()))
    cluster.client.run(kill_at_the_next_suite, workers=[doomed])
    with workers_named(f"dask://{cluster.address}") as found:
        make(SMALL, tmp_path / "made", Size(), workers=found)
    cluster.wait_for_both()
    assert pid not in cluster.pids(), "it was killed in the middle of a suite"
    for name in SMALL:
        assert (tmp_path / "made" / f"{name}.safetensors").read_bytes() == (
            kept_files() / f"{name}.safetensors"
        ).read_bytes()


MAIN = """
from mor_ref import workers
from mor_ref.cli import main
workers._PATIENCE = workers._PATIENCE_FOR_WORKERS = 1e6
main()
"""


def run(*arguments, cwd, before=()):
    command = [*before, sys.executable, "-c", MAIN, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)


@one_cluster
def test_commands_on_a_cluster(cluster, tmp_path):
    """The same output, word for word."""
    cluster.wait_for_both()
    np.save(tmp_path / "x.npy", np.random.default_rng(0).standard_normal((64, 64)))
    for command in (
        ("analyze", "x.npy", "--json"),
        ("verify", "numba", "--suite", "error_steps", "--suite", "decisions"),
        ("exhaustive", "e2m1", "--candidate", "numba", "--chunks", "0x3f:0x41"),
    ):
        there = run(*command, "--executor", f"dask://{cluster.address}", cwd=tmp_path)
        here = run(*command, cwd=tmp_path)
        assert (
            (there.returncode, there.stdout) == (here.returncode, here.stdout) == (0, here.stdout)
        )


def test_commands_under_mpi(tmp_path):
    """The same output, once; and the ranks that only worked end well."""
    skip_without("mpi4py")
    mpiexec = Path(sys.executable).with_name("mpiexec")
    if not mpiexec.exists():
        pytest.skip(reason("mpiexec"))
    np.save(tmp_path / "x.npy", np.random.default_rng(0).standard_normal((64, 64)))
    for command in (
        ("analyze", "x.npy", "--json"),
        ("verify", "numba", "--suite", "error_steps", "--suite", "decisions"),
    ):
        there = run(*command, "--executor", "mpi", before=(str(mpiexec), "-n", "3"), cwd=tmp_path)
        here = run(*command, cwd=tmp_path)
        assert (there.returncode, there.stdout) == (0, here.stdout), there.stderr
        assert "mor-ref:" not in there.stderr
    for command in (
        ("exhaustive", "e9m9"),
        ("exhaustive", "e9m9", "--candidate", "numba"),
        ("analyze", "x.npy", "--policy", "none"),
        ("golden", "make", "--out", "made", "--size", "0"),
    ):
        before = (str(mpiexec), "-n", "2")
        done = run(*command, "--executor", "mpi", before=before, cwd=tmp_path)
        assert (done.returncode, done.stderr.count("mor-ref: ")) == (2, 1)
    (tmp_path / "wrong_under_mpi.py").write_text(CANDIDATE)
    command = ("verify", "wrong_under_mpi:wrong", "--suite", "decisions", "--executor", "mpi")
    done = run(*command, before=(str(mpiexec), "-n", "2"), cwd=tmp_path)
    assert (done.returncode, "mismatch" in done.stdout) == (1, True)


def test_no_scheduler_is_a_sentence(monkeypatch):
    imported("distributed")
    monkeypatch.setattr(workers, "_PATIENCE", 0.5)
    with (
        pytest.raises(WorkersError, match=r"no Dask scheduler at 127.0.0.1:1 \("),
        workers_named("dask://127.0.0.1:1"),
    ):
        pass


def test_who_is_no_scheduler_is_not_waited_for():
    """In a process of its own, whose end is not waited for either."""
    imported("distributed")
    with ThreadingHTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        script = f"""
from mor_ref import workers
workers._PATIENCE = 0.5
with workers.workers_named("dask://127.0.0.1:{server.server_port}"):
    pass
"""
        command = [sys.executable, "-c", script]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        server.shutdown()
    assert "there is no Dask scheduler at 127.0.0.1" in done.stderr


def test_a_scheduler_without_workers(monkeypatch):
    distributed = imported("distributed")
    monkeypatch.setattr(workers, "_PATIENCE", 1e6)
    monkeypatch.setattr(workers, "_PATIENCE_FOR_WORKERS", 0.5)
    with distributed.LocalCluster(n_workers=0, dashboard_address=":0", processes=True) as empty:
        address = empty.scheduler_address.removeprefix("tcp://")
        with (
            pytest.raises(WorkersError, match=f"{address} has no workers; start one with dask wor"),
            workers_named(f"dask://{address}"),
        ):
            pass


@one_cluster
def test_a_worker_without_this_program_is_refused(cluster, monkeypatch):
    """Before it gets a shard, which would end it."""
    cluster.wait_for_both()
    for digest in ("__import__('mor_ref_of_another_time')", "'another'"):
        monkeypatch.setattr(workers, "_DIGEST", digest)
        with (
            pytest.raises(WorkersError, match=r"on the workers tcp://\S*, tcp://\S*; install"),
            workers_named(f"dask://{cluster.address}"),
        ):
            pass


def test_no_dask_is_a_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(WorkersError, match=r"pip install 'mor-ref\[dask\]'"),
        workers_named("dask://localhost:8786"),
    ):
        pass


def test_no_mpi_is_a_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(WorkersError, match="pip install mpi4py"), workers_named("mpi"):
        pass
