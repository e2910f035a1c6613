"""Work that is split: chunks, suites, candidates and analyses by workers."""

import contextlib
import hashlib
import pickle
import shutil
import zlib
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from worker_pools import CANDIDATE, SMALL, threads, two_processes

from mor_ref import encode, formats
from mor_ref.analysis.analyze_files import analyses_of
from mor_ref.analysis.analyze_tensor import settings_for
from mor_ref.analysis.compare_files import compared
from mor_ref.analysis.recipes import recipes_from
from mor_ref.analysis.tensor_files import tensors_in
from mor_ref.cli.golden import _Making
from mor_ref.engine import blocks as parts
from mor_ref.engine import encoding as conversions
from mor_ref.engine import parallel
from mor_ref.engine.parallel import thread_count
from mor_ref.golden import bundled_files
from mor_ref.golden.all_inputs.digests import CHUNK, Case
from mor_ref.golden.generation.vectors import make
from mor_ref.golden.model.suite import Size
from mor_ref.golden.store.manifest import read_manifest
from mor_ref.verify.all_inputs.engine_codes import chunks_of_workers, engine_codes
from mor_ref.verify.all_inputs.verify import verify_chunks, verify_chunks_by
from mor_ref.verify.candidates.by_name import candidate_named
from mor_ref.verify.candidates.numba_engine import Engine
from mor_ref.verify.candidates.python_function import PythonFunction
from mor_ref.verify.reporting import report_files
from mor_ref.verify.running.ask import ask_here, ask_workers
from mor_ref.verify.running.run import verify
from mor_ref.verify.running.suites import suites_in
from mor_ref.workers import shards
from mor_ref.workers.pools import Workers, processes
from mor_ref.workers.shards import WorkersError

__all__ = ["two_processes"]  # a fixture

LONG = 1e6  # seconds, for candidates that answer: a machine may be as busy as it is

CASES = [
    Case(formats["e4m3"], "rne", "satfinite"),
    Case(formats["bf16"], "rtp", "ieee"),
    Case(formats["e8m0"], "rtz", "satfinite"),
]


@pytest.mark.tier("full")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_codes_of_workers_are_those_of_the_engine(case):
    """In chunks of all kinds: subnormal, normal, and of NaN."""
    chunks = (0, 0x3F, 0x7F, 0x80, 0xC1, 0xFF)
    made = chunks_of_workers(case, threads(), None, chunks)
    for chunk, found in zip(chunks, made, strict=True):
        assert bytes(found) == bytes(engine_codes(case, range(chunk * CHUNK, (chunk + 1) * CHUNK)))


@pytest.mark.parametrize(("given", "used"), [(None, {1}), (2, {2})])
def test_a_worker_leaves_the_other_processors_to_others(monkeypatch, tmp_path, given, used):
    """Unless it is set to a number of threads; those who send it work have theirs still."""
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
        list(verify_chunks_by(threads(1), "numba", LONG, CASES[0], range(1)))
        assert set(found) == used


@pytest.mark.tier("full")
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
            bundled_files() / f"{name}.safetensors"
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


@pytest.mark.tier("full")
def test_suites_that_changed_on_the_way_are_noticed(tmp_path, monkeypatch):
    honest = shards.Outcome.of.__func__

    def spoiled(cls, given):
        sent = honest(cls, given)
        return replace(sent, written=sent.written.replace(b"error_steps", b"error_stops"))

    monkeypatch.setattr(shards.Outcome, "of", classmethod(spoiled))
    with pytest.raises(WorkersError, match="of a shard changed on its way from the worker; check"):
        make(["error_steps"], tmp_path, Size(), workers=threads())
    assert not list(tmp_path.glob("*.safetensors"))


def test_a_suite_that_is_made_is_digested_once(tmp_path, monkeypatch):
    digested, sha256 = [], hashlib.sha256

    def noting(content=b"", **how):
        digested.append(bytes(content))
        return sha256(content, **how)

    monkeypatch.setattr(hashlib, "sha256", noting)
    make(["decisions"], tmp_path, Size(), workers=threads())
    assert digested.count((tmp_path / "decisions.safetensors").read_bytes()) == 1
    assert digested.count((tmp_path / "negative" / "decisions.safetensors").read_bytes()) == 1


