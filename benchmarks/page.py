"""Writes docs/speed.md with its picture, and docs/scale.md, from measurements."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import golden, gpu_rates, small_calls
from benchmarks.chart import as_svg
from benchmarks.machine_code import DIVIDING, WAITING
from benchmarks.scale import as_page as scale_page
from benchmarks.table import SHOWN, Results, as_markdown, read
from mor_ref.engine.strips import STRIP

FULL = 0.5  # the share of the work on numbers that is in the widest vectors of full vectors
QUIET = 0.5  # the load above the number of cores of a machine that does nothing but measure

HEAD = """\
# Speed

How long the operations take next to other libraries, in the same run and on the same numbers.
Machines are noisy and differ: the ratios count. `make bench` measures and prints the table,
`make bench-page` writes this page.

{machine}

![How many times longer other libraries take](speed.svg)

## The table

* **ns each** is our time for a number, on one thread where nothing else is said. The contenders of
  a row take turns, and the best call of each counts.
* **bytes** are read and written for a number: the input of a call and its result, each counted
  once. **of a copy** is the rate of these bytes as a share of the rate at which `numpy.copyto`
  reads and writes as many, into room that is there already. Most calls of ours make room for their
  results. It is empty where a call makes its numbers itself.
* **next to it** is the time of another library as a multiple of ours. A row that names roundings or
  other arguments also has our times with these, the slowest {shown}.
* **compared** are the results of every other library with ours, bit for bit: codes, scales of
  blocks but for the sign bit of a stored scale, outputs, or the numbers that codes stand for. If a
  library only rounds, its numbers are encoded first. They are the same if nothing else is said.
* **wanted** has the limits, and the measured ratios. Ratios to a `copy` compare times, not rates
  of bytes. `numpy.copyto` copies the numbers that the call is given, with their dtype.

{table}

{verdict}

## The machine code of the loops

{loops}

## What bounds each pipeline

The processor time of every kernel in a call on 2^{log2_size} numbers; the slowest step; and the
same step on 2^{log2_size_in_cache} numbers, which stay in the caches. A step that takes less than
{waiting:.0%} of the time there waits for memory. A division of full vectors takes {division:.2f} ns
for a number here; a step that spends more than {dividing:.0%} of its time in the caches on those is
bound by them. A step that does neither is put down to its instructions. Each bound is
found {findings} times; a step whose bound changes is not clear. The rest is making room for
results, which the system clears page by page, and Python.

{pipelines}
"""

LOOPS = """\
Numba's machine code for this processor: the innermost loop that does the work of each kernel, its
instructions by the width of their vectors, and which of them divide. The rest of a row, in which no
full vector fits, is done by narrower copies of the loop, which are not counted here. Rows are cut
into strips of {strip:,}, so only the last strip of a row meets them. Nor is the joining of the
columns of a block at its end, which counts where a block has few.

{loops}

Not in full vectors, or with less than {full:.0%} of the instructions on numbers in them, are
{narrow}.
{more}"""
_OF_FORMULAS = """\
Kernels that are made of formulas, which find the scales of MX, NVFP4 and other block formats, are
not looked at.
"""
_NOT_READ = "The machine code is not read on this processor; only that of x86-64 is."
OF_LOOPS = ("kernel", "numbers", "512", "256", "128", "single", "other", "divide")
OF_PIPELINES = ("pipeline", "steps, ns each", "all", "slowest", "in cache", "bound by")


def machine(results: Results) -> str:
    """Return the machine of the measurements."""
    found = results.machine
    versions = ", ".join(f"{k} {v}" for k, v in found["versions"].items() if v)
    load = max(found["load"], found["load_after"])
    busy = (
        f"\n\n**The machine was busy with other work** (a load of {load:.0f}): "
        "times are longer than they would be, and limits may be missed for that reason."
        if load > QUIET + found["cores"]
        else ""
    )
    return (
        f"Measured on: {found['cpu']['brand_raw']}, {found['cores']} cores, {found['system']}, "
        f"Python {found['python_version']}; {versions}.{busy}"
    )


def verdict(results: Results) -> str:
    """Return how many limits are met."""
    missed = [(line, v) for line, v in results.verdicts if not v.is_met]
    kept = len(results.verdicts) - len(missed)
    text = f"{kept} of {len(results.verdicts)} limits were kept in this run."
    named = (
        f"* {line.row.operation}: {v.text}{'; ' if v.bound else ''}{v.bound}" for line, v in missed
    )
    return "\n".join([text, "", *named])


def markdown_table(headings: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    """Return a table: its first two columns are words, the others figures."""
    rules = tuple("---" if i < 2 else "--:" for i in range(len(headings)))
    return "\n".join(f"| {' | '.join(row)} |" for row in (headings, rules, *rows))


def loop_rows(code: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield the loops, widest first."""
    shown = set()
    for loop in sorted(code["loops"], key=lambda loop: (-loop["widest"], loop["kernel"])):
        widths = {int(width): count for width, count in loop["widths"].items()}
        columns = [str(widths.get(width, "")) for width in (512, 256, 128, 32, 0)]
        row = (f"`{loop['kernel']}`", loop["numbers"], *columns, str(loop["divisions"] or ""))
        if row not in shown:
            shown.add(row)
            yield row


