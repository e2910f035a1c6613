"""What the largest sweeps would cost: a page of arithmetic on measured rates."""

from typing import NamedTuple

from benchmarks.exhaustive_rows import OPERATION as EXHAUSTIVE
from benchmarks.rows import OURS
from benchmarks.table import Line, Results

CORES = 1000
# One H200, as its data sheet has it: what no kernel can exceed that goes through the memory.
GPU, GPU_BYTES_A_SECOND = "H200", 4.8e12
PARAMETERS = 10**12

_TEXT = """\
# What the largest sweeps would cost

Three sweeps that are too large to run on a whim, and what they cost by the rates of
[the table of speed](speed.md). Every figure on this page is made from that run by the arithmetic
that stands beside it; {cores} cores are taken to be {cores} times one, as no part of a sweep
needs another: results are integers, or digests that are compared, and are joined in any order.
{threads}

{machine}

| sweep | numbers | ns each | one core | {cores} cores | one GPU ({gpu}): not yet measured |
| --- | --: | --: | --: | --: | --: |
{rows}

For the GPU there is no rate yet; the last column is what it cannot be faster than: the bytes that
go through its memory, over {bandwidth:.1f} TB/s. A kernel that compares its codes in place writes
none of them; its instructions are then the only bound, and for those there is no rate yet.

{explanations}

## All inputs of every small format

`mor-ref exhaustive` encodes all 2^32 binary32 inputs and takes SHA-256 and CRC-32 of the codes.

* {one:.1f} s for {first}, and {worst:.1f} s for the slowest of {cases} cases (every format of
  8 bits or fewer, every rounding without random bits, both overflow modes), on the
  {threads_used} cores of this machine: {chunk:.3f} ns for a number x 2^32.
* {all_minutes:.0f} minutes for all of them, one after the other.
* Stochastic rounding has no such digest: its codes depend on the random words. That is the second
  sweep above.

## How they are cut

* **Pairs**: a job for each block of 2^8 scales, which takes 2^24 pairs. A job gives back the digest
  of its codes and its error sums.
* **Random words**: a job for each random word and chunk of 2^24 inputs; {jobs:,} jobs of
  {job_seconds:.2f} s. Rounding up is monotonic in the word: where the code under word 0 is that
  under the largest, all words agree, and a sweep may leave such an input out.
* **Checkpoint**: a job for each tensor; its decision is one comparison of integers, so that a
  tensor larger than a job's memory can be cut as well, and the sums added. Reading has to keep up:
  {read_one:.1f} GB/s for one core, {read_all:,.0f} GB/s for {cores} of them. Where files are slower
  than that, they are what the sweep costs.
"""


class Sweep(NamedTuple):
    """So many numbers at a measured rate, and the bytes of each that a GPU moves at least."""

    name: str
    numbers: int
    written: str
    nanoseconds: float
    rate_of: str
    gpu_bytes: int
    gpu_reason: str

    @property
    def seconds(self) -> float:
        """On one core."""
        return self.numbers * self.nanoseconds * 1e-9

    @property
    def gpu_seconds(self) -> float:
        """No less than this."""
        return self.numbers * self.gpu_bytes / GPU_BYTES_A_SECOND

    def row(self) -> str:
        """Its line of the table."""
        figures = (
            self.name,
            self.written,
            f"{self.nanoseconds:.2f}",
            duration(self.seconds),
            duration(self.seconds / CORES),
            f"at least {duration(self.gpu_seconds)}",
        )
        return f"| {' | '.join(figures)} |"

    def explanation(self) -> str:
        """The arithmetic in words."""
        return (
            f"* **{self.name}**: {self.written} numbers x {self.nanoseconds:.2f} ns "
            f"({self.rate_of}) = {self.seconds:,.3g} s on one core; / {CORES} = "
            f"{self.seconds / CORES:,.3g} s. GPU: {self.gpu_bytes} B each "
            f"({self.gpu_reason}) x {self.written} / {GPU_BYTES_A_SECOND:.1e} bytes/s = "
            f"{self.gpu_seconds:,.2g} s."
        )


def duration(seconds: float) -> str:
    """Seconds in the unit that people would use.

    >>> duration(0.0012), duration(90), duration(7200), duration(1e9)
    ('1.2 ms', '1.5 min', '2 h', '31.7 years')
    """
    units = ((365.25 * 86400, "years"), (2 * 86400, "days"), (3600, "h"), (60, "min"), (1, "s"))
    for length, name in units:
        if seconds >= length:
            shown = seconds / (86400 if name == "days" else length)
            return f"{shown:.3g} {name}"
    return f"{seconds * 1e3:.3g} ms"


def sweeps(results: Results) -> list[Sweep]:
    """The three, at the rates of this run."""
    quantizing = results.line("quantize bf16 to e4m3, with error sums").ours
    random = results.line("encode f32 to e4m3, every rounding").found["sr"]
    mixing = results.line("analyze bf16, tensor").ours
    return [
        Sweep(
            "every bf16 with every bf16 scale",
            1 << 32,
            "2^32",
            quantizing.nanoseconds,
            "quantizing bf16 with error sums",
            1,
            "a code is written; numbers and scales can be counted out in registers",
        ),
        Sweep(
            "every f32 with every 16-bit random word",
            1 << 48,
            "2^48",
            random.nanoseconds,
            "encoding to e4m3 with random bits",
            1,
            "a code is written; numbers and words can be counted out in registers",
        ),
        Sweep(
            "a checkpoint of a trillion parameters",
            PARAMETERS,
            "10^12",
            mixing.nanoseconds,
            "analyzing bf16 under the policy tensor",
            2,
            "bf16 is read once, if a tensor stays in a cache between scales and codes",
        ),
    ]


def exhaustive_seconds(line: Line) -> dict[str, float]:
    """The seconds that all inputs take under each case."""
    others = {m.contender: m for m in line.variants} | {OURS: line.ours}
    return {name: m.nanoseconds * 1e-9 * 2**32 for name, m in others.items()}


def threads_in_words(results: Results) -> str:
    """What two threads were found to be worth."""
    found = next((n for n in results.lines if n.row.operation.endswith("2 threads")), None)
    if found is None:
        return ""
    ratio = found.ratio(found.found["one thread"])
    return f"On this machine two threads are {ratio:.2f} times one, for the conversion to e4m3."


def as_page(results: Results, machine: str) -> str:
    """The text of docs/scale.md."""
    found = sweeps(results)
    every = exhaustive_seconds(results.line(EXHAUSTIVE))
    chunk = results.line(EXHAUSTIVE).ours.nanoseconds
    _, random, checkpoint = found
    return _TEXT.format(
        cores=CORES,
        threads=threads_in_words(results),
        machine=machine,
        gpu=GPU,
        rows="\n".join(sweep.row() for sweep in found),
        bandwidth=GPU_BYTES_A_SECOND / 1e12,
        explanations="\n".join(sweep.explanation() for sweep in found),
        one=every[OURS],
        first="e4m3, rne, satfinite",
        worst=max(every.values()),
        cases=len(every),
        chunk=chunk,
        threads_used=results.machine["cores"],
        all_minutes=sum(every.values()) / 60,
        jobs=(random.numbers >> 24),
        job_seconds=random.nanoseconds * 1e-9 * 2**24,
        read_one=2 / checkpoint.nanoseconds,
        read_all=2 / checkpoint.nanoseconds * CORES,
    )
