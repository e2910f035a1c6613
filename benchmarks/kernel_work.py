"""The work of the CUDA kernels without a GPU: registers, spills, and instructions for an element.

`python -m benchmarks.kernel_work docs/gpu-work.md` writes the page. NVRTC assembles the kernels,
and `mor_ref.ptx` counts the instructions of PTX that all threads execute, without moves. NVIDIA's
disassembler prints the instructions of the GPU: `pip install nvidia-cuda-nvdisasm`.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import sass
from mor_ref.cuda import nvrtc, source
from mor_ref.operations import OPERATIONS
from mor_ref.ptx.device import device_for

ARCHITECTURES = ("sm_90", "sm_100")
_SIDE = 256
_FUNCTION = re.compile(
    r"Compiling entry function '(?P<name>\w+)'.*?(?P<stack>\d+) bytes stack frame, "
    r"(?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads.*?"
    r"Used (?P<registers>\d+) registers",
    re.DOTALL,
)


class Resources(NamedTuple):
    """Registers and local memory of a kernel."""

    registers: int
    stack: int
    spilled: int


@dataclass(frozen=True)
class Hot:
    """A kernel on whose speed others depend: the operation that runs it, and its budget.

    `budget` is the most instructions for an element, and `registers` the most for a thread. A pass
    of its hot loop loads `elements` of `size` bytes, and takes `least` instructions of the GPU for
    each at most.
    """

    kernel: str
    says: str
    operation: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    budget: int = 0
    registers: int = 64
    elements: int = 8
    size: int = 2
    least: float = 0


_E4M3 = {"format": "e4m3", "source": "bf16"}
_ENCODE = {**_E4M3, "rounding": "rne", "overflow": "satfinite", "nan": "canonical"}
_QUANTIZE = {**_E4M3, "scaling": "gam", "block": [128, 128], "group": "tensor"}
_NVFP4 = {"profile": "te", "tile": [1, 16], "source": "bf16"}
_MX = {**_E4M3, "scale_rule": "floor", "block": 32}
HOT = (
    Hot("encode_bf16_u8", "bf16 to e4m3", "encode", _ENCODE, 13, least=9),
    Hot("decode_u8", "e4m3 to binary32", "decode", {"format": "e4m3"}, 20, 64, 4, 1, 12),
    Hot(
        "extremes_bf16_256", "amax of blocks of (128, 128)", "quantize", _QUANTIZE, 11, 64, 32, 2, 7
    ),
    Hot(
        "quantize_bf16_256", "bf16 to e4m3 with error sums", "quantize", _QUANTIZE, 27, 80, least=32
    ),
    Hot(
        "dequantize_f32_codes_256",
        "e4m3 with scales to binary32",
        "quantize",
        _QUANTIZE,
        12,
        64,
        4,
        1,
        9,
    ),
    Hot(
        "nvfp4_tile_scales_bf16_1",
        "scales of tiles of NVFP4, te",
        "nvfp4",
        _NVFP4,
        20,
        80,
        16,
        2,
        16,
    ),
    Hot("nvfp4_elements_bf16", "codes of NVFP4, te", "nvfp4", _NVFP4, 39, 64, 16, 2, 18),
    Hot("mx_elements_bf16_1", "codes of MXFP8", "mx", _MX, 33, 80, least=34),
)
HOT_PROGRAMS = ("encoding", "decoding", "scales", "quantization", "nvfp4", "mx")  # that have them


class Assembled(NamedTuple):
    """Programs for an architecture: the resources of kernels, and instructions of hot loops."""

    resources: dict[str, Resources]
    fewest: dict[str, float]  # for an element; empty without the disassembler


def assembled(architecture: str, programs: Iterable[str]) -> Assembled:
    """Assemble programs by NVRTC."""
    found, loops, tool = {}, {}, sass.disassembler()
    for program in programs:
        options = (*nvrtc.ARITHMETIC, "--ptxas-options=-v")
        text = source.flattened(program)
        target = f"sm_{nvrtc.specific(int(architecture.removeprefix('sm_')))}"
        made = nvrtc.compiled(text, target, program, options)
        own = {}
        for each in _FUNCTION.finditer(made.log):
            spilled = int(each["stores"]) + int(each["loads"])
            own[each["name"]] = Resources(int(each["registers"]), int(each["stack"]), spilled)
        found |= own
        hot = [one for one in HOT if tool and one.kernel in own]
        texts = sass.kernels(made.cubin, tool) if tool and hot else {}
        for one in hot:
            count = sass.fewest(texts[one.kernel], one.elements * one.size)
            loops[one.kernel] = count / one.elements
    return Assembled(found, loops)


def instructions(architecture: str) -> dict[str, float]:
    """Return the executed instructions for an element, of each hot kernel."""
    asked = {repr((one.operation, one.parameters)): one for one in HOT}
    found: dict[str, float] = {}
    for one in asked.values():
        device = device_for(architecture)
        OPERATIONS[one.operation].cuda(device, one.parameters, _inputs(one.operation))
        found |= {name: count / _SIDE**2 for name, count in device.executed.items()}
    return {one.kernel: found[one.kernel] for one in HOT}


def _inputs(operation: str) -> dict[str, np.ndarray[Any, Any]]:
    """Return bell-shaped numbers in bf16, or codes."""
    x = np.random.default_rng(0).standard_normal((_SIDE, _SIDE), np.float32).view(np.uint32) >> 16
    if operation == "decode":
        return {"code": (x.ravel() & 0x7E).astype(np.uint8)}
    x = x.astype(np.uint16)
    return {"x": x.ravel() if operation == "encode" else x}


def table(
    taken: Mapping[str, Assembled], executed: Mapping[str, Mapping[str, float]]
) -> Iterator[str]:
    """Yield the lines of a table: a row for each hot kernel."""
    columns = [f"{what} {name}" for what in ("registers", "PTX", "SASS") for name in ARCHITECTURES]
    yield f"| kernel | | {' | '.join(columns)} |"
    yield f"| --- | --- |{' ---: |' * len(columns)}"
    for one in HOT:
        cells = [str(taken[name].resources[one.kernel].registers) for name in ARCHITECTURES]
        cells += [f"{executed[name][one.kernel]:.1f}" for name in ARCHITECTURES]
        cells += [f"{taken[name].fewest[one.kernel]:.1f}" for name in ARCHITECTURES]
        yield f"| `{one.kernel}` | {one.says} | {' | '.join(cells)} |"


def page(taken: Mapping[str, Assembled], executed: Mapping[str, Mapping[str, float]]) -> str:
    """Return the page."""
    version = ".".join(map(str, nvrtc.version()))
    few = "\n".join(f"* `{name}` on {gpu}: {n} bytes" for (gpu, name), n in spilling(taken).items())
    return f"""# The work of the kernels

