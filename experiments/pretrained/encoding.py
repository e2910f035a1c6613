"""The vectors of all texts under one arm: the piece of work that a run is."""

import json
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import torch
from safetensors.torch import save
from torch import Tensor, nn
from torch.nn import functional

from experiments.disturbances import add_noise
from experiments.files import write_whole
from experiments.pretrained.arms import DELAYED, Arm
from experiments.pretrained.operands import Tallies
from experiments.pretrained.pairs import Pairs, Tokens
from experiments.train import made_with
from mor_ref.torch import advance, convert, observe

BATCH = 64  # texts
_STEPS, _TEXTS = 16, 32  # batches before the evaluation, and texts in each


def do(arm: Arm, model: nn.Module, pairs: Pairs, place: Path) -> None:
    """Encode all texts and write the file of an arm; this changes the model."""
    begun, tallies = time.process_time(), Tallies()
    vectors = encoded(arm, model, pairs, tallies)
    about = {
        "arm": arm.name,
        "pairs": pairs.digest,
        "operands": tallies.document(),
        "seconds": round(time.process_time() - begun, 1),
        "made_with": made_with("cpu"),
    }
    write_whole(place / arm.file, save(vectors, {"about": json.dumps(about)}))


def encoded(arm: Arm, model: nn.Module, pairs: Pairs, tallies: Tallies) -> dict[str, Tensor]:
    """Return the vectors of queries and documents under an arm, which changes the model.

    With one thread, they have the same bits each time.
    """
    torch.set_num_threads(1)
    with ExitStack() as until:
        if arm.recipe is not None:
            until.enter_context(torch.autocast("cpu", torch.bfloat16))
        if arm.has_noise:
            add_noise(_linear_layers(model), seed=0)
        elif arm.recipe is not None:
            convert(model, arm.recipe)
            if arm.recipe in DELAYED:
                _let_histories_grow(model, pairs.others)
            until.enter_context(observe(model, tallies.hear))
        until.enter_context(torch.no_grad())
        return {
            "queries": _vectors(model, pairs.queries),
            "documents": _vectors(model, pairs.documents),
        }


def _linear_layers(model: nn.Module) -> dict[str, nn.Linear]:
    return {name: one for name, one in model.named_modules() if isinstance(one, nn.Linear)}


def _let_histories_grow(model: nn.Module, others: Sequence[Tokens]) -> None:
    """Show the model other texts, as in training: only there do layers keep amaxes."""
    longest = max(map(len, others))
    texts = [text for text in others if len(text) == longest]
    model.train()
    for first in range(0, _STEPS * _TEXTS, _TEXTS):
        _vector(model, torch.tensor(texts[first : first + _TEXTS]))
        advance(model)
    model.eval()


def _vectors(model: nn.Module, texts: Sequence[Tokens]) -> Tensor:
    """Return the vectors of texts, in their order."""
    rows: list[Tensor] = [torch.empty(0)] * len(texts)
    for places in batches(texts):
        found = _vector(model, torch.tensor([texts[place] for place in places]))
        for place, vector in zip(places, found, strict=True):
            rows[place] = vector
    return torch.stack(rows)


def batches(texts: Sequence[Tokens]) -> Iterator[list[int]]:
    """Yield the places of texts with the same number of tokens, which need no padding."""
    by_length: dict[int, list[int]] = defaultdict(list)
    for place, text in enumerate(texts):
        by_length[len(text)].append(place)
    for _, places in sorted(by_length.items()):
        for first in range(0, len(places), BATCH):
            yield places[first : first + BATCH]


def _vector(model: nn.Module, tokens: Tensor) -> Tensor:
    """Return the mean of the last hidden states of each text, of length one."""
    states: Tensor = model(input_ids=tokens).last_hidden_state
    return functional.normalize(states.float().mean(1), dim=1)
