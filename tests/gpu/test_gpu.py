"""Evidence that only a GPU can show: `make gpu-test`, which fails with a sentence without one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from extras import imported
from gpu import programs
from kernels import suites, tensors
from test_cuda_functions import EVERY_CALL, SHAPES, STRIDES, same, same_of_any_shape
from test_cuda_matmul import CALLS as PRODUCTS

import mor_ref
import mor_ref.cuda
from mor_ref.cuda.device import Gpu, cupy
from mor_ref.cuda.streams import now

pytestmark = pytest.mark.tier("gpu")
TESTS = Path(__file__).parents[1]


class OtherGrid(Gpu):
    """A GPU that runs kernels on another number of blocks than they are asked for with."""

    def __init__(self, blocks):
        super().__init__()
        self._blocks = blocks

    def launch(self, program, kernel, blocks, threads, arguments):
        super().launch(program, kernel, self._blocks or blocks, threads, arguments)


def unaligned(array):
    """Return a copy on the GPU that no load of 16 bytes may be used for."""
    copy = cupy().empty(array.size + 1, array.dtype)[1:].reshape(array.shape)
    copy[...] = array
    return copy


PLACES = {"aligned": lambda array: array, "unaligned": unaligned}


# ---------------------------------------------------------------------- the same bits


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("blocks", [0, 1, 7])
@pytest.mark.parametrize("suite", suites.manifest())
def test_suites(suite, blocks, place):
    """Every field that kernels give, on any grid."""
    found, compared = suites.wrong(OtherGrid(blocks), suite, PLACES[place])
    assert found == []
    assert compared >= len(suites.cases(suite))


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(("name", "argument", "options"), EVERY_CALL, ids=str)
def test_every_function_gives_what_the_host_gives(name, argument, options):
    x = tensors.numbers("f32")
    arguments = argument if isinstance(argument, tuple) else (argument,)
    ours = getattr(mor_ref.cuda, name)(cupy().asarray(x), *arguments, **options)
    same(ours, getattr(mor_ref, name)(x, *arguments, **options))


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("n", range(len(PRODUCTS)))
def test_products_of_matrices_give_what_the_host_gives(n):
    operands, options = PRODUCTS[n]
    ours = mor_ref.cuda.matmul(*operands(mor_ref.cuda, cupy().asarray), **options)
    same(ours, mor_ref.matmul(*operands(mor_ref, np.asarray), **options))


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_shapes(shape):
    x = np.random.default_rng(3).standard_normal(shape).astype(np.float32).reshape(shape)
    same_of_any_shape(cupy().asarray(x), x)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("stride", STRIDES)
@pytest.mark.parametrize("name", [name for name in tensors.DTYPES if name != "bf16"])
def test_dtypes_and_strides(name, stride):
    numbers = tensors.numbers(name)
    ours, x = STRIDES[stride](cupy().asarray(numbers)), STRIDES[stride](numbers)
    with np.errstate(over="ignore", under="ignore"):
        same(mor_ref.cuda.encode(ours, "e4m3"), mor_ref.encode(x, "e4m3"))
        same(mor_ref.cuda.mor(ours, "two_way"), mor_ref.mor(x, "two_way"))


PROTOCOLS = {
    "dlpack": ("__dlpack__", "__dlpack_device__"),
    "interface": ("__cuda_array_interface__",),
}


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_arrays_of_other_libraries(protocol):
    x = tensors.numbers("f32")
    array = cupy().asarray(x)
    other = SimpleNamespace(**{name: getattr(array, name) for name in PROTOCOLS[protocol]})
    same(mor_ref.cuda.encode(other, "e4m3"), mor_ref.encode(x, "e4m3"))


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(("name", "dtype"), [("e4m3", "u1"), ("bf16", "u2"), ("f32", "u4")])
def test_codes_are_decoded(name, dtype):
    codes = np.arange(240, dtype=dtype).reshape(12, 20)
    ours = mor_ref.cuda.decode(cupy().asarray(codes)[:, ::3], name)
    same(ours, mor_ref.decode(codes[:, ::3], name))


@pytest.mark.usefixtures("gpu")
def test_random_bits():
    x, words = tensors.numbers("f32"), np.arange(37 * 75, dtype=np.uint32).reshape(37, 75) % 256
    options = {"rounding": "sr", "n_random_bits": 8}
    on_gpu = cupy().asarray(x), cupy().asarray(words)
    ours = mor_ref.cuda.encode(on_gpu[0], "e4m3", random_bits=on_gpu[1], **options)
    same(ours, mor_ref.encode(x, "e4m3", random_bits=words, **options))


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("x", [object(), "numbers", {}], ids=["object", "text", "dict"])
def test_what_is_no_array(x):
    """The sentence is ours, whatever CuPy raises."""
    with pytest.raises(TypeError, match=r"x is a \w+, not an array on a GPU"):
        mor_ref.cuda.encode(x, "e4m3")


def torch_with_cuda():
    torch = imported("torch")
    if not torch.cuda.is_available():
        pytest.skip("this torch has no CUDA")
    return torch


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("side", [128, 4096])
def test_a_large_tensor(side):
    """Many blocks of threads at once; bfloat16, by way of torch, on a stream of torch's."""
    torch = torch_with_cuda()
    random = torch.Generator().manual_seed(side)
    x = torch.randn(side, 2 * side, generator=random).bfloat16()
    with torch.cuda.stream(torch.cuda.Stream()):
        on_gpu = x.cuda()
        for policy in ("tensor", "three_way", "nvfp4"):
            ours = mor_ref.cuda.mor(on_gpu, policy)
            torch.cuda.current_stream().synchronize()
            same(ours, mor_ref.mor(x, policy))
    same(mor_ref.cuda.quantize(on_gpu, "e4m3", block=(128, 128)),
         mor_ref.quantize(x, "e4m3", block=(128, 128)))  # fmt: skip


