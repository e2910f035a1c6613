"""Converted linear layers: a step equals, bit for bit, the same step written out."""

import ml_dtypes
import numpy as np
import pytest
from extras import imported, is_there, needs

import mor_ref
from mor_ref.exact.training import Purpose, random_word

pytestmark = needs("torch")
torch = imported("torch") if is_there("torch") else None
if torch:
    from torch import nn

    import mor_ref.torch
    from mor_ref.torch import advance, convert, observe, recipes, revert
NAMES = ("bf16", "mor_tensor", "mor_channel", "mor_block", "mor_two_way", "mor_three_way",
         "fp8_current", "fp8_delayed", "fp8_lm", "nvfp4_2d", "nvfp4_random", "nvfp4_te",
         "mxfp8:rceil")  # fmt: skip
NAME, SEED = "one.of.them", 7
AT_RANDOM = "nvfp4_random", "nvfp4_te"
# As in get_wgrad_sign_vector of Transformer Engine's reference.
TE_SIGNS = (1, 1, 1, -1, 1, -1, -1, -1, -1, -1, -1, 1, -1, 1, -1, -1)
ROWS, INPUTS, OUTPUTS = 24, 32, 48
USES = {"input": 0, "weight": 2, "grad_output": 4}


class Step:
    """A forward and a backward pass of y = x @ w.T, from the public functions and torch.matmul."""

    def __init__(self, recipe, step=0, scales=None):
        self.recipe, self.step, self.scales = recipe, step, scales

    def quantized(self, x, operand, axis):
        """Quantize a bfloat16 matrix of torch, as the specification says (TRN-003)."""
        if axis == "column":
            return self.by_row(x.T.contiguous(), operand, "column").T
        return self.by_row(x, operand, "row")

    def by_row(self, x, operand, axis):
        recipe, e5m2 = self.recipe, "e5m2" if operand == "grad_output" else "e4m3"
        bf16 = ml_dtypes.bfloat16
        if recipe == "bf16":
            return x
        if recipe.startswith("mor"):
            policy = {"mor_two_way": "two_way", "mor_three_way": "three_way"}.get(recipe, "tensor")
            blocks = {"mor_tensor": "tensor", "mor_channel": "row"}
            block = blocks.get(recipe, (128, 128))
            y = mor_ref.mor(x, policy, block=block).output
        elif recipe == "fp8_current":
            y = mor_ref.quantize(x, e5m2, scaling="fp32").dequantize(bf16)
        elif recipe in ("fp8_delayed", "fp8_lm"):
            scale = np.float32(self.scales[operand])
            xs = x.float().numpy() * scale
            y = mor_ref.decode(mor_ref.encode(xs, e5m2), e5m2) / scale
            y = mor_ref.encode(y, "bf16", overflow="ieee")
        elif recipe == "mxfp8:rceil":
            y = mor_ref.quantize_mx(x, "e4m3", scale_rule="rceil").dequantize(bf16)
        elif recipe in AT_RANDOM and operand == "grad_output":
            y = self.at_random(x, USES[operand] + (axis == "column"))
        else:
            tile = (16, 16) if operand == "weight" else (1, 16)
            y = mor_ref.quantize_nvfp4(x, tile=tile).dequantize(bf16)
        return torch.from_numpy(np.ascontiguousarray(y).view(np.int16).copy()).view(torch.bfloat16)

    def purpose(self, use):
        number = int.from_bytes(__import__("hashlib").sha256(NAME.encode()).digest()[:8], "big")
        return Purpose(SEED, self.step, 0, number >> 1, use)

    def at_random(self, x, use):
        """Quantize by NVFP4 under sr, with the scales of the public function (TRN-007, TRN-008)."""
        found = mor_ref.quantize_nvfp4(x)
        columns = x.shape[1]
        decode = mor_ref.decode(found.block_scale, "e4m3") * found.global_decode_scale
        encode = np.minimum(np.float32(1) / decode, np.finfo(np.float32).max)
        encode, decode = (s.repeat(16, 1)[:, :columns] for s in (encode, decode))
        words = [random_word(self.purpose(use), k) for k in range(x.numel())]
        codes = mor_ref.encode(
            x.float().numpy() * encode, "e2m1", rounding="sr", n_random_bits=32,
            random_bits=np.array(words, np.uint32).reshape(x.shape),
        )  # fmt: skip
        return mor_ref.encode(mor_ref.decode(codes, "e2m1") * decode, "bf16")

    def transformed(self, x):
        """Return a matrix whose columns are transformed (TRN-009)."""
        from mor_ref.exact.training import hadamard, signs

        own = TE_SIGNS if self.recipe == "nvfp4_te" else signs(self.purpose(6))
        columns = torch.nn.functional.pad(x, (0, 0, 0, -x.shape[0] % 16)).T.float().tolist()
        codes = [
            [code for k in range(0, len(column), 16) for code in hadamard(column[k : k + 16], own)]
            for column in columns
        ]
        found = torch.from_numpy(np.array(codes, np.uint16).view(np.int16)).view(torch.bfloat16)
        return found.T.contiguous()

    def __call__(self, x, w, g):
        once = self.recipe not in ("mor_channel", "mxfp8:rceil", "nvfp4_2d", *AT_RANDOM)
        once_weight = once or self.recipe.startswith("nvfp4")
        x, w, g = (t.to(torch.bfloat16) for t in (x, w, g))
        xr, wr = self.quantized(x, "input", "row"), self.quantized(w, "weight", "row")
        gr = self.quantized(g, "grad_output", "row")
        wc = wr if once_weight else self.quantized(w, "weight", "column")
        gc, xc = gr, xr
        if not once:
            if self.recipe in AT_RANDOM:
                x, g = self.transformed(x), self.transformed(g)
            xc, gc = (
                self.quantized(x, "input", "column"),
                self.quantized(g, "grad_output", "column"),
            )
        # As the layer has them in memory: on some processors, torch adds up others otherwise.
        xr, wr, gr, wc, gc, xc = (t.contiguous() for t in (xr, wr, gr, wc, gc, xc))
        return xr @ wr.T, gr @ wc, gc.T @ xc


