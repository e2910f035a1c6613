"""Memory of a launch: arguments of a kernel, variables of a module, and arrays as regions."""

import re
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.ptx.agreement import is_initial_value
from mor_ref.ptx.constants import constant_of, number_of
from mor_ref.ptx.errors import LaunchError
from mor_ref.ptx.program import WIDTHS, Function, Program, Variable

REGION = np.dtype([("begin", np.uint64), ("size", np.uint64), ("writable", np.uint32)], align=True)
_ALIGNED = 256
_ADDRESS_BYTES = 8
_INITIAL_ADDRESS = re.compile(
    r"(?:generic\s*\(\s*(?P<generic>[\w$]+)\s*\)|(?P<name>[\w$]+))\s*(?:\+(?P<offset>.*))?",
    re.DOTALL,
)


def as_array(argument: Any, name: str) -> NDArray[Any]:
    """Return an argument as the array that the kernel reads and writes: it is never copied."""
    if isinstance(argument, np.ndarray):
        array = argument
    elif hasattr(argument, "__dlpack__"):
        try:
            array = np.from_dlpack(_as_words(argument))
        except (TypeError, ValueError, BufferError, RuntimeError) as error:
            raise LaunchError(f"{name} cannot be read through DLPack ({error})") from error
    else:
        raise LaunchError(
            f"{name} is a {type(argument).__name__}; give a NumPy array for memory, and a number "
            "of NumPy, such as np.int32(4), for a value"
        )
    _check_bytes(array, name)
    if not array.flags.c_contiguous:
        raise LaunchError(f"{name} is not in C order; give np.ascontiguousarray of it")
    return array


def _check_bytes(argument: Any, name: str) -> None:
    """Refuse addresses of Python objects, which a kernel would write over."""
    if argument.dtype.hasobject:
        raise LaunchError(f"{name} has Python objects ({argument.dtype}); give numbers")


def _as_words(tensor: Any) -> Any:
    """Return a tensor of torch as integers if NumPy does not know its dtype, such as bfloat16."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(tensor, torch.Tensor) or not tensor.dtype.is_floating_point:
        return tensor
    words = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return tensor.detach().view(words[tensor.dtype.itemsize])


def region(array: NDArray[Any]) -> tuple[int, int, int]:
    """Return the memory of an array, and whether it may be written."""
    return array.ctypes.data, array.nbytes, int(array.flags.writeable)


def parameters(
    function: Function, places: Sequence[int], size: int, arguments: Sequence[Any]
) -> tuple[NDArray[np.uint8], list[NDArray[Any]]]:
    """Return the memory of the parameters of a kernel, and the arrays that they point to."""
    if len(arguments) != len(function.parameters):
        raise LaunchError(
            f"kernel {function.name} takes {len(function.parameters)} arguments: got "
            f"{len(arguments)}"
        )
    memory = np.zeros(max(1, size), np.uint8)
    arrays = list[NDArray[Any]]()
    for place, parameter, argument in zip(places, function.parameters, arguments, strict=True):
        value = _value(parameter, argument, arrays)
        memory[place : place + parameter.size] = np.frombuffer(value, np.uint8)
    return memory, arrays


def _value(parameter: Variable, argument: Any, arrays: list[NDArray[Any]]) -> bytes:
    """Return the bytes of an argument; an array is taken by its address."""
    name = f"argument {parameter.name}"
    if isinstance(argument, int | float) and not isinstance(argument, np.generic):
        return _number(parameter, argument, name)
    is_value = isinstance(argument, np.generic) or (
        getattr(argument, "dtype", None) is not None
        and (getattr(argument.dtype, "fields", None) is not None)
    )
    if is_value:
        _check_bytes(argument, name)
        value = np.asarray(argument).tobytes()
    else:
        array = as_array(argument, name)
        arrays.append(array)
        value = array.ctypes.data.to_bytes(8, "little")
    if len(value) != parameter.size:
        what = "an address has 8" if not is_value else f"got {len(value)}"
        raise LaunchError(f"{name} has {parameter.size} bytes, and {what}")
    return value


def _number(parameter: Variable, argument: float, name: str) -> bytes:
    if parameter.type in ("f32", "f64"):
        value = _rounded(argument, parameter.type)
        if value is None:
            raise LaunchError(f"{name} has {parameter.size} bytes: {argument} does not fit")
        return value
    if isinstance(argument, float):
        raise LaunchError(
            f"{name} is the number {argument}; give np.float32({argument}) or another type"
        )
    bits = 8 * parameter.size
    if bits > 64 or not -(1 << (bits - 1)) <= argument < 1 << bits:
        raise LaunchError(f"{name} has {parameter.size} bytes: {argument} does not fit")
    return (argument & ((1 << bits) - 1)).to_bytes(parameter.size, "little")


def _rounded(number: float, kind: str) -> bytes | None:
    """Return the bytes of a number in binary32 or binary64, or None if it is too large."""
    try:
        with np.errstate(over="raise"):
            return np.array(number, np.float32 if kind == "f32" else np.float64).tobytes()
    except (FloatingPointError, OverflowError):
        return None


class Globals:
    """The variables of a module in global and constant memory, with their initial values."""

    def __init__(self, program: Program, places: dict[str, tuple[int, int]]) -> None:
        self.variables = program.variables
        size = max((begin + size for begin, size in places.values()), default=0)
        whole = np.zeros(size + 2 * _ALIGNED, np.uint8)
        first = -whole.ctypes.data % _ALIGNED
        self.memory = whole[first : first + size + _ALIGNED]
        self.address = self.memory.ctypes.data
        self.regions = list[tuple[int, int, int]]()
        self.refused = dict[str, str]()  # why, by the names of variables
        for name, (begin, length) in places.items():
            variable = self.variables[name]
            written = int(variable.space == "global")
            self.regions.append((self.address + begin, length, written))
            self._write(variable, self.memory[begin : begin + length], places)

    def _write(
        self, variable: Variable, memory: NDArray[np.uint8], places: dict[str, tuple[int, int]]
    ) -> None:
        """Write the initial values of a variable."""
        width = max(1, WIDTHS[variable.type] // 8)
        for k, text in variable.initial:
            kind = variable.type
            constant, number = constant_of(text), number_of(text, kind)
            if constant is None:
                is_address = width == _ADDRESS_BYTES
                number = self._address(text, variable, places) if is_address else None
            if number is None or (constant and not is_initial_value(constant, kind)):
                why = f"initial value {text!r} is not supported"
                self.refused[variable.name] = f"line {variable.line}: {variable.name}: {why}"
                return
            memory[k * width : (k + 1) * width] = list(number.to_bytes(width, "little"))

    def _address(self, text: str, of: Variable, places: dict[str, tuple[int, int]]) -> int | None:
        """Return the address of an earlier variable and an offset of bytes, or None."""
        match = _INITIAL_ADDRESS.fullmatch(text)
        name = match and (match["generic"] or match["name"])
        offset = constant_of((match["offset"] or "0").strip()) if match else None
        if name not in places or offset is None or offset.type not in ("s64", "u64"):
            return None
        if name == of.name or self.variables[name].first > of.line:
            return None
        return (self.address + places[name][0] + int(offset.value)) % (1 << 8 * _ADDRESS_BYTES)
