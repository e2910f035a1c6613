"""The declaration of an operation: parameters, fields and three implementations.

An operation on single numbers or single blocks also declares random inputs.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.block_formats import BlockFormat
from mor_ref.definitions.blocks import rows_and_columns
from mor_ref.operations.call import Arrays, Call, DeviceArrays, DeviceCall, Parameters, Results
from mor_ref.operations.fields import Field, Fields, FieldsOfEach
from mor_ref.operations.nearest import Nearest, Operand
from mor_ref.operations.parameters import Kind
from mor_ref.operations.results import attribute, in_bits
from mor_ref.operations.shapes import Shape, shapes_of

if TYPE_CHECKING:
    from mor_ref.cuda.launching import Device
    from mor_ref.operations.random_numbers import Draws

Implementation = Callable[[Call], Results]
Kernels = Callable[[DeviceCall], DeviceArrays]


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


def _always(_: Parameters) -> bool:
    """Return that numbers do not depend on each other."""
    return True


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
    of a unit instead of scales. `is_by_number` says whether codes and y follow from one number
    each, and not from several.
    """

    takes: Callable[[Parameters], tuple[tuple[str, ...], ...]]
    restore: Callable[[Parameters, Arrays], NDArray[np.uint32]]
    coded: Callable[[Parameters, Arrays], NDArray[np.unsignedinteger[Any]]] | None = None
    neutral: Mapping[str, int] = field(default_factory=dict)
    known: Callable[[Parameters, Arrays, str], Arrays] = _no_arrays
    chosen: tuple[str, ...] = ()
    is_by_number: Callable[[Parameters], bool] = _always

    def followed(self, parameters: Parameters, field: str) -> list[str]:
        """Return the code that y follows from, or a field of x, and the scales or the choice."""
        if self.chosen:
            return [field, "choice"]
        return [name for name, *_ in self.takes(parameters)]


@dataclass(frozen=True)
class PublicRecord:
    """The record of a public function that has the fields of an operation.

    `holds` says whether a value is such a record. `parameters` returns the parameters of the
    operation that made it, except the source. `path` returns where it has a field, such as
    "error.sum"; usually, under the name of the field. Those of `zero` are 0 if it has none. It may
    lack those of `optional`, such as steps that no record keeps; it has all others.
    """

    holds: Callable[[Any], bool]
    parameters: Callable[[Any], Parameters]
    path: Callable[[str], str] = str
    zero: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()


