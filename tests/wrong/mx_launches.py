"""MX with a mistake in the numbers that each block or thread has."""

import numpy as np

from wrong.microscaling import Register, in_blocks, magnitude_bits
from wrong.mx_right import quantized, scale_codes
from wrong.mx_scales import finished

KERNELS = Register()
mx = KERNELS.launch
SMALL = {"mx": "No tensor of it is so large."}


def up_to(x, fmt, rule, k, rows, columns):
    """Return the results of a launch that writes only the first rows and columns; others are 0."""
    blocks = -(-x.shape[1] // k)
    scale, code = np.zeros((len(x), blocks), np.uint8), np.zeros(x.shape, np.uint8)
    xs, y = np.zeros(x.shape, np.float32), np.zeros(x.shape, np.float32)
    done = quantized(x[:rows, :columns], fmt, rule, k)
    for buffer, part in zip((scale, xs, code, y), done, strict=True):
        buffer[: part.shape[0], : part.shape[1]] = part
    return scale, xs, code, y


@mx("grid_of_16_bits", "The rows are a grid's second axis, which ends at 65,535.", unseen=SMALL)
def _grid_of_16_bits(x, fmt, rule, k):
    return up_to(x, fmt, rule, k, 65535, x.shape[1])


@mx(
    "blocks_a_thread",
    "A thread block of 1,024 threads has a row, a thread a block of k.",
    unseen=SMALL,
)
def _blocks_a_thread(x, fmt, rule, k):
    return up_to(x, fmt, rule, k, len(x), 1024 * k)


@mx("four_rows_at_a_time", "Rows behind the last multiple of four are never launched.")
def _four_rows_at_a_time(x, fmt, rule, k):
    return up_to(x, fmt, rule, k, len(x) // 4 * 4, x.shape[1])


@mx("whole_blocks_alone", "The short block at the end of a row is left out.")
def _whole_blocks_alone(x, fmt, rule, k):
    return up_to(x, fmt, rule, k, len(x), x.shape[1] // k * k)


@mx("vectors_of_four", "Numbers are loaded four at a time, and the last ones of a row not at all.")
def _vectors_of_four(x, fmt, rule, k):
    return up_to(x, fmt, rule, k, len(x), x.shape[1] // 4 * 4)


@mx("always_32", "Blocks are of 32 numbers, whatever k is.")
def _always_32(x, fmt, rule, k):
    scale, xs, code, y = quantized(x, fmt, rule, 32)
    return (
        np.repeat(scale, 32 // k, axis=1)[:, : -(-x.shape[1] // k)] if k < 32 else scale,
        xs,
        code,
        y,
    )


@mx("reads_into_the_next_row", "The last block of a row has k numbers, some from the next row.")
def _reads_into_the_next_row(x, fmt, rule, k):
    rows, columns = x.shape
    blocks = -(-columns // k)
    flat = np.concatenate([x.reshape(-1), np.zeros(blocks * k, np.float32)])
    places = np.arange(rows)[:, None] * columns + np.arange(blocks * k)
    amax = magnitude_bits(in_blocks(flat[places], k)).max(axis=2)
    return finished(x, scale_codes(amax, fmt, rule), fmt, k)


@mx("stale_shared_memory", "A short block keeps, behind its end, numbers of the block before it.")
def _stale_shared_memory(x, fmt, rule, k):
    _rows, columns = x.shape
    short = -columns % k
    held = in_blocks(x, k)
    if short and held.shape[1] > 1:
        held[:, -1, k - short :] = held[:, -2, k - short :]
    return finished(x, scale_codes(magnitude_bits(held).max(axis=2), fmt, rule), fmt, k)


@mx(
    "down_the_columns",
    "Blocks are of k rows of a column, with scales laid out as if they were not.",
)
def _down_the_columns(x, fmt, rule, k):
    scale, xs, code, y = (part.T for part in quantized(np.ascontiguousarray(x.T), fmt, rule, k))
    shape = (len(x), -(-x.shape[1] // k))
    return np.resize(scale, shape), xs, code, y


@mx("scales_turned", "Scales are written column by column.")
def _scales_turned(x, fmt, rule, k):
    scale, xs, code, y = quantized(x, fmt, rule, k)
    return scale.T.reshape(scale.shape), xs, code, y


@mx("index_of_16_bits", "The index of a number is of 16 bits.", unseen=SMALL)
def _index_of_16_bits(x, fmt, rule, k):
    scale, xs, code, y = quantized(x, fmt, rule, k)
    buffers = [np.zeros(x.size, part.dtype) for part in (xs, code, y)]
    for buffer, part in zip(buffers, (xs, code, y), strict=True):
        buffer[: 1 << 16] = part.reshape(-1)[-(1 << 16) :]  # later threads overwrite the first
    return scale, *(buffer.reshape(x.shape) for buffer in buffers)
