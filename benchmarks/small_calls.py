"""Small calls: how long one takes for few numbers and for many, next to other libraries.

`python -m benchmarks.small_calls docs` measures them, keeps the figures next to docs/speed.md, and
writes the section of that page.
"""

import importlib
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cpuinfo
import ml_dtypes
import numpy as np

import mor_ref
from benchmarks import golden

FILE, PAGE = "small-calls.json", "speed.md"
TITLE = "## Small calls"
SIZES = (1, 128, 1 << 12, 1 << 16, 1 << 20, 1 << 24)
SMALL, LARGE = 128, 1 << 24
YARDSTICK = "ml_dtypes astype"
WANTED = {  # of a call with 128 numbers, as ratios to the yardstick
    "encode": 4,
    "decode": 4,
    "quantize": 12,
    "quantize_mx": 12,
    "quantize_nvfp4": 12,
    "mor": 20,
    "dot of one row": 8,
}
_SHORTEST, _ROUNDS, _SECONDS = 3e-4, 1000, 8.0
_COLUMNS = 4096  # of the matrices that torchao takes
_SECTION = """\
{title}

{conclusion}

By `python -m benchmarks.small_calls docs`. Measured on: {cpu}, {cores} cores, Python {python},
{versions}.{busy}
All contenders of a size take turns on one thread, and the best call of each counts. The yardstick
is `astype` of ml_dtypes to float8_e4m3fn, of the same numbers in the same run; every other figure
is a multiple of its time.

| a call of {small} float32 numbers | of the yardstick | wanted |
| --- | --: | --: |
{calls}

A call that makes few numbers is Python and the making of arrays: with one number it takes as long
as with {small}. The loops count from about 2^16 numbers on.

| numbers | {heads} |
| --: | {rules} |
{sizes}

With threads, for 2^24 numbers, as a multiple of the time on one:

| threads | {threaded} |
| --: | {threaded_rules} |
{threads}
"""


def contenders(x: np.ndarray) -> dict[str, Callable[[], Any]]:
    """Return what takes turns: the yardstick first."""
    torch = importlib.import_module("torch")
    mx = importlib.import_module("torchao.prototype.mx_formats.mx_tensor")
    config = importlib.import_module("torchao.prototype.mx_formats.config")
    fp4 = importlib.import_module("torchao.prototype.mx_formats.nvfp4_tensor")
    torch.set_num_threads(1)
    own, tensor = {"threads": 1} if x.size > 1 << 16 else {}, torch.from_numpy(x)
    codes = mor_ref.encode(x, "e4m3")
    floats, mode = codes.view(ml_dtypes.float8_e4m3fn), config.ScaleCalculationMode("floor")
    row, matrix = codes.reshape(1, -1), tensor.reshape(-1, min(x.size, _COLUMNS))
    calls = {
        YARDSTICK: lambda: x.astype(ml_dtypes.float8_e4m3fn),
        "torch to": lambda: tensor.to(torch.float8_e4m3fn),
        "encode": lambda: mor_ref.encode(x, "e4m3", **own),
        "ml_dtypes back": lambda: floats.astype(np.float32),
        "decode": lambda: mor_ref.decode(codes, "e4m3", **own),
        "quantize": lambda: mor_ref.quantize(x, "e4m3", **own),
        "quantize_mx": lambda: mor_ref.quantize_mx(x, "e4m3", **own),
        "torchao to_mx": lambda: mx.to_mx(matrix, torch.float8_e4m3fn, 32, mode),
        "quantize_nvfp4": lambda: mor_ref.quantize_nvfp4(x, **own),
        "torchao nvfp4_quantize": lambda: fp4.nvfp4_quantize(
            matrix, 16, fp4.per_tensor_amax_to_scale(tensor.abs().max())
        ),
        "mor": lambda: mor_ref.mor(x, **own),
        "dot of one row": lambda: mor_ref.dot(row, row, **own),
    }
    if x.size % 32:  # which torchao does not cut
        del calls["torchao to_mx"], calls["torchao nvfp4_quantize"]
    return calls