def model(recipe, bias=False):
    torch.manual_seed(3)
    inner = nn.ModuleDict({"them": nn.Linear(INPUTS, OUTPUTS, bias=bias)})
    whole = nn.ModuleDict({"one": nn.ModuleDict({"of": inner})})
    assert convert(whole, recipe, seed=SEED) == (NAME,)
    return whole, inner["them"]


def numbers(seed, rows, columns):
    generator = torch.Generator().manual_seed(seed)
    spread = 2.0 ** torch.randint(-8, 8, (rows, columns), generator=generator)
    return torch.randn(rows, columns, generator=generator) * spread


def same(a, b):
    return torch.equal(a.float(), b.float())


@pytest.mark.parametrize(
    "recipe", [name for name in NAMES if name not in ("fp8_delayed", "fp8_lm")]
)
def test_a_step_is_the_same_step_written_out(recipe):
    """TRN-001, TRN-002, TRN-003, TRN-007, TRN-008 and TRN-009, in two steps."""
    whole, layer = model(recipe)
    for step in range(2):
        x, g = numbers(step, ROWS, INPUTS).requires_grad_(), numbers(step + 5, ROWS, OUTPUTS)
        layer.weight.grad = None
        y = layer(x)
        y.backward(g)
        expected = Step(recipe, step)(x.detach(), layer.weight.detach(), g)
        for found, wanted in zip((y, x.grad, layer.weight.grad), expected, strict=True):
            assert found.dtype == torch.float32
            assert same(found, wanted)
        advance(whole)


@pytest.mark.parametrize("recipe", ["fp8_delayed", "fp8_lm"])
def test_a_step_with_delayed_scales_is_the_same_step_written_out(recipe):
    """TRN-005 and TRN-006: the first step has the scale 1, the next have that of the largest."""
    from mor_ref.exact.training import delayed_scale

    whole, layer = model(recipe)
    scales = dict.fromkeys(USES, 1.0)
    amaxes = {operand: [] for operand in USES}
    for step in range(4):
        x, g = (
            (numbers(step, ROWS, INPUTS) * 2.0**-step).requires_grad_(),
            numbers(9 + step, ROWS, OUTPUTS),
        )
        layer.weight.grad = None
        y = layer(x)
        y.backward(g)
        w = layer.weight.detach().clone()
        expected = Step(recipe, step, scales)(x.detach(), w, g)
        for found, wanted in zip((y, x.grad, layer.weight.grad), expected, strict=True):
            assert same(found, wanted)
        for operand, tensor in (("input", x), ("weight", w), ("grad_output", g)):
            amaxes[operand].append(float(tensor.detach().to(torch.bfloat16).abs().max()))
            largest = 57344.0 if operand == "grad_output" else 448.0
            scales[operand] = delayed_scale(
                amaxes[operand], scales[operand], largest, 0, power_of_two=recipe == "fp8_lm"
            )
        advance(whole)
    assert all(scale != 1.0 for scale in scales.values()) or recipe == "fp8_lm"


