"""Noticing a step that did not end: optimizer.step() without `advance`.

Without `advance` delayed scales stay 1, random bits repeat and observers hear of step 0 alone, and
nothing else shows it. The version of a weight does not show a step: optimizers with a closure
change weights within a step, and `fully_shard` gathers weights without a new version. So the
optimizer itself says it.
"""

from typing import Any, Protocol
from weakref import WeakSet

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from mor_ref.torch.layers import Layer


class Stepped(Protocol):
    """A converted layer, as its module has it."""

    mor_ref_layer: Layer

    @property
    def parameter(self) -> torch.Tensor:
        """The weight that the optimizer has."""


_CALLED: WeakSet[Any] = WeakSet()  # modules with a state or an observer, called in training


def begin(module: Stepped) -> None:
    """Take note of a call in training; refuse it if the step before did not end."""
    layer = module.mor_ref_layer
    if layer.progress == "stepped":
        raise RuntimeError(
            f"layer {layer.name!r} is called after optimizer.step(), but its step has not ended: "
            "its scales, random bits and recorded step would not advance; call "
            "mor_ref.torch.advance(model) after optimizer.step()"
        )
    layer.progress = "called"
    _CALLED.add(module)


def _notice(optimizer: torch.optim.Optimizer, *_: Any) -> None:
    """Mark the layers that an optimizer has changed since they were called."""
    if not _CALLED:
        return
    changed = {id(p) for group in optimizer.param_groups for p in group["params"]}
    for module in tuple(_CALLED):
        layer = module.__dict__.get("mor_ref_layer")  # none after `revert`
        if layer is None:
            _CALLED.discard(module)
        elif layer.progress == "called" and id(module.parameter) in changed:
            layer.progress = "stepped"


register_optimizer_step_post_hook(_notice)
