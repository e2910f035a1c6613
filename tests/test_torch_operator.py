"""fake_quantize, an operator of torch: the bits of mor_ref, and the checks of torch."""

import cProfile
import pstats

import ml_dtypes
import numpy as np
import pytest
from extras import imported, is_there, needs

import mor_ref
from mor_ref import MeanRelativeError, Policy, Rung
from mor_ref.policies import POLICIES

pytestmark = needs("torch")
torch = imported("torch") if is_there("torch") else None
if torch:
    from mor_ref.torch import (
        Delayed,
        Mor,
        Mx,
        Nvfp4,
        Scaled,
        Unquantized,
        fake_quantize,
        recipes,
    )

BF16 = ml_dtypes.bfloat16
DTYPES = ("float32", "bfloat16", "float16")


def tensor(seed, *shape, dtype="float32"):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(*shape, generator=generator) * 2.0 ** torch.randint(
        -12, 4, (*shape[:-1], 1), generator=generator
    )
    return x.to(getattr(torch, dtype))


def as_torch(codes, dtype):
    """Return the numbers of bfloat16 codes, in a dtype of torch."""
    y = torch.from_numpy(codes.view(np.int16).copy()).view(torch.bfloat16)
    return y.to(getattr(torch, dtype))


def bits(x):
    return x.contiguous().view({2: torch.int16, 4: torch.int32}[x.element_size()])


