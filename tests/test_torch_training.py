"""Training in torch: the arithmetic of the exact model, the state, and wrappers of torch."""

import copy
import io
import re

import numpy as np
import pytest
from extras import imported, is_there, needs

import mor_ref
from mor_ref.api import training as api
from mor_ref.definitions.nvfp4 import PROFILES
from mor_ref.engine import parallel
from mor_ref.exact import training as exact

torch = imported("torch") if is_there("torch") else None
if torch:
    from torch import nn
    from torch.utils.checkpoint import checkpoint

    import mor_ref.torch
    from mor_ref.torch import (
        LinearLike,
        advance,
        convert,
        fake_quantize,
        load_state,
        observe,
        revert,
        state,
    )
    from mor_ref.torch.chosen_layers import USUALLY_EXCLUDED, chosen_layers
    from mor_ref.torch.linear import transformed

WITH_STATE = ("fp8_delayed", "fp8_lm", "nvfp4_random")
SOME = ("mor_tensor", "mor_channel", "mxfp8:rceil", *WITH_STATE)


# ---------------------------------------------------------------------- against the exact model


AMAXES = [[], [0.0], [1.0], [3.0, 0.5], [0.1, 448.0, 2.0], [float("inf"), 1.0], [1e-45], [1e-38],
          [3.4028234663852886e38], [57344.0], [0.3], [448.0000305]]  # fmt: skip


@pytest.mark.parametrize("power_of_two", [False, True])
@pytest.mark.parametrize("margin", [0, 1, 3, 126])
@pytest.mark.parametrize("largest", [448.0, 57344.0, 6.0])
def test_delayed_scales_are_those_of_the_exact_model(largest, margin, power_of_two):
    """TRN-005."""
    for amaxes in AMAXES:
        rounded = [float(np.float32(amax)) for amax in amaxes]
        arguments = rounded, 0.75, largest, margin
        expected = exact.delayed_scale(*arguments, power_of_two=power_of_two)
        assert api.delayed_scale(*arguments, power_of_two=power_of_two) == expected


def test_delayed_scales_by_hand():
    """TRN-005, worked out on paper."""
    scale = api.delayed_scale
    assert scale([1.0, 2.0], 5.0, 448.0, 0, power_of_two=False) == 224.0
    assert scale([3.0], 5.0, 448.0, 0, power_of_two=False) == float(np.float32(448) / np.float32(3))
    assert scale([3.0], 5.0, 448.0, 0, power_of_two=True) == 128.0
    assert scale([3.0], 5.0, 448.0, 2, power_of_two=True) == 32.0
    assert scale([], 5.0, 448.0, 0, power_of_two=True) == 5.0
    assert scale([0.0], 5.0, 448.0, 0, power_of_two=False) == 5.0
    assert scale([float("inf")], 5.0, 448.0, 0, power_of_two=False) == 5.0
    assert scale([1e-45], 5.0, 448.0, 0, power_of_two=False) == float(np.finfo(np.float32).max)


def test_philox_is_that_of_its_authors():
    """TRN-007: the known answers of Random123 for Philox 4x64 with ten rounds."""
    ones = 2**64 - 1
    assert exact.philox((0, 0, 0, 0), (0, 0)) == (
        0x16554D9ECA36314C, 0xDB20FE9D672D0FDC, 0xD7E772CEE186176B, 0x7E68B68AEC7BA23B
    )  # fmt: skip
    assert exact.philox((ones,) * 4, (ones,) * 2) == (
        0x87B092C3013FE90B, 0x438C3C67BE8D0224, 0x9CC7D7C69CD777B6, 0xA09CAEBF594F0BA0
    )  # fmt: skip


PURPOSES = [(0, 0, 0, 0, 0), (7, 3, 2, 2**63 - 1, 5), (2**63 - 1, 1 << 40, 1, 12345, 6)]


@pytest.mark.parametrize("purpose", PURPOSES)
def test_random_words_are_those_of_the_exact_model(purpose):
    """TRN-007."""
    for count in (0, 1, 2, 7, 8, 9, 37):
        expected = [exact.random_word(exact.Purpose(*purpose), k) for k in range(count)]
        assert api.random_words(purpose, count).tolist() == expected


