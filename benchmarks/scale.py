"""The cost of the largest sweeps: a page of arithmetic on measured rates."""

import hashlib
import math
import time
import zlib
from typing import NamedTuple

from benchmarks import gpu_rates
from benchmarks.exhaustive_rows import OPERATION as EXHAUSTIVE
from benchmarks.gpu_rates import GpuRates
from benchmarks.rows import OURS
from benchmarks.table import Line, Results
from mor_ref.workers.pools import processes

CORES = 1000
# One H200, as data sheets have it: its memory, and PCIe 5.0 from the machine that it is in.
GPU, GPU_BYTES_A_SECOND, LINK_BYTES_A_SECOND = "H200", 4.8e12, 64e9
PARAMETERS = 10**12

TEXT = """\
# What the largest sweeps would cost

This page computes the cost of three sweeps that are too large to run on a whim. It uses the rates
of [the table of speed](speed.md), and two rates that are measured while this page is written: of
digests, and of handing out jobs. The arithmetic is next to every figure. No part of a sweep needs
another: results are integers, or digests that are compared, and are joined in any order. So
{cores} cores need the time of the jobs of the busiest core, one after the other. If handing out all
jobs takes longer, they need that time. {threads}

{machine}

| sweep | numbers | ns each | jobs | one core | {cores} cores | one GPU ({gpu}) |
| --- | --: | --: | --: | --: | --: | --: |
{rows}

{of_gpu}

{explanations}

* **Codes are compared** by their SHA-256 and CRC-32, which take {digest:.2f} ns for a byte here. A
  direct comparison with a second implementation costs a second encoding, and the comparison.
* **Handing out a job** to a process and taking its result back takes {overhead:.2f} ms here, one
  after the other: {handed:,.0f} jobs in a second.

## All inputs of every small format

`mor-ref exhaustive` encodes all 2^32 binary32 inputs and takes SHA-256 and CRC-32 of the codes.

* {one:.1f} s for {first}, and {worst:.1f} s for the slowest of {cases} cases (every format of
  8 bits or fewer, every rounding without random bits, both overflow modes), on the
  {threads_used} cores of this machine: {chunk:.3f} ns for a number, measured on the 2^26 inputs
  from 0.125 up to 32, x 2^32.
* {all_minutes:.0f} minutes for all of them, one after the other.
* Stochastic rounding has no bundled digest, as its codes depend on the random words. With one
  word for all inputs (`--rounding sr --random-word R --n-random-bits N`) the same run
  also makes the exact model's codes, as runs of equal codes. All words are the second sweep above.

## How they are cut

* **Pairs**: a job for each block of 2^6 scales, which takes 2^22 pairs. A job returns the digest
  of its codes and its error sums.
* **Random words**: a job for each random word, with all inputs, which takes {word_seconds:.1f} s.
  Rounding up is monotonic in the word: if words 0 and 2^16 - 1 return one code, all words do, and a
  sweep may leave such an input out.
* **Checkpoint**: a job for each tensor of 2^28 parameters. Its decision is one comparison of
  integers. So a tensor larger than a job's memory can be cut, too, and the sums added.
  Reading has to keep up: {read_one:.1f} GB/s for one core, {read_all:,.0f} GB/s for {cores} of
  them. Where files are slower than that, they bound the sweep.
* More cores do not speed up handing out and joining. `exhaustive` with workers still takes SHA-256
  of all codes in the one process that started it, and this process bounds it.
"""


_NO_RATE = """\
For the GPU there is no rate yet; the last column is a lower bound: the bytes that
have to move, over {bandwidth:.1f} TB/s of its memory, or {link:.0f} GB/s to it. A kernel that
compares its codes in place writes none of them; its instructions are then the only bound."""
_WITH_RATES = """\
The last column is by the rates that `make gpu-test` measured on one {gpu}, on tensors of
{side:,} x {side:,} numbers; digests are not in them. Numbers that come to it over a link
of {link:.0f} GB/s take no less than the link."""


class Sweep(NamedTuple):
    """So many numbers, in jobs, and the bytes of each that a GPU moves at least."""

    name: str
    numbers: int
    written: str
    rate_of: str
    in_a_job: int
    gpu_bytes: int
    gpu_bytes_a_second: float
    gpu_reason: str
    rate_on_gpu: str  # its name among those of benchmarks.gpu_rates


