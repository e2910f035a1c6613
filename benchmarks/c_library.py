"""The C99 library of `mor-ref sources`, compiled as its guide says, in a loop of C."""

import ctypes
import functools
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.peers import with_one_nan
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

void decode(const uint8_t *code, size_t count, uint32_t *x) {
    for (size_t i = 0; i < count; i++)
        x[i] = (uint32_t)mor_decode(&mor_formats[MOR_E4M3], code[i]);
}

void quantize_mx(const uint32_t *x, size_t count, uint8_t *code, uint8_t *scale) {
    for (size_t i = 0; i < count; i += 32)
        *scale++ = mor_mx_block(&mor_formats[MOR_E4M3], MOR_MX_FLOOR, x + i, 32, code + i, NULL);
}

void quantize_nvfp4(const uint32_t *x, size_t count, uint8_t *code, uint8_t *scale) {
    mor_nvfp4_global global = mor_nvfp4_global_of(MOR_TE, mor_nvfp4_amax(x, 1, count, count));
    for (size_t i = 0; i < count; i += 16) {
        mor_nvfp4_tile tile = mor_nvfp4_tile_of(MOR_TE, &global, x + i, 1, 16, 16);
        *scale++ = tile.taken.scale;
        for (size_t k = i; k < i + 16; k++)
            code[k] = mor_nvfp4_element(MOR_TE, &tile.taken, x[k]).code;
    }
}

static mor_sums sums_of(mor_format_index index, uint32_t group, uint32_t amax, const uint32_t *x,
                        size_t stride) {
    const mor_format *format = &mor_formats[index];
    mor_scale scale = mor_scale_of(format, MOR_GAM, group, amax);
    return mor_quantize_block(format, scale.scale, x, 128, 128, stride, NULL, NULL);
}

void decide(const uint32_t *x, size_t rows, size_t columns, uint8_t *choice) {
    uint32_t group = mor_amax(x, rows, columns, columns);
    for (size_t r = 0; r < rows; r += 128)
        for (size_t c = 0; c < columns; c += 128) {
            const uint32_t *at = x + r * columns + c;
            mor_unit unit = {0};
            unit.amax = mor_amax(at, 128, 128, columns);
            unit.amin = mor_amin(at, 128, 128, columns);
            unit.e4m3 = sums_of(MOR_E4M3, group, unit.amax, at, columns);
            unit.e5m2 = sums_of(MOR_E5M2, group, unit.amax, at, columns);
            *choice++ = (uint8_t)mor_choice(MOR_THREE_WAY, &unit);
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


def decoding():
    """Return a contender: codes of e4m3 to binary32, one by one."""

    def prepare(code):
        library, x = _library(), np.empty(code.shape, np.float32)

        def decode():
            library.decode(_address(code), ctypes.c_size_t(code.size), _address(x))
            return x

        return decode

    return Contender(prepare, with_one_nan, needs="gcc")


def _in_blocks(function, side):
    """Return a contender: a loop over blocks of columns, with a code and a scale for each."""

    def prepare(x):
        loop, code = getattr(_library(), function), np.empty(x.shape, np.uint8)
        scale = np.empty((x.shape[0], x.shape[1] // side), np.uint8)

        def quantize():
            loop(_address(x), ctypes.c_size_t(x.size), _address(code), _address(scale))
            return code, scale

        return quantize

    return Contender(prepare, lambda found: tuple(one.copy() for one in found), needs="gcc")


def in_mx():
    """Return a contender: MXFP8 e4m3 under floor."""
    return _in_blocks("quantize_mx", 32)


def in_nvfp4():
    """Return a contender: NVFP4 under te."""
    return _in_blocks("quantize_nvfp4", 16)


def deciding():
    """Return a contender: the choices of the policy three_way for blocks of 128x128."""

    def prepare(x):
        library, choice = _library(), np.empty([side // 128 for side in x.shape], np.uint8)
        sizes = [ctypes.c_size_t(side) for side in x.shape]

        def decide():
            library.decide(_address(x), *sizes, _address(choice))
            return choice

        return decide

    return Contender(prepare, lambda choice: (choice.copy(),), needs="gcc")
