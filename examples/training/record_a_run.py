"""Train a small model under MoR, and draw what its quantizations did.

    python examples/training/record_a_run.py --recipe mor_two_way --steps 200 --out pictures

The model predicts the next byte of a text, here of the modules of the standard library.
"""

import argparse
import inspect
import textwrap
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

from mor_ref.torch import advance, convert, errors_by_operand, heat_map, record, shares_over_time

WIDTH, CONTEXT, BATCH = 128, 64, 16


class Model(nn.Module):
    """Four perceptrons. Each sees a byte and the mean of those before it."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(256, WIDTH)
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(4))
        self.grow = nn.ModuleList(nn.Linear(2 * WIDTH, 4 * WIDTH) for _ in range(4))
        self.shrink = nn.ModuleList(nn.Linear(4 * WIDTH, WIDTH) for _ in range(4))
        self.lm_head = nn.Linear(WIDTH, 256)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the logits of the bytes that follow."""
        x = self.embedding(tokens)
        places = torch.arange(1, tokens.shape[1] + 1)[:, None]
        for norm, grow, shrink in zip(self.norms, self.grow, self.shrink, strict=True):
            y = norm(x)
            seen = torch.cat((y, y.cumsum(1) / places), -1)  # the byte, and the mean before it
            x = x + shrink(functional.relu(grow(seen)).square())
        return self.lm_head(x)


def main() -> None:
    """Train, and write three pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recipe", default="mor_two_way")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--out", type=Path, default=Path("pictures"))
    given = parser.parse_args()

    torch.manual_seed(0)
    source = "".join(inspect.getsource(one) for one in (argparse, inspect, textwrap))
    text = torch.tensor(list(source.encode()))
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    convert(model, given.recipe)
    with record(model, every=max(given.steps // 20, 1)) as recording:
        for step in range(given.steps):
            starts = torch.randint(len(text) - CONTEXT - 1, (BATCH,))
            batch = torch.stack([text[start : start + CONTEXT + 1] for start in starts])
            logits = model(batch[:, :-1])
            loss = functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            advance(model)
            if step % 50 == 0 or step == given.steps - 1:
                print(f"step {step}: loss {loss.item():.3f}")

    given.out.mkdir(parents=True, exist_ok=True)
    for draw in (heat_map, errors_by_operand, shares_over_time):
        path = given.out / f"{draw.__name__}.png"
        draw(recording).savefig(path)
        print(path)


if __name__ == "__main__":
    main()
