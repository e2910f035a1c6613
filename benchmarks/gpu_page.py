"""The page of the documentation with the evidence from a GPU, and the sources that it is of.

`python -m benchmarks.gpu_page docs/gpu-evidence.md` lists on it all that changed after the run.
"""

import importlib.metadata
import json
import sys
import xml.etree.ElementTree as ET  # of a report that pytest wrote here
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from benchmarks.program_digest import program_digest
from mor_ref.cuda import nvrtc, source
from mor_ref.golden import bundled_files
from mor_ref.golden.store.manifest import read_manifest

SOURCES = "gpu-sources.json"  # next to the page
_SINCE = "## Changed since this run\n"
NOT_YET_RUN = "**Not yet run.**"
_OPENING = """# Evidence from a GPU

`make test` shows all that a machine without a GPU can show of the CUDA kernels. This page is for
all that only a GPU can show: `make gpu-test` writes it.
"""


class Claim(NamedTuple):
    """A sentence of the page, and the tests that show it; without tests, the speeds show it."""

    sentence: str
    tests: tuple[str, ...] = ()
    depends_on_gpu: bool = False  # whether some GPUs skip its tests

    def is_shown(self, results, speeds):
        """Return whether all its tests passed, without a skip of a test that this GPU could run."""
        if not self.tests:
            return bool(speeds) and all(speed.is_met for speed in speeds)
        fine = {"passed", "skipped"} if self.depends_on_gpu else {"passed"}
        for test in self.tests:
            ends = {end for name, (end, _) in results.items() if name.split("[")[0] == test}
            if "passed" not in ends or not ends <= fine:
                return False
        return True


CLAIMS = (
    Claim(
        """\
* Every golden suite through the kernels, on three grids, with loads of 16 bytes and without.
""",
        ("test_suites",),
    ),
    Claim(
        """\
* Every public function of `mor_ref.cuda` has the bits of `mor_ref`, also of arrays with
  strides, of each dtype, and of other libraries.
""",
        (
            "test_every_function_gives_what_the_host_gives",
            "test_products_of_matrices_give_what_the_host_gives",
            "test_shapes",
            "test_dtypes_and_strides",
            "test_arrays_of_other_libraries",
            "test_codes_are_decoded",
            "test_random_bits",
            "test_what_is_no_array",
        ),
    ),
    Claim(
        """\
* Of tensors of torch, on a stream of torch's, `mor` and `quantize` give the same bits, and so does
  `dequantize` on another stream, however late that is.
""",
        ("test_a_large_tensor", "test_memory_is_not_used_again_while_another_stream_reads_it"),
    ),
    Claim(
        """\
* A canary of plain arithmetic fails if anything is fused, flushed or approximated; under each wrong
  option it is seen to fail.
""",
        ("test_nothing_is_fused_flushed_or_approximated", "test_the_canary_can_fail"),
    ),
    Claim(
        """\
* The conversions of the hardware match the integer encoder, over all 2^32 inputs: bf16,
  e4m3 and e5m2, and where the GPU has them e2m1, e2m3, e3m2 and e8m0. A wrong rounding is seen to
  differ.
""",
        ("test_the_encoder_is_what_hardware_has", "test_a_difference_from_hardware_is_found"),
        depends_on_gpu=True,
    ),
    Claim(
        """\
* The matrix instructions of the GPU, `mma` and on Hopper `wgmma`, have the bits of their profiles
  on 10^7 dot products each, and on the golden rows of the profile. Sums of int8 wrap as in the
  profile int32. Instructions of FP6 and FP4, and those with scales, are of `mma` on RTX Blackwell.
  Volta and `tcgen05` are not compared.
""",
        (
            "test_small_integers_are_multiplied_exactly",
            "test_the_profile_is_the_instruction",
            "test_golden_rows_are_those_of_the_instruction",
            "test_sums_of_integers_wrap",
        ),
        depends_on_gpu=True,
    ),
    Claim(
        """\
* The GPU and `mor_ref.ptx` on a CPU return the same bits of the same PTX, and stay within its
  bounds where PTX leaves bits open. The launches are those of the tests of `mor_ref.ptx`, and all
  forms of arithmetic instructions that the GPU has.
""",
        ("test_ptx_on_a_cpu_has_the_bits_of_the_gpu",),
    ),
    Claim(
        """\
* compute-sanitizer finds nothing in any kernel (memcheck, racecheck, initcheck, synccheck), and
  finds an overrun that is planted.
""",
        ("test_every_kernel_is_clean",),
    ),
    Claim(
        """\
* Speed, as a share of the bandwidth of a copy on the same GPU: quantize with error sums at least
  60 %, amax at least 85 %; and at least 5 times eager torch.
"""
    ),
)


