"""A stand-in for CuPy where there is no GPU.

Its arrays lie in the memory of the host, and its kernels are those that run on a CPU. It has what
`mor_ref.cuda` uses of CuPy, and is as strict about it; that CuPy itself does the same is for
`make gpu-test` to show.
"""

import sys
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import ml_dtypes
import numpy as np

from mor_ref.cuda import device, nvrtc
from mor_ref.cuda.host import Host


@contextmanager
def in_place_of_cupy(monkeypatch):
    """Put the stand-in in the place of the CuPy that `mor_ref.cuda` imports."""
    found = Cupy()
    monkeypatch.setitem(sys.modules, "cupy", found)
    monkeypatch.setattr(device, "cached_file", lambda name, _: name)
    monkeypatch.setattr(nvrtc, "version", lambda: (13, 0))
    forget()
    yield found
    forget()


def forget():
    """Let `mor_ref.cuda` look again for CuPy, and load its kernels again."""
    device.cupy.cache_clear()
    device._module.cache_clear()


class Array:
    """An array that is on no host, as far as NumPy knows."""

    def __init__(self, host, device=None):
        self.host, self.device = host, Device(device)

    __array__ = None

    shape, dtype, size, itemsize, nbytes = (
        property(lambda self, name=name: getattr(self.host, name))
        for name in ("shape", "dtype", "size", "itemsize", "nbytes")
    )

    @property
    def data(self):
        return Memory(self.host)

    @property
    def __cuda_array_interface__(self):
        return self.host.__array_interface__

    def get(self):
        return self.host

    def copy(self):
        sys.modules["cupy"].launches.append(Stream.get_current().launch("copy"))
        return Array(self.host.copy(), self.device.id)

    def view(self, dtype):
        return Array(self.host.view(dtype), self.device.id)

    def reshape(self, *shape):
        return Array(self.host.reshape(*shape), self.device.id)

    @property
    def T(self):  # noqa: N802
        return Array(self.host.T, self.device.id)

    def __getitem__(self, at):
        return Array(self.host[at], self.device.id)

    def __setitem__(self, at, value):
        sys.modules["cupy"].compile()
        Stream.get_current().launch("elementwise_copy")
        self.host[at] = value.host

    def __len__(self):
        return len(self.host)


class Memory:
    """Where an array begins."""

    def __init__(self, host):
        self.host, self.ptr = host, host.ctypes.data

    def memset_async(self, value, size):
        assert 0 <= value <= 0xFF, "it sets each byte, to the lowest of the value"
        assert self.host.flags.c_contiguous
        assert size <= self.host.nbytes
        self.host.reshape(-1).view(np.uint8)[:size] = value
        Stream.get_current().launch("memset")


class Elsewhere:
    """An array of another library on a GPU, which CuPy takes by one of two protocols."""

    def __init__(self, host, protocol, device=0):
        self.host, self.number = host, device
        if protocol == "dlpack":
            self.__dlpack__ = host.__dlpack__
        else:
            self.__cuda_array_interface__ = host.__array_interface__

    def __dlpack_device__(self):
        return 2, self.number


class Device:
    """A GPU, current within a `with`."""

    current = [0]  # noqa: RUF012

    def __init__(self, number=None):
        self.id = self.current[-1] if number is None else number

    compute_capability = "90"

    def __enter__(self):
        self.current.append(self.id)
        return self

    def __exit__(self, *_):
        self.current.pop()


class Stream:
    """A stream, of a GPU, or of any if that is not known.

    As with CuPy, one is current within a `with`, or from `use` on; and the end of a `with` knows
    only of others, not of `use`.

    `done_before` has for each stream of each GPU the launches that are done before it goes on, and
    `done` those that the host has waited for.
    """

    entered = defaultdict(list)  # noqa: RUF012
    current = {}  # noqa: RUF012
    done_before = defaultdict(set)  # noqa: RUF012
    done = set()  # noqa: RUF012

    def __init__(self, name, gpu=None):
        self.name, self.gpu = name, Device().id if gpu is None else gpu

    @classmethod
    def from_external(cls, stream):
        version, pointer = stream.__cuda_stream__()
        assert version == 0
        return cls(pointer, gpu=-1)

    @classmethod
    def get_current(cls):
        return cls.current.get(Device().id, cls.null)

    @property
    def key(self):
        return (Device().id if self.gpu == -1 else self.gpu), self.name

    def launch(self, kernel):
        found = Launch(kernel, *self.key, frozenset(self.done_before[self.key]))
        self.done_before[self.key].add(found)
        return found

    def synchronize(self):
        self.done.update(self.done_before[self.key])

    def wait_event(self, event):
        assert event.at is not None, "it was recorded"
        self.done_before[self.key] |= event.before

    def use(self):
        assert self.key[0] == Device().id, "the stream is of the current GPU"
        self.current[Device().id] = self
        return self

    def __enter__(self):
        self.entered[Device().id].append(self.use())
        return self

    def __exit__(self, *_):
        entered = self.entered[Device().id]
        assert entered.pop() is self, "the GPU is the same as at the start"
        (entered[-1] if entered else self.null).use()


Stream.null = Stream("the current one", gpu=-1)


class Event:
    """A moment on a stream, after some launches."""

    def __init__(self, disable_timing=False):
        self.is_timed, self.at = not disable_timing, None

    def record(self, stream=None):
        self.at = (stream or Stream.get_current()).key
        assert self.at[0] == Device().id, "an event is recorded on the GPU that it was made on"
        self.before = frozenset(Stream.done_before[self.at])

    def synchronize(self):
        assert self.at is not None, "it was recorded"