MOR = {
    "tensor": lambda: (Mor("tensor", "tensor"), {"policy": "tensor", "block": "tensor"}),
    "row": lambda: (Mor("tensor", "row"), {"policy": "tensor", "block": "row"}),
    "three_way": lambda: (Mor("three_way", (8, 16)), {"policy": "three_way", "block": (8, 16)}),
    "threshold": lambda: (
        Mor("tensor", (16, 8), "fp32", "0.02"),
        {"policy": "tensor", "block": (16, 8), "scaling": "fp32", "threshold": "0.02"},
    ),
    "nvfp4": lambda: (Mor("nvfp4", (32, 32)), {"policy": "nvfp4", "block": (32, 32)}),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", MOR)
def test_it_has_the_bits_of_mor(name, dtype):
    """TRN-004."""
    tensor_recipe, arguments = MOR[name]()
    x = tensor(1, 3, 11, 48, dtype=dtype)
    y = fake_quantize(x, tensor_recipe)
    assert (y.dtype, y.shape) == (x.dtype, x.shape)
    assert torch.equal(bits(y), bits(as_torch(mor_ref.mor(x, **arguments).output, dtype)))


@pytest.mark.parametrize("name", MOR)
def test_by_column_the_transpose_is_quantized(name):
    """TRN-002."""
    tensor_recipe, arguments = MOR[name]()
    x = tensor(2, 33, 48)
    expected = mor_ref.mor(x.T.contiguous(), **arguments).output.T
    y = fake_quantize(x, tensor_recipe, axis="column")
    assert torch.equal(bits(y), bits(as_torch(np.ascontiguousarray(expected), "float32")))


OTHERS = {
    "scaled": lambda x: mor_ref.quantize(x, "e5m2", block="row", scaling="fp32"),
    "mx": lambda x: mor_ref.quantize_mx(x, "e2m1", scale_rule="even", block=16),
    "nvfp4": lambda x: mor_ref.quantize_nvfp4(x, profile="te_4over6_mae", tile=(16, 16)),
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", OTHERS)
def test_a_representation_alone_has_the_bits_of_its_function(name, dtype):
    """TRN-003 and MOR-008."""
    tensor_recipe = {
        "scaled": lambda: Scaled("e5m2", "row"),
        "mx": lambda: Mx("e2m1", "even", 16),
        "nvfp4": lambda: Nvfp4("te_4over6_mae", (16, 16)),
    }[name]()
    x = tensor(3, 20, 50, dtype=dtype)
    expected = OTHERS[name](x).dequantize(BF16).view(np.uint16)
    assert torch.equal(bits(fake_quantize(x, tensor_recipe)), bits(as_torch(expected, dtype)))


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
def test_a_tensor_with_an_infinity_or_a_nan_stays_as_it_is(value):
    """TRN-003 and MOR-008: an Always does not accept what loses something."""
    x = tensor(4, 4, 32, dtype="bfloat16")
    x[1, 2] = value
    for tensor_recipe in (
        Scaled(),
        Mx(),
        Nvfp4(),
        Delayed(),
        Unquantized(),
        Mor("tensor", "tensor"),
    ):
        y = fake_quantize(x, tensor_recipe)
        assert torch.equal(bits(y), bits(x)), tensor_recipe


def test_nothing_finite_becomes_infinite_in_float16():
    """TRN-004."""
    x = torch.tensor([65504.0, -65504.0, 1.0, float("inf"), 65472.0]).to(torch.float16)
    for tensor_recipe in (Unquantized(), Mor("tensor", "tensor"), Scaled(block="column")):
        y = fake_quantize(x, tensor_recipe)
        assert torch.equal(y.isinf(), x.isinf()), tensor_recipe
    assert fake_quantize(x, Unquantized()).tolist()[:2] == [65504.0, -65504.0]


def test_a_given_scale_is_used_and_what_is_beyond_saturates():
    """TRN-006."""
    x = torch.tensor([[1000.0, -0.3, 100.0]])
    assert fake_quantize(x, Delayed("e4m3"), scale=0.5).tolist() == [[896.0, -0.3125, 96.0]]


def test_the_gradient_goes_straight_through():
    """TRN-004."""
    x = tensor(5, 8, 16).requires_grad_()
    weights = tensor(6, 8, 16)
    (fake_quantize(x, "mor_tensor") * weights).sum().backward()
    assert torch.equal(x.grad, weights)


def statistics_of(x, tensor_recipe, axis="row"):
    y, found = torch.ops.mor_ref.fake_quantize(x, tensor_recipe.text, axis)
    return y, dict(zip(tensor_recipe.statistics, found.tolist(), strict=True))


def test_statistics_are_the_sums_of_mor():
    x = tensor(7, 32, 32, dtype="bfloat16")
    _, found = statistics_of(x, Mor("three_way", (8, 8)))
    result = mor_ref.mor(x, "three_way", block=(8, 8))
    ends = [np.float32(float(x.abs().max())), np.float32(float(x[x != 0].abs().min()))]
    assert [found["amax"], found["amin"]] == [int(end.view(np.uint32)) for end in ends]
    assert found["units"] == result.choice.size == 16
    for k, name in enumerate(result.ladder):
        assert found[f"choice {name}"] == np.count_nonzero(result.choice == k)
    for name, error in result.error.items():
        assert found[f"sum {name}"] == error.sum.sum()
        assert found[f"nonzero {name}"] == error.nonzero.sum()
        assert found[f"nonfinite {name}"] == error.nonfinite.sum() == 0


@pytest.mark.parametrize("shape", [(), (0,), (0, 4), (5,), (2, 0, 3), (1, 1)])
def test_shapes_of_all_kinds(shape):
    x = torch.ones(shape)
    for tensor_recipe in (
        Mor("tensor", "tensor"),
        Mx(),
        Nvfp4(),
        Nvfp4(rounding="sr"),
        Unquantized(),
    ):
        for axis in ("row", "column"):
            y, found = statistics_of(x, tensor_recipe, axis)
            assert y.shape == x.shape
            assert len(found) == len(tensor_recipe.statistics)


def test_a_view_is_quantized_as_its_copy():
    x = tensor(8, 16, 40)
    for view in (x.T, x[::2, 3:], x.expand(2, 16, 40)):
        y = fake_quantize(view, "mxfp8:rceil")
        assert torch.equal(y, fake_quantize(view.contiguous(), "mxfp8:rceil"))
        assert y.is_contiguous()


@pytest.mark.tier("full")
@pytest.mark.parametrize("kind", ["mor", "delayed", "mx", "nvfp4", "unquantized"])
def test_opcheck_passes(kind):
    tensor_recipe = {
        "mor": Mor,
        "delayed": Delayed,
        "mx": Mx,
        "nvfp4": Nvfp4,
        "unquantized": Unquantized,
    }
    text = tensor_recipe[kind]().text
    for x in (tensor(9, 8, 32).requires_grad_(), tensor(9, 3, 8, dtype="bfloat16").T):
        torch.library.opcheck(
            torch.ops.mor_ref.fake_quantize, (x, text, "column", 2.0, [1, 2, 3, 4, 5])
        )


@pytest.mark.parametrize("name", ["mor_block", "fp8_current", "mxfp8:rceil"])
def test_torch_compile_makes_one_graph(name):
    torch._dynamo.reset()
    x = tensor(10, 24, 64).requires_grad_()
    program = lambda x: fake_quantize(x * 2, name) + 1  # noqa: E731
    expected = program(x)
    found = torch.compile(program, backend="aot_eager", fullgraph=True)(x)
    assert torch.equal(found, expected)
    found.sum().backward()
    assert torch.equal(x.grad, torch.full_like(x, 2.0))


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # torch calls it itself
def test_tangents_go_straight_through():
    """TRN-004: in forward mode; torch has no formula of an operator for it."""
    x, tangent = tensor(13, 4, 16), tensor(14, 4, 16)
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        found = forward.unpack_dual(fake_quantize(3 * forward.make_dual(x, tangent), "mor_tensor"))
    assert torch.equal(found.primal, fake_quantize(3 * x, "mor_tensor"))
    assert torch.equal(found.tangent, 3 * tangent)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            torch.vmap(lambda row: fake_quantize(row, "mor_tensor")) if torch else None,
            "under torch.vmap, .*; ",
        ),
        (
            lambda x: fake_quantize(x.double(), "mor_tensor"),
            "x has dtype torch.float64; convert",
        ),
        (lambda x: fake_quantize(x, "mor_tenor"), "did you mean 'mor_tensor'"),
        (lambda x: fake_quantize(x, "nvfp4_random", axis="column"), "has a Hadamard transform"),
        (lambda x: fake_quantize(x, "mxfp8:rceil", axis="columns"), "axis is 'columns'"),
        (lambda x: fake_quantize(x, "mxfp8:rceil", operand="inputs"), "operand is 'inputs'"),
    ],
)
def test_what_cannot_be_quantized_is_refused(call, message):
    with pytest.raises((RuntimeError, TypeError, ValueError), match=message):
        call(tensor(11, 4, 16))