@pytest.mark.tier("full")
def test_making_reports_each_case_and_each_deviation(tmp_path):
    steps = []
    make(["decisions", "error_steps"], tmp_path, Size(), on_step=steps.append)
    for name, entry in read_manifest(tmp_path)["suites"].items():
        assert steps.count(name) == len(entry["cases"]) + len(entry["kills"])


def test_the_bar_of_making_moves_by_steps():
    """To its end and not beyond, whatever comes late or twice."""
    entries = read_manifest(bundled_files())["suites"]
    small = len(entries["decisions"]["cases"]) + len(entries["decisions"]["kills"])
    making = _Making(["decisions", "error_steps", "of one's own"])
    (task,) = making.tasks
    total = small + len(entries["error_steps"]["cases"]) + len(entries["error_steps"]["kills"])
    assert (task.completed, task.total) == (0, total)
    making.step("decisions")
    making.step("of one's own")
    assert task.completed == 1
    for _ in range(2 * small):
        making.step("decisions")
    assert task.completed == small
    making.step("error_steps")
    making.done("error_steps", entries["error_steps"])
    making.step("error_steps")
    making.done("decisions", entries["decisions"])
    assert task.completed == total


@pytest.fixture
def candidate(tmp_path, monkeypatch):
    (tmp_path / "candidate_of_workers.py").write_text(CANDIDATE)
    monkeypatch.syspath_prepend(tmp_path)

    def named(function):
        module = __import__("candidate_of_workers")
        return PythonFunction(f"candidate_of_workers:{function}", getattr(module, function))

    return named


@pytest.mark.tier("full")
@pytest.mark.parametrize("function", ["wrong", "failing"])
def test_what_workers_find_is_what_is_found_here(candidate, function):
    """Also if a candidate fails in some cases."""
    found = [
        verify(candidate(function), suites_in(bundled_files(), list(SMALL)), ask=ask)
        for ask in (ask_here, ask_workers(threads(), LONG))
    ]
    assert found[0] == found[1]
    assert found[0].verdict == {"wrong": "mismatch", "failing": "failed"}[function]


@pytest.mark.tier("full")
def test_answers_that_changed_between_processes_are_noticed(candidate, monkeypatch):
    """Where they are read: a worker passes them on with the one checksum that they have."""
    honest, load, sums = zlib.crc32, pickle.load, []
    monkeypatch.setattr(shards.zlib, "crc32", lambda text: sums.append(text) or honest(text))
    asked = candidate("wrong"), suites_in(bundled_files(), ["error_steps"])
    found = verify(*asked, ask=ask_workers(threads(), LONG))
    assert (found.verdict, len(sums)) == ("match", 1)
    monkeypatch.setattr(
        pickle, "load", lambda pipe: replace(one := load(pipe), written=one.written[:-1] + b"!")
    )
    found = verify(*asked, ask=ask_workers(threads(), LONG))
    assert "the result of a shard changed on its way from the worker" in found.failures[0].message


@pytest.mark.tier("full")
def test_candidates_of_all_kinds_by_processes(tmp_path, monkeypatch):
    """Processes pickle questions and answers, and know no directory but the one in a question."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    shutil.copy(bundled_files() / "decisions.safetensors", "results")
    (tmp_path / "objects_of_workers.py").write_text(OBJECTS)
    (tmp_path / "skips.sh").write_text(
        "while read word rest; do test $word = run && echo skip; done"
    )
    for name in ("dir:results", "objects_of_workers:function", "exec:sh ./skips.sh"):
        with candidate_named(name) as candidate:
            found = [
                verify(candidate, suites_in(bundled_files(), ["decisions", "error_steps"]), ask=ask)
                for ask in (ask_here, ask_workers(processes(), LONG))
            ]
        assert report_files.as_json(found[0]) == report_files.as_json(found[1])


OBJECTS = """
import numpy as np