SWEEPS = (
    Sweep(
        "every bf16 with every bf16 scale",
        1 << 32,
        "2^32",
        "quantizing bf16 with error sums, and a digest",
        1 << 22,
        1,
        GPU_BYTES_A_SECOND,
        "a code is written; numbers and scales can be counted out in registers",
        gpu_rates.QUANTIZING,
    ),
    Sweep(
        "every f32 with every 16-bit random word",
        1 << 48,
        "2^48",
        "encoding to e4m3 with random bits, and a digest",
        1 << 32,
        1,
        GPU_BYTES_A_SECOND,
        "a code is written; numbers and words can be counted out in registers",
        gpu_rates.RANDOM,
    ),
    Sweep(
        "a checkpoint of a trillion parameters",
        PARAMETERS,
        "10^12",
        "analyzing bf16 under the policy tensor",
        1 << 28,
        2,
        LINK_BYTES_A_SECOND,
        "two terabytes of bf16 do not fit in its memory and have to come over the link",
        gpu_rates.MOR,
    ),
)


class Timed(NamedTuple):
    """A sweep at a measured rate."""

    sweep: Sweep
    nanoseconds: float
    seconds_of_handing_out: float
    gpu_nanoseconds: float | None = None  # measured

    @property
    def seconds(self) -> float:
        """On one core."""
        return self.sweep.numbers * self.nanoseconds * 1e-9

    @property
    def jobs(self) -> int:
        """How many there are."""
        return math.ceil(self.sweep.numbers / self.sweep.in_a_job)

    @property
    def seconds_of_a_job(self) -> float:
        """For one of them."""
        return self.sweep.in_a_job * self.nanoseconds * 1e-9

    @property
    def jobs_in_a_row(self) -> int:
        """For the busiest of many cores."""
        return math.ceil(self.jobs / CORES)

    @property
    def seconds_of_the_busiest(self) -> float:
        """Of many cores, that which has the most jobs."""
        return self.jobs_in_a_row * self.seconds_of_a_job

    @property
    def seconds_of_handing(self) -> float:
        """The time to hand out all jobs, by one process."""
        return self.jobs * self.seconds_of_handing_out

    @property
    def seconds_on_many(self) -> float:
        """On many cores."""
        return max(self.seconds_of_the_busiest, self.seconds_of_handing)

    @property
    def gpu_seconds_of_moving(self) -> float:
        """No less than this."""
        return self.sweep.numbers * self.sweep.gpu_bytes / self.sweep.gpu_bytes_a_second

    @property
    def gpu_seconds(self) -> float:
        """At the rate that was measured, which includes its memory, but not the link.

        Without one it is the least that it can be.
        """
        if self.gpu_nanoseconds is None:
            return self.gpu_seconds_of_moving
        crosses_link = self.sweep.gpu_bytes_a_second == LINK_BYTES_A_SECOND
        moving = self.gpu_seconds_of_moving if crosses_link else 0.0
        return max(self.sweep.numbers * self.gpu_nanoseconds * 1e-9, moving)

    def row(self) -> str:
        """Return the line of the table."""
        figures = (
            self.sweep.name,
            self.sweep.written,
            f"{self.nanoseconds:.2f}",
            f"{self.jobs:,}",
            duration(self.seconds),
            duration(self.seconds_on_many),
            f"{'' if self.gpu_nanoseconds else 'at least '}{duration(self.gpu_seconds)}",
        )
        return f"| {' | '.join(figures)} |"

    def explanation(self) -> str:
        """Return the arithmetic in words."""
        sweep = self.sweep
        return (
            f"* **{sweep.name}**: {sweep.written} numbers x {self.nanoseconds:.2f} ns "
            f"({sweep.rate_of}) = {self.seconds:,.3g} s on one core. {self.jobs:,} jobs of "
            f"{self.seconds_of_a_job:.3g} s; {self.jobs_in_a_row} of them in a row = "
            f"{self.seconds_of_the_busiest:,.3g} s; to hand them out = "
            f"{self.seconds_of_handing:,.3g} s. GPU: {sweep.gpu_bytes} B each "
            f"({sweep.gpu_reason}) x {sweep.written} / {sweep.gpu_bytes_a_second:.1e} bytes/s = "
            f"{self.gpu_seconds_of_moving:,.2g} s{self._on_gpu()}."
        )

    def _on_gpu(self) -> str:
        if self.gpu_nanoseconds is None:
            return ""
        return (
            f"; at the {self.gpu_nanoseconds:.3g} ns that were measured for a number, "
            f"{self.sweep.numbers * self.gpu_nanoseconds * 1e-9:,.2g} s"
        )


