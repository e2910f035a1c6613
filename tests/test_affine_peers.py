"""Integers with zero points next to the libraries of the profiles: a million near ties each."""

import warnings

import ml_dtypes
import numpy as np
import pytest
from affine_inputs import near_ties, quantized
from extras import imported, needs

COUNT = 1_000_000
SPECIAL = np.array([np.nan, np.inf, -np.inf, 3e38, -3e38, 0, -0.0, 1e-45, 2147483520], np.float32)
GRIDS = {
    "int8": (-128, 127), "uint8": (0, 255), "int4": (-8, 7), "int16": (-32768, 32767),
    "uint16": (0, 65535),
}  # fmt: skip
SCALES = (0.0129999, 1.0, 3.3e-5, 2.0**-126, 1e30, 7.7)


def bits(y):
    """Return binary32 bits; every NaN is the canonical one."""
    y = np.ascontiguousarray(y, np.float32)
    return np.where(np.isnan(y), np.uint32(0x7FFFFFFF), y.view(np.uint32))


def same(found, expected):
    np.testing.assert_array_equal(bits(found), bits(expected))


def cases(grids=GRIDS, each=COUNT):
    """Yield grids with numbers near ties, scales and zero points: so many numbers for each grid."""
    random = np.random.default_rng(3)
    for grid in grids:
        low, high = GRIDS[grid]
        for seed, scale in enumerate(SCALES):
            zero = int(random.integers(low, high + 1)) if seed else 0
            x = near_ties(seed, each // len(SCALES) + 1, np.float32(scale), high)
            x[: SPECIAL.size] = x[-SPECIAL.size :] = SPECIAL
            yield grid, x, np.float32(scale), zero


@needs("torch")
def test_torch_fake_quantizes_tensors():
    """AFF-007 to AFF-009: torch.fake_quantize_per_tensor_affine."""
    import torch

    for grid, x, scale, zero in cases():
        found = quantized(x, grid, scale=scale, zero_point=zero)
        given = torch.from_numpy(x), float(scale), zero, *GRIDS[grid]
        same(found.y, torch.fake_quantize_per_tensor_affine(*given).numpy())


@needs("torch")
@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16])
def test_torch_fake_quantizes_narrow_tensors(dtype):
    """AFF-009: y is rounded to the dtype of x, and nothing else is."""
    import torch

    of = {ml_dtypes.bfloat16: torch.bfloat16, np.float16: torch.float16}[dtype]
    x = near_ties(1, COUNT, np.float32(0.0129999), 127, dtype)
    found = quantized(x, scale=np.float32(0.0129999), zero_point=-3)
    wide = torch.from_numpy(x.astype(np.float32)).to(of)
    expected = torch.fake_quantize_per_tensor_affine(
        wide, float(np.float32(0.0129999)), -3, -128, 127
    )
    same(found.y, expected.float().numpy())