[Evidence from a GPU](gpu-evidence.md) has the speed of the kernels. This page has their work:
NVRTC {version} assembles them, and [`mor_ref.ptx`](guide/verify-cuda.md) counts the instructions of
PTX that all threads execute. No GPU is needed. `python -m benchmarks.kernel_work
docs/gpu-work.md` writes this page.

The table has the registers of a thread, and the instructions of PTX for each of {_SIDE**2:,}
bell-shaped numbers. The columns SASS have instructions of the GPU, which NVIDIA's disassembler
prints: the fewest of a pass of the hot loop that loads all its numbers, for each of them. Inputs on
other paths take more.

{chr(10).join(table(taken, executed))}

{goal(taken, executed)}

A division counts as one instruction of PTX, and takes about ten of a GPU. Moves do not count: the
assembler leaves them out. GPUs of sm_89 and later convert to e4m3 and e5m2 in one instruction;
GPUs of sm_100 and later also to 4 and 6 bits. Kernels use these instructions if a rule has the
same result for all inputs, and write all other rules out. A test fails if a number goes above its
budget in `benchmarks/kernel_work.py`.

None of these kernels has a stack or spills a register. These are all bundled kernels that have a
stack, with registers that they spill:

{few or "* none"}
"""


def goal(taken: Mapping[str, Assembled], executed: Mapping[str, Mapping[str, float]]) -> str:
    """Return the goal for the quantizer, and the numbers that it takes."""
    name = "quantize_bf16_256"
    counts = [found[name] for found in executed.values()]
    counts += [found.fewest[name] for found in taken.values()]
    says = f"The goal for `{name}` was fewer than 25 instructions for an element. It takes"
    reached = f"{max(counts):.1f}, so the goal is not reached in all columns."
    return f"{says} {min(counts):.1f} to\n{reached}"


def spilling(taken: Mapping[str, Assembled]) -> dict[tuple[str, str], int]:
    """Return the bytes of local memory of the kernels that have any, by their GPU and name."""
    return {
        (architecture, name): one.stack
        for architecture, found in taken.items()
        for name, one in sorted(found.resources.items())
        if one.stack
    }


def measured(programs: Sequence[str]) -> tuple[dict[str, Assembled], dict[str, dict[str, float]]]:
    """Assemble programs for all architectures, and run the hot kernels."""
    return (
        {name: assembled(name, programs) for name in ARCHITECTURES},
        {name: instructions(name) for name in ARCHITECTURES},
    )


if __name__ == "__main__":
    if sass.disassembler() is None:
        sys.exit("the page needs NVIDIA's disassembler: pip install nvidia-cuda-nvdisasm")
    Path(sys.argv[1]).write_text(page(*measured(source.program_names())), encoding="utf-8")
