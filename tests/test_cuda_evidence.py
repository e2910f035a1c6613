"""The page of evidence from a GPU: it says that there was none, or is of these very sources."""

import importlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from kernels import needed
from kernels.stand_in import Torch, in_place_of_cupy

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "gpu-evidence.md"
REPORT = """<testsuites><testsuite>
<testcase name="test_one"/>
<testcase name="test_two"><skipped message="no such conversion"/></testcase>
<testcase name="test_three"><failure message="no"/></testcase>
</testsuite></testsuites>"""


@pytest.fixture
def of_benchmarks(monkeypatch):
    """Return a function that imports a module of the benchmarks, which are not installed."""
    if not (ROOT / "benchmarks").exists():
        pytest.skip("a source distribution has neither benchmarks nor docs")
    monkeypatch.syspath_prepend(ROOT)
    return lambda name: importlib.import_module(f"benchmarks.{name}")


@pytest.fixture
def gpu_page(of_benchmarks):
    return of_benchmarks("gpu_page")


def test_the_page_says_what_has_changed_since(gpu_page):
    """`python -m benchmarks.gpu_page docs/gpu-evidence.md` does, or `make gpu-test` on a GPU."""
    text, sources = PAGE.read_text("utf-8"), PAGE.with_name(gpu_page.SOURCES)
    if gpu_page.NOT_YET_RUN in text:
        assert text == gpu_page.not_yet_run()
    else:
        assert text == gpu_page.brought_up_to_date(text, json.loads(sources.read_text("utf-8")))


@pytest.mark.usefixtures("cupy")
def test_a_page_names_what_is_another_than_in_its_run(gpu_page):
    then = gpu_page.digests()
    text = gpu_page.page(SimpleNamespace(capability=90), {}, [], 16)
    assert gpu_page.brought_up_to_date(text, then) == text
    older = then | {"mx.cu": "another", "a program that is gone": "any"}
    del older["the suite encode"]
    changed = gpu_page.brought_up_to_date(text, older)
    said = "mx.cu, the suite encode: of these the page shows nothing."
    assert f"since this run\n\n{said}\n\n## Speed" in changed
    assert gpu_page.brought_up_to_date(changed, then) == text


@pytest.mark.parametrize(
    ("pattern", "text", "is_changed"),
    [
        (r"(?<!\.)\bsignificand\b", "leading_bits", False),
        (r"\n//", "\n\n// Note:", False),
        ("- 127", "- 126", True),
    ],
)
def test_a_run_shows_programs_whose_local_variables_have_other_names(
    gpu_page, monkeypatch, pattern, text, is_changed
):
    then, flattened = gpu_page.digests(), gpu_page.source.flattened
    edited = lambda name: re.sub(pattern, text, flattened(name))  # noqa: E731
    assert any(edited(name) != flattened(name) for name in gpu_page.source.program_names())
    monkeypatch.setattr(gpu_page.source, "flattened", edited)
    assert (gpu_page.digests() != then) == is_changed


@pytest.mark.tier("full")
@pytest.mark.usefixtures("cupy")
def test_the_job_that_the_sanitizers_watch_gives_kernels_arrays_of_the_gpu():
    needed.compiler()
    sanitized = importlib.import_module("gpu.sanitized")
    sanitized.every_kernel(sanitized.Uploading())


@pytest.fixture
def cupy(monkeypatch):
    """Yield the stand-in for CuPy."""
    with in_place_of_cupy(monkeypatch) as found:
        found.__version__ = "14.2.0"
        found.cuda.runtime.getDeviceProperties = lambda _: {"name": b"a stand-in"}
        found.cuda.runtime.driverGetVersion = lambda: 13000
        yield found


PEERS = ("torch_mor", "torch_nvfp4", "torch_quantize")


@pytest.fixture
def gpu(of_benchmarks, monkeypatch):
    """Return the module that measures, with the stand-in for torch, and calls in `compared`."""
    needed.compiler()
    gpu, eager = of_benchmarks("gpu"), of_benchmarks("eager")
    monkeypatch.setattr(gpu, "compared", [], raising=False)
    for name in PEERS:
        assert getattr(gpu, name) is getattr(eager, name), "its tests are of this very function"
        call = lambda x, name=name: gpu.compared.append((name, x.dtype))  # noqa: E731
        monkeypatch.setattr(gpu, name, call)
    monkeypatch.setitem(sys.modules, "torch", Torch)
    monkeypatch.setattr(gpu, "ROUNDS", 1)
    return gpu