@needs("torch")
def test_torch_fake_quantizes_channels():
    """AFF-007 to AFF-009: torch.fake_quantize_per_channel_affine."""
    import torch

    random = np.random.default_rng(9)
    for grid, (low, high) in GRIDS.items():
        scale = np.exp2(random.uniform(-20, 20, 50)).astype(np.float32)
        zero = random.integers(low, high + 1, 50).astype(np.int32)
        rows = [near_ties(k, COUNT // 50, s, high) for k, s in enumerate(scale)]
        x = np.stack(rows)
        x[:, : SPECIAL.size] = SPECIAL
        how = {"profile": "torch_fake_channel_2_13", "block": "row"}
        found = quantized(x, grid, scale=scale, zero_point=zero, **how)
        given = (torch.from_numpy(v) for v in (x, scale, zero))
        same(found.y, torch.fake_quantize_per_channel_affine(*given, 0, low, high).numpy())


@needs("torch")
def test_torch_fake_quantizes_channels_with_float_zero_points():
    """AFF-012: torch.fake_quantize_per_channel_affine with zero points of binary32."""
    import torch

    random = np.random.default_rng(12)
    for grid, (low, high) in GRIDS.items():
        scale = np.exp2(random.uniform(-20, 20, 50)).astype(np.float32)
        zero = random.uniform(low, high, 50).astype(np.float32)
        ties = random.integers(low - 9, high + 9, (50, COUNT // 50)) + 0.5
        x = ((ties - zero[:, None].astype(np.float64)) * scale[:, None]).astype(np.float32)
        x = (x.view(np.int32) + random.integers(-3, 4, x.shape).astype(np.int32)).view(np.float32)
        x[:, : SPECIAL.size] = SPECIAL
        how = {"profile": "torch_fake_channel_2_13", "block": "row"}
        found = quantized(x, grid, scale=scale, zero_point=zero, **how)
        given = (torch.from_numpy(v) for v in (x, scale, zero))
        same(found.y, torch.fake_quantize_per_channel_affine(*given, 0, low, high).numpy())


@needs("torch")
def test_torch_quantizes_tensors():
    """AFF-007 to AFF-009: torch.quantize_per_tensor and the way back, of fbgemm on x86."""
    import torch

    if "x86" not in torch.backends.quantized.supported_engines:
        pytest.skip("torch has no fbgemm here")
    for grid, x, scale, zero in cases(("int8", "uint8")):
        found = quantized(x, grid, profile="torch_quantize", scale=scale, zero_point=zero)
        dtype = {"int8": torch.qint8, "uint8": torch.quint8}[grid]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            q = torch.quantize_per_tensor(torch.from_numpy(x), float(scale), zero, dtype)
        np.testing.assert_array_equal(found.codes, q.int_repr().numpy())
        same(found.y, q.dequantize().numpy())


@needs("torch")
@pytest.mark.parametrize("axis", [0, 1])
def test_torch_quantizes_channels(axis):
    """AFF-007 to AFF-009: torch.quantize_per_channel and the way back, of fbgemm on x86."""
    import torch

    if "x86" not in torch.backends.quantized.supported_engines:
        pytest.skip("torch has no fbgemm here")
    random, block = np.random.default_rng(5), ("row", "column")[axis]
    for grid, dtype in (("int8", torch.qint8), ("uint8", torch.quint8)):
        low, high = GRIDS[grid]
        scale = np.exp2(random.uniform(-20, 10, 50)).astype(np.float32)
        zero = random.integers(low, high + 1, 50).astype(np.int32)
        x = np.stack([near_ties(k, COUNT // 50, s, high) for k, s in enumerate(scale)])
        x[:, : SPECIAL.size] = SPECIAL
        x, sides = (x, (50, 1)) if axis == 0 else (np.ascontiguousarray(x.T), (1, 50))
        how = {"profile": "torch_quantize_channel", "block": block}
        given = {"scale": scale.reshape(sides), "zero_point": zero.reshape(sides)}
        found = quantized(x, grid, **given, **how)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            q = torch.quantize_per_channel(*map(torch.from_numpy, (x, scale, zero)), axis, dtype)
        np.testing.assert_array_equal(found.codes, q.int_repr().numpy())
        same(found.y, q.dequantize().numpy())


def tensors(seed, count=300, columns=24):
    """Return rows of many magnitudes: negative, positive, mixed, zeros and subnormal ones."""
    random = np.random.default_rng(seed)
    x = random.standard_normal((count, columns)) * np.exp2(random.integers(-30, 30, (count, 1)))
    x[: count // 4], x[count // 4 : count // 2] = abs(x[: count // 4]), -abs(x[: count // 4])
    x[-1], x[-2], x[-3] = 0, 1e-40, -1e-42
    return x.astype(np.float32)


@needs("torch")
@pytest.mark.parametrize("symmetric", [True, False])
def test_the_observers_of_torch(symmetric):
    """AFF-003 to AFF-005: scales and zero points of every width."""
    import torch
    from torch.ao.quantization import PerChannelMinMaxObserver

    x = tensors(1)
    schemes = torch.per_channel_symmetric, torch.per_channel_affine
    for bits_ in range(2, 9):
        for name, dtype in (("int", torch.qint8), ("uint", torch.quint8)):
            grid = f"{name if name == 'int' else 'uint'}{bits_}"
            found = quantized(x, grid, block="row", symmetric=symmetric)
            low = -(1 << bits_ - 1) if name == "int" else 0
            own = {} if bits_ == 8 else {"quant_min": low, "quant_max": low + (1 << bits_) - 1}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                observer = PerChannelMinMaxObserver(0, dtype, schemes[not symmetric], **own)
            observer(torch.from_numpy(x))
            scale, zero = observer.calculate_qparams()
            same(found.scale[:, 0], scale.numpy())
            np.testing.assert_array_equal(found.zero_point[:, 0], zero.numpy(), err_msg=grid)


@pytest.mark.tier("full")
@needs("torch", "torchao")
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.float16])
@pytest.mark.parametrize("symmetric", [True, False])
def test_torchao(symmetric, dtype):
    """AFF-002 to AFF-009: choose_qparams_affine, quantize_affine and dequantize_affine."""
    import torch

    ao = imported("torchao.quantization.quant_primitives")
    of = {np.float32: torch.float32, np.float16: torch.float16}.get(dtype, torch.bfloat16)
    mapping = ao.MappingType.SYMMETRIC if symmetric else ao.MappingType.ASYMMETRIC
    with np.errstate(all="ignore"):
        x = np.concatenate([tensors(2), near_rows(COUNT // 24)]).astype(dtype)
    x = x[np.isfinite(x.astype(np.float32)).all(axis=1)]
    t = torch.from_numpy(x.astype(np.float32)).to(of)
    for grid in ("int8", "uint8", "int4"):
        low, high = GRIDS[grid]
        found = quantized(x, grid, profile="torchao_0_18", block="row", symmetric=symmetric)
        target = torch.uint8 if grid == "uint8" else torch.int8
        scale, zero = ao.choose_qparams_affine(t, mapping, (1, 24), target, low, high)
        q = ao.quantize_affine(t, (1, 24), scale, zero, target, low, high)
        back = {"quant_min": low, "quant_max": high, "output_dtype": of}
        y = ao.dequantize_affine(q, (1, 24), scale, zero, target, **back)
        same(found.scale[:, 0], scale.float().numpy())
        np.testing.assert_array_equal(found.zero_point[:, 0], zero.numpy())
        np.testing.assert_array_equal(found.codes, q.numpy())
        same(found.y, y.float().numpy())


def near_rows(rows, columns=24, steps=127.5):
    """Return rows whose numbers are near ties of their own scales."""
    random = np.random.default_rng(7)
    amax = np.exp2(random.uniform(-10, 10, (rows, 1))).astype(np.float32)
    x = near_ties(8, rows * columns, 1.0, 100).reshape(rows, columns) * (amax / np.float32(steps))
    x[:, :1] = amax * random.choice([-1, 1], (rows, 1))
    return x


ONNX_GRIDS = {"int8": np.int8, "uint8": np.uint8, "int16": np.int16, "uint16": np.uint16}


def onnx_model(operators, kinds):
    """Return a model of operators in a row; `kinds` are those of its inputs and its outputs."""
    onnx = imported("onnx")
    of = {
        "float": onnx.TensorProto.FLOAT,
        "float16": onnx.TensorProto.FLOAT16,
        **{n: getattr(onnx.TensorProto, n.upper()) for n in ONNX_GRIDS},
    }
    info = onnx.helper.make_tensor_value_info
    values = [info(n, of[k], ["n"] if n in ("x", "c", "y") else []) for n, k in kinds.items()]
    nodes = [onnx.helper.make_node(op, i, o) for op, i, o in operators]
    inputs = {n for _, given, _ in operators for n in given}
    outputs = {n for _, _, made in operators for n in made}
    graph = onnx.helper.make_graph(
        nodes, "g",
        [v for v in values if v.name in inputs - outputs],
        [v for v in values if v.name in outputs],
    )  # fmt: skip
    opsets = [onnx.helper.make_opsetid("", 21)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10)


def by_reference(model, given):
    """Return the results of the reference evaluator of onnx."""
    with np.errstate(all="ignore"):
        return imported("onnx.reference").ReferenceEvaluator(model).run(None, given)


def by_runtime(model, given):
    """Return the results of ONNX Runtime on one thread."""
    runtime = imported("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = runtime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, given)


RUN = {"onnx": by_reference, "onnxruntime": by_runtime}
OPERATORS = [
    ("QuantizeLinear", ["x", "s", "z"], ["c"]), ("DequantizeLinear", ["c", "s", "z"], ["y"]),
]  # fmt: skip


@pytest.mark.tier("full", but=["[onnx]"])
@needs("onnx", "onnxruntime")
@pytest.mark.parametrize("profile", RUN)
def test_onnx(profile):
    """AFF-007 to AFF-009: QuantizeLinear and DequantizeLinear."""
    for grid, x, scale, zero in cases(ONNX_GRIDS):
        kinds = {"x": "float", "s": "float", "z": grid, "c": grid, "y": "float"}
        given = {"x": x, "s": np.array(scale), "z": np.array(zero, ONNX_GRIDS[grid])}
        codes, y = RUN[profile](onnx_model(OPERATORS, kinds), given)
        found = quantized(x, grid, profile=profile, scale=scale, zero_point=zero)
        np.testing.assert_array_equal(found.codes, codes, err_msg=f"{grid} {scale} {zero}")
        same(found.y, y)


@pytest.mark.tier("full")
@needs("onnx", "onnxruntime")
def test_onnx_in_binary16():
    """AFF-002: ONNX Runtime divides binary16 in binary32; onnx's reference does not."""
    scale, zero = np.float16(0.0129999), np.int8(3)
    x = near_ties(4, 300_000, np.float32(0.0129999), 127, np.float16)
    model = onnx_model(OPERATORS[:1], {"x": "float16", "s": "float16", "z": "int8", "c": "int8"})
    found = quantized(x, profile="onnx", scale=float(scale), zero_point=3).codes
    given = {"x": x, "s": np.array(scale), "z": np.array(zero)}
    np.testing.assert_array_equal(found, by_runtime(model, given)[0])
    assert np.count_nonzero(found != by_reference(model, given)[0]) == 11_664


@needs("onnx", "onnxruntime")
@pytest.mark.parametrize("profile", RUN)
def test_dynamic_quantize_linear_of_onnx(profile):
    """AFF-004, AFF-005: uint8 without symmetry; zeros have the scale 1/255, or 1."""
    operator = [("DynamicQuantizeLinear", ["x"], ["c", "s", "z"])]
    model = onnx_model(operator, {"x": "float", "c": "uint8", "s": "float", "z": "uint8"})
    for row in [*tensors(4), near_rows(1, COUNT, 255 / 2)[0]]:
        codes, scale, zero = RUN[profile](model, {"x": row})
        found = quantized(row, "uint8", profile=profile, symmetric=False)
        assert (found.scale[0, 0], found.zero_point[0, 0]) == (scale, zero)
        np.testing.assert_array_equal(found.codes, codes)


@needs("torch", "bitsandbytes")
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.float16])
def test_bitsandbytes(dtype):
    """AFF-004, AFF-007 to AFF-009: int8_vectorwise_quant and int8_vectorwise_dequant."""
    import torch

    imported("bitsandbytes")
    of = {np.float32: torch.float32, np.float16: torch.float16}.get(dtype, torch.bfloat16)
    with np.errstate(all="ignore"):
        x = np.concatenate([tensors(5), near_rows(COUNT // 24, steps=127)]).astype(dtype)
    x[1, 3], x[2, 3], x[3, 3] = np.nan, np.inf, -np.inf
    t = torch.from_numpy(x.astype(np.float32)).to(of)
    codes, scale, _ = torch.ops.bitsandbytes.int8_vectorwise_quant(t.clone())
    found = quantized(x, profile="bnb_int8_row")
    np.testing.assert_array_equal(found.codes, codes.numpy())
    same(found.scale[:, 0], scale.numpy())
    if dtype == np.float32:
        same(found.y, torch.ops.bitsandbytes.int8_vectorwise_dequant(codes, scale).numpy())


def by_switchback(x, whole):
    """Return codes as the kernels of SwitchBack compute them, of rows or of a tensor."""
    amax = np.abs(x).max(axis=None if whole else 1, keepdims=True)
    with np.errstate(all="ignore"):
        ratio = x * (np.float32(1) / amax) if whole else x / amax
        found = np.rint(np.float32(127) * ratio)
    return np.where(np.isfinite(found), found, 0).astype(np.int8)


@pytest.mark.parametrize("whole", [False, True])
def test_the_operations_of_switchback(whole):
    """AFF-007: a division, or a reciprocal, before the factor 127."""
    x = np.concatenate([tensors(5), near_rows(COUNT // 24, steps=127)])
    for part in [x] if not whole else [x, *np.array_split(x, 40)]:
        found = quantized(part, profile="switchback_tensor" if whole else "switchback_row")
        np.testing.assert_array_equal(found.codes, by_switchback(part, whole))


def by_peg(x, bits_, groups, symmetric):
    """Return codes and y by the operations of the authors' quantizers in torch."""
    import torch

    t = torch.from_numpy(x)
    order = torch.argsort(t.max(0)[0] - t.min(0)[0], stable=True)
    cut = t[:, order].reshape(t.shape[0], groups, -1)
    low = torch.minimum(cut.amin((0, 2)), torch.zeros(()))
    high = torch.maximum(cut.amax((0, 2)), torch.ones(()) * 1e-8)
    signed = bool(low.min() < 0)
    first, last = 0.0, 2.0**bits_ - 1
    if symmetric and signed:
        first, last = -(2.0 ** (bits_ - 1)), 2.0 ** (bits_ - 1) - 1
    delta = (torch.maximum(low.abs(), high) if symmetric else high - low) / last
    scale = torch.clamp(delta, min=1e-8)[:, None]
    zero = (
        torch.zeros(()) if symmetric else torch.clamp(torch.round(-low / delta), 0, last)[:, None]
    )
    codes = torch.clamp(torch.round(cut / scale) + zero, first, last)
    y = scale * (codes - zero)
    found = [torch.empty_like(t), torch.empty_like(t)]
    for made, part in zip(found, (codes, y), strict=True):
        made[:, order] = part.reshape(t.shape)
    return [f.numpy() for f in found]


@pytest.mark.tier("full", but=["[8-False]"])
@needs("torch")
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("bits_", [4, 8])
def test_the_operations_of_peg(bits_, symmetric):
    """AFF-003 to AFF-010: permuted groups, on a million numbers."""
    random = np.random.default_rng(bits_)
    for factor in (1.0, 1e-9):
        spread = np.exp2(random.uniform(-6, 6, 768)).astype(np.float32)
        x = random.standard_normal((COUNT // 768, 768)).astype(np.float32) * spread
        x = (x * np.float32(factor)).astype(np.float32)
        for y in (x, abs(x)):
            how = {"profile": "peg", "groups": 6, "permute": "range", "symmetric": symmetric}
            found = quantized(y, f"uint{bits_}", **how)
            codes, back = by_peg(y, bits_, 6, symmetric)
            np.testing.assert_array_equal(found.codes, codes)
            same(found.y, np.where(back == 0, np.float32(0), back))