@pytest.mark.parametrize("profile", [name for name in PROFILES if name.startswith("te")])
def test_nvfp4_at_random_has_the_bits_of_the_exact_model(profile):
    """TRN-008."""
    from mor_ref.arrays import numbers_from
    from mor_ref.definitions.blocks import partition
    from mor_ref.definitions.scales import ScalingBlocks

    generator = np.random.default_rng(5)
    x = (generator.standard_normal((5, 37)) * 2.0 ** generator.integers(-9, 9, (5, 37))).astype(
        "f4"
    )
    x[0, :5] = [0.0, -0.0, 1e-40, -3e38, 1e-45]
    for tile in PROFILES[profile].tiles:
        cut = partition(x.shape, "tensor")
        blocks = ScalingBlocks(cut, "fp32", None)
        found = api.nvfp4_at_random(
            numbers_from(x, "x"), PROFILES[profile], tile, PURPOSES[1], blocks, None, 1
        ).record.y
        elements = exact.nvfp4_at_random(
            x.tolist(), PROFILES[profile], tile, exact.Purpose(*PURPOSES[1])
        )
        expected = np.array([[element.y for element in row] for row in elements], np.float32)
        assert found.view(np.uint32).tolist() == expected.view(np.uint32).tolist()


def test_a_scale_that_is_given_has_the_bits_of_the_exact_model():
    """TRN-006."""
    from mor_ref.arrays import numbers_from
    from mor_ref.definitions.blocks import partition
    from mor_ref.definitions.formats import formats
    from mor_ref.definitions.scales import ScalingBlocks
    from mor_ref.representations import GivenScale

    x = np.array([[1e-3, 0.3, -7.0, 1000.0, 0.0, -0.0], [3.3, 1e5, -1e-9, 448.0, 0.7, 2.0]], "f4")
    blocks = ScalingBlocks(partition(x.shape, "tensor"), "fp32", np.zeros((1, 1), np.uint32))
    for fmt in (formats["e4m3"], formats["e5m2"]):
        for scale in (1.0, 0.37109375, 3.0, 2.0**-20):
            given = GivenScale(fmt, scale)
            found = given.engine(numbers_from(x, "x"), blocks, None, 1).record
            elements = exact.elements_with_scale(x.tolist(), fmt, scale)
            assert found.codes.tolist() == [[one.code for one in row] for row in elements]
            expected = np.array([[one.y for one in row] for row in elements], np.float32)
            assert found.dequantize().view(np.uint32).tolist() == expected.view(np.uint32).tolist()


@pytest.mark.parametrize("lost", [False, True])
def test_the_kernels_take_a_given_scale_and_always_accept(lost):
    """TRN-006 and MOR-008, on a CPU that stands for a GPU."""
    from mor_ref.cuda.host import Host
    from mor_ref.cuda.launching import Bits
    from mor_ref.cuda.policies import mor
    from mor_ref.definitions.blocks import partition
    from mor_ref.exact.policies import mix
    from mor_ref.recipes import Delayed, Situation

    x = (np.random.default_rng(1).standard_normal((6, 40)) * 300).astype(np.float32)
    x[2, 3] = np.inf if lost else 0.0
    policy = Delayed("e5m2").policy_in(Situation(0.37109375))
    parts = partition(x.shape, "tensor")
    found = mor(Host(), Bits(x.view(np.uint32), "f32"), policy, "fp32", parts)
    expected = mix(x.tolist(), policy, "fp32", parts)
    assert found.output.tolist() == expected.output
    assert found.choice.tolist() == [[int(lost)]] == [[expected.decisions[0, 0].choice]]


@needs("torch")
@pytest.mark.parametrize("signs", [0, 0xFFFF, 0x1234, 0xA5C3])
def test_the_hadamard_transform_has_the_bits_of_the_exact_model(signs):
    """TRN-009."""
    torch.manual_seed(signs)
    x = (torch.randn(35, 3) * 2.0 ** torch.randint(-20, 20, (35, 3))).to(torch.bfloat16)
    factors = [-1 if signs >> i & 1 else 1 for i in range(16)]
    padded = torch.nn.functional.pad(x, (0, 0, 0, 13)).float()
    expected = [
        [exact.hadamard(padded[k : k + 16, j].tolist(), factors) for k in range(0, 48, 16)]
        for j in range(3)
    ]
    codes = np.array(expected, np.uint16).reshape(3, 48).T
    assert (
        transformed(x, signs).view(torch.int16).numpy().view(np.uint16).tolist() == codes.tolist()
    )


