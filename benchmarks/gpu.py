"""Speed on a GPU: of a copy of its memory, of the kernels, and of eager torch next to them.

Bytes are those that have to go between the processors and memory: each read of each pass counts.
With --page it writes the results of `make gpu-test`, and next to them the rates.
"""

import argparse
import functools
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console

import mor_ref
import mor_ref.cuda
from benchmarks import gpu_rates
from benchmarks.eager import torch_mor, torch_nvfp4, torch_quantize
from benchmarks.gpu_page import SOURCES, Speed, digests, gpu_name, page, test_results
from mor_ref.cuda import quantization, scales
from mor_ref.cuda import structures as rows
from mor_ref.cuda.device import Gpu, cupy
from mor_ref.cuda.errors import no_errors
from mor_ref.cuda.launching import Bits, run_team
from mor_ref.definitions.blocks import partition

BLOCK = (128, 128)
ROUNDS = 10


def seconds(call, copy):
    """Return the best time of a call on the GPU, between two events.

    Copies before the call keep the GPU busy while the host launches it, and evict all data that
    the call reads from the cache. If the host takes longer than the copies, its time counts, too.
    """
    events = cupy().cuda.Event(), cupy().cuda.Event()
    best = float("inf")
    for _ in range(ROUNDS + 2):  # the first compile, and find memory
        copy()
        copy()
        events[0].record()
        call()
        events[1].record()
        events[1].synchronize()
        best = min(best, cupy().cuda.get_elapsed_time(*events) / 1e3)
    return best


@dataclass(frozen=True)
class Work:
    """A timed call: how many bytes it moves, which share of a copy is wanted, and a peer."""

    name: str
    call: object
    moved: int
    wanted: float | None = None
    peer: object = None


def quantizing(gpu, x, source, tensor):
    """Yield scales and codes as one function and in its parts, next to eager torch."""
    fmt, parts = mor_ref.formats["e4m3"], partition(x.shape, BLOCK)
    bits = Bits(x, source)
    found = quantization.quantize(gpu, bits, fmt, "gam", parts)
    codes, error = gpu.empty(x.shape, np.uint8), no_errors(gpu, parts.grid)
    arguments = (found.scales.scale, rows.scaled(fmt), codes, *error)

    def kernel_alone():
        run_team(gpu, "quantization", "quantize", bits, parts, *arguments)

    yield Work(f"amax, {source}", lambda: scales.extremes(gpu, bits, parts), x.nbytes, 0.85)
    yield Work(
        f"quantize with error sums, {source}",
        lambda: quantization.quantize(gpu, bits, fmt, "gam", parts),
        2 * x.nbytes + x.size,
        0.6,
        lambda: torch_quantize(tensor),
    )
    yield Work(f"its main kernel, {source}", kernel_alone, x.nbytes + x.size, 0.6)
    yield Work(
        f"dequantize, {source}",
        lambda: quantization.dequantize(gpu, found, fmt, parts),
        5 * x.size,
    )


def converting(x):
    """Yield codes of single numbers."""
    codes = mor_ref.cuda.encode(x, "e4m3")
    words = x.view(np.uint32)  # any will do
    random = {"rounding": "sr", "random_bits": words, "n_random_bits": 32}
    yield Work("encode to e4m3, f32", lambda: mor_ref.cuda.encode(x, "e4m3"), x.nbytes + x.size)
    moved = x.nbytes + words.nbytes + x.size
    yield Work(gpu_rates.RANDOM, lambda: mor_ref.cuda.encode(x, "e4m3", **random), moved)
    yield Work("decode e4m3", lambda: mor_ref.cuda.decode(codes, "e4m3"), 5 * x.size)


def mor_rows(x):
    """Yield whole functions of a tensor of torch, next to eager torch."""
    mor, moved = mor_ref.cuda.mor, 2 * x.numel()
    yield Work("mor, tensor", lambda: mor(x), 4 * moved, None, lambda: torch_mor(x))
    yield Work("mor, three_way", lambda: mor(x, "three_way"), 5 * moved)
    yield Work("mor, nvfp4", lambda: mor(x, "nvfp4"), 7 * moved)
    nvfp4 = mor_ref.cuda.quantize_nvfp4
    peer = lambda: torch_nvfp4(x)  # noqa: E731
    yield Work("NVFP4, te", lambda: nvfp4(x), 19 * moved // 4, None, peer)
    yield Work("MX e4m3, floor", lambda: mor_ref.cuda.quantize_mx(x, "e4m3"), 5 * moved // 2)


def speeds(side):
    """Measure everything on square tensors of normally distributed numbers."""
    import torch

    gpu = Gpu()
    x = cupy().random.default_rng(0).standard_normal((side, side), dtype=np.float32)
    copy = functools.partial(cupy().copyto, cupy().empty_like(x), cupy().empty_like(x))
    fastest_copy = seconds(copy, copy)
    wide = torch.from_dlpack(x)
    tensor = wide.bfloat16()
    bf16 = cupy().from_dlpack(tensor.view(torch.int16)).view(np.uint16)
    every = (
        *quantizing(gpu, bf16, "bf16", tensor),
        *quantizing(gpu, x.view(np.uint32), "f32", wide),
        *converting(x),
        *mor_rows(tensor),
    )
    times = [seconds(work.call, copy) for work in every]
    of_peers = [work.peer and seconds(work.peer, copy) for work in every]
    fastest_copy = min(fastest_copy, seconds(copy, copy))
    bandwidth = 2 * x.nbytes / fastest_copy
    yield Speed("copy", fastest_copy, x.size, bandwidth, 1.0, None, None)
    for work, time, of_peer in zip(every, times, of_peers, strict=True):
        rate, ratio = work.moved / time, of_peer and of_peer / time
        yield Speed(work.name, time, x.size, rate, rate / bandwidth, work.wanted, ratio)


def main():
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=16384)
    parser.add_argument("--tests", type=Path, help="JUnit's report of pytest --tier=gpu")
    parser.add_argument("--page", type=Path, help="where to write the page")
    arguments = parser.parse_args()
    found = list(speeds(arguments.side))
    for speed in found:
        Console().print(speed.line())
    if arguments.page:
        text = page(Gpu(), test_results(arguments.tests), found, arguments.side)
        arguments.page.write_text(text, "utf-8")
        sources = arguments.page.with_name(SOURCES)
        sources.write_text(f"{json.dumps(digests(), indent=1)}\n", "utf-8")
        rates = arguments.page.with_name(gpu_rates.FILE)
        gpu_rates.write(rates, gpu_name(), arguments.side, found)
    missed = [speed.name for speed in found if not speed.is_met]
    if missed:
        sys.exit(f"slower than wanted: {'; '.join(missed)}")


if __name__ == "__main__":
    main()
