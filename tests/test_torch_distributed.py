"""Training on two processes: DistributedDataParallel and fully_shard, over gloo."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from extras import imported, is_there, needs

pytestmark = needs("torch")
torch = imported("torch") if is_there("torch") else None

# Each process trains on its half of a batch; the first writes what came of it.
PROGRAM = """
import sys, torch
import torch.distributed as dist
from torch import nn
from mor_ref.torch import advance, convert, state

rank, file, wrapper, recipe, out = int(sys.argv[1]), *sys.argv[2:]
dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=2)
torch.manual_seed(1)
inner = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 8))
convert(inner, recipe, seed=3)
if wrapper == "ddp":
    model = nn.parallel.DistributedDataParallel(inner)
else:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
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
torch.save({"weights": whole, "state": state(inner)}, f"{out}{rank}")
dist.destroy_process_group()
"""


def two_processes(tmp_path, wrapper, recipe):
    """Return the results of two processes, which wait for each other and never for a clock."""
    root = str(Path(__file__).resolve().parent.parent)
    arguments = [str(tmp_path / "meeting"), wrapper, recipe, str(tmp_path / "out")]
    environment = {**os.environ, "PYTHONPATH": root, "OMP_NUM_THREADS": "1"}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(rank), *arguments],
            env=environment, stderr=subprocess.PIPE, text=True,
        )
        for rank in range(2)
    ]  # fmt: skip
    errors = [process.communicate()[1] for process in started]
    assert [process.returncode for process in started] == [0, 0], "\n".join(errors)
    return [torch.load(tmp_path / f"out{rank}", weights_only=True) for rank in range(2)]


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


@pytest.mark.tier("full", but=["[fp8_delayed-ddp]", "[mor_channel-fsdp]"])
@pytest.mark.parametrize("wrapper", ["ddp", "fsdp"])
@pytest.mark.parametrize("recipe", ["mor_channel", "fp8_delayed"])
def test_two_processes_train_as_one_would(tmp_path, wrapper, recipe):
    """TRN-005: with a process group, the amax is the largest of all processes."""
    first, second = two_processes(tmp_path, wrapper, recipe)
    expected = one_process(recipe)
    for name, weight in expected["weights"].items():
        assert torch.equal(first["weights"][name], second["weights"][name])
        assert torch.equal(first["weights"][name], weight), name
    for name, one in expected["state"].items():
        assert first["state"][name]["histories"] == second["state"][name]["histories"]
        assert first["state"][name]["histories"] == one["histories"]