def test_the_transform_cancels_in_a_product():
    """TRN-009: what it does is orthogonal."""
    signs = exact.signs(exact.Purpose(*PURPOSES[1]))
    a, b = [1.0, *[0.0] * 15], [float(k) for k in range(16)]
    left, right = (mor_ref.decode(exact.hadamard(x, signs), "bf16") for x in (a, b))
    assert float(np.dot(left, right)) == 0.0
    assert float(np.dot(left, left)) == 1.0


# ---------------------------------------------------------------------- a small model


def small(recipe, **arguments):
    torch.manual_seed(1)
    model = nn.Sequential(
        nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 8)
    )
    convert(model, recipe, seed=3, **arguments)
    return model, torch.optim.AdamW(model.parameters(), lr=0.01)


def batch(step, rows=24):
    generator = torch.Generator().manual_seed(step)
    return torch.randn(rows, 16, generator=generator)


def train(model, optimizer, steps, forward=None):
    losses = []
    for step in steps:
        optimizer.zero_grad()
        loss = (forward or model)(batch(step)).square().mean()
        loss.backward()
        optimizer.step()
        advance(model)
        losses.append(loss.item())
    return losses


def same_parameters(a, b):
    return all(map(torch.equal, a.state_dict().values(), b.state_dict().values()))


@pytest.mark.tier("full", but=["[fp8_lm]"])
@needs("torch")
@pytest.mark.parametrize("recipe", SOME)
def test_two_runs_have_the_same_bits_with_any_number_of_threads(recipe, monkeypatch):
    """TRN-007."""
    (one, optimizer), (other, another) = small(recipe), small(recipe)
    train(one, optimizer, range(4))
    monkeypatch.setattr(parallel, "thread_count", lambda threads, size: 3)  # noqa: ARG005
    train(other, another, range(4))
    assert same_parameters(one, other)


@pytest.mark.tier("full", but=["[mor_tensor]"])
@needs("torch")
@pytest.mark.parametrize("recipe", SOME)
def test_a_run_that_goes_on_has_the_bits_of_the_run_that_was_not_stopped(recipe):
    """TRN-005 and TRN-007."""
    whole, optimizer = small(recipe)
    train(whole, optimizer, range(6))
    stopped, optimizer = small(recipe)
    train(stopped, optimizer, range(3))
    file = io.BytesIO()
    saved = {
        "model": stopped.state_dict(),
        "optimizer": optimizer.state_dict(),
        "mor": state(stopped),
    }
    torch.save(saved, file)
    file.seek(0)
    read = torch.load(file, weights_only=True)
    again, optimizer = small(recipe)
    again.load_state_dict(read["model"])
    optimizer.load_state_dict(read["optimizer"])
    load_state(again, read["mor"])
    train(again, optimizer, range(3, 6))
    assert same_parameters(again, whole)
    if recipe in WITH_STATE:
        assert state(again) == state(whole)


@needs("torch")
@pytest.mark.parametrize("recipe", WITH_STATE)
def test_the_state_matters(recipe):
    """Else the test above would show nothing."""
    model, optimizer = small(recipe)
    train(model, optimizer, range(3))
    without, optimizer = small(recipe)
    without.load_state_dict(model.state_dict())
    load_state(without, state(model))
    found = [train(model, torch.optim.SGD(model.parameters(), 0.1), [3])]
    for layer in mor_ref.torch.layers.layers_of(without).values():
        layer.step, layer.histories = 0, {key: type(h)() for key, h in layer.histories.items()}
    found.append(train(without, torch.optim.SGD(without.parameters(), 0.1), [3]))
    assert not same_parameters(model, without)