def narrow_kernels(code: dict[str, Any]) -> str:
    """Return the kernels without the widest vectors of this machine."""
    widest = max(loop["widest"] for loop in code["loops"])
    names = {
        loop["kernel"]
        for loop in code["loops"]
        if loop["widest"] < widest or loop["share_of_widest"] < FULL
    }
    return ",\n".join(f"`{name}`" for name in sorted(names)) or "none"


def loops_in_words(code: dict[str, Any]) -> str:
    """Return the loops in words, and conclusions from them."""
    if not code["is_read"]:
        return _NOT_READ
    rest = (
        ("No loop was found in", code["without_loop"]),
        ("Not looked at, for no pipeline runs them:", code["not_called"]),
    )
    said = (f"{text} {', '.join(f'`{name}`' for name in some)}." for text, some in rest if some)
    return LOOPS.format(
        strip=STRIP,
        loops=markdown_table(OF_LOOPS, loop_rows(code)),
        full=FULL,
        narrow=narrow_kernels(code),
        more=_OF_FORMULAS + "\n".join(said),
    )


def pipeline_rows(code: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield the slowest steps of each pipeline."""
    for pipeline in code["pipelines"]:
        spent = pipeline["steps"]
        worth = sorted(spent.items(), key=lambda item: -item[1])
        steps = ", ".join(f"{name} {time:.2f}" for name, time in worth if time >= 0.05)
        yield (
            pipeline["pipeline"],
            steps,
            f"{sum(spent.values()):.2f}",
            f"`{pipeline['slowest']}`",
            f"{pipeline['in_cache']:.2f}",
            pipeline["bound"],
        )


def speed_page(results: Results, code: dict[str, Any]) -> str:
    """Return the text of docs/speed.md; both arguments must be of one machine."""
    cpu = results.machine["cpu"]["brand_raw"]
    if cpu != code["cpu"]:
        raise ValueError(f"the times are of {cpu!r}, and the machine code of {code['cpu']!r}")
    return HEAD.format(
        machine=machine(results),
        shown=SHOWN,
        table=as_markdown(results),
        verdict=verdict(results),
        loops=loops_in_words(code),
        log2_size=code["log2_size"],
        log2_size_in_cache=code["log2_size_in_cache"],
        waiting=WAITING,
        division=code["nanoseconds_of_a_division"],
        dividing=DIVIDING,
        findings=code["findings"],
        pipelines=markdown_table(OF_PIPELINES, pipeline_rows(code)),
    )


def main() -> None:
    """Write the pages: from a run, from the machine code, to a directory."""
    results = read(Path(sys.argv[1]))
    code = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    docs = Path(sys.argv[3])
    docs.mkdir(exist_ok=True)
    speed = golden.with_section(speed_page(results, code), golden.read(docs))
    for name, text in (
        ("speed.md", small_calls.with_section(speed, small_calls.read(docs))),
        ("speed.svg", as_svg(results)),
        ("scale.md", scale_page(results, machine(results), gpu_rates.read(docs / gpu_rates.FILE))),
    ):
        (docs / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
