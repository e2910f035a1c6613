"""Every kernel, on small tensors of every type and in blocks of every size."""

import ml_dtypes
import numpy as np

from mor_ref.arrays import code_dtype
from mor_ref.cuda import (
    decoding,
    dot_products,
    encoding,
    errors,
    matrix_products,
    mx,
    nvfp4,
    policies,
    quantization,
    scales,
)
from mor_ref.cuda.encoding import RandomBits
from mor_ref.cuda.launching import Bits
from mor_ref.definitions.blocks import partition
from mor_ref.definitions.dot import DOT_PROFILES, operand_format
from mor_ref.definitions.encoding import SpecialCases
from mor_ref.definitions.formats import formats
from mor_ref.definitions.integer_grids import integer_grid
from mor_ref.definitions.nvfp4 import PROFILES
from mor_ref.definitions.scales import AmaxOrScale
from mor_ref.metrics import (
    Cosine,
    LargestByRow,
    Limit,
    MeanRelativeError,
    RelativeFrobenius,
    Sqnr,
)
from mor_ref.policies import POLICIES, Policy, Rung
from mor_ref.representations import as_representation
from mor_ref.schemes.affine import cuda as affine
from mor_ref.schemes.affine.definition import AFFINE_PROFILES, with_float_zeros
from mor_ref.schemes.fp8lm import cuda as fp8lm
from mor_ref.schemes.fp8lm import cuda_state as fp8lm_state
from mor_ref.schemes.fp8lm.operation_adam import FP8LM_ADAM
from mor_ref.schemes.levels import cuda as levels
from mor_ref.schemes.levels.definition import LEVEL_KINDS
from mor_ref.schemes.mixed import cuda as mixed
from mor_ref.schemes.selection import cuda as selection
from mor_ref.schemes.shared import cuda as shared
from mor_ref.schemes.shared.definition import SHARED_KINDS, SHARED_PROFILES

DTYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
CODES = ("e4m3", "bf16", "f32")  # of 8, 16 and 32 bits
TARGETS = ("f32", "bf16")
_MX_RUNGS = Rung("mxfp4", MeanRelativeError("0.15")), Rung("mxfp8_e4m3", MeanRelativeError(1))
OF_MIXTURE = [as_representation(name) for name in ("e4m3", "nvfp4", "mxfp4")]
OF_MX = Policy("mx", _MX_RUNGS, unit="block")
_METRICS = (RelativeFrobenius("0.1"), Sqnr(30), Cosine("0.995"), LargestByRow("0.05"))
_OF_SUMS = ("e4m3", "nvfp4", "mxfp8", "e5m2")
OF_SUMS = Policy("of_sums", tuple(map(Rung, _OF_SUMS, _METRICS)), unit="block")
_WORDS = {8: np.uint64, 4: np.uint32, 2: np.uint16}


def numbers(name):
    """Return numbers of every magnitude, few of them special, and of bfloat16 one NaN."""
    random = np.random.default_rng(5)
    x = random.standard_normal((37, 75)) * np.exp2(random.integers(-9, 9, (37, 75)))
    x[0, :6] = [np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-45]
    x[1, :4] = [1e300, 1e-320, 2.0**-150, 3e38]
    with np.errstate(over="ignore", under="ignore"):
        x = x.astype(DTYPES[name])
    if name == "bf16":
        x.view(np.uint16)[np.isnan(x)] = 0x7FFF
    return x


def bits(x):
    """Return numbers as kernels take them."""
    name = next(name for name, dtype in DTYPES.items() if dtype == x.dtype)
    return Bits(x.view(_WORDS[x.itemsize]), name)