class Speed(NamedTuple):
    """How fast something was."""

    name: str
    seconds: float
    elements: int
    rate: float  # bytes moved in a second
    share: float  # of a copy's
    wanted: float | None
    ratio: float | None  # to eager torch, which is wanted to be 5

    @property
    def is_met(self):
        """Whether it is as wanted."""
        return self.share >= (self.wanted or 0) and (self.ratio is None or self.ratio >= 5)

    def cells(self):
        """Return the cells of its row."""
        goals = [f"at least {self.wanted:.0%}"] if self.wanted else []
        goals += ["5 times torch"] if self.ratio else []
        return (
            self.name,
            f"{self.seconds * 1e3:.3f}",
            f"{self.elements / self.seconds / 1e9:.1f}",
            f"{self.rate / 1e9:.0f}",
            f"{self.share:.0%}",
            f"{self.ratio:.1f}" if self.ratio else "",
            ", ".join(goals),
            ("yes" if self.is_met else "NO") if goals else "",
        )

    def line(self):
        """Return the row for a terminal."""
        return "  ".join(cell for cell in self.cells() if cell)


def digests():
    """Return digests of each program, whatever its local names, and of the golden suites."""
    names = source.program_names()
    programs = {f"{name}.cu": program_digest(source.flattened(name)) for name in names}
    suites = read_manifest(bundled_files())["suites"]
    return programs | {f"the suite {name}": entry["sha256"] for name, entry in suites.items()}


def brought_up_to_date(text, then):
    """Return the page of a run, with all programs and suites that are others than `then`."""
    now = digests()
    changed = [name for name in now if then.get(name) != now[name]]
    start, _, after = text.partition(_SINCE)
    return start + _since(changed) + after[after.index("\n## ") :]


def _since(changed):
    """Return the section with the names of changed programs and suites."""
    said = f"{', '.join(changed)}: of these the page shows nothing." if changed else "Nothing."
    return f"{_SINCE}\n{said}\n"


def test_results(report):
    """Return the end of each test in JUnit's report: passed, failed, or the reason of its skip."""
    found = {}
    for case in ET.parse(report).iter("testcase"):  # noqa: S314
        ends = [end for end in case if end.tag in ("failure", "error", "skipped")]
        ended = "passed" if not ends else "failed" if ends[0].tag != "skipped" else "skipped"
        why = ends[0].get("message", "") if ended == "skipped" else ""
        found[case.get("name")] = (ended, why)
    return found


def not_yet_run():
    """Return the page before the first run on a GPU."""
    promised = _listed("What it will show", CLAIMS)
    return f"{_OPENING}\n{NOT_YET_RUN} No GPU could be had so far.\n\n{promised}"


def _listed(title, claims):
    return f"## {title}\n\n{''.join(claim.sentence for claim in claims)}"


def page(gpu, results, speeds, side):
    """Return the page after a run."""
    from mor_ref.cuda.device import cupy

    runtime = cupy().cuda.runtime
    facts = {
        "GPU": gpu_name(),
        "compute capability": f"{gpu.capability / 10}",
        "CUDA of the driver": runtime.driverGetVersion(),
        "NVRTC": ".".join(map(str, nvrtc.version())),
        "its options": " ".join((*nvrtc.LANGUAGE, *nvrtc.ARITHMETIC)),
        **{name: _version_of(name) for name in ("nvidia-cuda-nvrtc", "torch")},
        "CuPy": cupy().__version__,
    }
    shown = [claim for claim in CLAIMS if claim.is_shown(results, speeds)]
    counts = Counter(ended for ended, _ in results.values())
    said = ", ".join(f"{count} {ended}" for ended, count in sorted(counts.items()))
    parts = [_OPENING, f"**On {facts['GPU']}: {said}.**\n", _listed("What is shown", shown)]
    if len(shown) < len(CLAIMS):
        missing = [claim for claim in CLAIMS if claim not in shown]
        parts.append(_listed("What this run does not show", missing))
    parts += [_since([]), *_tables(facts, results, speeds, side)]
    return "\n".join(parts)


def gpu_name():
    """Return the maker's name of the GPU."""
    from mor_ref.cuda.device import cupy

    properties = cupy().cuda.runtime.getDeviceProperties(cupy().cuda.Device().id)
    return properties["name"].decode()


def _version_of(name):
    """Return the full version of a package, which its `__version__` may shorten."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _tables(facts, results, speeds, side):
    head = ("operation", "ms", "G elements/s", "GB/s", "of a copy", "of torch", "wanted", "met")
    yield f"## Speed, of {side} x {side} elements\n"
    yield _table(head, (speed.cells() for speed in speeds))
    yield "## The machine, and the tests\n"
    yield _table(("on", ""), facts.items())
    yield f"{{download}}`{SOURCES}` has the digests of all programs and suites of this run.\n"
    not_passed = Counter(
        (name.split("[")[0], *end) for name, end in results.items() if end[0] != "passed"
    )
    if not_passed:
        rows = ((*of, count) for of, count in not_passed.items())
        yield _table(("test", "ended", "why", "how many"), rows)


def _table(head, body):
    lines = [head, ("---",) * len(head), *body]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def main():
    """List on the page all programs and suites that changed after its run."""
    path = Path(sys.argv[1])
    then = json.loads(path.with_name(SOURCES).read_text("utf-8"))
    path.write_text(brought_up_to_date(path.read_text("utf-8"), then), "utf-8")


if __name__ == "__main__":
    main()