def duration(seconds: float) -> str:
    """Return seconds in a unit that people use.

    >>> duration(0.0012), duration(90), duration(7200), duration(1e9)
    ('1.2 ms', '1.5 min', '2 h', '31.7 years')
    """
    units = ((365.25 * 86400, "years"), (2 * 86400, "days"), (3600, "h"), (60, "min"), (1, "s"))
    for length, name in units:
        if seconds >= length:
            shown = seconds / (86400 if name == "days" else length)
            return f"{shown:.3g} {name}"
    return f"{seconds * 1e3:.3g} ms"


def sweeps(results: Results, digest: float, overhead: float, rates: GpuRates | None) -> list[Timed]:
    """Return the three sweeps at the rates of this run, and at those of a GPU if they are known.

    A digest takes so many nanoseconds for a byte, and handing out a job so many seconds.
    """
    quantizing = results.line("quantize bf16 to e4m3, with error sums").ours
    random = results.line("encode f32 to e4m3, every rounding").found["sr"]
    deciding = results.line("analyze bf16, tensor").ours
    taken = quantizing.nanoseconds + digest, random.nanoseconds + digest, deciding.nanoseconds
    on_gpu = {} if rates is None else rates.nanoseconds
    return [
        Timed(sweep, nanoseconds, overhead, on_gpu.get(sweep.rate_on_gpu))
        for sweep, nanoseconds in zip(SWEEPS, taken, strict=True)
    ]


def nanoseconds_of_a_digest() -> float:
    """Measure the time of SHA-256 and CRC-32 for a byte."""
    codes = bytes(1 << 24)
    start = time.perf_counter()
    hashlib.sha256(codes)
    zlib.crc32(codes)
    return (time.perf_counter() - start) / len(codes) * 1e9


def seconds_of_handing_out(count: int = 2000) -> float:
    """Measure the time to hand out a job that does nothing, and to receive its result."""
    workers = processes()
    start = time.perf_counter()
    for _ in workers.as_done(abs, [(0,), (0,)]):  # starts the processes
        pass
    few = time.perf_counter() - start
    start = time.perf_counter()
    for _ in workers.as_done(abs, [(0,)] * count):
        pass
    return max(0.0, time.perf_counter() - start - few) / count


def exhaustive_seconds(line: Line) -> dict[str, float]:
    """Return the seconds that all inputs take under each case."""
    others = {m.contender: m for m in line.variants} | {OURS: line.ours}
    return {name: m.nanoseconds * 1e-9 * 2**32 for name, m in others.items()}


def threads_in_words(results: Results) -> str:
    """Return the measured gain of two threads, in words."""
    found = next((n for n in results.lines if n.row.operation.endswith("2 threads")), None)
    if found is None:
        return ""
    ratio = found.ratio(found.found["one thread"])
    return f"On this machine two threads are {ratio:.2f} times one, for the conversion to e4m3."


def gpu_in_words(rates: GpuRates | None) -> str:
    """Return the origin of the last column, in words."""
    link = LINK_BYTES_A_SECOND / 1e9
    if rates is None:
        return _NO_RATE.format(bandwidth=GPU_BYTES_A_SECOND / 1e12, link=link)
    return _WITH_RATES.format(gpu=rates.gpu, side=rates.side, link=link)


def as_page(results: Results, machine: str, rates: GpuRates | None = None) -> str:
    """Return the text of docs/scale.md."""
    digest, overhead = nanoseconds_of_a_digest(), seconds_of_handing_out()
    found = sweeps(results, digest, overhead, rates)
    every = exhaustive_seconds(results.line(EXHAUSTIVE))
    _, random, checkpoint = found
    return TEXT.format(
        cores=CORES,
        threads=threads_in_words(results),
        machine=machine,
        gpu=rates.gpu if rates else f"{GPU}: not yet measured",
        rows="\n".join(sweep.row() for sweep in found),
        of_gpu=gpu_in_words(rates),
        explanations="\n".join(sweep.explanation() for sweep in found),
        digest=digest,
        overhead=overhead * 1e3,
        handed=1 / overhead,
        one=every[OURS],
        first="e4m3, rne, satfinite",
        worst=max(every.values()),
        cases=len(every),
        chunk=results.line(EXHAUSTIVE).ours.nanoseconds,
        threads_used=results.machine["cores"],
        all_minutes=sum(every.values()) / 60,
        word_seconds=random.seconds_of_a_job,
        read_one=2 / checkpoint.nanoseconds,
        read_all=2 / checkpoint.nanoseconds * CORES,
    )
