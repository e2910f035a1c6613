"""Products of matrices on a GPU, on a stand-in for CuPy: the bits of `mor_ref.matmul`."""

import re

import numpy as np
import pytest
from kernels import needed
from kernels.stand_in import Array, CompileException, Tensor, Torch, in_place_of_cupy

import mor_ref
import mor_ref.cuda
from mor_ref.cuda import matmul_functions
from mor_ref.cuda.device import GpuError


@pytest.fixture
def cupy(monkeypatch):
    """Yield the stand-in for CuPy."""
    needed.compiler()
    with in_place_of_cupy(monkeypatch) as found:
        yield found


def numbers(seed, rows, columns=96):
    """Return numbers of several sizes."""
    random = np.random.default_rng(seed)
    x = random.standard_normal((rows, columns)) * 2.0 ** random.integers(-4, 5, (rows, 1))
    return x.astype(np.float32)


X, Y = numbers(1, 3), numbers(2, 4)


def quantized(module, at, block=(1, 32), other=None):
    """Return records of X and of the transpose of Y."""
    a = module.quantize(at(X), "e4m3", block=block)
    return a, module.transposed(module.quantize(at(Y), "e5m2", block=other or block))


def in_columns(module, at):
    """Return a record in rows, and one in tiles of 64 rows and 3 columns."""
    a = module.quantize(at(X), "e4m3", block=(2, 32), scaling="fp32")
    return a, module.quantize(at(Y.T.copy()), "e4m3", block=(64, 3), scaling="e8m0")


def in_mx(module, at, fmt="e4m3", other="e4m3", block=32):
    """Return records of MX."""
    a, b = module.quantize_mx(at(X), fmt, block=block), module.quantize_mx(at(Y), other)
    return a, module.transposed(b)


def in_nvfp4(module, at, profile="te", tile=(1, 16)):
    """Return records of NVFP4; squares need no transpose."""
    a = module.quantize_nvfp4(at(X), profile=profile)
    if tile != (1, 16):
        return a, module.quantize_nvfp4(at(Y.T.copy()), profile=profile, tile=tile)
    return a, module.transposed(module.quantize_nvfp4(at(Y), profile=profile))


def arrays(dtype):
    """Return a function of two arrays of a dtype."""
    return lambda _, at: (at((4 * X).astype(dtype)), at((4 * Y).T.astype(dtype)))


def with_array(module, at):
    """Return a record and an array."""
    return module.quantize(at(X), "e4m3", block=(1, 48)), at(Y.T)


def with_y(module, at):
    """Return a result of mor, and a record of another function."""
    a = module.mor(at(X), "two_way", block=(1, 32))
    return a, module.transposed(module.quantize_shared(at(Y), "mx9"))


CALLS = [
    *((quantized, {"profile": name}) for name in ("exact", "hopper_fp8", "hopper_fp8_promoted")),
    (lambda *to: quantized(*to, "tensor", (1, 32)), {"profile": "ada_fp8", "out": "bf16"}),
    (in_columns, {"profile": "hopper_fp8_f16", "out": "f16"}),
    *((in_mx, {"profile": name}) for name in ("exact", "blackwell_fp8", "blackwell_mxfp8")),
    (lambda *to: in_mx(*to, "e2m1", "e2m1"), {"profile": "blackwell_mxfp4"}),
    *((in_nvfp4, {"profile": name}) for name in ("exact", "blackwell_fp8", "blackwell_nvfp4")),
    (lambda *to: in_nvfp4(*to, "te_row"), {"profile": "blackwell_nvfp4"}),
    (lambda *to: in_nvfp4(*to, tile=(16, 16)), {"profile": "exact"}),
    (arrays(np.float32), {"profile": "hopper_tf32"}),
    (arrays(np.float16), {"profile": "ampere_fp16"}),
    (arrays(np.float32), {"profile": "f32_pairwise"}),
    (arrays(np.int8), {"profile": "int32"}),
    (with_array, {"profile": "exact"}),
    (quantized, {"profile": "f32_fma"}),
    (with_y, {"profile": "f32_fma"}),
]


@pytest.mark.usefixtures("cupy")
@pytest.mark.parametrize(
    ("n", "at_once"), [*((n, 1 << 24) for n in range(len(CALLS))), (1, 500), (10, 500), (16, 500)]
)
def test_products_are_those_of_the_host(n, at_once, monkeypatch):
    """GEM-001 to GEM-003: also if rows of A do not go at once."""
    operands, options = CALLS[n]
    monkeypatch.setattr(matmul_functions, "_MOST", at_once)
    ours = mor_ref.cuda.matmul(*operands(mor_ref.cuda, Array), **options)
    theirs = mor_ref.matmul(*operands(mor_ref, np.asarray), **options)
    assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
    assert ours.get().tobytes() == theirs.tobytes()


