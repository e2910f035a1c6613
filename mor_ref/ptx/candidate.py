"""A candidate for `mor-ref verify` that launches kernels as they were compiled."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mor_ref.ptx.contraction import Undefined
from mor_ref.ptx.running import MODELS, Model, Module

Fields = Mapping[str, Any]
_RUN: tuple[Model, ...] = MODELS[1:]


class Candidate:
    """A candidate in Python: `launch(module, operation, parameters, inputs)` returns its fields.

    `module(text)` is the module of a PTX text. If PTX leaves bits of a launched kernel open,
    `launch` is called again at both ends of the bounds of PTX. The answer is the correctly rounded
    one, and `remarks` count the entries that change.
    """

    def __init__(self, launch: Callable[..., Fields | None]) -> None:
        self._launch = launch
        self._modules: dict[tuple[Model, str], Module] = {}
        self._used = dict[str, Module]()  # by their texts, since the last remarks
        self._entries = self._open = 0

    def __call__(self, operation: str, parameters: Fields, inputs: Fields) -> Fields | None:
        """Return the fields of a case, or None if the kernels do not have them."""
        nearest, *others = (lambda text, model=model: self._module(model, text) for model in _RUN)

        def answer(module: Callable[[str], Module]) -> Fields | None:
            own = {name: np.array(array) for name, array in inputs.items()}
            return self._launch(module, operation, dict(parameters), own)

        found = answer(nearest)
        if found is None:
            return None
        self._entries += sum(np.asarray(array).size for array in found.values())
        if self._undefined():
            ends = [answer(other) or {} for other in others]
            self._open += sum(_changed(name, array, ends) for name, array in found.items())
        return found

    def _module(self, model: Model, text: str) -> Module:
        if (model, text) not in self._modules:
            self._modules[model, text] = Module(text, undefined=model)
        found = self._modules[model, text]
        self._used.setdefault(text, found)
        return found

    def _undefined(self) -> list[Undefined]:
        """Return the instructions whose bits are open, of all kernels that were launched."""
        return [each for module in self._used.values() for each in module.undefined_in_use]

    def remarks(self) -> tuple[list[str], int]:
        """Return lines for a report, and how many entries are open, since this was asked last."""
        undefined, count, of = self._undefined(), self._open, self._entries
        self._used, self._entries, self._open = {}, 0, 0
        if not undefined or not of:
            return [], 0
        alike: dict[tuple[str, str], list[Undefined]] = {}
        for each in undefined:
            alike.setdefault((each.text.split()[0], each.why), []).append(each)
        lines = [f"{_lines(at)}: {opcode}: {why}" for (opcode, why), at in alike.items()]
        if count:
            lines.append(
                f"{count:,} of {of:,} entries depend on this: no GPU promises their bits, and they "
                "change within the bounds of PTX"
            )
        else:
            lines.append(
                "no entry depends on this: all bits are the same correctly rounded and at both "
                "ends of the bounds of PTX"
            )
        return lines, count


def _changed(name: str, array: Any, ends: list[Fields]) -> int:
    """Count the entries of a field that are not the same at both ends."""
    found = np.asarray(array)
    is_same = np.ones(found.shape, np.bool_)
    for end in ends:
        other = np.asarray(end.get(name))
        is_same &= other == found if other.shape == found.shape else np.False_
    return int(np.count_nonzero(~is_same))


def _lines(alike: list[Undefined]) -> str:
    lines = sorted({each.line for each in alike})
    sources = ", ".join(dict.fromkeys(each.source for each in alike if each.source))
    more = f" and {len(lines) - 1:,} more" if len(lines) > 1 else ""
    return f"line {lines[0]}{more}{sources and f' ({sources})'}"
