"""A candidate for `mor-ref verify` that launches kernels as they were compiled."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.ptx.errors import LaunchError
from mor_ref.ptx.remarks import Remark, Undefined
from mor_ref.ptx.running import Model, Module

Fields = Mapping[str, Any]
Answer = Callable[[Callable[[str], Module]], Fields | None]
_ENDS: tuple[Model, ...] = ("below", "above")
_DRAWS = 4
_OF_PRODUCTS = re.compile(r"products? in lines? [\d, ]+")


class Candidate:
    """A candidate in Python: `launch(module, operation, parameters, inputs)` returns its fields.

    `module(text)` is the module of a PTX text. If PTX leaves bits of a launched kernel open,
    `launch` is called again: with all open instructions at either end of the bounds of PTX, with
    each line alone at either end, and some times with ends that are drawn for the operands of each
    line. The answer is the correctly rounded one, and `remarks` count the entries that change; all
    of them do if a kernel fails. An instruction that is open for some operands only is named if an
    entry changes with it. `notes`
    name the contracted and flushing instructions that had another result than without these
    options of the compiler.
    """

    def __init__(self, launch: Callable[..., Fields | None]) -> None:
        self._launch = launch
        self._modules = dict[tuple[Any, ...], Module]()
        self._used = dict[str, Module]()  # by their texts, since the last remarks
        self._entries = self._open = self._ways = 0
        self._moving = set[tuple[str, int]]()  # texts and lines that alone change entries
        self._failures = set[str]()  # of other ways to run a case

    def __call__(self, operation: str, parameters: Fields, inputs: Fields) -> Fields | None:
        """Return the fields of a case, or None if the kernels do not have them."""

        def answer(of: Callable[[str], Module]) -> Fields | None:
            own = {name: np.array(array) for name, array in inputs.items()}
            return self._launch(of, operation, deepcopy(dict(parameters)), own)

        found = answer(self._nearest)
        if found is None:
            return None
        # The launches of other ways may fill the same arrays.
        found = {name: None if array is None else np.array(array) for name, array in found.items()}
        fields = {name: np.asarray(array) for name, array in found.items()}
        self._entries += sum(array.size for array in fields.values())
        if self._undefined():
            changed = {name: np.zeros(array.shape, np.bool_) for name, array in fields.items()}
            ways = list(self._other_ways())
            self._ways = max(self._ways, len(ways))
            for way, alone in ways:
                if _add_changes(changed, fields, self._or_failure(answer, way)) and alone:
                    self._moving.add(alone)
            self._open += sum(int(np.count_nonzero(each)) for each in changed.values())
        return found

    def _or_failure(self, answer: Answer, way: Callable[[str], Module]) -> Fields:
        """Return the fields of another way to run a case; none if a kernel fails, which is kept."""
        try:
            return answer(way) or {}
        except LaunchError as error:
            self._failures.add(str(error))
            return {}

    def _nearest(self, text: str) -> Module:
        return self._used.setdefault(text, self._module("nearest", 0, text))

    def _other_ways(self) -> Iterator[tuple[Callable[[str], Module], tuple[str, int] | None]]:
        """Yield modules with open instructions not at the nearest numbers, and a line alone."""
        for end in _ENDS:
            yield partial(self._module, end, 0), None
        for text, line in self._open_lines():
            for end in _ENDS:
                yield partial(self._alone, text, line, end), (text, line)
        for seed in range(1, _DRAWS + 1):
            yield partial(self._module, "drawn", seed), None

    def _alone(self, chosen: str, line: int, end: Model, text: str) -> Module:
        """Return a module with one line of one text at an end."""
        return self._module({line: end} if text == chosen else "nearest", 0, text)

    def _open_lines(self) -> list[tuple[str, int]]:
        return [
            (text, line)
            for text, module in self._used.items()
            for line in sorted({each.line for each in module.undefined_in_use})
        ]

    def _module(self, undefined: Model | dict[int, Model], seed: int, text: str) -> Module:
        key = (str(undefined), seed, text)
        if key not in self._modules:
            self._modules[key] = Module(text, undefined=undefined, seed=seed)
        return self._modules[key]

    def _undefined(self) -> list[Undefined]:
        """Return the instructions whose bits are open, of all kernels that were launched."""
        return [each for module in self._used.values() for each in module.undefined_in_use]

    def _named(self) -> list[Undefined]:
        """Return those that a report names."""
        return [
            each
            for text, module in self._used.items()
            for each in module.undefined_in_use
            if each.always or (text, each.line) in self._moving or (self._open and not self._moving)
        ]

    def notes(self) -> list[str]:
        """Return lines for the report of a mismatch, since `remarks` was asked last.

        They name the options of the compiler that have changed a result.
        """
        modules = self._used.values()
        kernels = [kernel for module in modules for kernel in module.launched.values()]
        return _of_all(note for kernel in kernels for note in kernel.notes)

    def _begin_anew(self) -> None:
        for module in self._modules.values():
            for kernel in module.launched.values():
                kernel.forget()
        self._used, self._entries, self._open, self._ways = {}, 0, 0, 0
        self._moving, self._failures = set(), set()

    def remarks(self) -> tuple[list[str], int]:
        """Return lines for a report, and how many entries are open, since this was asked last."""
        undefined, count, of, ways = self._named(), self._open, self._entries, self._ways
        failures = sorted(self._failures)
        self._begin_anew()
        if not undefined or not of:
            return [], 0
        lines = _of_all(undefined)
        if count:
            lines.append(
                f"{count:,} of {of:,} entries depend on this: no GPU promises their bits, and they "
                "change within the bounds of PTX"
            )
            lines += [f"within these bounds, the kernel can fail: {each}" for each in failures[:1]]
        else:
            lines.append(
                f"no entry changed in {ways:,} other ways to run it: all of this at either end of "
                "the bounds of PTX, each line alone at either end, and ends that are drawn for the "
                "operands of each line. This is not a proof: a GPU may have other bits"
            )
        return lines, count


def _add_changes(
    changed: dict[str, NDArray[np.bool_]], fields: dict[str, Any], other: Fields
) -> bool:
    """Note the entries that are not the same in another way to run a kernel; say if some are."""
    has_changed = False
    for name, field in fields.items():
        found = np.asarray(other.get(name))
        is_alike = (found.shape, found.dtype) == (field.shape, field.dtype)
        here = _bits(found) != _bits(field) if is_alike else np.ones(field.shape, np.bool_)
        changed[name] |= here
        has_changed |= bool(here.any())
    return has_changed


def _bits(array: NDArray[Any]) -> NDArray[Any]:
    """Return numbers as their bits: a NaN is equal to itself, and +0 is not -0."""
    bits = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}.get(array.dtype.itemsize)
    return (
        array if array.dtype.hasobject or bits is None else np.asarray(array, order="C").view(bits)
    )


def _of_all(remarks: Iterable[Remark]) -> list[str]:
    """Return a line for the remarks that are the same on instructions of a kind."""
    alike: dict[tuple[str, str], list[Remark]] = {}
    for each in remarks:
        key = each.opcode, _OF_PRODUCTS.sub("", each.why)
        alike.setdefault(key, []).append(each)
    return [f"{_lines(at)}: {opcode}: {at[0].why}" for (opcode, _), at in alike.items()]


def _lines(alike: list[Remark]) -> str:
    lines = sorted({each.line for each in alike})
    sources = ", ".join(dict.fromkeys(each.source for each in alike if each.source))
    more = f" and {len(lines) - 1:,} more" if len(lines) > 1 else ""
    return f"line {lines[0]}{more}{sources and f' ({sources})'}"
