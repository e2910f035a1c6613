"""Options and settings that all tests share."""

import atexit
import gc
import os
from argparse import ArgumentTypeError
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import extras
import pytest
from hypothesis import HealthCheck, Phase, settings

# A machine may be as slow or as busy as it is: no test has a deadline.
settings.register_profile("own", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("own")
settings.register_profile("thorough", max_examples=2000)
# The same examples in every run of CI; new ones at a desk.
settings.register_profile("usual", max_examples=50, derandomize="CI" in os.environ)
# To know that a test fails, for mutants: the search for a smaller example takes minutes.
settings.register_profile(
    "first_failure", phases=[Phase.explicit, Phase.generate], derandomize=True
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "usual"))

# Examples that need torch, and modules that need a solver, which are not everywhere.
OF_EXTRAS = {
    "torch": ["mor_ref/torch/*", "docs/guide/training.md"],
    "bitwuzla": ["mor_ref/proofs/solver.py", "mor_ref/proofs/survivors.py"],
}
collect_ignore_glob = [
    path for name, paths in OF_EXTRAS.items() if not extras.is_there(name) for path in paths
]

TIERS = ("full", "exhaustive", "gpu")
# The files that take longest, which begin first: one that began last would be waited for alone.
LONGEST = (
    "test_diagnosis.py", "test_ptx.py", "test_site.py", "test_wrong_kernels.py",
    "test_cuda_sanitizers.py", "test_causes.py", "test_pages.py", "test_document.py",
    "test_cuda_ptx.py", "test_cuda_host.py", "test_block_peers.py", "test_explorer_codes.py",
    "test_encoding.py", "test_sources.py", "test_clusters.py", "test_wrong_kernels_alone.py",
    "test_wrong_kernels_in_one_kind.py", "test_stream_devices.py", "test_deviations.py",
    "test_own_tensors.py", "test_structure.py", "test_kernel_cache.py", "test_workers_split.py",
    "test_explorer.py", "test_exhaustive.py",
)  # fmt: skip


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--tier",
        choices=TIERS,
        help="run the tests of this tier alone: full repeats on more what a usual run shows, "
        "exhaustive on all that there is and on all 2^32 inputs of each format, gpu needs one",
    )
    parser.addoption(
        "--share",
        type=_share,
        metavar="K/N",
        help="run one of N shares of the tests, number K from 0 on, by the digests of their ids",
    )
    parser.addoption(
        "--once",
        type=Path,
        metavar="FILE",
        help="leave out the tests that passed in earlier runs with this file, which lists them",
    )


def _share(text: str) -> tuple[int, int]:
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and int(number) < int(count)):
        raise ArgumentTypeError(f"share is {text!r}; give a number below that of all shares: 0/4")
    return int(number), int(count)


# Garbage collection would go through all modules and all tests over and over: half of the time that
# it takes to collect them, and none of them is garbage.
@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        atexit.register(gc.unfreeze)  # nanobind would report frozen objects as leaks
        gc.enable()


def tier_of(item: pytest.Item) -> str | None:
    """Return the tier of a test: None in a usual run, and if `but` has a part of its id.

    A usual run has a share of the tests by their ids as well, with `but_one_in`. With `one_in`, the
    tier has a share of the others, the exhaustive tier those that are left.
    """
    marker = item.get_closest_marker("tier")
    if marker is None or any(part in item.name for part in marker.kwargs.get("but", ())):
        return None
    digest = crc32(item.name.encode())
    if "but_one_in" in marker.kwargs and digest % marker.kwargs["but_one_in"] == 0:
        return None
    return marker.args[0] if digest % marker.kwargs.get("one_in", 1) == 0 else "exhaustive"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of the tier; one skip stands for those of a file that need the same."""
    wanted = config.getoption("--tier")
    number, count = config.getoption("--share") or (0, 1)
    passed = _passed_before(config)
    kept, others, lacking = [], [], defaultdict(list)
    for item in items:
        is_of_share = crc32(item.nodeid.encode()) % count == number
        if tier_of(item) != wanted or not is_of_share or item.nodeid in passed:
            others.append(item)
        else:
            missing = extras.missing(extras.needed_by(item))
            of_file = lacking[item.path, missing] if missing else kept
            of_file.append(item)
    for (_, missing), tests in lacking.items():
        tests[0].add_marker(pytest.mark.skip(reason=extras.reason(missing, len(tests))))
        kept.append(tests[0])
    items[:] = sorted(kept, key=_rank)
    config.hook.pytest_deselected(items=others)


def _passed_before(config: pytest.Config) -> set[str]:
    """Return the ids of the tests that passed in earlier runs with the file of --once."""
    file = config.getoption("--once")
    return (
        set(file.read_text("utf-8").splitlines()) if file is not None and file.exists() else set()
    )


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Add the tests that passed to the file of --once; the controller of xdist knows them all."""
    file = session.config.getoption("--once")
    if file is None or hasattr(session.config, "workerinput"):
        return
    reports = session.config.pluginmanager.get_plugin("terminalreporter").stats.get("passed", [])
    passed = _passed_before(session.config).union(report.nodeid for report in reports)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{nodeid}\n" for nodeid in sorted(passed)), "utf-8")


def _rank(item: pytest.Item) -> int:
    """Return the place of the file of a test in the order of a run."""
    name = item.path.name
    return LONGEST.index(name) if name in LONGEST else len(LONGEST)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say at the end how many tests the skips are for, and which missing extra would bring them."""
    skipped = terminalreporter.stats.get("skipped", [])
    line = extras.summary([report.longrepr[2] for report in skipped])
    if line is not None:
        terminalreporter.write_line(line, yellow=True)