@pytest.mark.usefixtures("gpu")
def test_memory_is_not_used_again_while_another_stream_reads_it():
    """CuPy's stream, which dequantizes, is kept behind the one of torch's that quantizes."""
    torch = torch_with_cuda()
    tensors_of_torch = [torch.randn(1024, 1024) for _ in range(4)]
    right = [mor_ref.quantize(x, "e4m3").dequantize() for x in tensors_of_torch]
    large = cupy().zeros((2, 1 << 28), np.uint8)
    found, are_behind, reading = [], [], []
    with torch.cuda.stream(torch.cuda.Stream()):
        on_gpu = [x.cuda() for x in tensors_of_torch]
        mor_ref.cuda.quantize(on_gpu[0], "e4m3").dequantize()  # so that all is loaded
        for x in on_gpu * 8:
            quantized = mor_ref.cuda.quantize(x, "e4m3")
            are_behind += [not event.done for event in reading[-1:]]
            for _ in range(20):  # milliseconds, for which the host does not wait
                cupy().copyto(large[0], large[1])
            found.append(quantized.dequantize())
            reading.append(now().event)
            del quantized  # its memory is for the next
    assert any(are_behind), "no memory could be used again too soon, so this shows nothing"
    for ours, theirs in zip(found, right * 8, strict=True):
        same(ours, theirs)


# ---------------------------------------------------------------------- arithmetic


def loaded(made, tmp_path, kernel):
    """Return a kernel of a cubin."""
    path = tmp_path / "program.cubin"
    path.write_bytes(made.cubin)
    return cupy().RawModule(path=str(path)).get_function(kernel)


def canary(capability, tmp_path, options):
    """Return how many results of the canary's arithmetic are wrong."""
    x, y, right = programs.canary_numbers()
    run = loaded(programs.compiled_canary(capability, options), tmp_path, "canary")
    out = cupy().empty(right.shape, np.float32)
    inputs = cupy().asarray(x), cupy().asarray(y)
    run((-(-x.size // 256),), (256,), (*inputs, np.uint32(x.size), out))
    return int(np.count_nonzero(out.get().view(np.uint32) != right.view(np.uint32)))


def test_nothing_is_fused_flushed_or_approximated(gpu, tmp_path):
    assert canary(gpu.capability, tmp_path, programs.nvrtc.ARITHMETIC) == 0


@pytest.mark.parametrize("wrong", programs.WRONG_OPTIONS)
def test_the_canary_can_fail(gpu, tmp_path, wrong):
    assert canary(gpu.capability, tmp_path, programs.WRONG_OPTIONS[wrong]) > 0


# ---------------------------------------------------------------------- conversions of hardware

NAMES = ("bf16", "e4m3", "e5m2", "e2m3", "e3m2", "e2m1", "e8m0_rp", "e8m0_rz")


def of_hardware(gpu, tmp_path, name):
    """Return the kernel that compares a conversion, and the integer encoder's arguments for it."""
    conversions = programs.conversions_of(gpu.capability)
    if name not in conversions:
        pytest.skip(f"compute capability {gpu.capability / 10} has no such conversion")
    made = programs.compiled_conversions(gpu.capability)
    return loaded(made, tmp_path, name), conversions[name]


@pytest.mark.parametrize("name", NAMES)
def test_the_encoder_is_what_hardware_has(gpu, tmp_path, name):
    """ENC-001 to ENC-014, over all 2^32 inputs."""
    run, to = of_hardware(gpu, tmp_path, name)
    assert compared(run, to) == (0, 2**64 - 1)


def test_a_difference_from_hardware_is_found(gpu, tmp_path):
    """Ties away from zero: the first input that is another is one and a half of the smallest."""
    run, _ = of_hardware(gpu, tmp_path, "bf16")
    to = programs.rows.encoding(mor_ref.formats["bf16"], "rna")
    different, first = compared(run, to)
    assert different > 0
    assert first == 0x00008000  # half of the smallest: to even it is zero


def compared(run, to):
    """Return how many of all inputs differ, and the first of them."""
    different, first = cupy().zeros(1, np.uint64), cupy().full(1, 2**64 - 1, np.uint64)
    for start in range(0, 1 << 32, 1 << 28):
        arguments = (np.uint64(start), np.uint64(1 << 28), to, different, first)
        run((1 << 13,), (256,), arguments)
    return int(different.get()[0]), int(first.get()[0])


# ---------------------------------------------------------------------- sanitizers


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("tool", ["memcheck", "racecheck", "initcheck", "synccheck"])
def test_every_kernel_is_clean(tool):
    """And a planted fault is found, or this would show nothing."""
    program = shutil.which("compute-sanitizer")
    if not program:
        pytest.skip("compute-sanitizer is not installed; it comes with the CUDA toolkit")
    options = [program, "--tool", tool, "--error-exitcode", "99"]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(TESTS), *filter(None, sys.path)]),
    }

    def sanitized(job):
        command = [*options, sys.executable, "-m", "gpu.sanitized", job]
        return subprocess.run(
            command, env=environment, cwd=TESTS, capture_output=True, text=True, check=False
        )

    done = sanitized("every_kernel")
    assert (done.returncode, done.stdout.count("done")) == (0, 1), done.stdout + done.stderr
    if tool == "memcheck":
        assert sanitized("overrun").returncode == 99
