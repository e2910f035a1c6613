"""A call of an operation: its parameters, and its inputs as each implementation takes them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.blocks import Partition, partition
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import as_format
from mor_ref.exact.blocks import in_rows
from mor_ref.operations.bits import numbers_of, tensor_of
from mor_ref.operations.fields import Fields, format_meant
from mor_ref.operations.parameters import as_cut, group_of

if TYPE_CHECKING:
    from mor_ref.cuda.launching import Bits, Device

Arrays = Mapping[str, NDArray[np.unsignedinteger[Any]]]
Parameters = Mapping[str, Any]
DeviceArrays = Mapping[str, Any]  # arrays in the memory of a device
# By names of fields, what `in_bits` takes; or the public record that the operation declares.
Results = Any

_NUMBERS = ("f32", "source")  # formats of inputs that are numbers; others are codes or integers


@dataclass(frozen=True)
class Call:
    """A call: its parameters, and the bits of its inputs, which the operation declares.

    Inputs in binary32 or in the source of the case are numbers. All others are codes or integers.
    """

    parameters: Parameters
    arrays: Arrays
    inputs: Fields

    def __getitem__(self, parameter: str) -> Any:
        return self.parameters[parameter]

    def get(self, parameter: str) -> Any:
        """Return an optional parameter; None if the call has none."""
        return self.parameters.get(parameter)

    def arguments(self, names: str) -> dict[str, Any]:
        """Return those of some parameters that are given, as arguments of public functions."""
        given = {name: self[name] for name in names.split() if name in self.parameters}
        return {name: as_cut(value) for name, value in given.items()}

    @property
    def fmt(self) -> Format:
        """The format that the parameter of this name means."""
        return as_format(self["format"])

    @property
    def shape(self) -> tuple[Any, ...]:
        """The shape of the first input."""
        return self.arrays[next(iter(self.inputs))].shape

    @property
    def cut(self) -> Partition:
        """The blocks and groups of the first input."""
        rows, columns = self.shape
        block = as_cut(self.parameters.get("block", "tensor"))
        return partition((rows, columns), block, group_of(self.parameters))

    def numbers(self, name: str = "x") -> Any:
        """Return the entries of an input as Python numbers; of rows, a list for each."""
        array, field = self.arrays[name], self.inputs[name]
        if field.format not in _NUMBERS:
            return array.tolist()
        entries = self.flat(name)
        if array.ndim == 1:
            return entries
        rows, columns = array.shape
        if field.axes == "rc":
            return in_rows(entries, rows, columns)
        return [entries[k * columns : (k + 1) * columns] for k in range(rows)]

    def together(self, *names: str) -> Iterator[Any]:
        """Yield some inputs row by row, or entry by entry, as Python numbers."""
        return zip(*(self.numbers(name) for name in names), strict=True)

    def flat(self, name: str = "x") -> list[float]:
        """Return numbers one after another, row by row."""
        return numbers_of(self.arrays[name], self._format(name))

    def tensor(self, name: str = "x") -> NDArray[Any]:
        """Return numbers as an array of their dtype."""
        return tensor_of(self.arrays[name], self._format(name))

    def _format(self, name: str) -> str:
        return format_meant(self.inputs[name].format, self.parameters)


@dataclass(frozen=True)
class DeviceCall(Call):
    """A call whose inputs lie in the memory of a device."""

    device: "Device"

    def bits(self, name: str = "x") -> "Bits":
        """Return numbers as kernels take them."""
        from mor_ref.cuda.launching import Bits

        return Bits(self.arrays[name], self._format(name))