@pytest.mark.tier("full", but_one_in=2)
@needs("torch")
@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("recipe", SOME)
def test_checkpointing_changes_nothing(recipe, reentrant):
    """TRN-005 and TRN-007: a second computation has the same bits, and changes no state."""
    plain, optimizer = small(recipe)
    train(plain, optimizer, range(3))
    again, optimizer = small(recipe)
    seen = []

    def forward(x):
        return checkpoint(again, x.requires_grad_(reentrant), use_reentrant=reentrant)

    with observe(again, seen.append):
        train(again, optimizer, range(3), forward)
    assert same_parameters(plain, again)
    assert state(plain) == state(again)
    first, second = ([one for one in seen if one.is_recomputed is flag] for flag in (False, True))
    assert len(second) == 3 * 3 * 2
    forward_rows = {(one.step, one.layer, one.operand): one for one in first if one.axis == "row"}
    for one in second:
        before = forward_rows[one.step, one.layer, one.operand]
        assert torch.equal(one.statistics, before.statistics)


@needs("torch")
def test_a_pass_without_gradients_does_not_change_the_state():
    """TRN-005: neither does one of evaluation."""
    model, optimizer = small("fp8_delayed")
    train(model, optimizer, range(2))
    before = state(model)
    with torch.no_grad():
        model(batch(9) * 100)
    model.eval()(batch(9) * 100).sum().backward()
    assert state(model) == before


@needs("torch")
def test_accumulation_is_the_sum_of_the_gradients():
    """And a delayed scale takes the largest amax of the step."""
    model, _ = small("fp8_delayed")
    parts = [batch(0) * 8, batch(1)]
    summed = [torch.zeros_like(p) for p in model.parameters()]
    for part in parts:
        model.zero_grad()
        model(part).sum().backward()
        summed = [s + p.grad for s, p in zip(summed, model.parameters(), strict=True)]
    model, _ = small("fp8_delayed")
    for part in parts:
        model(part).sum().backward()
    assert all(map(torch.equal, summed, (p.grad for p in model.parameters())))
    advance(model)
    largest = max(float(part.to(torch.bfloat16).abs().max()) for part in parts)
    assert state(model)["0"]["histories"]["input"]["amaxes"] == [largest]


@needs("torch")
def test_backward_passes_of_a_step_have_random_bits_of_their_own():
    """TRN-007: `call` counts them, and `advance` begins again."""
    model, _ = small("nvfp4_random")
    found = []
    for step in range(2):
        for _ in range(2):
            model.zero_grad()
            model(batch(0)).sum().backward()
            found.append(model[0].weight.grad.clone())
        assert state(model)["0"] | {"recipe": ""} == {
            "recipe": "", "seed": 3, "step": step, "call": 2, "histories": {}
        }  # fmt: skip
        advance(model)
    assert not any(torch.equal(a, b) for i, a in enumerate(found) for b in found[:i])


@needs("torch")
def test_tied_weights_have_the_sum_of_their_gradients():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(2)
            self.first, self.second = nn.Linear(16, 16), nn.Linear(16, 16)
            self.second.weight = self.first.weight

        def forward(self, x):
            return self.second(self.first(x))

    model = Tied()
    assert convert(model, "mor_channel") == ("first", "second")
    assert model.first.weight is model.second.weight
    model(batch(0)).sum().backward()
    apart = Tied()
    apart.second.weight = nn.Parameter(apart.first.weight.detach().clone())
    convert(apart, "mor_channel")
    apart(batch(0)).sum().backward()
    assert torch.equal(model.first.weight.grad, apart.first.weight.grad + apart.second.weight.grad)
    assert "second.weight" in model.state_dict()


# ---------------------------------------------------------------------- convert and revert


@needs("torch")
def test_convert_leaves_parameters_and_state_dict_as_they_are():
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8, bias=False))
    parameters, keys = list(model.parameters()), list(model.state_dict())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    before, y = [p.detach().clone() for p in parameters], model(batch(0))
    convert(model, "mor_tensor")
    assert [id(p) for p in model.parameters()] == [id(p) for p in parameters]
    assert list(model.state_dict()) == keys
    assert not torch.equal(model(batch(0)), y)
    model(batch(0)).sum().backward()
    optimizer.step()
    assert not torch.equal(model[0].weight, before[0])
    model.load_state_dict(dict(zip(keys, before, strict=True)))
    revert(model)
    assert [type(layer) for layer in model] == [nn.Linear, nn.ReLU, nn.Linear]
    assert torch.equal(model(batch(0)), y)
    assert not any("mor_ref" in name for layer in model for name in vars(layer))


