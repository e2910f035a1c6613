"""Mixtures of formats: the worked example, and the layers of a checkpoint that take each format."""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

import mor_ref
from experiments.pretrained.mixtures import COMMITTED
from mor_docs.shown.markup import box, data, number, picture, table, text
from mor_ref.schemes.mixed.exact import error_in_units

_EXAMPLE = np.array([7, -3.5, 1.2, 0.4, -0.1, 2.6], np.float32)
_OPERANDS = ("weight", "activation", "both")
_KINDS = {
    "attention.self.query": "query",
    "attention.self.key": "key",
    "attention.self.value": "value",
    "attention.output.dense": "attention output",
    "intermediate.dense": "intermediate",
    "output.dense": "output",
}
_TAKEN, _LOOKS = ("int8", "e4m3"), ("mantissa", "sign")
_CELL, _LEFT, _TOP, _GAP = 22, 148, 46, 26


def example() -> str:
    """Show the errors of a unit of six numbers under int4 and e2m1."""
    found = mor_ref.mix_formats(_EXAMPLE, ("int4", "e2m1"))
    largest = float(found.amax.item())
    ys = {name: record.dequantize() for name, record in found.quantized.items()}
    head = ["x", *(f"{word} under {name}" for name in ys for word in ("y", "u"))]
    rows: list[list[object]] = []
    for k, x in enumerate(_EXAMPLE.tolist()):
        cells: list[object] = [number(x)]
        for y in ys.values():
            cells += [number(float(y[k])), f"{error_in_units(x, float(y[k]), largest):,}"]
        rows.append(cells)
    sums = {name: int(errors.item()) for name, errors in found.squared_error.items()}
    totals: list[object] = ["**sum of u^2**"]
    for one in sums.values():
        totals += ["", f"**{one:,}**"]
    taken = found.candidates[found.choice.item()]
    said = f"The unit takes {taken}. amax is {number(largest)}, so e is 2 and u counts 2^-18.\n"
    return f"{table(head, [*rows, totals])}\n{said}"


@cache
def results() -> dict[str, Any]:
    """Return the committed results of the encoder."""
    found: dict[str, Any] = json.loads(COMMITTED.read_text())
    return found


def _choices(mixture: str) -> dict[tuple[int, str], list[int]]:
    """Return the choices of each layer, by its number and its kind."""
    found = {}
    rows = results()["mixtures"][mixture]
    for name, row in zip(results()["layers"], rows, strict=True):
        _, _, layer, kind = name.split(".", 3)
        found[int(layer), _KINDS[kind]] = row["choices"]
    return found


def counts() -> str:
    """Return how many layers take each format, for each of the tensors that decide."""
    rows: list[list[object]] = []
    for mixture in results()["mixtures"]:
        names = mixture.split("_or_")
        choices = list(_choices(mixture).values())
        for index, operand in enumerate(("weights", "activations", "both together")):
            taken = [sum(one[index] == k for one in choices) for k in range(len(names))]
            said = ", ".join(f"{n} {name}" for n, name in zip(taken, names, strict=True))
            rows.append([mixture.replace("_or_", " or "), operand, said])
    return table(("candidates", "decided by", f"of {len(choices)} layers"), rows)


def layers() -> str:
    """Draw which layers of the encoder take integers, and which floating point."""
    found = _choices("int8_or_e4m3")
    numbers = sorted({layer for layer, _ in found})
    width = _LEFT + 3 * (_CELL * len(numbers) + _GAP)
    height = _TOP + _CELL * len(_KINDS) + 34
    shapes = list(_cells(found, numbers))
    for k, (name, kind) in enumerate(zip(_TAKEN, _LOOKS, strict=True)):
        left = _LEFT + 90 * k
        shapes.append(box(left, height - 24, 14, 14, kind))
        shapes.append(text(left + 20, height - 13, name, anchor="start"))
    caption = (
        "Each column is a layer of all-MiniLM-L6-v2, from the first to the last. The weights alone "
        "decide, the activations alone, or both together."
    )
    head = ("layer", "kind", *_OPERANDS)
    rows = [[layer, kind, *choices] for (layer, kind), choices in found.items()]
    drawn = picture(width, height, "Formats of the layers of an encoder", shapes, caption)
    return drawn + "\n" + data("mixed-formats", head, rows)


def _cells(found: dict[tuple[int, str], list[int]], numbers: list[int]) -> Iterator[str]:
    for row, kind in enumerate(_KINDS.values()):
        y = _TOP + row * _CELL
        yield text(_LEFT - 8, y + 15, kind, "name", "end")
        for group, operand in enumerate(_OPERANDS):
            left = _LEFT + group * (_CELL * len(numbers) + _GAP)
            if row == 0:
                yield text(left + _CELL * len(numbers) / 2, 20, operand)
            for column, layer in enumerate(numbers):
                choice = found[layer, kind][group]
                hint = f"layer {layer}, {kind}: {_TAKEN[choice]}"
                x = left + column * _CELL
                if row == 0:
                    yield text(x + _CELL / 2, 38, layer)
                yield box(x, y, _CELL - 2, _CELL - 2, _LOOKS[choice], hint)