def renamed(**names: str) -> Callable[[str], str]:
    """Return where a record has a field: under its name, but for those that are given."""
    return lambda name: names.get(name, name)


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

    `declared` are its fields, in the order in which one follows from another.

    Three implementations compute the fields of a call, or those that they have: `model` is the
    exact model, `function` is the public function or a step of the engine, and `kernels` run on a
    device; None if there are none. `model` and `function` return results by the names of fields, as
    `in_bits` takes them; `function` may return a public record instead. `kernels` return arrays of
    bits that have as many entries as their fields. Each imports the engine or CUDA when it is
    called, so that the exact model needs neither. `columns` is the exact model of
    many numbers at a time, for large tensors.

    `admit` raises ValueError if parameters do not go together. `widths` are the fewest and the
    most numbers of a row that is a block. `way_back` leads from the codes and scales of a tensor
    to y. `optional_inputs` come with an optional parameter. Assertions take its `record`.

    `whole_amax` declares the amax of the whole tensor, if the operation takes it. `needs_all` says
    whether a part of a tensor depends on the rest in another way. If a block `ignores_zeros`,
    further zeros change no code. If its scale `follows_extremes`, it comes from the minimum and the
    maximum of the block. `rounded` names the field whose nearest values the codes are. `tried`
    returns the names of the representations that have fields NAME.FIELD in a case. If the codes are
    integers, `codes` returns the lowest and the highest. If all that is computed is a block format,
    `formulas` returns it, and wrong kernels follow from it. `nearest` says which numbers the codes
    are the nearest to.
    """

    name: str
    parameters: Mapping[str, Kind]
    declared: tuple[Field | FieldsOfEach, ...]
    model: Implementation
    function: Implementation
    kernels: Kernels | None
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
    formulas: Callable[[Parameters], BlockFormat] | None = None
    nearest: Nearest | None = None

    @property
    def first_axes(self) -> str:
        """The kind of axes of the first input."""
        return next(iter(self.fields_with(()).values())).axes

    @property
    def is_by_row(self) -> bool:
        """Whether the entries along the first axis are independent of each other."""
        return self.first_axes in ("n", "nk")

    def exact_of_many(self, parameters: Parameters, arrays: Arrays) -> Arrays:
        """Compute the fields of a large tensor with the exact model, if it has `columns`."""
        return self._computed_by(self.columns or self.model, parameters, arrays)

    def exact(self, parameters: Parameters, arrays: Arrays) -> Arrays:
        """Compute the fields of a case with the exact model."""
        return self._computed_by(self.model, parameters, arrays)

    def engine(self, parameters: Parameters, arrays: Arrays) -> Arrays:
        """Compute the fields of a case with the public function, or with a step of the engine."""
        return self._computed_by(self.function, parameters, arrays)

    def operand(self, parameters: Parameters, arrays: Arrays) -> Operand | None:
        """Return the numbers that the codes of a case were rounded from; None if not to nearest."""
        if self.nearest is None:
            return None
        return self.nearest.operand(Call(parameters, arrays, self.inputs_for(parameters)))

    def cuda(self, device: "Device", parameters: Parameters, arrays: DeviceArrays) -> DeviceArrays:
        """Compute the fields of a case with the kernels, which not every operation has."""
        if self.kernels is None:
            raise TypeError(f"{self.name} has no kernels; compute it with the engine")
        inputs = self.inputs_for(parameters)
        results = self.kernels(DeviceCall(parameters, arrays, inputs, device))
        shapes = self.shapes(parameters, arrays[next(iter(inputs))].shape)
        outputs = self._outputs_for(parameters)
        return {n: array.reshape(shapes[outputs[n].axes]) for n, array in results.items()}

    def _computed_by(
        self, compute: Implementation, parameters: Parameters, arrays: Arrays
    ) -> Arrays:
        inputs = self.inputs_for(parameters)
        results = compute(Call(parameters, arrays, inputs))
        if not isinstance(results, Mapping):
            return self.stored(results)
        shapes = self.shapes(parameters, arrays[next(iter(inputs))].shape)
        return in_bits(results, self._outputs_for(parameters), parameters, shapes)

    def _outputs_for(self, parameters: Parameters) -> Fields:
        return self.outputs_with(self.tried(parameters))

    def shapes(self, parameters: Parameters, shape: Shape) -> Mapping[str, Shape]:
        """Return the shape of each kind of axes, for a first input of this shape."""
        return shapes_of(self.first_axes, parameters, shape)

    def stored(self, record: Any) -> Arrays:
        """Return the fields that a public record has."""
        if self.record is None:
            raise TypeError(f"{self.name} has no public record; return its fields by their names")
        parameters = self.record.parameters(record)
        outputs = self._outputs_for(parameters)
        results = {name: attribute(record, self.record.path(name)) for name in outputs}
        results |= {name: 0 for name in self.record.zero if results[name] is None}
        there = {name: result for name, result in results.items() if result is not None}
        lacking = outputs.keys() - there.keys() - {*self.record.optional}
        if lacking:
            raise TypeError(
                f"a record of {type(record).__name__} has no {', '.join(sorted(lacking))}, which "
                f"the operation {self.name} declares; keep it in the record, or name it among the "
                "optional fields of the declared record"
            )
        numbers = next(n for name, n in there.items() if outputs[name].axes == "rc")
        shape = rows_and_columns(numbers.shape)
        return in_bits(there, outputs, parameters, self.shapes(parameters, shape))

    def fields_with(self, tried: Iterable[str]) -> Fields:
        """Return the fields of a case that tries representations of these names."""
        names = tuple(tried)
        parts = (
            (field,)
            if isinstance(field, Field)
            else chain.from_iterable(map(field.declared, names))
            for field in self.declared
        )
        return {field.name: field for field in chain.from_iterable(parts)}

    @property
    def fields(self) -> Fields:
        """The inputs and outputs, with those of all representations, by name."""
        parts = (field for field in self.declared if isinstance(field, FieldsOfEach))
        return self.fields_with(name for part in parts for name in part.names())

    @property
    def inputs(self) -> Fields:
        """The inputs that every case has."""
        declared = self.fields_with(())
        return {name: field for name, field in declared.items() if field.role == "input"}

    @property
    def outputs(self) -> Fields:
        """The fields that come out."""
        return _computed(self.fields)

    def outputs_with(self, tried: Iterable[str]) -> Fields:
        """Return the outputs of a case that tries representations of these names."""
        return _computed(self.fields_with(tried))

    def field(self, name: str) -> Field:
        """Return an input or an output; inputs that come with a parameter are among them."""
        every = (self._fields_beside(name), *self.optional_inputs.values())
        return next(fields[name] for fields in every if name in fields)

    def axes_of(self, name: str) -> str | None:
        """Return the axes of an output; None if there is no output of that name."""
        output = _computed(self._fields_beside(name)).get(name)
        return None if output is None else output.axes

    def _fields_beside(self, name: str) -> Fields:
        """Return the fields with those of the representation that a name such as NAME.FIELD has."""
        return self.fields_with([name.rpartition(".")[0]])

    def inputs_for(self, names: Collection[str]) -> Fields:
        """Return the inputs of a case, given the names of its parameters."""
        more = (fields for name, fields in self.optional_inputs.items() if name in names)
        return {**self.inputs, **{key: field for fields in more for key, field in fields.items()}}


def _computed(fields: Fields) -> Fields:
    return {name: field for name, field in fields.items() if field.role == "expected"}
