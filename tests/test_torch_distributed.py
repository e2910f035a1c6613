"""Training on two processes: DistributedDataParallel and fully_shard, over gloo."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from extras import imported, is_there, needs

pytestmark = needs("torch")
torch = imported("torch") if is_there("torch") else None

# Each process trains on its half of a batch, once in each case, and writes what came of it. The
# second is forked when all is imported, which takes longer than the training. Both end at
# once: torch can wait for ever for the threads of a group, as test_torch_unended_steps.py says.
PROGRAM = """
import itertools, os, sys, torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from mor_ref.torch import advance, convert, state

meeting, out, recipes, wrappers = sys.argv[1], sys.argv[2], *(a.split(",") for a in sys.argv[3:])
child = os.fork()
rank = 0 if child else 1
dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)

def trained(wrapper, recipe):
    torch.manual_seed(1)
    inner = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 8))
    convert(inner, recipe, seed=3)
    if wrapper == "ddp":
        model = nn.parallel.DistributedDataParallel(inner)
    else:
        mesh = init_device_mesh("cpu", (2,))
        for layer in inner:
            if isinstance(layer, nn.Linear):
                fully_shard(layer, mesh=mesh)
        model = fully_shard(inner, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for step in range(3):
        x = torch.randn(24, 16, generator=torch.Generator().manual_seed(step))
        optimizer.zero_grad()
        model(x.chunk(2)[rank]).square().mean().backward()
        optimizer.step()
        advance(model, process_group=dist.group.WORLD)
    whole = {
        name: p.full_tensor() if hasattr(p, "full_tensor") else p
        for name, p in inner.state_dict().items()
    }
    return {"weights": whole, "state": state(inner)}

found = {f"{w} {r}": trained(w, r) for w, r in itertools.product(wrappers, recipes)}
torch.save(found, f"{out}{rank}")
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) if child else 0)
"""
RECIPES, WRAPPERS = ["mor_channel", "fp8_delayed"], ["ddp", "fsdp"]


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory):
    """Return the results of two processes, which wait for each other and never for a clock."""
    place = tmp_path_factory.mktemp("distributed")
    root = str(Path(__file__).resolve().parent.parent)
    cases = [",".join(RECIPES), ",".join(WRAPPERS)]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, place / "meeting", place / "out", *cases],
        env={**os.environ, "PYTHONPATH": root, "OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [torch.load(place / f"out{rank}", weights_only=True) for rank in range(2)]


def one_process(recipe):
    """Return the same in one process: the mean of the gradients of both halves."""
    from torch import nn

    from mor_ref.torch import advance, convert, state

    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 8))
    convert(model, recipe, seed=3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for step in range(3):
        x = torch.randn(24, 16, generator=torch.Generator().manual_seed(step))
        found = []
        for half in x.chunk(2):
            model.zero_grad()
            model(half).square().mean().backward()
            found.append([p.grad.clone() for p in model.parameters()])
        for p, a, b in zip(model.parameters(), *found, strict=True):
            p.grad = (a + b) / 2
        optimizer.step()
        advance(model)
    return {"weights": dict(model.state_dict()), "state": state(model)}


@pytest.mark.tier("full")
@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("recipe", RECIPES)
def test_two_processes_train_as_one_would(two_processes, wrapper, recipe):
    """TRN-005: with a process group, the amax is the largest of all processes."""
    first, second = (found[f"{wrapper} {recipe}"] for found in two_processes)
    expected = one_process(recipe)
    for name, weight in expected["weights"].items():
        assert torch.equal(first["weights"][name], second["weights"][name])
        assert torch.equal(first["weights"][name], weight), name
    for name, one in expected["state"].items():
        assert first["state"][name]["histories"] == second["state"][name]["histories"]
        assert first["state"][name]["histories"] == one["histories"]
