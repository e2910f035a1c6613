"""Shared exponents with a mistake in the numbers that each block or thread has."""

import numpy as np

from wrong.microscaling import in_blocks
from wrong.shared_right import Register, exponents, finished, quantized

KERNELS = Register()


def launch(name, mistake, unseen=None):
    """Register a kernel of whole tensors."""
    return KERNELS.shared(name, mistake, operations=("shared",), unseen=unseen)


SMALL = {"shared": "No tensor of it is so large."}


def up_to(x, kind, profile, rows, columns):
    """Return the results of a launch that writes only the first rows and columns; others are 0."""
    sides = (len(x), -(-x.shape[1] // 16)), (len(x), -(-x.shape[1] // 2)), *[x.shape] * 4
    buffers = [np.zeros(shape, np.int64) for shape in sides[:-1]]
    buffers.append(np.zeros(x.shape, np.float32))
    if rows and columns:
        done = quantized(np.ascontiguousarray(x[:rows, :columns]), kind, profile)
        for buffer, part in zip(buffers, done, strict=True):
            buffer[: part.shape[0], : part.shape[1]] = part
    return buffers


@launch("grid_of_16_bits", "The rows are a grid's second axis, which ends at 65,535.", SMALL)
def _grid_of_16_bits(x, kind, profile):
    return up_to(x, kind, profile, 65535, x.shape[1])


@launch("blocks_a_thread", "A thread block of 1,024 threads has a row, a thread a pair.", SMALL)
def _blocks_a_thread(x, kind, profile):
    return up_to(x, kind, profile, len(x), 2048)


@launch("four_rows_at_a_time", "Rows behind the last multiple of four are never launched.")
def _four_rows_at_a_time(x, kind, profile):
    return up_to(x, kind, profile, len(x) // 4 * 4, x.shape[1])


@launch("whole_blocks_alone", "The short block at the end of a row is left out.")
def _whole_blocks_alone(x, kind, profile):
    return up_to(x, kind, profile, len(x), x.shape[1] // 16 * 16)


@launch("whole_pairs_alone", "The last number of a row of odd length is left out.")
def _whole_pairs_alone(x, kind, profile):
    return up_to(x, kind, profile, len(x), x.shape[1] // 2 * 2)


@launch("one_row_of_numbers", "The tensor is one row, which is cut into blocks.")
def _one_row_of_numbers(x, kind, profile):
    top, tau, *rest = quantized(x.reshape(1, -1), kind, profile)
    across = -(-x.shape[1] // 16), -(-x.shape[1] // 2)
    sides = ((len(x), across[0]), (len(x), across[1]))
    return (
        *(np.resize(part, side) for part, side in zip((top, tau), sides, strict=True)),
        *(part.reshape(x.shape) for part in rest),
    )


@launch("reads_into_the_next_row", "The last block of a row has numbers of the next row, too.")
def _reads_into_the_next_row(x, kind, profile):
    columns = x.shape[1]
    across = -(-columns // 16)
    flat = np.concatenate([x.reshape(-1), np.zeros(across * 16, np.float32)])
    places = np.arange(len(x))[:, None] * columns + np.arange(across * 16)
    top = exponents(flat[places], kind, profile)
    return finished(x, top, kind, profile)


@launch("stale_shared_memory", "A short block has, behind its end, numbers of the block before it.")
def _stale_shared_memory(x, kind, profile):
    short, held = -x.shape[1] % 16, in_blocks(x, 16)
    if short and held.shape[1] > 1:
        held[:, -1, 16 - short :] = held[:, -2, 16 - short :]
    return finished(x, exponents(held.reshape(len(x), -1), kind, profile), kind, profile)


@launch("exponents_turned", "Exponents are written column by column.")
def _exponents_turned(x, kind, profile):
    top, *rest = quantized(x, kind, profile)
    return top.T.reshape(top.shape), *rest


@launch("down_the_columns", "Blocks are of 16 rows of a column.")
def _down_the_columns(x, kind, profile):
    parts = quantized(np.ascontiguousarray(x.T), kind, profile)
    top, tau, *rest = (part.T for part in parts)
    shapes = (len(x), -(-x.shape[1] // 16)), (len(x), -(-x.shape[1] // 2))
    return np.resize(top, shapes[0]), np.resize(tau, shapes[1]), *rest
