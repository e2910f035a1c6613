"""Kernels under a sanitizer, whose runtime has to be in the process from its start.

Called as `python -m kernels.sanitized SANITIZER FOLDER JOB [ARGUMENT ...]`; says "done" at its end.
"""

import contextlib
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from kernels import suites, tensors
from kernels.suites import Schedule

from mor_ref.cuda import mx, policies, scales
from mor_ref.cuda import quantization as on_device
from mor_ref.cuda.host import HostError
from mor_ref.definitions.blocks import partition
from mor_ref.definitions.integer_grids import integer_grid
from mor_ref.metrics import Sqnr
from mor_ref.policies import POLICIES
from mor_ref.schemes.affine import cuda as affine
from mor_ref.schemes.affine.definition import AFFINE_PROFILES
from mor_ref.schemes.mixed import cuda as mixed

_ALWAYS = ("-g1", "-O0", "-Wall", "-Wextra", "-Werror")
FLAGS = {
    "thread": ("-fsanitize=thread", *_ALWAYS),
    "address": ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", *_ALWAYS),
}


def every_kernel(device):
    for _ in tensors.every_kernel(device):
        pass


def kernels_of(device, name):
    """Run the kernels of a source format alone: a process may have only so many threads."""
    for _ in tensors.kernels_of(device, name):
        pass


def other_kernels(device):
    for _ in tensors.other_kernels(device):
        pass


def every_suite(device):
    """Run some cases of each suite, for the shapes of their tensors; of large tensors, fewer."""
    for suite in suites.manifest():
        every = 32 if suite.endswith("_large") else 8
        assert suites.wrong(device, suite, every=every)[0] == []


def empty_tensors(device):
    """Quantize tensors without elements, which have no unit to add sums to."""
    for shape in ((0, 4), (3, 0)):
        x = tensors.bits(np.ones(shape, np.float32))
        tensors.mx.mx(device, x, tensors.formats["e4m3"], "floor", 32)


def quantization(device):
    """Quantize in pieces: blocks of threads go on to other pieces, and reduce after each."""
    x, parts = _in_pieces()
    on_device.quantize(device, x, tensors.formats["e4m3"], "fp32", parts)


def dequantization(device):
    """Dequantize in pieces, from a table for each block of the tensor."""
    x, parts = _in_pieces()
    e4m3 = tensors.formats["e4m3"]
    found = on_device.quantize(device, x, e4m3, "fp32", parts)
    for to in tensors.TARGETS:
        on_device.dequantize(device, found, e4m3, parts, to)


def every_kernel_in_pieces(device):
    """Run in pieces all kernels with teams of all threads of a block."""
    x, parts = _in_pieces()
    dequantization(device)
    for policy in (POLICIES["three_way"], POLICIES["nvfp4"], tensors.OF_MX):
        policies.mor(device, x, policy, "gam", parts)
        rungs = tuple(replace(rung, metric=Sqnr("20")) for rung in policy.ladder)
        policies.mor(device, x, replace(policy, ladder=rungs), "gam", parts)
    mixed.mix(device, x, tensors.OF_MIXTURE, parts)
    of_torch = AFFINE_PROFILES["torch_fake_tensor"]
    how = affine.Choices(of_torch, integer_grid("int8"), symmetric=False, source="f32")
    affine.quantize_affine(device, x, how, parts)
    e4m3, side = tensors.formats["e4m3"], parts.block[1]
    found = mx.mx(device, x, e4m3, "floor", side)
    for to in tensors.TARGETS:
        mx.dequantize(device, found, e4m3, side, to)


def extremes(device):
    scales.extremes(device, *_in_pieces())


def _in_pieces():
    x = tensors.bits(np.ones((8, 20_001), np.float32))
    return x, partition(x.array.shape, (2, 10_001))


def conversion(device):
    x = tensors.bits(np.ones(1001, np.float32))
    tensors.encoded(device, x, tensors.formats["e4m3"])


def wrong(device, kernel, blocks, threads, *numbers):
    """Launch a kernel of wrong.cu."""
    out = np.zeros(64, np.uint32)
    arguments = [out, *(np.int32(number) for number in numbers)]
    replace(device, blocks=int(blocks)).launch("wrong", kernel, 1, int(threads), arguments)


def after_errors(device):
    """Launch right kernels after kernels that left their stacks in the middle of a function."""
    for kernel in ("barrier_for_some", "different_barriers", "different_masks"):
        for _ in range(2):
            with contextlib.suppress(HostError):
                wrong(device, kernel, 2, 64)
            wrong(device, "ordered_by_barriers", 2, 64)


if __name__ == "__main__":
    sanitizer, folder, job, *arguments = sys.argv[1:]
    device = Schedule(order=2, workers=2, blocks=4, directory=Path(folder), extra=FLAGS[sanitizer])
    globals()[job](device, *arguments)
    sys.stdout.write("done\n")
