"""A GPT like the paper's, small, with linear layers of torch."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from experiments.runs import Size

VOCABULARY = 256  # bytes are the tokens
LINEAR_LAYERS = ("qkv", "projection", "fc1", "fc2")
_RESIDUAL = ("projection.weight", "fc2.weight")  # what adds to the residual stream
_BASE = 10_000.0  # of the frequencies of RoPE
_DEVIATION = 0.02  # of the first weights


class Block(nn.Module):
    """Attention and a perceptron with squared ReLU, both added to the residual stream."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = (nn.LayerNorm(width, bias=False) for _ in range(2))
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.projection = nn.Linear(width, width, bias=False)
        self.fc1 = nn.Linear(width, 4 * width, bias=False)
        self.fc2 = nn.Linear(4 * width, width, bias=False)

    def forward(self, x: Tensor, turns: Tensor) -> Tensor:
        """Return the residual stream after this block."""
        batch, context, width = x.shape
        split = self.qkv(self.norm1(x)).view(batch, context, 3, self.heads, width // self.heads)
        q, k, v = split.permute(2, 0, 3, 1, 4)
        q, k = turned(q, turns).to(v.dtype), turned(k, turns).to(v.dtype)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.projection(mixed.transpose(1, 2).reshape(batch, context, width)).float()
        grown: Tensor = functional.relu(self.fc1(self.norm2(x))).square()
        y: Tensor = x + self.fc2(grown).float()
        return y


class Gpt(nn.Module):
    """A decoder; a call returns the mean cross entropy of the next bytes."""

    turns: Tensor

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, size.width)
        self.blocks = nn.ModuleList(Block(size.width, size.heads) for _ in range(size.layers))
        self.norm = nn.LayerNorm(size.width, bias=False)
        self.lm_head = nn.Linear(size.width, VOCABULARY, bias=False)
        self.register_buffer("turns", turns(size), persistent=False)

    def forward(self, tokens: Tensor, following: Tensor) -> Tensor:
        """Return the loss of predicting each following byte."""
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, self.turns[:, : tokens.shape[1]])
        logits = self.lm_head(self.norm(x)).float()
        return functional.cross_entropy(logits.view(-1, VOCABULARY), following.reshape(-1))


def turns(size: Size) -> Tensor:
    """Return the cosines and sines of RoPE, which turns pairs in half of a head."""
    pairs = size.width // size.heads // 4
    frequencies = _BASE ** (-torch.arange(pairs) / pairs)
    angles = torch.arange(size.context)[:, None] * frequencies
    return torch.stack((angles.cos(), angles.sin()))


def turned(x: Tensor, turns: Tensor) -> Tensor:
    """Turn the first half of each head by its position."""
    cosine, sine = turns
    half = x.shape[-1] // 2
    a, b = x[..., :half].chunk(2, -1)
    return torch.cat((a * cosine - b * sine, b * cosine + a * sine, x[..., half:]), -1)


def started(size: Size, seed: int) -> Gpt:
    """Return a model with the first weights of a seed, the same on every device."""
    model, generator = Gpt(size), torch.Generator().manual_seed(seed)
    for name, weight in model.named_parameters():
        if weight.dim() == 2:
            is_residual = name.endswith(_RESIDUAL)
            deviation = _DEVIATION / (math.sqrt(2 * size.layers) if is_residual else 1)
            nn.init.normal_(weight, std=deviation, generator=generator)
    return model
