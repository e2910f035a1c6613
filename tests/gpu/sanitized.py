"""Every kernel on a GPU, in a process that compute-sanitizer watches.

Called as `python -m gpu.sanitized JOB`; says "done" at its end.
"""

import sys

import numpy as np
from kernels import tensors

from mor_ref.cuda import encoding
from mor_ref.cuda.device import Gpu, cupy
from mor_ref.cuda.launching import Bits


class Uploading(Gpu):
    """A GPU that is given arrays of the host, and takes them over for each launch."""

    def __init__(self):
        super().__init__()
        self._kept = []

    def launch(self, program, kernel, blocks, threads, arguments):
        there = [self._taken(argument) for argument in arguments]
        super().launch(program, kernel, blocks, threads, there)

    def address(self, array):
        self._kept.append(self._taken(array))  # a kernel reads it later
        return super().address(self._kept[-1])

    def _taken(self, argument):
        is_array = isinstance(argument, np.ndarray) and argument.dtype.fields is None
        return self.upload(argument) if is_array else argument


def every_kernel(device):
    for _ in tensors.every_kernel(device):
        pass


def overrun(device):
    """Encode an array that claims to be longer than its memory."""
    x = cupy().zeros(64, np.uint32)
    beyond = cupy().ndarray((1 << 20,), np.uint32, memptr=x.data)
    encoding.encode(
        device, Bits(beyond, "f32"), tensors.formats["e4m3"], "rne", tensors.SpecialCases()
    )


if __name__ == "__main__":
    cupy().cuda.set_allocator(None)  # memory of its own for each array
    globals()[sys.argv[1]](Uploading())
    cupy().cuda.Device().synchronize()
    sys.stdout.write("done\n")