def quantized(device, x):
    """Yield the arrays that every kernel of tensors makes of a tensor, some at a time."""
    e4m3, scaling = formats["e4m3"], "gam"
    for block in ((2, 4), (8, 16), "tensor"):
        parts = partition(x.array.shape, block)
        found = quantization.quantize(device, x, e4m3, scaling, parts)
        yield [found.codes, found.amax, *found.scales, *found.error]
        yield [quantization.dequantize(device, found, e4m3, parts, to) for to in TARGETS]
        mixture = mixed.mix(device, x, OF_MIXTURE, parts)
        yield [mixture.amax, *mixture.errors, mixture.choice, mixture.codes, mixture.y]
        for policy in (POLICIES["three_way"], POLICIES["nvfp4"], OF_MX, OF_SUMS):
            taken = policies.mor(device, x, policy, scaling, parts)
            yield [taken.choice, taken.output, *taken.extremes]
            yield [array for sums in taken.error.values() for array in sums]
    for name, tile in (("te", (1, 16)), ("te_4over6_mse", (16, 16))):
        found = nvfp4.nvfp4(device, x, PROFILES[name], tile)
        yield [found.codes, found.packed, *found.tiles, *found.whole]
        yield [nvfp4.dequantize(device, found, PROFILES[name], tile, to) for to in TARGETS]
        yield nvfp4.errors(device, x, PROFILES[name], tile, found.tiles)
        words = np.arange(x.size, dtype=np.uint32).reshape(x.array.shape) * np.uint32(0x9E3779B1)
        yield [nvfp4.at_random(device, x, PROFILES[name], tile, device.upload(words))]
    yield [*nvfp4.given_scales(device, x, PROFILES["te_row"], AmaxOrScale(scale=2.0))]
    in_one_row = Bits(x.array.reshape(1, -1), x.source)
    for side in (8, 128, 2048):
        found = mx.mx(device, in_one_row, e4m3, "rceil", side)
        yield [found.codes, found.scale, *found.error]
        yield [mx.dequantize(device, found, e4m3, side, to) for to in TARGETS]
    yield from of_integers(device, x)
    mx6 = SHARED_KINDS["mx6"]
    found = shared.quantize_shared(device, x, mx6, SHARED_PROFILES["quark_torch"])
    yield [*found, shared.packed_blocks(device, found.code, found.tau, found.shared_exponent, mx6)]
    for kind in ("lsq4", "elastic1"):
        alpha = levels.first_alphas(device, x, LEVEL_KINDS[kind], "bf16")
        found = levels.quantize_levels(device, x, alpha, LEVEL_KINDS[kind], "bf16")
        yield [*found, levels.packed_rows(device, found.code, LEVEL_KINDS[kind])]
    yield [selection.by_rank(device, x, 0.9), selection.by_column(device, x, 6.0)]


def of_integers(device, x):
    """Yield the results of integers with zero points."""
    float_zeros = with_float_zeros(AFFINE_PROFILES["torch_fake_channel_2_13"])
    for profile, grid in (
        (AFFINE_PROFILES["torch_fake_tensor"], "int8"),
        (AFFINE_PROFILES["torch_quantize"], "uint4"),
        (float_zeros, "int8"),
    ):
        how = affine.Choices(profile, integer_grid(grid), symmetric=False, source="f32")
        for block in ("tensor", (8, 16), (5, 3)):
            cut = partition(x.array.shape, block)
            found = affine.quantize_affine(device, x, how, cut)
            yield [*found.blocks, found.xs, found.code, found.y]
            yield [*affine.errors(device, x, found.y, cut)]
    how = affine.Choices(
        AFFINE_PROFILES["peg"], integer_grid("uint8"), symmetric=True, source="f32"
    )
    order, found, sums = affine.quantize_groups(device, x, how, x.array.shape[1])
    yield [*order, *found.blocks, found.code, *sums]


def encoded(device, x, fmt, rounding="rne", special=None):
    """Return the codes of a format."""
    return encoding.encode(device, x, fmt, rounding, special or SpecialCases())


def encoded_at_random(device, x, fmt, words, count):
    """Return the codes of a format under sr."""
    return encoding.encode(device, x, fmt, "sr", SpecialCases(), RandomBits(words, count))


def converted(device, x):
    """Yield the codes of a tensor in every format, and their decoded numbers."""
    words = np.arange(x.size, dtype=np.uint32).reshape(x.array.shape)
    yield encoded(device, x, formats["e8m0"], "rtz")
    for name in CODES:
        yield encoded(device, x, formats[name])
        yield encoded_at_random(device, x, formats[name], words, 8)
        yield decoding.decode(device, encoded(device, x, formats[name]), formats[name])


