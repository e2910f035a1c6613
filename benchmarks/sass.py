"""The instructions of a GPU in assembled kernels, as NVIDIA's disassembler prints them."""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

_TOOL = "nvdisasm"
_KERNEL = re.compile(r"^\s*\.section\s+\.text\.(\w+)", re.MULTILINE)
_INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,6}\*/\s+(.*?);")
_LABEL = re.compile(r"^(\.L_\w+):")
_TARGET = re.compile(r"`\((\.L_\w+)\)")
_GUARD = re.compile(r"^@!?U?P\w+ ")
_NO_NEXT = re.compile(r"(BRA(\.\w+)* `|EXIT|RET)")  # without a guard, nothing follows
_LOAD = re.compile(r"\bLDG\.E(?:\.(U8|U16|64|128))?\b")
_BYTES = {"U8": 1, "U16": 2, "64": 8, "128": 16}


def disassembler() -> str | None:
    """Return the path of the disassembler, from its wheel or from a CUDA toolkit, or None."""
    spec = find_spec("nvidia")
    for root in spec.submodule_search_locations or () if spec else ():
        for path in Path(root).glob(f"*/bin/{_TOOL}"):
            return str(path)
    return shutil.which(_TOOL)


def kernels(cubin: bytes, tool: str) -> dict[str, str]:
    """Return the text of each kernel of a program."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [tool, "-c", file.name]
        text = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    _, *parts = _KERNEL.split(text.stdout)
    return dict(zip(parts[::2], parts[1::2], strict=True))


@dataclass(frozen=True)
class Graph:
    """The instructions of a kernel, and where each goes on."""

    instructions: list[str]
    following: list[list[int]]

    def loops(self) -> Iterator[tuple[int, int]]:
        """Yield the first and the last instruction of each loop."""
        for last, places in enumerate(self.following):
            yield from ((first, last) for first in places if first <= last)

    def loaded(self, place: int) -> int:
        """Return the bytes that an instruction loads from memory of the device."""
        found = _LOAD.search(self.instructions[place])
        return _BYTES.get(found.group(1) or "", 4) if found else 0


def graph(text: str) -> Graph:
    """Read the text of a kernel."""
    found: list[str] = []
    labels: dict[str, int] = {}
    for line in text.split("\n"):
        if label := _LABEL.match(line):
            labels[label.group(1)] = len(found)
        if instruction := _INSTRUCTION.search(line):
            found.append(instruction.group(1))
    following = []
    for place, instruction in enumerate(found):
        target = _TARGET.search(instruction)
        is_branch = _GUARD.sub("", instruction).startswith("BRA")
        places = [labels[target.group(1)]] if is_branch and target else []
        places += [] if _NO_NEXT.match(instruction) else [place + 1]
        following.append([each for each in places if each < len(found)])
    return Graph(found, following)


def fewest(text: str, size: int) -> int:
    """Return the fewest instructions of a pass of the hot loop that loads so many bytes.

    The hot loop is the shortest one that has such a pass. No path around it takes fewer.
    """
    read = graph(text)
    loops = sorted(set(read.loops()), key=lambda ends: ends[1] - ends[0])
    return next(filter(None, (_shortest(read, *ends, size) for ends in loops)))


def _shortest(read: Graph, first: int, last: int, size: int) -> int:
    """Return the fewest instructions of a pass of a loop that loads so many bytes, or 0."""
    known = {(first, min(size, read.loaded(first))): 1}
    for place in range(first, last):
        here = [(had, count) for (at, had), count in known.items() if at == place]
        for had, count in here:
            for after in read.following[place]:
                if place < after <= last:
                    key = after, min(size, had + read.loaded(after))
                    known[key] = min(known.get(key, count + 1), count + 1)
    return known.get((last, size), 0)
