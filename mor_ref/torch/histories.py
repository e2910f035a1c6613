"""The amaxes of earlier steps, and the scale that follows from them."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from mor_ref.api.training import delayed_scale
from mor_ref.definitions.formats import as_format

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mor_ref.recipes import Delayed

INFINITY = 0x7F800000  # the bits of an amax that is not finite


@dataclass(eq=False)
class History:
    """The amaxes of an operand, the latest last, and the scale of this step.

    `current` is the amax of this step so far, as binary32 bits. It stays on the device of the
    operand until the step ends, so that nothing waits for a GPU.
    """

    scale: float = 1.0
    amaxes: list[float] = field(default_factory=list)
    current: "torch.Tensor | None" = None

    def hear(self, statistics: torch.Tensor) -> None:
        """Take in the amax of a tensor: a second time, it changes nothing."""
        amax, lost = statistics[1], statistics[-1]
        bits = torch.where(lost > 0, INFINITY, amax)
        self.current = bits if self.current is None else torch.maximum(self.current, bits)

    def end_step(self, tensor_recipe: "Delayed") -> None:
        """Append the amax of the step, and take the scale of the next (TRN-005)."""
        if self.current is None:
            return
        amax = float(self.current.to(torch.int32).view(torch.float32))
        self.amaxes = [*self.amaxes, amax][-tensor_recipe.history :]
        self.current = None
        counted: Sequence[float] = self.amaxes if tensor_recipe.amax == "max" else self.amaxes[-1:]
        self.scale = delayed_scale(
            counted,
            self.scale,
            as_format(tensor_recipe.fmt).largest,
            tensor_recipe.margin,
            power_of_two=tensor_recipe.scaling == "e8m0",
        )
