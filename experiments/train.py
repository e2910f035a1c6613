"""One run: a model that is trained with one arm and one seed, and its measurements."""

import json
import math
import platform
import time
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from experiments.corpus import Corpus, corpus
from experiments.disturbances import add_noise, nudge
from experiments.files import write_whole
from experiments.gpt import LINEAR_LAYERS, Gpt, started
from experiments.measuring import Measurements
from experiments.recipes import recipe_of
from experiments.runs import ARMS, SIZES, Arm, Run, Size, measured_in
from mor_ref.torch import advance, convert

MEASURED_STEPS = 24  # of a run, evenly
_VALIDATION_BATCHES = 64
_BETAS, _DECAY, _CLIP = (0.9, 0.95), 0.1, 1.0
_WARM_UP, _LAST_RATE = 0.05, 0.1  # as shares of the steps and of the rate


def do(run: Run, place: Path, device: str) -> Run:
    """Train and write the file of a run; a worker calls this."""
    document = trained(run, corpus(place), device)
    write_whole(place / run.path, json.dumps(document, separators=(",", ":")).encode())
    return run


def trained(run: Run, text: Corpus, device: str = "cpu") -> dict[str, Any]:
    """Return what a run records. A run on a CPU has one thread, and the same bits each time."""
    torch.set_num_threads(1)
    size, arm = SIZES[run.size], ARMS[run.arm]
    model = started(size, run.seed).to(device)
    layers = linear_layers(model)
    disturb(model, layers, arm, run.seed)
    measurements = Measurements(layers, measured_in(run))
    losses, seconds = _steps(model, run, text, measurements, device)
    return {
        "run": vars(run),
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "losses": [round(loss, 6) for loss in losses],
        "validation": _validation(model, size, text, device),
        "measured": measurements.document(),
        "seconds_per_step": round(median(seconds), 4),
        "made_with": made_with(device),
    }


def linear_layers(model: Gpt) -> dict[str, nn.Linear]:
    """Return the layers that a recipe quantizes, by names such as 0.fc2."""
    return {
        f"{number}.{name}": getattr(block, name)
        for number, block in enumerate(model.blocks)
        for name in LINEAR_LAYERS
    }


def disturb(model: Gpt, layers: dict[str, nn.Linear], arm: Arm, seed: int) -> None:
    """Make the arm of a model that is still the same in all arms."""
    if arm.disturbance == "one_ulp":
        nudge(layers["0.fc1"].weight, seed)
    elif arm.disturbance == "noise":
        add_noise(layers, seed)
    elif arm.is_quantized:
        convert(model, recipe_of(arm), seed=seed)


def _steps(
    model: Gpt, run: Run, text: Corpus, measurements: Measurements, device: str
) -> tuple[list[float], list[float]]:
    """Take all steps of a run; return their losses, and the seconds of each without measuring."""
    size, optimizer = SIZES[run.size], optimizer_of(model)
    draw = partial(_batch, size=size, device=device)
    order = np.random.default_rng((run.seed, 1))
    every = max(run.steps // MEASURED_STEPS, 1)
    losses, seconds = [], []
    # A processor that others use as well does not make a step longer in its own time.
    clock = time.process_time if device == "cpu" else time.perf_counter
    for step in range(run.steps):
        begun = clock()
        for group in optimizer.param_groups:
            group["lr"] = size.rate * rate_at(step, run.steps)
        measurements.watch(is_due=step % every == every - 1)
        loss = _loss(model, draw(text.training, order))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), _CLIP)
        optimizer.step()
        if ARMS[run.arm].is_quantized:
            advance(model)
        losses.append(loss.item())
        seconds.append(clock() - begun)
        measurements.take(step)
    return losses, seconds


def optimizer_of(model: Gpt) -> torch.optim.Optimizer:
    """Return AdamW on float32 weights; only matrices decay."""
    weights = list(model.parameters())
    matrices, others = ([w for w in weights if (w.dim() == 2) is one] for one in (True, False))
    groups = ({"params": matrices, "weight_decay": _DECAY}, {"params": others, "weight_decay": 0.0})
    return torch.optim.AdamW(groups, betas=_BETAS)


def rate_at(step: int, steps: int) -> float:
    """Return the learning rate as a share of the highest: a warm-up, and a cosine to a tenth."""
    warm_up = max(1, round(_WARM_UP * steps))
    if step < warm_up:
        return (step + 1) / warm_up
    done = (step - warm_up) / max(steps - warm_up, 1)
    return _LAST_RATE + (1 - _LAST_RATE) * (1 + math.cos(math.pi * done)) / 2


def _loss(model: Gpt, batch: tuple[Tensor, Tensor]) -> Tensor:
    tokens, following = batch
    with torch.autocast(tokens.device.type, torch.bfloat16):
        loss: Tensor = model(tokens, following)
    return loss


def _batch(
    text: NDArray[np.uint8], order: np.random.Generator, size: Size, device: str
) -> tuple[Tensor, Tensor]:
    starts = order.integers(0, len(text) - size.context, size.batch)
    drawn = np.stack([text[start : start + size.context + 1] for start in starts])
    tokens = torch.from_numpy(drawn.astype(np.int64)).to(device)
    return tokens[:, :-1], tokens[:, 1:]


def _validation(model: Gpt, size: Size, text: Corpus, device: str) -> float:
    """Return the mean loss on batches of the validation text, the same for every run."""
    order = np.random.default_rng(0)
    with torch.no_grad():
        losses = [
            _loss(model, _batch(text.validation, order, size, device)).item()
            for _ in range(_VALIDATION_BATCHES)
        ]
    return round(sum(losses) / len(losses), 6)


def made_with(device: str) -> dict[str, str]:
    """Return the versions of the software that made a result."""
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": version("numpy"),
        "mor_ref": version("mor_ref"),
        "device": torch.cuda.get_device_name() if device == "cuda" else platform.machine(),
    }