def best_times(calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Return the seconds of the best call of each; they take turns."""
    repeats = {}
    for name, call in calls.items():
        call()
        start = time.perf_counter()
        call()
        repeats[name] = max(1, int(_SHORTEST / (time.perf_counter() - start)))
    best, end = dict.fromkeys(calls, float("inf")), time.perf_counter() + _SECONDS
    for turn in range(_ROUNDS):
        if turn > 2 and time.perf_counter() > end:
            break
        for name, call in calls.items():
            start = time.perf_counter()
            for _ in range(repeats[name]):
                call()
            best[name] = min(best[name], (time.perf_counter() - start) / repeats[name])
    return best


def measured() -> dict[str, Any]:
    """Return all figures: ratios to the yardstick by size, and those of threads."""
    by_size, numbers = {}, np.random.default_rng(0).normal(size=LARGE).astype(np.float32)
    seconds = {}
    for size in SIZES:
        best = best_times(contenders(numbers[:size]))
        seconds[str(size)] = best[YARDSTICK]
        by_size[str(size)] = {name: round(each / best[YARDSTICK], 2) for name, each in best.items()}
    functions = {
        "encode": lambda n: mor_ref.encode(numbers, "e4m3", threads=n),
        "quantize": lambda n: mor_ref.quantize(numbers, "e4m3", threads=n),
        "quantize_mx": lambda n: mor_ref.quantize_mx(numbers, "e4m3", threads=n),
        "quantize_nvfp4": lambda n: mor_ref.quantize_nvfp4(numbers, threads=n),
        "mor": lambda n: mor_ref.mor(numbers, threads=n),
    }
    counts = [1, *(n for n in (2, 4, 8, 16) if n <= (os.cpu_count() or 1))]
    threads: dict[str, dict[str, float]] = {str(n): {} for n in counts}
    for name, function in functions.items():
        best = best_times({str(n): lambda n=n, f=function: f(n) for n in counts})
        for n, each in best.items():
            threads[n][name] = round(each / best["1"], 2)
    return {"ratios": by_size, "yardstick": seconds, "threads": threads}


def conclusion(results: dict[str, Any]) -> str:
    """Return what the figures of the small size say."""
    ratios = results["ratios"][str(SMALL)]
    met = [name for name, most in WANTED.items() if ratios[name] <= most]
    worst = max(WANTED, key=lambda name: ratios[name] / WANTED[name])
    kept = f"{len(met)} of {len(WANTED)} limits on a call of {SMALL} numbers are kept"
    if len(met) == len(WANTED):
        return f"{kept}."
    return (
        f"{kept}. Farthest from its limit is `{worst}`, {ratios[worst]:.1f} times the yardstick "
        f"where {WANTED[worst]} is wanted."
    )


def section(results: dict[str, Any]) -> str:
    """Return the section of docs/speed.md."""
    ratios, threads = results["ratios"], results["threads"]
    names = [name for name in ratios[str(SMALL)] if name != YARDSTICK]
    threaded = list(threads["1"])
    return _SECTION.format(
        title=TITLE,
        conclusion=conclusion(results),
        small=SMALL,
        calls="\n".join(
            f"| `{name}` | {ratios[str(SMALL)][name]:.1f} | {most} |"
            for name, most in WANTED.items()
        ),
        heads=f"{YARDSTICK}, us | {' | '.join(names)}",
        rules=" | ".join(["--:"] * (len(names) + 1)),
        sizes="\n".join(_size_rows(results, names)),
        threaded=" | ".join(f"`{name}`" for name in threaded),
        threaded_rules=" | ".join(["--:"] * len(threaded)),
        threads="\n".join(
            f"| {n} | {' | '.join(f'{own[name]:.2f}' for name in threaded)} |"
            for n, own in threads.items()
        ),
        **results["machine"],
    )


def _size_rows(results: dict[str, Any], names: list[str]) -> Iterator[str]:
    for size, own in results["ratios"].items():
        cells = (_ratio(own[name]) if name in own else "" for name in names)
        microseconds = 1e6 * results["yardstick"][size]
        yield f"| {int(size):,} | {microseconds:,.1f} | {' | '.join(cells)} |"


def _ratio(ratio: float) -> str:
    return f"{ratio:.1f}" if ratio >= 1 else f"{ratio:.2f}"


def with_section(page: str, results: dict[str, Any]) -> str:
    """Return the page with this section in front of that of golden vectors."""
    before, title, last = page.partition(golden.TITLE)
    return f"{before.partition(TITLE)[0].rstrip()}\n\n{section(results)}\n{title}{last}"


def read(docs: Path) -> dict[str, Any]:
    """Return the figures that are kept next to the page."""
    results: dict[str, Any] = json.loads((docs / FILE).read_text(encoding="utf-8"))
    return results


def main() -> None:
    """Measure, and write the figures and the section into a directory."""
    docs, load = Path(sys.argv[1]), os.getloadavg()[0]
    results = measured()
    busy = max(load, os.getloadavg()[0] - 1)
    libraries = ("numpy", "numba", "ml_dtypes", "torch", "torchao")
    results["machine"] = {
        "cpu": cpuinfo.get_cpu_info()["brand_raw"],
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": ", ".join(f"{n} {importlib.import_module(n).__version__}" for n in libraries),
        "busy": f" **The machine was busy with other work** (a load of {busy:.0f})."
        if busy > 1
        else "",
    }
    (docs / FILE).write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    page = (docs / PAGE).read_text(encoding="utf-8")
    (docs / PAGE).write_text(with_section(page, results), encoding="utf-8")


if __name__ == "__main__":
    main()