@pytest.mark.usefixtures("cupy")
@pytest.mark.parametrize("shape", [(0, 3, 2), (2, 0, 3), (2, 3, 0)])
@pytest.mark.parametrize("profile", ["exact", "hopper_bf16"])
def test_products_without_entries_or_without_terms(shape, profile, monkeypatch):
    """GEM-001."""
    rows, width, columns = shape
    monkeypatch.setitem(mor_ref.cuda.matmul_operands._ARRAYS, "uint16", mor_ref.formats["bf16"])
    a, b = np.ones((rows, width), np.uint16), np.ones((width, columns), np.uint16)
    found = mor_ref.cuda.matmul(Array(a), Array(b), profile=profile)
    assert (found.shape, found.dtype) == ((rows, columns), np.float32)
    assert not found.get().any()


def test_tensors_of_torch(cupy, monkeypatch):
    """GEM-002: bfloat16, on torch's current stream."""
    monkeypatch.setitem(__import__("sys").modules, "torch", Torch)
    a, b = (Tensor(x, Torch.bfloat16) for x in (X.astype("bfloat16"), Y.T.astype("bfloat16")))
    found = mor_ref.cuda.matmul(a, b, profile="hopper_bf16")
    wanted = mor_ref.matmul(X.astype("bfloat16"), Y.T.astype("bfloat16"), profile="hopper_bf16")
    assert found.get().tobytes() == wanted.tobytes()
    assert cupy.launches


def refused(function, **options):
    """Return a call with operands on the GPU."""
    return lambda: mor_ref.cuda.matmul(*function(mor_ref.cuda, Array), **options)


REFUSED = [
    (refused(lambda _, at: (at(X), at(Y))), "A has 96 columns and B has 4 rows; give the same"),
    (refused(lambda _, at: (at(X[0]), at(Y))), "A has the shape (96,); give a matrix, rows and"),
    (refused(lambda _, at: (at(X), Y)), "B is a ndarray, which lies on the host; give"),
    (refused(lambda _, at: (at(X), Array(Y.T, 1))), "B lies on GPU 1, but A on GPU 0; give both"),
    (refused(arrays(np.float64)), "A has dtype float64; give float32, float16, bfloat16, int8, or"),
    (refused(quantized, profile="hopper_bf16"), "A is of e4m3, which hopper_bf16 does not take"),
    (refused(arrays(np.int8), profile="switchback"), "switchback has scales of its own, which no"),
    (refused(arrays(np.float32), profile="blackwell_nvfp4"), "A is of f32, which blackwell_nvfp4"),
    (refused(quantized, profile="blackwell_mxfp8"), "records have scales in f32 for 32 and 32 ele"),
    (refused(quantized, out="f64"), "out is 'f64', which is not known"),
    (
        refused(lambda to, at: (in_mx(to, at)[0], quantized(to, at)[1])),
        "A and B are records of two kinds, mx and scaled, which a GPU does not multiply; quantize",
    ),
    (
        refused(lambda *to: quantized(*to, (1, 32), (1, 48)), profile="hopper_fp8"),
        "blocks of A and B have 32 and 48 elements along K, and a GPU takes those of one as a mu",
    ),
    (
        refused(lambda to, at: (in_mx(to, at)[0], in_mx(to, at)[1].of)),
        "A has 96 columns and B has 4 rows",
    ),
    (
        refused(lambda to, at: (at(X), to.quantize_mx(at(Y.T.copy()), "e4m3")), profile="ada_fp8"),
        "A is of f32, which ada_fp8 does not take; give one of e4m3 or e5m2",
    ),
    (
        refused(
            lambda to, at: (in_mx(to, at)[0], to.quantize_mx(at(Y.T.copy()), "e4m3")),
            profile="blackwell_fp8",
        ),
        "B has a scale for each place of K, which no instruction takes; quantize B.T, and give",
    ),
    (
        refused(with_y, profile="hopper_fp8"),
        "A is a MorResult, whose codes and scales no kernel multiplies; give a record of quantize",
    ),
]


@pytest.mark.usefixtures("cupy")
@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_is_refused(call, message):
    """GEM-001 to GEM-003."""
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        call()


def test_where_cupy_cannot_compile(cupy, monkeypatch):
    """The kernels need copies that CuPy compiles kernels for."""

    def fails():
        raise CompileException("cannot open source file cuda_fp16.h")

    pair = quantized(mor_ref.cuda, Array)
    monkeypatch.setattr(cupy, "compile", fails)
    with pytest.raises(GpuError, match=r"CuPy cannot copy .* \(cannot open .*\); .*pip install"):
        mor_ref.cuda.matmul(*pair, profile="hopper_fp8")