@pytest.mark.parametrize("recipe", ["mor_tensor", "mxfp8:rceil", "fp8_delayed"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_autocast_decides_the_dtype_of_the_output_alone(recipe, dtype):
    _, layer = model(recipe, bias=True)
    x = numbers(1, ROWS, INPUTS)
    plain = layer(x) - layer.bias
    with torch.autocast("cpu", dtype=getattr(torch, dtype)):
        y = layer(x)
    wanted = (plain * 0 + 1) * 0  # of the shape
    assert y.dtype == getattr(torch, dtype)
    assert wanted.shape == y.shape
    product = (
        Step(recipe, scales=dict.fromkeys(USES, 1.0)).quantized(
            x.to(torch.bfloat16), "input", "row"
        )
        @ Step(recipe, scales=dict.fromkeys(USES, 1.0))
        .quantized(layer.weight.detach().to(torch.bfloat16), "weight", "row")
        .T
    )
    assert torch.equal(y, product.to(y.dtype) + layer.bias.to(y.dtype))


def test_leading_axes_are_rows_and_a_bias_has_its_own_gradient():
    _, layer = model("mor_channel", bias=True)
    x, g = numbers(1, ROWS, INPUTS), numbers(2, ROWS, OUTPUTS)
    flat = layer(x)
    flat.backward(g)
    found = [parameter.grad.clone() for parameter in layer.parameters()]
    layer.zero_grad()
    deep = layer(x.reshape(2, 3, 4, INPUTS))
    deep.backward(g.reshape(2, 3, 4, OUTPUTS))
    assert torch.equal(deep.reshape(ROWS, OUTPUTS), flat)
    assert all(map(torch.equal, found, (p.grad for p in layer.parameters())))
    assert torch.equal(layer.bias.grad, g.sum(0))


@pytest.mark.parametrize("recipe", ["mor_block", "fp8_current", "nvfp4_random", "fp8_delayed"])
@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_infinities_and_nan_reach_the_gradients(recipe, value):
    """TRN-003: a loss scaler looks for them."""
    _, layer = model(recipe)
    g = numbers(2, ROWS, OUTPUTS)
    g[3, 4] = value
    x = numbers(1, ROWS, INPUTS).requires_grad_()
    layer(x).backward(g)
    assert not layer.weight.grad[4].isfinite().any()
    assert not x.grad[3].isfinite().all()


@pytest.mark.parametrize("recipe", ["mor_tensor", "mor_channel", "nvfp4_random"])
def test_only_what_needs_a_gradient_has_one(recipe):
    for frozen in ("weight", "input"):
        _, layer = model(recipe)
        x = numbers(1, ROWS, INPUTS).requires_grad_(frozen != "input")
        layer.weight.requires_grad_(frozen != "weight")
        layer(x).backward(numbers(2, ROWS, OUTPUTS))
        assert (x.grad is None) == (frozen == "input")
        assert (layer.weight.grad is None) == (frozen == "weight")


def test_vmap_is_refused():
    _, layer = model("mor_tensor")
    with pytest.raises(RuntimeError, match="under torch.vmap .*; call the layer"):
        torch.vmap(layer)(numbers(1, 4 * ROWS, INPUTS).reshape(4, ROWS, INPUTS))


# Both warnings are torch's own.
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")
@pytest.mark.tier("full", but=["[mor_tensor]"])
@pytest.mark.parametrize("recipe", NAMES)
def test_torch_compile_gives_the_same_bits(recipe):
    """In one graph, unless the recipe has a state."""
    torch._dynamo.reset()
    x, g = numbers(1, ROWS, INPUTS), numbers(2, ROWS, OUTPUTS)
    _, layer = model(recipe)
    layer(x).backward(g)
    _, again = model(recipe)
    fullgraph = not recipes[recipe].has_state
    assert fullgraph == (recipe not in ("fp8_delayed", "fp8_lm", *AT_RANDOM))
    compiled = torch.compile(again, backend="aot_eager", fullgraph=fullgraph)
    compiled(x).backward(g)
    assert torch.equal(again.weight.grad, layer.weight.grad)
    assert torch.equal(compiled(x), layer(x))


def test_an_observer_sees_each_quantization():
    whole, layer = model("mor_channel")
    seen = []
    with observe(whole, seen.append):
        layer(numbers(1, ROWS, INPUTS).requires_grad_()).backward(numbers(2, ROWS, OUTPUTS))
    layer(numbers(1, ROWS, INPUTS))
    assert [(one.layer, one.operand, one.axis) for one in seen] == [
        (NAME, "input", "row"), (NAME, "weight", "row"), (NAME, "grad_output", "row"),
        (NAME, "weight", "column"), (NAME, "grad_output", "column"), (NAME, "input", "column"),
    ]  # fmt: skip
    for one in seen:
        assert one.statistics.dtype == torch.int64
        assert len(one.statistics) == len(one.tensor_recipe.statistics)
        assert not one.is_recomputed
    assert revert(whole) is None


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (
            torch and torch.ones(ROWS, INPUTS, dtype=torch.int64),
            "x has dtype torch.int64; convert it yourself and give",
        ),
        (
            torch and torch.ones(ROWS, INPUTS, dtype=torch.float64),
            "x has dtype torch.float64; convert it yourself and give",
        ),
        (
            torch and torch.ones(ROWS, INPUTS, dtype=torch.float16),
            "x has dtype torch.float16 and the weight of .* has torch.float32; convert one",
        ),
    ],
)
def test_no_dtype_is_changed_unseen(x, message):
    _, layer = model("bf16")
    with pytest.raises(TypeError, match=message):
        layer(x)
    if x.dtype == torch.float16:
        with torch.autocast("cpu", torch.bfloat16):
            assert layer(x).dtype == torch.bfloat16
