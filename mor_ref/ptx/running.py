"""A module of PTX that runs on a CPU: `module["name"][grid, block](*arguments)`."""

import ctypes
import functools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mor_ref.cuda.host import HostError, Schedule
from mor_ref.processor_modes import check_processor
from mor_ref.ptx import building
from mor_ref.ptx.errors import LaunchError, PtxError, refusal
from mor_ref.ptx.job import Job, sides_of
from mor_ref.ptx.memory import REGION, Globals, as_array, parameters, region
from mor_ref.ptx.parsing import parsed
from mor_ref.ptx.places import globals_of
from mor_ref.ptx.program import Function, Program
from mor_ref.ptx.remarks import NOTED, OPTIONS, Remark, Undefined
from mor_ref.ptx.source_lines import SourceLines
from mor_ref.ptx.translation import Translated, translated

_LONGEST = 200  # characters of a line in an error: a module may be one line
_MOST_SHARED = 232448  # bytes, 227 KiB: of a block on any GPU there is
_PATIENCE = 1 << 26  # looks at memory that see nothing new; other workers may yet change it
_WHERE = re.compile(r"(?P<what>.*) \(ptx:(?P<line>\d+), (?P<who>.*)\)", re.DOTALL)

Model = Literal["refused", "nearest", "below", "above", "drawn"]
MODELS: tuple[Model, ...] = get_args(Model)


