"""The state of converted layers between steps: it is not in state_dict, so checkpoints fit."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import torch
from torch import nn

from mor_ref.argument_checks import whole_number
from mor_ref.recipes.training import AXES, OPERANDS, Recipe
from mor_ref.torch.histories import INFINITY, History
from mor_ref.torch.layers import Layer, Memory, layers_of

if TYPE_CHECKING:
    from mor_ref.recipes import Delayed


class _Loaded(NamedTuple):
    """The state of a layer."""

    seed: int
    step: int
    call: int
    histories: dict[str, History]
    memories: dict[str, Memory]
    next_memories: dict[str, Memory]


_LARGEST = (1 << 63) - 1  # of a seed, and of a count


def advance(model: nn.Module, *, process_group: Any = None) -> None:
    """End a step: call it after `optimizer.step()`.

    Delayed scales follow from the amaxes of the step, and random bits become others. With a
    process group, amaxes are the largest of all processes. Recipes without a state need no call;
    with a state, or while it is observed, a layer refuses the next call in training if the step has
    not ended.
    """
    layers = layers_of(model)
    if process_group is not None:
        _share(layers, process_group)
    for layer in layers.values():
        layer.step, layer.call, layer.progress = layer.step + 1, 0, "new"
        layer.memories.update(layer.next_memories)
        layer.next_memories = {}
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
            **_memories_of(name, layer),
        }
        for name, layer in layers_of(model).items()
    }


def load_state(model: nn.Module, state: Mapping[str, Any]) -> None:
    """Bring a state that `state` returned to a model that was converted in the same way."""
    layers = layers_of(model)
    if not isinstance(state, Mapping) or not all(isinstance(s, Mapping) for s in state.values()):
        raise TypeError(f"state is {state!r}; give a state that mor_ref.torch.state returned")
    if layers.keys() != state.keys():
        others = sorted(layers.keys() ^ state.keys())
        raise ValueError(
            f"state has other layers than model ({', '.join(others[:4])}); convert the model as "
            "the saved model was converted"
        )
    for name, layer in layers.items():
        if not _is_text_of(layer.recipe, state[name].get("recipe")):
            raise ValueError(
                f"state has another recipe for {name} than model; convert the model with "
                "Recipe.from_text(state[...]['recipe'])"
            )
    # Nothing is changed unless everything is right.
    loaded = {name: _loaded(name, layer, state[name]) for name, layer in layers.items()}
    for name, layer in layers.items():
        one = loaded[name]
        layer.seed, layer.step, layer.call, layer.histories = (
            one.seed,
            one.step,
            one.call,
            one.histories,
        )
        layer.memories, layer.next_memories = one.memories, one.next_memories
        layer.progress = "new"


def _is_text_of(recipe: Recipe, text: object) -> bool:
    """Return whether a text is that of a recipe, also as an earlier version wrote it."""
    if text == str(recipe) or not isinstance(text, str):
        return text == str(recipe)
    try:
        return Recipe.from_text(text) == recipe
    except ValueError:
        return False


def _loaded(name: str, layer: Layer, saved: Mapping[str, Any]) -> _Loaded:
    """Return what a state has for a layer."""
    try:
        seed, step, call = (
            whole_number(key, saved[key], 0, _LARGEST) for key in ("seed", "step", "call")
        )
        # Earlier versions have no memories.
        now, after = (_memories(saved.get(key, {})) for key in ("memories", "next_memories"))
        return _Loaded(seed, step, call, _histories(layer, saved["histories"]), now, after)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        fault = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise ValueError(
            f"state is damaged for {name} ({fault}); give a state that mor_ref.torch.state returned"
        ) from error


def _memories_of(name: str, layer: Layer) -> dict[str, Any]:
    """Return what the functions of a policy remember, now and after the step (MOR-016)."""
    if not any(tensor_recipe.remembers for _, _, tensor_recipe in layer.recipe.tensor_recipes):
        return {}
    place = f"the memory of layer {name!r}"
    memories = {"memories": layer.memories, "next_memories": layer.next_memories}
    return {key: _plain(memory, place) for key, memory in memories.items()}


def _plain(value: Any, place: str) -> Any:
    """Return a copy of a state in plain values; refuse what a checkpoint may not keep."""
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _plain(own, place) for key, own in value.items()}
    if isinstance(value, list):
        return [_plain(own, place) for own in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    kind = "dict with keys that are no texts" if isinstance(value, dict) else type(value).__name__
    raise TypeError(
        f"{place} has a {kind}, which a checkpoint does not keep as it is; keep numbers of Python, "
        "texts, lists, and dicts of them by texts"
    )


def _memories(saved: object) -> dict[str, Memory]:
    places = {f"{operand} {axis}" for operand in OPERANDS for axis in AXES}
    if not isinstance(saved, Mapping) or not saved.keys() <= places:
        raise ValueError("memories are of other operands")
    if not all(
        isinstance(memory, Mapping) and all(isinstance(state, Mapping) for state in memory.values())
        for memory in saved.values()
    ):
        raise ValueError("memories have no state for each unit")
    return {place: _plain(memory, "memories") for place, memory in saved.items()}


def _histories(layer: Layer, saved: Mapping[str, Any]) -> dict[str, History]:
    if saved.keys() != layer.histories.keys():
        raise ValueError("histories are of other operands")
    return {
        operand: _history(cast("Delayed", getattr(layer.recipe, operand).row), one)
        for operand, one in saved.items()
    }


def _history(tensor_recipe: "Delayed", saved: Mapping[str, Any]) -> History:
    """Return a history, if it is one that a training can have."""
    scale, amaxes, current = (saved[key] for key in ("scale", "amaxes", "current"))
    if not (isinstance(scale, float) and 0 < scale < math.inf):
        raise ValueError(f"scale is {scale!r}")
    if not (
        isinstance(amaxes, list)
        and len(amaxes) <= tensor_recipe.history
        and all(isinstance(amax, float) and amax >= 0 for amax in amaxes)
    ):
        raise ValueError("amaxes are not as many floats as the recipe has, from 0 on")
    if current is not None:
        current = torch.tensor(whole_number("current", current, 0, INFINITY))
    return History(scale, list(amaxes), current)
