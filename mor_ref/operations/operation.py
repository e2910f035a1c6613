"""The declaration of an operation: parameters, fields and three implementations.

An operation on single numbers or single blocks also declares random inputs.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mor_ref.operations.fields import Fields
from mor_ref.operations.parameters import Kind

if TYPE_CHECKING:
    from mor_ref.cuda.launching import Device
    from mor_ref.operations.random_numbers import Draws

Arrays = Mapping[str, NDArray[np.unsignedinteger[Any]]]
Parameters = Mapping[str, Any]
Implementation = Callable[[Parameters, Arrays], Arrays]
DeviceArrays = Mapping[str, Any]  # arrays in the memory of a device
Kernels = Callable[["Device", Parameters, DeviceArrays], DeviceArrays]


class Compared(Protocol):
    """A field of a case next to a given one, and marks of the entries that differ."""

    @property
    def expected(self) -> NDArray[np.unsignedinteger[Any]]:
        """The bits of the suite."""

    @property
    def actual(self) -> NDArray[Any]:
        """The bits that were given."""

    @property
    def differs(self) -> NDArray[np.bool_]:
        """Whether they differ."""


# From a case, the fields that could be compared, and the names of those that differ, to how far
# from the threshold of a decision the sums are; None if more than close decisions differ.
Margin = Callable[[Parameters, Arrays, Mapping[str, Compared], Collection[str]], Fraction | None]


def _any_parameters(_: Parameters) -> None:
    """Admit every combination."""


def _never(_: Parameters) -> bool:
    """Return that a tensor can be cut."""
    return False


def _nothing(_: Parameters) -> tuple[str, ...]:
    """Return that no representations are tried."""
    return ()


def _no_arrays(_: Parameters, __: Arrays, ___: str) -> Arrays:
    return {}


@dataclass(frozen=True)
class RandomInputs:
    """Random inputs of an operation on rows, and the inputs that it takes.

    `inside` returns for each row whether the operation takes it; `takes` is a sentence that says
    which rows it takes. `answers` are the results that a stream has if the command line names none;
    without `answers`, a stream has all results. `tiles` returns the sides of the larger blocks that
    a row may be; it is None if a row has one shape only.
    """

    draw: Callable[[Parameters, "Draws"], Arrays]
    inside: Callable[[Parameters, Arrays], NDArray[np.bool_]]
    takes: str
    answers: tuple[str, ...] = ()
    tiles: Callable[[Parameters], tuple[tuple[int, int], ...]] | None = None


@dataclass(frozen=True)
class WayBack:
    """The way from the fields of a tensor to y: the fields that it takes, and how.

    `takes` lists them for parameters. Those in one tuple can stand for each other: the first that
    is there is taken. `coded` is the other way: it returns the codes of a column of numbers, each
    with its own scales, which are the fields that it takes. `neutral` are the bits of scales that
    change nothing, if their format does not say so. `known` returns, for each number of a tensor,
    what a field follows from next to its scales. Fields that are `chosen` follow from the choice
    of a unit instead of scales.
    """

    takes: Callable[[Parameters], tuple[tuple[str, ...], ...]]
    restore: Callable[[Parameters, Arrays], NDArray[np.uint32]]
    coded: Callable[[Parameters, Arrays], NDArray[np.unsignedinteger[Any]]] | None = None
    neutral: Mapping[str, int] = field(default_factory=dict)
    known: Callable[[Parameters, Arrays, str], Arrays] = _no_arrays
    chosen: tuple[str, ...] = ()

    def followed(self, parameters: Parameters, field: str) -> list[str]:
        """Return the code that y follows from, or a field of x, and the scales or the choice."""
        if self.chosen:
            return [field, "choice"]
        return [name for name, *_ in self.takes(parameters)]


@dataclass(frozen=True)
class PublicRecord:
    """The record of a public function that has the fields of an operation.

    `holds` says whether a value is such a record. `parameters` returns the parameters of the
    operation that made it, except the source, and `stored` returns its fields.
    """

    holds: Callable[[Any], bool]
    parameters: Callable[[Any], Parameters]
    stored: Callable[[Any], Arrays]


def instance_test(name: str) -> Callable[[Any], bool]:
    """Return a test for values of a class of `mor_ref`, which is imported when it is needed."""

    def holds(value: Any) -> bool:
        import mor_ref

        return isinstance(value, getattr(mor_ref, name))

    return holds


@dataclass(frozen=True)
class WholeAmax:
    """The amax of a whole tensor, which can be given with a part of it as the parameter `amax`.

    `is_needed` says whether a part depends on it. An infinity may count, or only finite numbers.
    """

    is_needed: Callable[[Parameters], bool]
    counts_infinity: bool = False


@dataclass(frozen=True)
class Operation:
    """An operation of the suites.

    Each implementation imports its modules when it is called, so that the exact model needs neither
    the engine nor CUDA. It returns the expected fields, or those that it stores. Without kernels,
    `cuda` is None. `columns` is the exact model of many numbers at a time, for large tensors.
    `admit` raises ValueError if parameters do not go together. `widths` are the fewest and the
    most numbers of a row that is a block. `way_back` leads from the codes and scales of a tensor
    to y. `optional_inputs` come with an optional parameter. Assertions take its `record`.

    `whole_amax` declares the amax of the whole tensor, if the operation takes it. `needs_all` says
    whether a part of a tensor depends on the rest in another way. If a block `ignores_zeros`,
    further zeros change no code. If its scale `follows_extremes`, it comes from the minimum and the
    maximum of the block. `rounded` names the field whose nearest values the codes are. `tried`
    returns the names of the representations that have fields NAME.FIELD in a case. If the codes are
    integers, `codes` returns the lowest and the highest.
    """

    name: str
    parameters: Mapping[str, Kind]
    inputs: Fields
    outputs: Fields
    exact: Implementation
    engine: Implementation
    cuda: Kernels | None
    columns: Implementation | None = None
    admit: Callable[[Parameters], None] = _any_parameters
    optional: Mapping[str, Kind] = field(default_factory=dict)
    optional_inputs: Mapping[str, Fields] = field(default_factory=dict)
    random: RandomInputs | None = None
    widths: tuple[int, int] | None = None
    way_back: WayBack | None = None
    record: PublicRecord | None = None
    whole_amax: WholeAmax | None = None
    needs_all: Callable[[Parameters], bool] = _never
    ignores_zeros: bool = False
    follows_extremes: bool = False
    rounded: str | None = "xs"
    tried: Callable[[Parameters], tuple[str, ...]] = _nothing
    margin: Margin | None = None
    codes: Callable[[Parameters], tuple[int, int]] | None = None

    @property
    def first_axes(self) -> str:
        """The kind of axes of the first input."""
        return next(iter(self.inputs.values()))[1]

    @property
    def is_by_row(self) -> bool:
        """Whether the entries along the first axis are independent of each other."""
        return self.first_axes in ("n", "nk")

    def fields(self) -> Fields:
        """Return the format and the axes of each input and output."""
        every = (self.inputs, *self.optional_inputs.values(), self.outputs)
        return {name: field for fields in every for name, field in fields.items()}

    def field(self, name: str) -> tuple[str, str]:
        """Return the format and the axes of an input or an output."""
        return self.fields()[name]

    def inputs_for(self, names: Collection[str]) -> Fields:
        """Return the inputs of a case, given the names of its parameters."""
        more = (fields for name, fields in self.optional_inputs.items() if name in names)
        return {**self.inputs, **{key: axes for fields in more for key, axes in fields.items()}}