class Module(Mapping[str, "Kernel"]):
    """The kernels of a PTX text.

    `undefined` says how to run instructions whose bits PTX leaves open: "refused", correctly
    rounded ("nearest"), at an end of their bounds ("below", "above"), or at one of these three,
    drawn from `seed` for the operands of a line ("drawn"). A dict has a model for each line, and
    others are "nearest".
    At both ends, products are contracted with sums if ptxas may do so.
    """

    def __init__(
        self,
        text: str,
        *,
        undefined: Model | Mapping[int, Model] = "refused",
        seed: int = 0,
        schedule: Schedule = Schedule(),  # noqa: B008  # it is frozen
    ) -> None:
        if not isinstance(text, str):
            raise PtxError(f"text is a {type(text).__name__}; give the text of a module as str")
        if not isinstance(seed, int | np.integer):
            raise PtxError(f"seed is {seed!r}; give a whole number")
        if not isinstance(schedule, Schedule):
            raise PtxError(f"schedule is {schedule!r}; give a mor_ref.ptx.Schedule")
        self.ends = _ends(undefined, text.count("\n") + 2)
        self.is_refusing = undefined == "refused"
        self.seed = seed
        self.text = text
        self.sources = SourceLines(text)
        self.program = _program(text)
        self.schedule = schedule
        self.globals = Globals(self.program, globals_of(self.program))
        self._names = [name for name, each in self.program.functions.items() if each.is_entry]
        self._kernels: dict[str, Kernel] = {}

    def __getitem__(self, name: str) -> "Kernel":
        if name not in self._names:
            raise PtxError(
                f"the module has no kernel {name!r}; it has {', '.join(self._names) or 'none'}"
            )
        if name not in self._kernels:
            self._kernels[name] = Kernel(self, self.program.functions[name])
        return self._kernels[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    @property
    def launched(self) -> Mapping[str, "Kernel"]:
        """The kernels that were asked for, by their names."""
        return self._kernels

    @property
    def undefined_in_use(self) -> list[Undefined]:
        """The instructions whose bits PTX leaves open, of the kernels that were asked for."""
        return [each for kernel in self._kernels.values() for each in kernel.undefined]

    def line(self, number: int) -> str:
        """Return a line of the text."""
        found = " ".join(self.text.split("\n")[number - 1].split("//")[0].split())
        return found if len(found) <= _LONGEST else f"{found[:_LONGEST]} ..."


# A candidate makes modules of the same text, with open instructions at other ends.
@functools.lru_cache(maxsize=16)
def _program(text: str) -> Program:
    return parsed(text)


@functools.lru_cache(maxsize=64)
def _translated(text: str, name: str) -> Translated:
    return translated(_program(text), name)


def _ends(undefined: Model | Mapping[int, Model], lines: int) -> NDArray[np.uint8]:
    """Return the end of each line, as its number in machine.h."""
    by_line = undefined if isinstance(undefined, Mapping) else {}
    for model in [*by_line.values(), *(() if by_line else [undefined])]:
        if not isinstance(model, str) or model not in MODELS:
            raise PtxError(f"undefined is {model!r}; give one of {', '.join(MODELS)}")
    whole = 0 if by_line else max(0, MODELS.index(undefined) - 1)
    ends = np.full(lines, whole, np.uint8)
    for line, model in by_line.items():
        if not isinstance(line, int) or not 0 < line < lines:
            raise PtxError(f"undefined has line {line!r}; the text has lines 1 to {lines - 1}")
        ends[line] = max(0, MODELS.index(model) - 1)
    return ends


class Kernel:
    """A kernel of a module: `kernel[grid, block, shared]` is a launch to call.

    A grid and a block are a number or up to three; `shared` is the size of dynamic shared memory.
    `executed` counts the instructions of all threads in all launches, without moves.
    """

    def __init__(self, module: Module, function: Function) -> None:
        self.module = module
        self.function = function
        self.executed = 0
        self.noted = np.zeros(len(module.ends), np.uint8)
        self.options = np.zeros(len(module.ends), np.uint8)

    @functools.cached_property
    def translated(self) -> Translated:
        """The kernel as C++."""
        found = _translated(self.module.text, self.function.name)
        for name in found.variables:
            if name in self.module.globals.refused:
                raise PtxError(self.module.globals.refused[name])
        return found

    @property
    def undefined(self) -> tuple[Undefined, ...]:
        """The instructions whose bits PTX leaves open, for all operands or for some it had."""
        module = self.module
        noted = [
            Undefined(line, module.line(line), NOTED[int(self.noted[line])], always=False)
            for line in np.flatnonzero(self.noted).tolist()
        ]
        return tuple(
            replace(each, source=module.sources.of(each.line))
            for each in (*self.translated.undefined, *noted)
        )

    @property
    def notes(self) -> tuple[Remark, ...]:
        """The instructions that have a result which an option of the compiler changed."""
        module = self.module
        return tuple(
            Remark(line, module.line(line), why, module.sources.of(line))
            for line in np.flatnonzero(self.options).tolist()
            for option, why in OPTIONS.items()
            if self.options[line] & option
        )

    def forget(self) -> None:
        """Forget what launches have noted."""
        self.noted.fill(0)
        self.options.fill(0)

    def __getitem__(self, shape: tuple[Any, ...]) -> "Configured":
        if not isinstance(shape, tuple) or len(shape) not in (2, 3):
            raise LaunchError("a launch is kernel[grid, block] or kernel[grid, block, shared]")
        dynamic = shape[2] if len(shape) == 3 else 0
        if not isinstance(dynamic, int | np.integer):
            raise LaunchError(f"shared is {dynamic!r}; give a number of bytes")
        return Configured(
            self, sides_of("grid", shape[0]), sides_of("block", shape[1]), int(dynamic)
        )


@dataclass(frozen=True)
class Configured:
    """A kernel with its grid, its block, and the size of its dynamic shared memory."""

    kernel: Kernel
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic: int

    def __call__(self, *arguments: Any, memory: Sequence[Any] = ()) -> None:
        """Run the kernel; `memory` has the arrays that it reaches by addresses in memory."""
        check_processor()
        module, function = self.kernel.module, self.kernel.function
        self._check(function)
        made = self._made()
        block, arrays = parameters(function, made.parameters, made.parameters_size, arguments)
        if not isinstance(memory, Sequence):
            kind = type(memory).__name__
            raise LaunchError(f"memory is a {kind}; give a sequence of arrays")
        arrays += [as_array(each, "memory") for each in memory]
        regions = np.array([*map(region, arrays), *module.globals.regions], REGION)
        ranges = self._shared_ranges(made)
        launch = module.schedule.launch_of(self.grid, self.block)
        job = Job(
            ctypes.cast(self._library(made).mor_ptx_kernel, ctypes.c_void_p),
            module.globals.address,
            block.ctypes.data,
            made.parameters_size,
            regions.ctypes.data,
            len(regions),
            ranges.ctypes.data,
            len(ranges),
            made.shared.size + self.dynamic,
            self.dynamic,
            module.ends.ctypes.data,
            self.kernel.noted.ctypes.data,
            self.kernel.options.ctypes.data,
            module.seed,
            made.products,
            module.schedule.filling,
            module.is_refusing,
            patience=_PATIENCE if module.schedule.workers == 1 else (1 << 64) - 1,
        )
        if building.runtime().mor_ptx_run(ctypes.byref(launch), ctypes.byref(job)):
            raise LaunchError(self._explained(launch.error.decode(errors="replace")))
        self.kernel.executed += job.executed

    def _made(self) -> Translated:
        """Return the kernel as C++, or refuse an instruction whose bits are open."""
        made = self.kernel.translated
        first = next((each for each in self.kernel.undefined if each.always), None)
        if first is not None and self.kernel.module.is_refusing:
            raise PtxError(f'{first}; to run it, give undefined="nearest", "below" or "above"')
        return made

    def _library(self, made: Translated) -> ctypes.CDLL:
        """Return the compiled kernel; an instruction whose C++ is wrong is refused."""
        name, module = self.kernel.function.name, self.kernel.module
        try:
            return building.kernel(name, made.source)
        except HostError as error:
            line = building.line_of(str(error), made.source)
            if not line:
                raise
            why = "this form is not supported, as its C++ does not compile"
            raise refusal(line, module.line(line), why) from error

    def _check(self, function: Function) -> None:
        """Refuse a block that `.reqntid` or `.maxntid` of the kernel does not allow."""
        needed, most = function.required_threads, function.most_threads
        if needed and self.block != (*needed, 1, 1)[:3]:
            raise LaunchError(
                f"kernel {function.name} requires blocks of {needed} threads: got {self.block}"
            )
        if most and math.prod(self.block) > math.prod(most):
            raise LaunchError(
                f"kernel {function.name} takes blocks of at most {math.prod(most)} threads: "
                f"got {self.block}"
            )

    def _shared_ranges(self, made: Translated) -> NDArray[np.uint32]:
        size = made.shared.size + self.dynamic
        if self.dynamic < 0 or size > _MOST_SHARED:
            raise LaunchError(
                f"a block has {size} bytes of shared memory; a GPU has {_MOST_SHARED}"
            )
        if made.shared.dynamic and not self.dynamic:
            raise LaunchError(
                f"kernel {self.kernel.function.name} uses dynamic shared memory "
                f"({made.shared.dynamic[0]}); give its size: kernel[grid, block, bytes]"
            )
        places = [*made.shared.places.values(), (made.shared.size, self.dynamic)]
        return np.array(places, np.uint32).reshape(-1, 2)

    def _explained(self, error: str) -> str:
        """Return an error with the text of its line."""
        found = _WHERE.fullmatch(error)
        name = self.kernel.function.name
        if not found:
            return f"kernel {name}: {error}"
        line, module = int(found.group("line")), self.kernel.module
        source = module.sources.of(line)
        where = f"line {line}{source and f' ({source})'}: {module.line(line)}"
        return f"kernel {name}: {where} {found.group('what')} ({found.group('who')})"
