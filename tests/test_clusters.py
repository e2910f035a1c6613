"""Workers of other machines: Dask and MPI."""

import importlib
import importlib.util
import os
import signal
import subprocess
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from extras import imported, reason, skip_without
from worker_pools import CANDIDATE, SMALL, dying_once, pid_among, two_processes, wait_until

from mor_ref.golden import bundled_files
from mor_ref.golden.generation.vectors import make
from mor_ref.golden.model.suite import Size
from mor_ref.workers import pools as workers
from mor_ref.workers.pools import workers_named
from mor_ref.workers.shards import WorkersError

__all__ = ["two_processes"]  # a fixture

# Dask leaves sockets to the garbage collector, and remarks on ports that are taken.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:Port .* is already in use"),
]

LONG = "1000 hours"
NO_LIMITS = {
    # The scheduler waits so long for a result on a worker that has died; then it asks another one.
    "distributed.comm.timeouts.connect": "60 s",
    "distributed.comm.timeouts.tcp": LONG,
    "distributed.deploy.lost-worker-timeout": LONG,
    "distributed.scheduler.worker-ttl": None,
}


class Cluster(NamedTuple):
    address: str
    client: Any
    found: Any

    def pids(self):
        return list(self.client.run(os.getpid).values())

    def wait_for_both(self):
        """Wait until both workers have come; fail if the nanny that starts one gave up."""

        def are_there():
            states = {nanny.status.name for nanny in self.found.workers.values()}
            assert states <= {"init", "starting", "running", "undefined"}, states
            return len(self.found.scheduler.workers) >= 2

        wait_until(are_there)


@pytest.fixture(scope="module")
def cluster():
    """Yield a scheduler and two workers, each a process of its own."""
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


def dying_at_work(folder, path, number):
    """Kill the worker of the third shard after each of the two workers has taken a shard."""
    pid_among(folder, 2)
    return dying_once(path, number)


@pytest.mark.tier("full")
def test_a_cluster_that_loses_a_worker(cluster, tmp_path):
    cluster.wait_for_both()
    before = set(cluster.pids())
    assert len(before) == 2
    (tmp_path / "pids").mkdir()
    with workers_named(f"dask://{cluster.address}") as found:
        asked = [(tmp_path / "pids", tmp_path / "killed", n) for n in range(12)]
        assert list(found.in_order(dying_at_work, asked)) == list(range(12))
    assert (tmp_path / "killed").exists()
    cluster.wait_for_both()
    assert set(cluster.pids()) != before


def dying_often(folder, number):
    """Kill the worker four times, after which Dask abandons the shard."""
    if number == 2 and len(killed := list(folder.iterdir())) < 4:
        (folder / str(len(killed))).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


@pytest.mark.tier("full")
def test_a_cluster_that_loses_workers_again_and_again(cluster, tmp_path):
    cluster.wait_for_both()
    with workers_named(f"dask://{cluster.address}") as found:
        assert list(found.in_order(dying_often, [(tmp_path, n) for n in range(6)])) == list(
            range(6)
        )
    assert len(list(tmp_path.iterdir())) == 4


def kill_at_the_next_suite():
    """Let this worker die while it makes a suite: its functions are found by name."""
    from mor_ref.golden.generation import vectors as module

    module.made = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.tier("full")
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
            bundled_files() / f"{name}.safetensors"
        ).read_bytes()


MAIN = """
from mor_ref.workers import pools as workers
from mor_ref.cli import main
workers._PATIENCE = workers._PATIENCE_FOR_WORKERS = 1e6
main()
"""


def run(*arguments, cwd, before=()):
    command = [*before, sys.executable, "-c", MAIN, *arguments]
    limits = {
        f"DASK_{name.upper().replace('.', '__')}": LONG
        for name in ("distributed.comm.timeouts.connect", "distributed.comm.timeouts.tcp")
    }
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=cwd, env={**os.environ, **limits}
    )


@pytest.mark.tier("full")
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
        assert (here.returncode, there.returncode) == (0, 0), here.stderr + there.stderr
        assert there.stdout == here.stdout


@pytest.mark.tier("full")
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


@pytest.mark.tier("full")
def test_who_is_no_scheduler_is_not_waited_for():
    """In a process of its own, whose end is not waited for either."""
    imported("distributed")
    with ThreadingHTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        script = f"""
from mor_ref.workers import pools as workers
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


@pytest.mark.tier("full")
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


@pytest.mark.tier("full")
def test_no_dask_is_a_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(WorkersError, match=r"pip install 'mor-ref\[dask\]'"),
        workers_named("dask://localhost:8786"),
    ):
        pass


@pytest.mark.tier("full")
def test_no_mpi_is_a_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(WorkersError, match="pip install mpi4py"), workers_named("mpi"):
        pass