@dataclass(frozen=True, eq=False)
class Launch:
    """A kernel that was launched: where, and after which other launches."""

    kernel: str
    gpu: int
    stream: object
    before: frozenset = field(repr=False)  # each has its own, and so on


def elapsed(start, end):
    assert start.is_timed
    assert end.is_timed
    return 1.0


class CompileException(Exception):  # noqa: N818
    """CuPy's, which is not a RuntimeError."""


class CUDARuntimeError(RuntimeError):
    """CuPy's, of a call of CUDA's runtime."""


class Cupy:
    """The module; `compile` is called where CuPy needs NVRTC and the headers of CUDA itself."""

    ndarray = Array

    def __init__(self):
        Stream.entered.clear()
        Stream.current.clear()
        Stream.done_before.clear()
        Stream.done.clear()
        self.cuda = SimpleNamespace(
            Device=Device,
            Stream=Stream,
            Event=Event,
            get_current_stream=Stream.get_current,
            get_elapsed_time=elapsed,
            compiler=SimpleNamespace(CompileException=CompileException),
            runtime=SimpleNamespace(CUDARuntimeError=CUDARuntimeError),
        )
        self.random = SimpleNamespace(default_rng=Random)
        self.launches = []

    def compile(self):
        pass

    def is_available(self):
        return True

    def empty(self, shape, dtype):
        return Array(np.full(shape, np.array(-1).astype(dtype)))

    def asarray(self, x):
        if isinstance(x, Array):
            return x
        if isinstance(x, Elsewhere):
            if x.__cuda_array_interface__["typestr"].startswith(">"):
                raise ValueError("CuPy does not support the big-endian byte-order")
            return Array(
                np.asarray(SimpleNamespace(__array_interface__=x.__cuda_array_interface__)),
                x.number,
            )
        assert isinstance(x, np.ndarray), "only what this package makes is uploaded"
        return Array(x.copy())

    def from_dlpack(self, x):
        if not hasattr(x, "__dlpack__"):
            raise ValueError("A DLPack tensor object cannot be consumed multiple times")
        return Array(x.host, x.__dlpack_device__()[1])

    def empty_like(self, x):
        return Array(np.empty_like(x.host))

    def copyto(self, to, x):
        Stream.get_current().launch("copyto")
        to.host[...] = x.host

    def ascontiguousarray(self, x):
        if x.host.flags.c_contiguous:
            return x.reshape(x.shape or (1,))
        self.compile()
        Stream.get_current().launch("elementwise_copy")
        return Array(np.ascontiguousarray(x.host))

    def asnumpy(self, x):
        return x.host

    def RawModule(self, *, path):  # noqa: N802
        program = Path(path).name.split("-")[0]
        return SimpleNamespace(get_function=lambda kernel: Function(self, program, kernel))


class Function:
    """A kernel, which takes what CuPy takes."""

    def __init__(self, cupy, program, kernel):
        self.cupy, self.program, self.kernel = cupy, program, kernel

    def __call__(self, grid, block, arguments):
        assert isinstance(arguments, tuple)
        self.cupy.launches.append(Stream.get_current().launch(self.kernel))
        given = [self._passed(argument) for argument in arguments]
        Host().launch(self.program, self.kernel, *grid, *block, given)

    def _passed(self, argument):
        """Pass an array of the GPU by its address, one number or structure by value."""
        if isinstance(argument, Array):
            assert argument.host.flags.c_contiguous
            assert argument.device.id == Device().id
            return argument.host
        assert isinstance(argument, np.generic) or argument.size == 1, "pass arrays of the GPU"
        return argument


class Random:
    """CuPy's generator of random arrays."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

    def standard_normal(self, shape, dtype):
        return Array(self.random.standard_normal(shape, dtype))


class Tensor:
    """A stand-in for a CUDA tensor of torch: bfloat16 is known to it alone."""

    def __init__(self, host, dtype, index=1):
        self.host, self.dtype = host, dtype
        self.device = SimpleNamespace(type="cuda", index=index)
        self.layout, self.is_cuda = Torch.strided, True

    def detach(self):
        return self

    resolve_neg = detach

    def contiguous(self):
        if self.host.flags.c_contiguous:
            return self
        with Device(self.device.index):
            Stream.from_external(Torch.cuda.current_stream(self.device)).launch("contiguous")
        return Tensor(np.ascontiguousarray(self.host), self.dtype, self.device.index)

    def view(self, dtype):
        return Tensor(self.host.view(np.int16), dtype, self.device.index)

    def bfloat16(self):
        host = self.host.astype(ml_dtypes.bfloat16)
        return Tensor(host, Torch.bfloat16, self.device.index)

    def numel(self):
        return self.host.size

    def __dlpack_device__(self):
        return 2, self.device.index

    def __dlpack__(self):
        raise AssertionError("the stand-in for CuPy takes the memory itself")


class TorchStream:
    """A stream of torch's, by the protocol that CuPy takes one by."""

    def __cuda_stream__(self):
        return 0, 0xABC


class AcceleratorError(RuntimeError):
    """Torch's, of a call of CUDA's runtime; it has it since 2.8."""


class OutOfMemoryError(RuntimeError):
    """Torch's, which is not a MemoryError."""


class Torch:
    """A stand-in for torch, whose current stream is another than CuPy's."""

    Tensor, strided = Tensor, "torch.strided"
    int16, bfloat16, float32 = "torch.int16", "torch.bfloat16", "torch.float32"
    AcceleratorError, OutOfMemoryError = AcceleratorError, OutOfMemoryError
    cuda = SimpleNamespace(current_stream=lambda device: device.index < 2 and TorchStream())

    @staticmethod
    def from_dlpack(x):
        return Tensor(x.host, f"torch.{x.dtype}", x.device.id)