@needs("torch")
@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({}, ["a.proj", "a.lm_head2", "b.0", "b.1"]),
        ({"exclude": ()}, ["a.proj", "a.lm_head", "a.lm_head2", "b.0", "b.1"]),
        ({"include": ["b"]}, ["b.0", "b.1"]),
        ({"include": ["b.0", "*proj"]}, ["a.proj", "b.0"]),
        ({"exclude": ["a"]}, ["b.0", "b.1"]),
        ({"exclude": "lm_head*"}, ["a.proj", "b.0", "b.1"]),
        ({"include": lambda _, module: module.in_features == 2}, ["b.1"]),
        ({"include": ["b"], "exclude": (name for name in ["0", "proj"])}, ["b.1"]),
        ({"include": (name for name in ["1"])}, ["b.1"]),
    ],
)
def test_patterns_choose_layers(arguments, names):
    a = nn.ModuleDict({name: nn.Linear(4, 4) for name in ("proj", "lm_head", "lm_head2")})
    model = nn.ModuleDict({"a": a, "b": nn.Sequential(nn.Linear(4, 2), nn.Linear(2, 4))})
    assert list(convert(model, "mxfp8:rceil", **arguments)) == names


LAYERS = [f"model.layers.{number}.mlp.{name}" for number in (1, 11) for name in ("up", "down")]


@needs("torch")
@pytest.mark.parametrize(
    ("pattern", "places"),
    [
        ("model", [0, 1, 2, 3]),
        ("mlp", [0, 1, 2, 3]),
        ("up", [0, 2]),
        ("layers.1", [0, 1]),
        ("1.mlp", [0, 1]),
        ("1.mlp.down", [1]),
        ("layers.*.down", [1, 3]),
        (LAYERS[2], [2]),
    ],
)
def test_a_pattern_is_of_any_part_of_a_name_between_dots(pattern, places):
    there = {name: nn.Identity() for name in LAYERS}
    assert [*chosen_layers(there, [pattern], ())] == [LAYERS[place] for place in places]
    others = [name for place, name in enumerate(LAYERS) if place not in places]
    assert [*chosen_layers(there | {"x": there[LAYERS[0]]}, None, [pattern])] == [*others, "x"]


@needs("torch")
def test_a_pattern_that_matches_nothing_is_refused_with_some_names():
    """Also lm_head, if it was asked for and is not there; the default may be of nothing."""
    there = {name: nn.Identity() for name in "abcdef"}
    with pytest.raises(ValueError, match="'lm_head', which matches none of a, b, c, d, e, f; "):
        chosen_layers(there, None, ("lm_head",))
    assert chosen_layers(there, None, USUALLY_EXCLUDED) == there
    there["g"] = nn.Identity()
    with pytest.raises(ValueError, match=r"none of a, b, c, d, \.\.\., g; "):
        chosen_layers(there, ["a", "aa"], ())


if torch:

    class Own(nn.Module):
        """A linear layer whose bias is named b."""

        def __init__(self):
            super().__init__()
            self.weight, self.b = nn.Parameter(torch.randn(4, 8)), nn.Parameter(torch.randn(4))


def own():
    torch.manual_seed(6)
    return Own()


