"""A step that does not end: optimizer.step() without `advance`."""

import copy
from contextlib import contextmanager, nullcontext

import pytest
from extras import imported, is_there, needs

torch = imported("torch") if is_there("torch") else None
if torch:
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.checkpoint import checkpoint

    from mor_ref.torch import advance, convert, load_state, observe, record, revert, state

WITH_STATE = ("fp8_delayed", "fp8_lm", "nvfp4_random")
REFUSAL = r"called after optimizer.step\(\), but .*; call mor_ref.torch.advance\(model\) after"


def made(recipe="fp8_delayed", optimizer=None):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 8))
    convert(model, recipe)
    make = optimizer or (lambda p: torch.optim.SGD(p, 0.1))
    return model, make(model.parameters())


def compute(model):
    model(torch.ones(4, 16)).square().mean().backward()


KEPT = []


@contextmanager
def group_of_one_process(folder):
    """Make this process a group, and keep the group when it is left.

    torch holds Python's lock while it ends a group, and waits for threads of the group, which may
    wait for the lock.
    """
    store = torch.distributed.FileStore(str(folder / "store"), 1)
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    KEPT.append(torch.distributed.group.WORLD)
    try:
        yield
    finally:
        torch.distributed.destroy_process_group()


@needs("torch")
@pytest.mark.parametrize("recipe", WITH_STATE)
def test_a_forgotten_advance_is_refused(recipe):
    """TRN-005 and TRN-007: else the scales stay 1, or the random bits repeat."""
    model, optimizer = made(recipe)
    compute(model)
    optimizer.step()
    with pytest.raises(RuntimeError, match=REFUSAL):
        model(torch.ones(4, 16))
    advance(model)
    compute(model)


@needs("torch")
def test_a_forgotten_advance_is_refused_while_a_model_is_observed():
    """TRN-013: else every record is of step 0. Without an observer no recipe needs the call."""
    model, optimizer = made("mor_tensor")
    for _ in range(2):
        with observe(model, lambda _: None):
            compute(model)
            optimizer.step()
        compute(model)
        optimizer.step()
    with record(model) as recording:
        compute(model)
        optimizer.step()
        with pytest.raises(RuntimeError, match=REFUSAL):
            compute(model)
        advance(model)
        compute(model)
    assert {row.step for row in recording.rows} == {0}
    compute(model)


@needs("torch")
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")  # of torch itself
@pytest.mark.parametrize("wrap", ["compile", "checkpoint", "copy", "parallel"])
def test_a_forgotten_advance_is_refused_under_wrappers(wrap, tmp_path):
    model, optimizer = made()
    call, group = model, nullcontext()
    if wrap == "compile":
        call = torch.compile(model, backend="aot_eager")
    elif wrap == "checkpoint":
        call = lambda x: checkpoint(model, x, use_reentrant=False)  # noqa: E731
    elif wrap == "copy":
        call = model = copy.deepcopy(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
    else:
        group = group_of_one_process(tmp_path)
    with group:
        if wrap == "parallel":
            call = DistributedDataParallel(model)
        for _ in range(2):
            compute(call)
            optimizer.step()
            advance(model)
        compute(call)
        optimizer.step()
        with pytest.raises(RuntimeError, match=REFUSAL):
            compute(call)


@needs("torch")
def test_a_forgotten_advance_is_refused_for_shards(tmp_path):
    """The optimizer has the shards, and a forward pass the gathered weights."""
    from torch.distributed.fsdp import fully_shard

    with group_of_one_process(tmp_path):
        model, _ = made()
        mesh = torch.distributed.init_device_mesh("cpu", (1,))
        fully_shard(model, mesh=mesh)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(2):
            compute(model)
            compute(model)
            optimizer.step()
            advance(model)
        compute(model)
        optimizer.step()
        with pytest.raises(RuntimeError, match=REFUSAL):
            compute(model)


@needs("torch")
def test_what_is_not_a_step_is_not_refused():
    """Accumulation, evaluation, loading, and an optimizer of another model."""
    model, optimizer = made()
    _, another = made()
    nn.init.normal_(model[0].weight)
    optimizer.step()  # before the first call
    compute(model)
    saved = copy.deepcopy(model.state_dict())
    another.step()
    compute(model)
    model.load_state_dict(saved)
    compute(model)
    optimizer.step()
    with torch.no_grad():
        model(torch.ones(4, 16))
    compute(model.eval())
    advance(model.train())
    compute(model)
    advance(model)  # before the optimizer, which the bits do not depend on
    optimizer.step()
    compute(model)


@needs("torch")
def test_a_closure_is_called_many_times_in_a_step():
    model, optimizer = made(optimizer=lambda p: torch.optim.LBFGS(p, max_iter=3))

    def closure():
        optimizer.zero_grad()
        loss = model(torch.ones(4, 16)).square().mean()
        loss.backward()
        return loss

    optimizer.step(closure)
    with pytest.raises(RuntimeError, match=REFUSAL):
        optimizer.step(closure)


@needs("torch")
def test_tied_weights_end_their_step_together():
    model, _ = made()
    model[2] = copy.copy(model[0])
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    compute(model)
    optimizer.step()
    advance(model)
    compute(model)


@needs("torch")
def test_a_state_that_is_loaded_begins_a_step():
    model, optimizer = made()
    saved = state(model)
    compute(model)
    optimizer.step()
    load_state(model, saved)
    compute(model)
    optimizer.step()
    revert(model)
    compute(model)
    optimizer.step()


@needs("torch")
def test_recipes_without_a_state_need_no_advance():
    model, optimizer = made("mor_tensor")
    for _ in range(2):
        compute(model)
        optimizer.step()
