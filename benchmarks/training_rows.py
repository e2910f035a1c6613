"""A training step of a small model: in bfloat16, and with the linear layers under a recipe."""

import functools

import numpy as np

from benchmarks.rows import OURS, Call, Contender, Ratio, Row

BF16, RECIPE = "torch, bf16 autocast", "recipe bf16"
BOUND = (
    "each layer quantizes three tensors: some 200 calls of Python each, and two passes over its "
    "numbers; with few tokens the weights are as large as the rest"
)


def texts(batch, context):
    """Return a function that draws bytes, a row for each text."""
    return lambda: np.random.default_rng(4).integers(0, 256, (batch, context), dtype=np.uint8)


def training(recipe=None):
    """Return a contender: a step on one thread, with AdamW; without a recipe, of a plain model."""
    step = functools.partial(prepared, recipe=recipe)
    # The tokens are few next to the weights: a copy of them is nothing to compare with.
    return Contender(step, needs="torch", makes_numbers=True)


def prepared(x: np.ndarray, recipe: str | None) -> Call:
    """Return a step of a decoder of width 256 with 4 layers."""
    import torch

    from experiments.gpt import started
    from experiments.runs import Size
    from mor_ref.torch import convert

    torch.set_num_threads(1)
    batch, context = x.shape
    model = started(Size("", 4, 256, 4, batch, context, rate=1e-3), seed=1)
    if recipe:
        convert(model, recipe)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    tokens = torch.from_numpy(x.astype(np.int64))
    following = tokens.roll(-1, 1)

    def step() -> None:
        with torch.autocast("cpu", torch.bfloat16):
            loss = model(tokens, following)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def stepping():
    """Yield rows of steps of many tokens, and of few."""
    for batch, context in ((8, 256), (4, 64)):
        contenders = {
            OURS: training("mor_tensor"),
            BF16: training(),
            RECIPE: training("bf16"),
        }
        limit = Ratio((OURS,), over=BF16, at_most=1.5, bound=BOUND)
        yield Row(
            f"training step, mor_tensor, {batch} x {context} tokens",
            texts(batch, context),
            contenders,
            (limit,),
            turns=5,  # so that each has a good time on a busy machine
        )


ROWS = [*stepping()]