@needs("torch")
@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")  # torch's own, of torch.compile
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: convert(m, "mor_tenser"), "did you mean 'mor_tensor'"),
        (
            lambda m: convert(m, "mxfp4", include=["x"]),
            "include has 'x', which matches none of 0, 1; give a name, or",
        ),
        (lambda m: convert(m, "mxfp4", exclude=["O"]), "exclude has 'O', which matches none"),
        (
            lambda m: convert(m, "mxfp4", exclude="*"),
            "leave none of 0, 1; give other patterns",
        ),
        (
            lambda m: convert(m, "mxfp4", exclude=None),
            "exclude is None; give patterns of names",
        ),
        (
            lambda m: convert(m, "mxfp4", include=[0]),
            "include is .0.; give patterns of names",
        ),
        (lambda _: convert("m", "mxfp4"), "model is 'm'; give an nn.Module"),
        (lambda _: revert("m"), "model is 'm'; give an nn.Module"),
        (
            lambda m: convert(torch.compile(m), "mxfp4"),
            "convert the model before torch.compile",
        ),
        (lambda _: convert(nn.ReLU(), "mxfp4"), "model has no nn.Linear; give"),
        (
            lambda m: (convert(m, "mxfp4"), convert(m, "mxfp4")),
            "converted already; call",
        ),
        (lambda m: convert(m, "mxfp4", seed=-1), "seed is -1"),
        (torch and revert, "model has no converted layer; there is nothing"),
        (torch and advance, "model has no converted layer; call mor_ref.torch.convert first"),
        (lambda m: (convert(m, "mxfp4"), load_state(m, {})), "state has other layers"),
        (
            lambda m: (convert(m, "mxfp4"), load_state(m, other(m))),
            "state has another recipe for 0",
        ),
        (
            lambda m: convert(m, "mxfp4", layers=[nn.Conv1d]),
            "layers is .*; give a LinearLike for",
        ),
        (
            lambda m: convert(m, "mxfp4", layers={"Linear": LinearLike()}),
            "give a LinearLike for",
        ),
        (
            lambda m: convert(m, "mxfp4", layers={nn.Linear: LinearLike("w")}),
            "layers has nn.Linear, which is converted anyway; leave it out",
        ),
        (
            lambda _: convert(nn.Sequential(own()), "mxfp4", layers={Own: LinearLike("w")}),
            "layers says that the weight of Own is 'w', which is not a matrix in '0'; give",
        ),
        (
            lambda _: convert(
                nn.Sequential(own()), "mxfp8:rceil", layers={Own: LinearLike(bias="c")}
            ),
            "layers says that the bias of Own is 'c', which '0' does not have; give",
        ),
        (
            lambda _: convert(nn.Sequential(own()), "mxfp4", layers={Own: LinearLike()}),
            "layers says nothing about the parameter 'b' of Own, which would be left out",
        ),
    ],
)
def test_what_cannot_be_converted_is_refused(call, message):
    with pytest.raises((ValueError, KeyError, TypeError), match=message):
        call(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)) if torch else None)


DAMAGES = {
    "step": (-1, "1", None),
    "call": (0.5,),
    "seed": (1 << 63,),
    "histories": ({}, None, {"input": {}}),
    "scale": (0.0, -1.0, float("nan"), float("inf"), "1"),
    "amaxes": ([-1.0], [float("nan")], ["1"], None, [1.0] * 1025),
    "current": (-1, 1.5, 1 << 31),
}


@needs("torch")
@pytest.mark.parametrize(
    ("key", "value"), [(key, value) for key, values in DAMAGES.items() for value in values]
)
def test_a_damaged_state_is_refused_and_changes_nothing(key, value):
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    convert(model, "fp8_delayed", seed=3)
    model(torch.ones(4, 4)).sum().backward()
    before = state(model)
    damaged = copy.deepcopy(before)
    damaged["0"]["step"] = 7
    place = damaged["1"]
    (place if key in place else place["histories"]["weight"])[key] = value
    with pytest.raises(
        ValueError, match="state is damaged for 1 .*; give a state that mor_ref.torch.state"
    ):
        load_state(model, damaged)
    assert state(model) == before
    del (place if key in place else place["histories"]["weight"])[key]
    with pytest.raises(ValueError, match=f"it has no '{key}'"):
        load_state(model, damaged)


def other(model):
    return {name: {**one, "recipe": "x"} for name, one in state(model).items()}


@needs("torch")
def test_a_full_history_is_loaded():
    """Of 1024 amaxes, as the recipe has; one more is damaged."""
    model = nn.Sequential(nn.Linear(4, 4))
    convert(model, "fp8_delayed")
    saved = state(model)
    saved["0"]["histories"]["weight"]["amaxes"] = [1.0] * 1024
    load_state(model, saved)
    assert state(model) == saved


@needs("torch")
def test_a_copy_of_a_model_has_a_state_of_its_own():
    import pickle

    model, optimizer = small("fp8_delayed")
    copies = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    before = state(model)
    train(model, optimizer, range(2))
    for one in copies:
        assert state(one) == before != state(model)


