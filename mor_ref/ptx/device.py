"""The kernels of mor_ref as NVRTC compiles them, run on a CPU from their PTX."""

import functools
import weakref
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.cuda import nvrtc, source
from mor_ref.cuda.cache import cached_file
from mor_ref.cuda.host import Host
from mor_ref.ptx.errors import PtxError
from mor_ref.ptx.running import Module

DEFAULT = "sm_90"  # the architecture, if none is named


@functools.cache
def compiled(program: str, architecture: str, options: tuple[str, ...] = nvrtc.ARITHMETIC) -> str:
    """Return the PTX of a source of this package, compiled once for an architecture."""
    capability = int(checked_architecture(architecture).removeprefix("sm_"))
    text = source.flattened(program)
    made_by = nvrtc.version(), Path(nvrtc.__file__).read_text("utf-8")
    key = source.digest(text, architecture, options, made_by)

    def made() -> bytes:
        target = f"compute_{nvrtc.specific(capability)}"
        return zlib.compress(nvrtc.compiled(text, target, program, options).ptx.encode())

    packed = cached_file(f"{program}-{architecture}-{key}.ptx.z", made).read_bytes()
    return zlib.decompress(packed).decode()


@dataclass(frozen=True)
class PtxDevice(Host):
    """A CPU that runs the PTX of kernels; arrays are NumPy's.

    Kernels may reach the arrays that they are given, and those whose addresses were asked for.
    """

    architecture: str = DEFAULT
    options: tuple[str, ...] = nvrtc.ARITHMETIC
    _modules: dict[str, Module] = field(default_factory=dict)
    _addressed: "weakref.WeakValueDictionary[int, NDArray[Any]]" = field(
        default_factory=weakref.WeakValueDictionary
    )

    def address(self, array: NDArray[Any]) -> int:
        """Return the address of an array, which kernels may use from now on."""
        address = super().address(array)
        self._addressed[address] = array
        return address

    def launch(
        self, program: str, kernel: str, blocks: int, threads: int, arguments: Sequence[Any]
    ) -> None:
        """Run a kernel: arrays go in by their address, and rows and NumPy's numbers by value."""
        memory = [array for argument in arguments for array in self._named_in(argument)]
        self.module(program)[kernel][blocks, threads](*arguments, memory=memory)

    def _named_in(self, argument: Any) -> Iterator[NDArray[Any]]:
        """Yield the arrays whose addresses are in a row."""
        if argument.dtype.fields is None or argument.nbytes % 8:
            return
        for word in np.frombuffer(argument.tobytes(), np.uint64).tolist():
            array = self._addressed.get(word)
            if array is not None:
                yield array

    @property
    def executed(self) -> dict[str, int]:
        """How many instructions all threads executed, by the names of kernels."""
        return {
            name: kernel.executed
            for module in self._modules.values()
            for name, kernel in module.launched.items()
        }

    def module(self, program: str) -> Module:
        """Return the module of a source of this package."""
        if program not in self._modules:
            text = compiled(program, self.architecture, self.options)
            self._modules[program] = Module(text, schedule=self)
        return self._modules[program]


def checked_architecture(name: str) -> str:
    """Return the name of an architecture that NVRTC compiles for, such as sm_90, or refuse it."""
    known = [f"sm_{number}" for number in nvrtc.architectures()]
    if name not in known:
        raise PtxError(f"architecture is {name!r}; NVRTC compiles for {', '.join(known)}")
    return name


def device_for(architecture: str) -> PtxDevice:
    """Return the device of an architecture; NVRTC has to be installed."""
    return PtxDevice(architecture=checked_architecture(architecture))
