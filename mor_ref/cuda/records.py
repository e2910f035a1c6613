"""Records on a GPU: what they have in common."""

from os import PathLike
from typing import Any, ClassVar

import numpy as np

from mor_ref.cuda import encoding
from mor_ref.cuda.arrays import on_gpu_after, target_of
from mor_ref.cuda.launching import Array, Bits
from mor_ref.cuda.streams import Moment
from mor_ref.definitions.encoding import SpecialCases
from mor_ref.definitions.formats import formats
from mor_ref.records import NumbersRecord, Record


class GpuRecord(Record):
    """A result on a GPU, which is there at a moment of a stream.

    Two are compared on the host. `_ENTRIES` is the name of an array that every record has.
    """

    _ENTRIES: ClassVar[str] = "codes"
    _ready: Moment

    __hash__ = None  # its arrays can change

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        with (
            on_gpu_after(self._ready, self._entries),
            on_gpu_after(other._ready, other._entries),
        ):
            return super().__eq__(other)

    @property
    def _entries(self) -> Any:
        return getattr(self, self._ENTRIES)

    def __repr__(self) -> str:
        shape = "x".join(map(str, self._entries.shape)) or "scalar"
        return f"<{type(self).__name__} of {shape} on GPU {self._entries.device.id}>"

    def save(self, path: str | PathLike[str]) -> None:
        """Refuse to write a file: that of the host has other fields."""
        raise TypeError(
            f"path is {str(path)!r}, but a record of type {type(self).__name__} on a GPU has no "
            "file; save that of the function of this name in mor_ref, which has the same bits"
        )


class GpuNumbers(GpuRecord, NumbersRecord):
    """A result on a GPU that stands for numbers: an array of NumPy is a copy of `dequantize`."""


class WithY(GpuNumbers):
    """A record that has y."""

    y: Array
    _ready: Moment

    def dequantize(self, dtype: "np.typing.DTypeLike" = np.float32) -> Array:
        """Return y, as float32 or rounded from it to bfloat16, on CuPy's current stream."""
        wanted, target = target_of(dtype)
        with on_gpu_after(self._ready, self.y) as gpu:
            if target == "f32":
                return self.y.copy()
            y, special = Bits(self.y.view(np.uint32), "f32"), SpecialCases(overflow="ieee")
            return encoding.encode(gpu, y, formats["bf16"], "rne", special).view(wanted)
