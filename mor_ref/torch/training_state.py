"""The state of converted layers between steps: it is not in state_dict, so checkpoints fit."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import nn

from mor_ref.torch.histories import History
from mor_ref.torch.layers import Layer, layers_of

if TYPE_CHECKING:
    from mor_ref.torch.quantizers import Delayed


def advance(model: nn.Module, *, process_group: Any = None) -> None:
    """End a step: call it after `optimizer.step()`.

    Delayed scales follow from the amaxes of the step, and random bits become others. With a
    process group, amaxes are the largest of all processes. Recipes without a state need no call;
    with a state, a layer refuses the next call in training if the step has not ended.
    """
    layers = layers_of(model)
    if process_group is not None:
        _share(layers, process_group)
    for layer in layers.values():
        layer.step, layer.call, layer.progress = layer.step + 1, 0, "new"
        for operand, history in layer.histories.items():
            history.end_step(cast("Delayed", getattr(layer.recipe, operand).row))


def _share(layers: Mapping[str, Layer], process_group: Any) -> None:
    """Let every amax be the largest of all processes; -1 where a process has none."""
    histories = [one for layer in layers.values() for one in layer.histories.values()]
    heard = [one.current for one in histories if one.current is not None]
    if not histories:
        return
    device = heard[0].device if heard else torch.device("cpu")
    bits = torch.stack(
        [torch.tensor(-1, device=device) if h.current is None else h.current for h in histories]
    )
    torch.distributed.all_reduce(bits, torch.distributed.ReduceOp.MAX, process_group)
    for history, amax in zip(histories, bits, strict=True):
        history.current = amax if int(amax) >= 0 else None


def state(model: nn.Module) -> dict[str, Any]:
    """Return the state of the converted layers, in plain values, to save with a checkpoint.

    >>> from mor_ref.torch import convert
    >>> model = nn.Sequential(nn.Linear(8, 16))
    >>> names = convert(model, "fp8_delayed")
    >>> state(model)["0"]["step"]
    0
    """
    return {
        name: {
            "recipe": str(layer.recipe),
            "seed": layer.seed,
            "step": layer.step,
            "call": layer.call,
            "histories": {
                operand: {
                    "scale": history.scale,
                    "amaxes": list(history.amaxes),
                    "current": None if history.current is None else int(history.current),
                }
                for operand, history in layer.histories.items()
            },
        }
        for name, layer in layers_of(model).items()
    }


def load_state(model: nn.Module, state: Mapping[str, Any]) -> None:
    """Bring a state that `state` returned to a model that was converted in the same way."""
    layers = layers_of(model)
    if layers.keys() != state.keys():
        others = sorted(layers.keys() ^ state.keys())
        raise ValueError(
            f"state is of other layers than model ({', '.join(others[:4])}); convert the model "
            "as the saved one was"
        )
    for name, layer in layers.items():
        if state[name]["recipe"] != str(layer.recipe):
            raise ValueError(
                f"state has another recipe for {name} than model; convert the model with "
                "Recipe.from_text(state[...]['recipe'])"
            )
    for name, layer in layers.items():
        saved = state[name]
        layer.seed, layer.step, layer.call = (saved[key] for key in ("seed", "step", "call"))
        layer.progress = "new"
        layer.histories = {
            operand: History(
                one["scale"],
                list(one["amaxes"]),
                None if one["current"] is None else torch.tensor(one["current"]),
            )
            for operand, one in saved["histories"].items()
        }