def stepped(device):
    """Yield the results of single steps."""
    x = numbers("f32").view(np.uint32).ravel()
    e4m3, y = formats["e4m3"], x + np.uint32(1)
    yield from scales.scale_steps(device, "gam", e4m3, x & 0x7FFFFFFF, y & 0x7FFFFFFF).values()
    yield from quantization.quantize_steps(device, e4m3, x, y).values()
    yield from errors.error_steps(device, x, y).values()
    wide = x.astype(np.uint64)
    units = errors.ErrorSums(wide, wide, wide % np.uint64(2))
    yield Limit(x).cuda(device, units, {}, scales.Extremes(y, x))
    yield from of_fp8lm(device, x & 0x7FFFFFFF, y)


def of_fp8lm(device, amax, numbers):
    """Yield the results of the steps of FP8-LM."""
    yield from fp8lm.scales(device, amax, numbers, formats["e4m3"], 0, "msamp").values()
    state = {"first": np.uint8, "second": np.uint16, "master": np.uint16}
    for name, dtype in (("e4m3", np.uint8), ("f16", np.uint16)):
        yield from fp8lm.casts(device, numbers, amax, formats[name]).values()
        codes = (numbers[:300].reshape(-1, 3) % 120).astype(dtype)
        yield fp8lm.sums_of_ranks(device, codes, formats[name], "exact")
    rows, others = amax[:300].reshape(-1, 3), numbers[:300].reshape(-1, 3)
    yield fp8lm_state.windows(device, rows, others & np.uint32(0x7FFFFFFF))
    yield from fp8lm_state.shared_scales(device, rows, formats["e4m3"], "paper", "msamp").values()
    counts, mu = others % np.uint32(9), np.full(len(rows), 0x3F800000, np.uint32)
    yield fp8lm_state.mus(device, counts, mu >> np.uint32(20), mu, "paper", 1e-5, 1000)
    names = list(FP8LM_ADAM.inputs)
    yield from fp8lm.adam(
        device, {name: numbers.astype(state.get(name, np.uint32)) for name in names}
    ).values()


def added_up(device):
    """Yield dot products of every family, with scales where it has them."""
    random = np.random.default_rng(6)
    for profile in {row.family: row for row in DOT_PROFILES.values()}.values():
        fmt = operand_format(profile.formats[0] if profile.formats else "e4m3")
        dtype = code_dtype(fmt)
        a, b = random.integers(0, fmt.code_count, (2, 9, 150), np.uint64).astype(dtype)
        scales, (name, block) = None, profile.scales[0] if profile.scales else ("e8m0", 32)
        if profile.scales or profile.family == "exact":
            own = formats[name]
            shape = (2, 9, -(-150 // (block or 150)))
            codes = random.integers(0, 100, shape, code_dtype(own))
            scales = dot_products.Scales(*codes, own, block or 150)
        yield from dot_products.dot(
            device, a, b, a[:, 0].astype(np.uint32), profile, (fmt, fmt), scales
        )
        yield from dot_products.dot(
            device, a, b, a[:, 0].astype(np.uint32), profile, (fmt, fmt), keeps=True
        )


def multiplied(device):
    """Yield entries of products of matrices of every family that has pieces or scales."""
    random = np.random.default_rng(7)
    blocks = matrix_products.Blocks(
        [formats[fmt] for fmt in ("e4m3", "e5m2", "e2m1", "bf16")], 32, True, False
    )
    for profile in {row.family: row for row in DOT_PROFILES.values()}.values():
        if profile.family in ("f32_fma", "f32_pairwise", "int32", "switchback"):
            continue
        choices = [2] if profile.needs_scales else [0, 1, 2, 3]  # e2m1, which both have
        a, b = (
            matrix_products.Side(
                random.integers(0, 16, (9, 150), np.uint32),
                random.integers(0, 1 << 16, (9, 150), np.uint16),
                random.choice(choices, (9, 5)).astype(np.uint8),
                np.full((9, 5), 0x40000000, np.uint32),
                np.full(9, 0x3F800000, np.uint32),
            )
            for _ in "ab"
        )
        yield matrix_products.entries(device, a, b, profile, blocks)


def every_kernel(device):
    """Yield the results of every kernel, for each source format."""
    for name in DTYPES:
        yield from kernels_of(device, name)
    yield from other_kernels(device)


def kernels_of(device, name):
    """Yield the results of the kernels of a source format."""
    x = bits(numbers(name))
    yield from quantized(device, x)
    yield from converted(device, x)


def other_kernels(device):
    """Yield the results of kernels that have no source format."""
    yield from stepped(device)
    yield from added_up(device)
    yield from multiplied(device)
