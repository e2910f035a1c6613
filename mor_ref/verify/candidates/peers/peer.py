"""A library of somebody else as a candidate."""

import contextlib
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.operations import OPERATIONS
from mor_ref.operations.bits import tensor_of
from mor_ref.operations.call import Arrays, Parameters
from mor_ref.operations.parameters import RECIPE
from mor_ref.verify.candidates.candidate import Answer, CandidateError, NoAnswer

Function = Callable[[Parameters, Arrays], Answer | None]


@dataclass(frozen=True)
class Peer:
    """A library: how it is installed, and a function for each operation that it has.

    A function returns None for parameters that the library does not have; `answers` names those
    that it has. `takes` are the optional parameters that the functions read. `modules` are imported
    by the functions; `needs_gpu` is whether torch must see one.
    """

    name: str
    modules: tuple[str, ...]
    install: str
    answers: str
    functions: Mapping[str, Function]
    needs_gpu: bool = False
    takes: tuple[str, ...] = ()

    def check(self) -> None:
        """Refuse a library that cannot run here."""
        missing = [name for name in self.modules if find_spec(name) is None]
        gpu = "; it also needs a GPU" if self.needs_gpu else ""
        if missing:
            raise CandidateError(
                f"peer:{self.name} needs {' and '.join(missing)}, not installed here; "
                f"{self.install}{gpu}"
            )
        if self.needs_gpu:
            import torch

            if not torch.cuda.is_available():
                raise CandidateError(
                    f"peer:{self.name} needs a GPU, and torch finds none; run it on a machine "
                    "with one"
                )

    def answer(self, operation: str, parameters: Parameters, inputs: Arrays) -> Answer:
        """Return the fields that the library computes; its warnings are left out, not its errors.

        NoAnswer is for operations and parameters that it does not have.
        """
        function = self.functions.get(operation)
        if function is None:
            raise NoAnswer(
                f"peer:{self.name} has no operation {operation}; it answers "
                f"{' and '.join(self.functions)}"
            )
        known = {*OPERATIONS[operation].parameters, RECIPE, *self.takes}
        unread = next((name for name in parameters if name not in known), None)
        if unread is not None:
            instead = f"it takes {' and '.join(self.takes)}" if self.takes else "leave it out"
            raise NoAnswer(f"peer:{self.name} does not take the parameter {unread}; {instead}")
        with _without_warnings():
            found = function(parameters, inputs)
        if found is None:
            raise NoAnswer(f"peer:{self.name} answers {self.answers}")
        return found


@contextlib.contextmanager
def _without_warnings() -> Iterator[None]:
    """Leave out warnings of Python, and messages of logs below errors.

    Libraries warn on import, of files for GPUs and of deprecated functions.
    """
    before = logging.root.manager.disable
    logging.disable(max(before, logging.WARNING))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def padded(parameters: Parameters, inputs: Arrays, block: int) -> NDArray[Any]:
    """Return x with zeros up to whole blocks, as binary16 widened to binary32.

    Most libraries take whole blocks alone. Zeros change no scale, and are cut off afterwards.
    """
    x = tensor_of(inputs["x"], parameters["source"])
    x = x.astype(np.float32) if parameters["source"] == "f16" else x
    return np.pad(x, [(0, 0), (0, -x.shape[1] % block)])


def cut(array: NDArray[Any], inputs: Arrays) -> NDArray[Any]:
    """Return an array of elements without the columns that were added."""
    return np.ascontiguousarray(array[:, : inputs["x"].shape[1]])


def as_torch(x: NDArray[Any]) -> Any:
    """Return an array as a tensor of float32 or bfloat16."""
    import torch

    bits = torch.from_numpy(np.ascontiguousarray(x).view(f"i{x.itemsize}"))
    return bits.view(torch.bfloat16 if x.itemsize == 2 else torch.float32)


def global_scale_in(parameters: Parameters) -> Any:
    """Return the given global scale as a tensor (NVF-014); None if there is none."""
    import torch

    given = parameters.get("global_scale")
    return None if given is None else torch.tensor(given, dtype=torch.float32)


def bytes_of(tensor: Any) -> NDArray[np.uint8]:
    """Return the bytes of a tensor of small floats."""
    import torch

    found: NDArray[np.uint8] = tensor.view(torch.uint8).numpy()
    return found


def unpacked(packed: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the two codes of each byte, the low nibble first."""
    return np.stack([packed & 15, packed >> 4], -1).reshape(len(packed), -1)


def f32_bits(numbers: Any) -> NDArray[np.uint32]:
    """Return the bits of float32 numbers of an array or a tensor."""
    array = np.asarray(numbers, np.float32)
    return np.ascontiguousarray(array).view(np.uint32).reshape(array.shape)