def function(operation, parameters, inputs):
    return {"accepted": np.array([lambda: 0] * 3)} if operation == "decide" else None
"""


@pytest.mark.tier("full")
def test_a_candidate_that_ends_its_workers_fails_in_that_suite(monkeypatch, tmp_path):
    """Earlier comparisons stay; so does it if a worker cannot open the candidate."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ends_workers.py").write_text(CRASHING)
    monkeypatch.syspath_prepend(tmp_path)
    for function, said in (
        ("crashing", "its process was ended by signal 9 (Killed)"),
        ("absent", "on the wor"),
    ):
        candidate = PythonFunction(f"ends_workers:{function}", lambda *_: None)
        found = verify(
            candidate,
            suites_in(bundled_files(), ["decisions", "error_steps"]),
            ask=ask_workers(processes(), LONG),
        )
        assert found.verdict == "failed"
        assert said in found.failures[0].message
        assert len(found.results) == 2
        assert len(found.failures) == (1 if function == "crashing" else 2)


CRASHING = """
import os, signal
from mor_ref.operations import OPERATIONS

def crashing(operation, parameters, inputs):
    if operation == "error_term":
        os.kill(os.getpid(), signal.SIGKILL)
    return OPERATIONS[operation].engine(parameters, inputs)
"""


CORRECTED = """
import numpy as np
from mor_ref.operations import OPERATIONS

def function(operation, parameters, inputs):
    return dict(OPERATIONS[operation].engine(parameters, inputs)){wrong}
"""


@pytest.mark.tier("full")
def test_workers_that_outlive_a_run_ask_what_is_there_now(tmp_path, monkeypatch):
    """A file after it was corrected, and the same name in another directory."""
    name = "corrected_of_workers:function"
    with ProcessPoolExecutor(1) as executor:
        here = executor.submit(Path.cwd).result()
        ask = ask_workers(Workers.of(executor), LONG)
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
            assert (
                verify(candidate, suites_in(bundled_files(), ["decisions"]), ask=ask).verdict
                == verdict
            )
        assert executor.submit(Path.cwd).result() == here


def test_a_directory_that_a_worker_has_not(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    monkeypatch.setattr(Path, "cwd", lambda: tmp_path / "gone")
    ask = ask_workers(threads(), LONG)
    found = verify(
        PythonFunction("a:b", lambda *_: None), suites_in(bundled_files(), ["decisions"]), ask=ask
    )
    assert "gone is not there (No such file or directory)" in found.failures[0].message


def test_chunks_of_a_candidate_by_workers():
    """Up to the first that differs, whoever is done first."""
    case, chunks = CASES[0], range(0x3D, 0x41)
    assert list(verify_chunks_by(threads(), "numba", LONG, case, chunks)) == list(
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


def test_comparisons_by_workers(tmp_path):
    x = np.random.default_rng(0).standard_normal((40, 30), dtype=np.float32)
    np.savez(tmp_path / "a.npz", x=x, y=x[::-1].astype(np.float16))
    np.save(tmp_path / "b.npy", x.T)
    files = [str(tmp_path / name) for name in ("a.npz", "b.npy")]
    stored = [(file, tensor) for file in files for tensor in tensors_in(file)]
    recipes = recipes_from(["mxfp4", "mor:three_way:8x8"])
    ours = list(compared(stored, recipes, "weight", None))
    assert list(compared(stored, recipes, "weight", None, processes())) == ours
    assert [one.name for one in ours] == ["x", "y", files[1]]
    np.save(tmp_path / "b.npy", x[:5])
    with pytest.raises(WorkersError, match="give every worker the same file"):
        list(compared(stored[2:], recipes, "weight", None, processes()))


def test_workers_read_what_is_in_a_file_now(tmp_path):
    """And say so if it is not the one that was listed here."""
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
            (stored[0], "x.npy is 3x4 f16 here, .* it is 3x5 f64; give every worker the same file"),
            (stored[1], "a in .*both.npz is 3 f16 here, .* it is not there; give every"),
        ):
            with pytest.raises(WorkersError, match=said):
                list(analyses_of([tensor], settings, lasting))
