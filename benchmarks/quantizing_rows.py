"""Quantization with scales, MoR, NVFP4 and MX."""

import functools

import numpy as np

import mor_ref
from benchmarks import block_peers, c_library, eager, inputs, peers
from benchmarks.rows import COPY, OURS, WITH_OUT, Contender, Difference, Memory, Ratio, Row
from mor_ref.analysis.analyze_tensor import analyze, settings_for

LARGE, USUAL, SMALL, FEW = 26, 24, 20, 14
CODES_AND_SCALES = "codes, scales"
# A block near the threshold may be accepted there and not here, or here and not there.
SUMS = Difference("sums and compares in floating point", 3 * 128 * 128, 0)
TILES = functools.partial(mor_ref.quantize, block=(128, 128), threads=1)
SIDE = eager.SIDE
BOUND_OF_MOR = (
    "two divisions for each number, the instructions around them, and the memory: the numbers are "
    "read twice, and three bytes for each are written to pages that the system clears first"
)
BOUND_OF_NVFP4 = (
    "the division of each error, and the largest number and the scale of each tile of sixteen"
)


def in_numpy(pipeline, bits, differs=None):
    """Return a contender: a pipeline of operations of NumPy on whole arrays."""
    return Contender(lambda x: lambda: pipeline(x), bits, differs=differs)


def in_torch(pipeline, bits, differs=None):
    """Return a contender: a pipeline of eager torch on the same memory."""

    def prepare(x):
        peers.torch()
        tensor = peers.as_tensor(x)
        return lambda: pipeline(tensor)

    return Contender(prepare, bits, differs=differs, needs="torch")


def untiled(codes):
    """Return the codes of tiles row by row; they have four axes before."""
    down, _, across, _ = codes.shape
    return codes.reshape(down * SIDE, across * SIDE)