@pytest.mark.tier("full")
@pytest.mark.usefixtures("cupy")
def test_everything_is_timed(gpu):
    speeds = list(gpu.speeds(256))
    rates = gpu.gpu_rates
    kept = {rates.QUANTIZING, rates.RANDOM, rates.MOR}
    assert kept <= {speed.name for speed in speeds}, "the page of scale reckons with them"
    assert all(speed.seconds == 0.001 and speed.rate > 0 for speed in speeds[1:])
    assert {speed.wanted for speed in speeds} == {None, 0.6, 0.85}
    quantizing = [f"quantize with error sums, {source}" for source in ("bf16", "f32")]
    names = [*quantizing, "mor, tensor", "NVFP4, te"]
    assert [speed.name for speed in speeds if speed.ratio] == names
    peers = {(name, Torch.bfloat16) for name in PEERS} | {("torch_quantize", Torch.float32)}
    assert set(gpu.compared) == peers


@pytest.mark.tier("full")
@pytest.mark.parametrize("times", [[2.0, 4.0], [4.0, 2.0]], ids=str)
def test_the_fastest_copy_is_what_others_are_held_against(gpu, cupy, monkeypatch, times):
    """Clocks rise and fall: one is timed before the others, and one after."""
    copies = []

    def elapsed(start, end):
        if {launch.kernel for launch in end.before - start.before} != {"copyto"}:
            return 1.0
        copies.append(end)
        return times[len(copies) > gpu.ROUNDS + 2]

    monkeypatch.setattr(cupy.cuda, "get_elapsed_time", elapsed)
    first, *others = gpu.speeds(256)
    assert len(copies) == 2 * (gpu.ROUNDS + 2)
    assert (first.name, first.seconds, first.share) == ("copy", 0.002, 1.0)
    assert all(speed.share == speed.rate / first.rate for speed in others)


def test_what_is_timed_waits_for_work_before_it(gpu, cupy, monkeypatch):
    """So that it is launched by the time that it can begin, and finds nothing in the cache."""
    rounds = []

    def elapsed(start, end):
        rounds.append((start.before, end.before - start.before))
        return 1.0

    monkeypatch.setattr(cupy.cuda, "get_elapsed_time", elapsed)
    list(gpu.speeds(256))
    for before, timed in rounds:
        assert max(before, key=lambda launch: len(launch.before)).kernel == "copyto"
        assert len(timed) == 1 or "copyto" not in {launch.kernel for launch in timed}
    assert {"quantize_bf16_256", "dequantize_f32_codes_256"} <= {
        launch.kernel for _, timed in rounds for launch in timed
    }


def test_the_work_before_is_on_arrays_of_its_own(gpu, cupy, monkeypatch):
    """Or the cache would hold what a call reads."""
    copied, inputs, copyto = [], [], cupy.copyto
    monkeypatch.setattr(cupy, "copyto", lambda *of: copied.append(of) or copyto(*of))
    monkeypatch.setattr(gpu, "converting", lambda x: inputs.append(x) or ())
    monkeypatch.setattr(gpu, "mor_rows", lambda x: inputs.append(x) or ())
    list(gpu.speeds(256))
    assert copied
    assert all(
        not np.shares_memory(array.host, x.host) for of in copied for array in of for x in inputs
    )
    assert all(to.shape == x.shape == inputs[0].shape and to is not x for to, x in copied)


