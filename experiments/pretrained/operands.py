"""Sums over all quantizations of each operand of each layer: errors, decisions and noise."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from experiments.pretrained.arms import OPERANDS
from mor_ref.torch import Observation

_ULP = 2.0**-23  # the unit of the integer error sums
_DECIBELS = 10.0


@dataclass(eq=False)
class Tally:
    """The sums of one operand of one layer."""

    integers: Counter[str] = field(default_factory=Counter)
    signal: float = 0.0
    noise: float = 0.0

    @property
    def choices(self) -> dict[str, int]:
        """How many units took each representation."""
        return _named("choice ", self.integers)

    @property
    def error(self) -> float:
        """The mean relative error under the representation that is tried first, in percent."""
        name, total = next(iter(_named("sum ", self.integers).items()))
        return 100 * total * _ULP / max(self.integers[f"nonzero {name}"], 1)

    @property
    def sqnr(self) -> float:
        """The ratio of signal to noise, in decibels."""
        return _DECIBELS * math.log10(self.signal / self.noise) if self.noise else math.inf


def _named(prefix: str, integers: Counter[str]) -> dict[str, int]:
    return {key.removeprefix(prefix): n for key, n in integers.items() if key.startswith(prefix)}


class Tallies:
    """The sums of all operands; it hears observations. A weight is the same in every batch."""

    def __init__(self) -> None:
        self._of: dict[tuple[str, str], Tally] = {}

    def hear(self, seen: Observation) -> None:
        """Add one quantization."""
        place = seen.layer, seen.operand
        if seen.operand == "weight" and place in self._of:
            return
        tally = self._of.setdefault(place, Tally())
        numbers = zip(seen.tensor_recipe.statistics, seen.statistics.tolist(), strict=True)
        tally.integers.update(
            {name: n for name, n in numbers if name.startswith(("choice ", "sum ", "nonzero "))}
        )
        x, y = seen.x.float(), seen.y.float()
        tally.signal += x.square().sum().item()
        tally.noise += (x - y).square().sum().item()

    def document(self) -> dict[str, Any]:
        """Return lists over the layers for each operand, as JSON has it."""
        if not self._of:
            return {}
        layers = list(dict.fromkeys(layer for layer, _ in self._of))
        rows = {o: [self._of[layer, o] for layer in layers] for o in OPERANDS}
        return {"layers": layers, **{o: _columns(tallies) for o, tallies in rows.items()}}


def _columns(tallies: Iterable[Tally]) -> dict[str, Any]:
    rows = list(tallies)
    return {
        "error": [round(one.error, 4) for one in rows],
        "sqnr": [None if math.isinf(one.sqnr) else round(one.sqnr, 2) for one in rows],
        "choices": {name: [one.choices[name] for one in rows] for name in rows[0].choices},
    }