def quantizing():
    """Yield rows of a format with GAM scales and error sums, and of the way back."""
    x = inputs.normal(USUAL, inputs.BF16)
    contenders = {
        OURS: Contender(lambda x: lambda: TILES(x, "e4m3"), lambda q: (q.codes,)),
        "NumPy with ml_dtypes": in_numpy(
            eager.numpy_quantize, lambda q: (untiled(q[0]).view(np.uint8),)
        ),
        "eager torch": in_torch(eager.torch_quantize, lambda q: (untiled(peers.codes_of(q[0])),)),
    }
    yield Row("quantize bf16 to e4m3, with error sums", x, contenders)
    few = {
        OURS: Contender(lambda x: lambda: TILES(x, "e4m3"), lambda q: (q.codes,)),
        c_library.NAME: c_library.quantizing(),
    }
    yield Row("quantize f32 to e4m3, with error sums, few", inputs.normal(SMALL), few)

    def quantize(x):
        return TILES(x, "e4m3")

    def prepare(found):
        return lambda: found.dequantize(threads=1)

    def prepare_with_out(found):
        room = np.empty(found.codes.shape, np.float32)
        return lambda: found.dequantize(out=room, threads=1)

    def prepare_peer(found):
        scale = peers.as_tensor(found.scale)[:, None, :, None]
        tiles = peers.as_tensor(found.codes.reshape(-1, SIDE, found.codes.shape[1] // SIDE, SIDE))
        codes = tiles.view(peers.torch().float8_e4m3fn)
        return lambda: codes.float() / scale

    back = {
        OURS: Contender(prepare, peers.with_one_nan, given=quantize),
        WITH_OUT: Contender(prepare_with_out, given=quantize),
        "eager torch": Contender(
            prepare_peer,
            lambda y: peers.with_one_nan(untiled(y.numpy())),
            needs="torch",
            given=quantize,
        ),
    }
    yield Row("dequantize e4m3 to f32", x, back, compared="numbers")


def mor_under(policy):
    """Return our contender."""
    return Contender(lambda x: lambda: mor_ref.mor(x, policy, threads=1), lambda m: (m.output,))


def mor_with_out(x):
    """Return a call that writes its output to room that exists already."""
    room = np.empty(x.shape, np.uint16)
    return lambda: mor_ref.mor(x, out=room, threads=1)


def by_tensor():
    """Yield the row of the policy `tensor`."""
    contenders = {
        OURS: Contender(
            lambda x: lambda: mor_ref.mor(x, threads=1),
            lambda m: (m.quantized["e4m3"].codes, m.output),
        ),
        WITH_OUT: Contender(mor_with_out),
        "NumPy with ml_dtypes": in_numpy(
            eager.numpy_mor, lambda m: (untiled(m[0]).view(np.uint8), m[1].view(np.uint16))
        ),
        "eager torch": in_torch(
            eager.torch_mor, lambda m: (untiled(peers.codes_of(m[0])), peers.codes_of(m[1]))
        ),
    }
    limits = (
        Ratio((OURS,), over=COPY, at_most=6, bound=BOUND_OF_MOR),
        Ratio((WITH_OUT,), over=COPY, at_most=6, bound=BOUND_OF_MOR),
        Ratio(("NumPy with ml_dtypes",), at_least=40, bound=BOUND_OF_MOR),
        Ratio(("eager torch",), at_least=16),
        Memory(64),
    )
    yield Row(
        "mor, tensor",
        inputs.normal(LARGE, inputs.BF16),
        contenders,
        limits,
        compared="codes, outputs",
    )


def by_block():
    """Yield rows of the policies that decide for each block."""
    pipelines = {
        "two_way": functools.partial(eager.torch_by_block, three_way=False),
        "three_way": functools.partial(eager.torch_by_block, three_way=True),
        "nvfp4": eager.torch_mor_nvfp4,
    }
    for policy, pipeline in pipelines.items():
        contenders = {
            OURS: mor_under(policy),
            "policy tensor": Contender(mor_under("tensor").prepare),
            "eager torch": in_torch(pipeline, lambda y: (peers.codes_of(y),), SUMS),
        }
        limits = ()
        if policy == "three_way":
            limits = (Ratio((OURS,), over="policy tensor", at_most=2),)
        yield Row(f"mor, {policy}", inputs.mixed(USUAL), contenders, limits, compared="outputs")


def of_sizes():
    """Yield rows of tensors of very different sizes: they show the time for an element."""

    def slice_of(log2_size):
        def prepare(x):
            part = x.reshape(-1)[: 1 << log2_size].reshape(-1, 1 << log2_size // 2)
            return lambda: mor_ref.mor(part, threads=1)

        return Contender(prepare, elements=1 << log2_size)

    smaller = {f"2^{log}": slice_of(log) for log in (20, 22, 24, 26)}
    limit = Ratio((OURS,), over="2^20", at_most=1.5)
    yield Row(
        "mor, tensor, from 2^20 to 2^28",
        inputs.normal(28, inputs.BF16),
        {OURS: Contender(mor_under("tensor").prepare)} | smaller,
        (limit,),
        turns=5,  # the small ones are soon done, and have a round in each
    )


def analysing():
    """Yield the row of the work of `mor-ref analyze` on a tensor."""
    settings = settings_for("tensor", threads=1)
    contenders = {
        OURS: Contender(lambda x: lambda: analyze(x, settings)),
        "mor alone": Contender(mor_under("tensor").prepare),
    }
    yield Row("analyze bf16, tensor", inputs.normal(USUAL, inputs.BF16), contenders)


def nvfp4(profile, **arguments):
    """Return our contender."""
    return Contender(
        lambda x: lambda: mor_ref.quantize_nvfp4(x, profile=profile, threads=1, **arguments),
        lambda q: (q.codes, q.block_scale),
    )


def eager_nvfp4():
    """Return Transformer Engine's operations in eager torch, as the library needs a GPU."""

    def bits(found):
        codes, stored, _ = found
        rows = 1 << USUAL // 2
        return codes.reshape(rows, -1).numpy(), peers.codes_of(stored).reshape(rows, -1)

    return in_torch(eager.torch_nvfp4, bits)


def to_nvfp4():
    """Yield rows of the profiles next to the libraries of their names."""
    x, wide = inputs.normal(USUAL, inputs.BF16), inputs.normal(USUAL)
    other = Difference("is another recipe", 60_000, 50_000)
    te = {
        OURS: nvfp4("te"),
        "eager torch": eager_nvfp4(),
        "torchao": block_peers.torchao_nvfp4(other),
    }
    limits = (Ratio(("eager torch",), at_least=10, bound=BOUND_OF_NVFP4),)
    yield Row("NVFP4 of bf16, te", x, te, limits, compared=CODES_AND_SCALES)
    torchao = {OURS: nvfp4("torchao"), "torchao": block_peers.torchao_nvfp4()}
    yield Row("NVFP4 of bf16, torchao", x, torchao, compared=CODES_AND_SCALES)
    modelopt = {OURS: nvfp4("modelopt"), "Model Optimizer": block_peers.modelopt_nvfp4()}
    yield Row("NVFP4 of bf16, modelopt", x, modelopt, compared=CODES_AND_SCALES)
    compressed = {
        OURS: nvfp4("compressed_tensors"),
        "compressed-tensors": block_peers.compressed_tensors_nvfp4(),
    }
    yield Row("NVFP4 of f32, compressed_tensors", wide, compressed, compared=CODES_AND_SCALES)
    four_over_six = {OURS: nvfp4("te_4over6_mae"), "profile te": Contender(nvfp4("te").prepare)}
    yield Row("NVFP4 of bf16, te_4over6_mae", x, four_over_six)
    square = {
        OURS: nvfp4("te_4over6_mse", tile=(16, 16)),
        "profile te": Contender(nvfp4("te", tile=(16, 16)).prepare),
    }
    yield Row("NVFP4 of bf16, te_4over6_mse, 16x16", x, square)


def mx(fmt, rule):
    """Return our contender."""
    return Contender(
        lambda x: lambda: mor_ref.quantize_mx(x, fmt, scale_rule=rule, threads=1),
        lambda q: (q.codes, q.scale),
    )


def to_mx():
    """Yield MX next to torchao and Model Optimizer, and its values next to other libraries."""
    x = inputs.normal(USUAL, inputs.BF16)
    for fmt, rule in (("e4m3", "floor"), ("e4m3", "rceil"), ("e5m2", "floor"), ("e2m1", "floor")):
        contenders = {OURS: mx(fmt, rule), "torchao": block_peers.torchao_mx(fmt, rule)}
        if (fmt, rule) == ("e4m3", "rceil"):
            contenders["Model Optimizer"] = block_peers.modelopt_mx()
        yield Row(f"MX {fmt} of bf16, {rule}", x, contenders, compared=CODES_AND_SCALES)
    back = Contender(
        lambda x: lambda: mor_ref.quantize_mx(x, "e4m3", threads=1).dequantize(threads=1),
        block_peers.values,
    )
    few = {
        OURS: back,
        "gfloat": block_peers.gfloat_mx("e4m3"),
        "pychop": block_peers.pychop_mx("e4m3"),
    }
    yield Row("MX e4m3 of f32 and back, few", inputs.normal(FEW), few, compared="numbers")


def in_c():
    """Yield rows next to the library in C99, which takes one number after the other."""
    x = inputs.normal(SMALL)
    rows = {
        "MX e4m3 of f32, floor, few": (mx("e4m3", "floor"), c_library.in_mx(), CODES_AND_SCALES),
        "NVFP4 of f32, te, few": (nvfp4("te"), c_library.in_nvfp4(), CODES_AND_SCALES),
        "mor of f32, three_way, few": (
            Contender(mor_under("three_way").prepare, lambda m: (m.choice,)),
            c_library.deciding(),
            "choices",
        ),
    }
    for name, (ours, in_c99, compared) in rows.items():
        yield Row(name, x, {OURS: ours, c_library.NAME: in_c99}, compared=compared)


ROWS = [
    *quantizing(),
    *by_tensor(),
    *by_block(),
    *of_sizes(),
    *analysing(),
    *to_nvfp4(),
    *to_mx(),
    *in_c(),
]