@needs("torch")
def test_a_bias_of_another_name_is_added():
    model, linear = nn.Sequential(own()), nn.Linear(8, 4)
    linear.weight.data, linear.bias.data = model[0].weight.clone(), model[0].b.clone()
    convert(model, "mxfp8:rceil", layers={Own: LinearLike(bias="b")})
    convert(nn.Sequential(linear), "mxfp8:rceil")
    x = torch.randn(3, 8)
    assert torch.equal(model(x), linear(x))


@needs("torch")
@pytest.mark.parametrize("recipe", ["bf16", "mor_tensor", "mor_channel", "nvfp4_random"])
def test_a_gradient_is_not_differentiated_again(recipe):
    """It has lost what it came from: a penalty on it would have a wrong gradient."""
    model = nn.Sequential(nn.Linear(8, 4), nn.Tanh(), nn.Linear(4, 1))
    convert(model, recipe)
    x = torch.randn(3, 8, requires_grad=True)
    (gradient,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.square().sum().backward()


@needs("torch")
def test_a_converted_layer_of_a_user_is_saved_and_copied(tmp_path):
    model = nn.Sequential(own(), nn.Linear(4, 4))
    convert(model, "fp8_delayed", layers={Own: LinearLike(bias="b")})
    x = torch.randn(3, 8)
    model(x).sum().backward()
    advance(model)
    model.eval()
    torch.save(model, tmp_path / "model.pt")
    for again in (torch.load(tmp_path / "model.pt", weights_only=False), copy.deepcopy(model)):
        assert type(again[0]) is type(model[0])
        assert state(again) == state(model)
        assert torch.equal(again(x), model(x))


@needs("torch")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda _: advance("model"), "model is 'model'; give an nn.Module"),
        (lambda _: state(None), "model is None; give an nn.Module"),
        (lambda m: load_state(m, "x"), "state is 'x'; give a state that mor_ref.torch.state"),
        (lambda m: load_state(m, {"0": 3}), "state is {'0': 3}; give a state that"),
        (lambda m: observe(m, 3), "observer is 3; give a function of an Observation"),
        (lambda _: fake_quantize([1.0], "mxfp4"), "x is a list; give a torch.Tensor"),
        (
            lambda _: fake_quantize(torch.ones(4), "fp8_delayed", scale="2"),
            "scale is '2'; give a number above 0 that is finite",
        ),
    ],
)
def test_wrong_arguments_are_refused_in_a_sentence(call, message):
    model = nn.Sequential(nn.Linear(4, 4))
    convert(model, "mxfp8:rceil")
    with pytest.raises(TypeError, match=re.escape(message)):
        call(model)
    model(torch.ones(1, 4))  # nothing was changed


@pytest.mark.tier("full")
# Torch's own warning.
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@needs("torch")
@pytest.mark.parametrize("recipe", ["mor_tensor", "mxfp8:rceil", "fp8_current"])
def test_a_model_compiles_with_all_shapes_dynamic(recipe):
    model = nn.Sequential(nn.Linear(8, 4), nn.GELU(), nn.Linear(4, 8))
    convert(model, recipe)
    compiled = torch.compile(model, backend="aot_eager", dynamic=True)
    for rows in (5, 3):
        x = torch.randn(rows, 8)
        assert torch.equal(compiled(x), model(x))
        compiled(x).sum().backward()


@needs("torch")
def test_a_layer_of_a_user_with_a_transposed_weight():
    class Conv1D(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(16, 8))
            self.bias = nn.Parameter(torch.randn(8))

    torch.manual_seed(4)
    model = nn.Sequential(Conv1D())
    linear = nn.Linear(16, 8)
    linear.weight.data, linear.bias.data = model[0].weight.T.clone(), model[0].bias.clone()
    convert(model, "mxfp8:rceil", layers={Conv1D: LinearLike(transposed=True)})
    assert type(model[0]).__name__ == "QuantizedConv1D"
    convert(nn.Sequential(linear), "mxfp8:rceil")
    x = batch(0)
    assert torch.equal(model(x), linear(x))
    model(x).sum().backward()
    linear(x).sum().backward()
    assert torch.equal(model[0].weight.grad, linear.weight.grad.T)
    revert(model)
    assert type(model[0]) is Conv1D