def test_all_recipes_quantize():
    x = tensor(12, 18, 34)
    for name in recipes:
        assert fake_quantize(x, name).shape == x.shape


def test_a_small_tensor_costs_few_calls():
    """The work of Python is most of the cost; it is counted, as a time depends on the machine."""
    x = tensor(1, 64, 256, dtype="bfloat16")
    for _ in range(3):  # which fill caches
        fake_quantize(x, "mor_tensor")
    profile = cProfile.Profile()
    profile.runcall(fake_quantize, x, "mor_tensor")
    assert 50 < pstats.Stats(profile).total_calls < 320


def test_a_policy_that_takes_the_name_of_another_is_used():
    """Partitions are remembered, but no policy."""
    x, found = tensor(1, 8, 64), []
    for fmt in ("e4m3", "e5m2"):
        policy = Policy("mine", (Rung(fmt, MeanRelativeError(1)),))
        POLICIES["mine"] = policy
        try:
            found.append(fake_quantize(x, Mor("mine", "tensor")))
        finally:
            del POLICIES["mine"]
        expected = mor_ref.mor(x.numpy(), policy, block="tensor").output
        assert torch.equal(found[-1], as_torch(expected, "float32"))
    assert not torch.equal(*found)


@pytest.mark.parametrize(
    ("recipe", "scale", "message"),
    [
        ("fp8_delayed", 0.0, "scale is 0.0; give a number above 0"),
        ("fp8_delayed", float("nan"), "scale is nan; give a number above 0"),
        ("fp8_delayed", float("inf"), "scale is inf; give a number above 0"),
        ("mor_tensor", 2.0, "scale is 2.0, but the recipe finds its own; omit scale"),
    ],
)
def test_a_scale_that_means_nothing_is_refused(recipe, scale, message):
    with pytest.raises(ValueError, match=message):
        fake_quantize(torch.ones(2, 16), recipe, scale=scale)