@pytest.mark.usefixtures("cupy")
def test_a_page_says_what_ran_and_what_did_not(gpu_page, tmp_path):
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    speeds = [
        gpu_page.Speed("amax", 0.001, 10**9, 3e12, 0.7, 0.85, None),
        gpu_page.Speed("mor", 0.001, 10**9, 3e12, 0.7, None, 6.0),
    ]
    results = gpu_page.test_results(report)
    text = gpu_page.page(SimpleNamespace(capability=90), results, speeds, 16)
    assert gpu_page.NOT_YET_RUN not in text
    for line in (
        "| GPU | a stand-in |",
        "| compute capability | 9.0 |",
        "**On a stand-in: 1 failed, 1 passed, 1 skipped.**",
        "| test_two | skipped | no such conversion | 1 |",
        "| its options | --std=c++17 --device-as-default-execution-space --no-cache --fmad=false ",
        "| nvidia-cuda-nvrtc | ",
        "| torch | ",
        "| test_three | failed |  | 1 |",
        "| amax | 1.000 | 1000.0 | 3000 | 70% |  | at least 85% | NO |",
        "| mor | 1.000 | 1000.0 | 3000 | 70% | 6.0 | 5 times torch | yes |",
    ):
        assert line in text


def test_an_environment_that_is_named_is_used_as_it_is():
    if not (shutil.which("make") and (ROOT / "Makefile").exists()):
        pytest.skip("a source distribution has no Makefile")
    # Under a make that runs the tests, this one would say which directory it enters.
    command = ["make", "--no-print-directory", "--dry-run", "gpu-test", "BIN=elsewhere/bin"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert all(line.startswith("elsewhere/bin/python ") for line in lines)
    assert "torch" in lines[0]
    assert "pip" not in done.stdout
    assert lines[-1].endswith(" verify cuda --report docs/gpu-evidence.json")


def test_claims_are_of_the_tests_that_there_are(gpu_page):
    texts = [path.read_text() for path in (ROOT / "tests/gpu").glob("test_*.py")]
    there = re.findall(r"^def (test_\w+)", "\n".join(texts), re.MULTILINE)
    assert sorted(there) == sorted(test for claim in gpu_page.CLAIMS for test in claim.tests)


@pytest.mark.usefixtures("cupy")
@pytest.mark.parametrize("ended", ["skipped", "failed", "missing"])
def test_a_claim_is_made_only_if_its_tests_passed(gpu_page, ended):
    results = {f"{test}[a]": ("passed", "") for claim in gpu_page.CLAIMS for test in claim.tests}
    speeds = [gpu_page.Speed("amax", 0.001, 10**9, 3e12, 0.9, 0.85, None)]

    def shown(results, speeds=speeds):
        text = gpu_page.page(SimpleNamespace(capability=90), results, speeds, 16)
        return text.partition("## What this run does not show")[0]

    assert all(claim.sentence in shown(results) for claim in gpu_page.CLAIMS)
    assert "not show" not in gpu_page.page(SimpleNamespace(capability=90), results, speeds, 16)
    assert "* Speed" not in shown(results, [speeds[0]._replace(share=0.8)])
    for claim in gpu_page.CLAIMS:
        for test in claim.tests:
            others = {name: end for name, end in results.items() if name != f"{test}[a]"}
            if ended != "missing":
                others |= {f"{test}[a]": (ended, ""), f"{test}[b]": ("passed", "")}
            is_fine = ended == "skipped" and claim.depends_on_gpu
            assert (claim.sentence in shown(others)) == is_fine


@pytest.mark.usefixtures("cupy")
def test_a_speed_that_is_missed_fails_once_the_page_is_written(
    of_benchmarks, gpu_page, monkeypatch, tmp_path
):
    gpu, page, report = of_benchmarks("gpu"), tmp_path / "page.md", tmp_path / "report.xml"
    report.write_text(REPORT)
    speed = gpu_page.Speed("amax", 0.001, 10**9, 3e12, 0.7, 0.85, None)
    monkeypatch.setattr(gpu, "speeds", lambda _: [speed])
    monkeypatch.setattr(sys, "argv", ["gpu", "--tests", str(report), "--page", str(page)])
    with pytest.raises(SystemExit, match="slower than wanted: amax"):
        gpu.main()
    assert "| amax |" in page.read_text()
    monkeypatch.setattr(gpu, "speeds", lambda _: [speed._replace(share=0.9)])
    gpu.main()
    kept = of_benchmarks("gpu_rates").read(tmp_path / "gpu-speed.json")
    assert kept == ("a stand-in", 16384, {"amax": 0.001})
