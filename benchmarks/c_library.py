"""The C99 library of `mor-ref sources`, compiled as its guide says, in a loop of C."""

import ctypes
import functools
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.rows import Contender
from mor_ref.sources import write_sources

NAME = "C99 library"
_LOOPS = """
#include "mor_ref.h"

void encode(const uint32_t *x, size_t count, uint8_t *code) {
    for (size_t i = 0; i < count; i++)
        code[i] = (uint8_t)mor_encode(&mor_formats[MOR_E4M3], MOR_RNE, MOR_SATFINITE, MOR_CANONICAL,
                                      &mor_formats[MOR_F32], x[i]);
}

void quantize(const uint32_t *x, size_t rows, size_t columns, uint8_t *code, mor_sums *sums) {
    const mor_format *format = &mor_formats[MOR_E4M3];
    uint32_t group = mor_amax(x, rows, columns, columns);
    for (size_t r = 0; r < rows; r += 128)
        for (size_t c = 0; c < columns; c += 128) {
            size_t at = r * columns + c;
            uint32_t amax = mor_amax(x + at, 128, 128, columns);
            mor_scale scale = mor_scale_of(format, MOR_GAM, group, amax);
            *sums++ = mor_quantize_block(format, scale.scale, x + at, 128, 128, columns,
                                         code + at, NULL);
        }
}
"""


@functools.cache
def _library():
    """Compile the library with these loops, and load it."""
    directory = Path(tempfile.mkdtemp())
    write_sources(directory)
    (directory / "loops.c").write_text(_LOOPS)
    command = ["gcc", "-std=c99", "-O3", "-shared", "-fPIC", "-o", "it.so", "loops.c", "mor_ref.c"]
    subprocess.run(command, cwd=directory, check=True)  # noqa: S603  # it compiles our own files
    return ctypes.CDLL(str(directory / "it.so"))


def _address(array):
    return ctypes.c_void_p(array.ctypes.data)


def encoding():
    """Return a contender: binary32 numbers to e4m3, one by one."""

    def prepare(x):
        library, code = _library(), np.empty(x.shape, np.uint8)

        def encode():
            library.encode(_address(x), ctypes.c_size_t(x.size), _address(code))
            return code

        return encode

    return Contender(prepare, lambda code: (code.copy(),), needs="gcc")


def quantizing():
    """Return a contender: blocks of 128x128 with GAM scales and error sums."""

    def prepare(x):
        library, code = _library(), np.empty(x.shape, np.uint8)
        sums = np.empty((x.size // 128**2, 3), np.uint64)
        sizes = [ctypes.c_size_t(side) for side in x.shape]

        def quantize():
            library.quantize(_address(x), *sizes, _address(code), _address(sums))
            return code, sums

        return quantize

    return Contender(prepare, lambda found: (found[0].copy(),), needs="gcc")
