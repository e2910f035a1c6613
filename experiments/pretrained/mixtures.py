"""MoFQ on the pretrained encoder: which layers take integers, and which floating point.

`python -m experiments.pretrained.mixtures` writes `results-mixtures.json`. Activations are those of
the first documents.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.files import write_whole

COMMITTED = Path(__file__).parent / "results-mixtures.json"
MIXTURES = (("int8", "e4m3"), ("int4", "e2m1"))
DOCUMENTS = 64
Squares = dict[str, list[int]]


def of_layers(tensors: Sequence[tuple[str, Any, Any]]) -> dict[str, Any]:
    """Return the squared errors and the choices of each layer: of weights, activations and both."""
    from mor_ref import mix_formats, mix_layer

    found: dict[str, Any] = {"layers": [name for name, _, _ in tensors], "mixtures": {}}
    for candidates in MIXTURES:
        rows = []
        for _, weight, activation in tensors:
            own = [mix_formats(x, candidates) for x in (weight, activation)]
            both = mix_layer([weight, activation], candidates)
            squares = [[int(one.squared_error[name].item()) for name in candidates] for one in own]
            rows.append(
                {
                    "weight": squares[0],
                    "activation": squares[1],
                    "numbers": [weight.size, activation.size],
                    "choices": [int(one.choice.item()) for one in (*own, both[0])],
                }
            )
        found["mixtures"]["_or_".join(candidates)] = rows
    return found


def layers_of(model: Any, documents: Sequence[Sequence[int]]) -> list[tuple[str, Any, Any]]:
    """Return the weight and the inputs of each linear layer, when the model reads documents."""
    import numpy as np
    import torch

    seen: dict[str, list[Any]] = {}
    hooks = [
        one.register_forward_pre_hook(
            lambda _, inputs, name=name: seen.setdefault(name, []).append(
                inputs[0].reshape(-1, inputs[0].shape[-1]).numpy().copy()
            )
        )
        for name, one in model.named_modules()
        if isinstance(one, torch.nn.Linear)
    ]
    with torch.no_grad():
        for tokens in documents:
            model(input_ids=torch.tensor([list(tokens)]))
    for hook in hooks:
        hook.remove()
    modules = dict(model.named_modules())
    return [
        (name, modules[name].weight.detach().numpy(), np.concatenate(inputs))
        for name, inputs in seen.items()
    ]


def main() -> None:
    """Write the results."""
    from experiments.corpus import checked, docstrings
    from experiments.pretrained.pairs import pairs_of
    from experiments.pretrained.weights import directory, model_in, tokenizer_in

    files, text = directory(), docstrings()
    checked(b"\n\n".join(text))
    pairs = pairs_of(text, tokenizer_in(files))
    tensors = layers_of(model_in(files), pairs.documents[:DOCUMENTS])
    about = {"pairs": pairs.digest, "documents": DOCUMENTS, **of_layers(tensors)}
    write_whole(COMMITTED, (json.dumps(about) + "\n").encode())
    sys.stdout.write(f"{COMMITTED}\n")


if __name__ == "__main__":
    main()
