"""Tiles at the edges of tensors, and groups of tiles, with mistakes of kernels."""

import numpy as np

from wrong.kernel import Kernel
from wrong.porting import Grid, Task, dispatch, errors, finished, from_code, lost, to_code
from wrong.scaling import right

F32 = np.float32


def whole(function):
    """Return the entry of a kernel that computes all results of a tensor."""
    return dispatch(quantize=lambda parameters, inputs: function(Task.of(parameters, inputs)))


def _padded(task):
    """Return the sides of whole blocks, and how often they repeat."""
    starts = task.blocks.rows, task.blocks.columns
    sides = [int(s[1]) if s.size > 1 else n for s, n in zip(starts, task.x.shape, strict=True)]
    return sides, [s.size for s in starts]


def edges_of_the_last(task):
    """Pad the edges with the last row and column: the amax is right, but they are counted."""
    sides, counts = _padded(task)
    amax = task.amax()
    groups = task.amax_of_groups(amax)
    mantissa, _, _ = right(task.scaling, task.largest, groups, groups)
    _, exponent, scale = right(task.scaling, task.largest, task.of_blocks(groups), amax)
    spread = task.of_elements(scale)
    code = to_code(task.x * spread, task.name)
    y = from_code(code, task.name) / spread
    beyond = [s * c - n for s, c, n in zip(sides, counts, task.x.shape, strict=True)]
    x, long_y = (np.pad(a, [(0, n) for n in beyond], mode="edge") for a in (task.x, y))
    u, counted = errors(x, long_y)[2:]
    grid = Grid(task.blocks.rows, task.blocks.columns, x.shape)
    fields = {"sum": u, "nonzero": counted, "nonfinite": lost(x, long_y)}
    sums = {name: grid.reduce(np.add, a.astype(np.uint64)) for name, a in fields.items()}
    return task.answer(mantissa=mantissa, exponent=exponent, code=code, y=y, **sums)


def dropped_edges(task):
    """Launch a grid of whole blocks: the last ones keep the fill of the outputs."""
    amax = task.amax()
    sides, counts = _padded(task)
    whole = [n // s for s, n in zip(sides, task.x.shape, strict=True)]
    for axis, (some, all_) in enumerate(zip(whole, counts, strict=True)):
        if some < all_:
            np.moveaxis(amax, axis, 0)[-1] = 0
    groups = task.amax_of_groups(amax)
    of_blocks = task.of_blocks(groups)
    _, exponent, scale = right(task.scaling, task.largest, of_blocks, amax)
    return finished(task, scale, amax=amax, exponent=exponent)


def one_group(task):
    """Share one mantissa in the tensor, whatever the groups."""
    return _grouped(task, lambda per_block: np.full_like(per_block, per_block.max(initial=0)))


def _grouped(task, shared):
    """Return the results except mantissas, with the given amax of the group of each block."""
    amax = task.amax()
    groups = shared(amax).astype(F32)
    _, exponent, scale = right(task.scaling, task.largest, groups, amax)
    return finished(task, scale, amax=amax, exponent=exponent)


def smallest_scale(task):
    """Take the mantissa of the smallest scale in the group, which is 1 in a block of zeros."""
    if task.scaling != "gam":
        return None
    amax = task.amax()
    some = np.where(amax > 0, amax, F32(0))
    scale = np.where(amax > 0, task.largest / some, F32(1))
    groups = task.groups.reduce(np.minimum, task.blocks.spread(scale))
    groups = np.where(np.isinf(groups), task.amax_of_groups(amax), task.largest / groups)
    return _grouped(task, lambda _: task.of_blocks(groups.astype(F32)))


def turned_groups(task):
    """Take the group of a block from the transposed grid of groups."""
    groups = task.amax_of_groups(task.amax())
    flat = groups.T.reshape(groups.shape)
    return _grouped(task, lambda _: task.of_blocks(flat))


def group_of_the_first(task):
    """Reduce a group along its first row of blocks."""
    amax = task.amax()
    first = task.blocks.spread(amax)
    keep = np.isin(task.blocks.rows, task.groups.rows)
    first = np.where(task.blocks.spread(np.repeat(keep[:, None], amax.shape[1], 1)), first, F32(0))
    groups = task.groups.reduce(np.maximum, first)
    return _grouped(task, lambda _: task.of_blocks(groups))


def turned_blocks(task):
    """Exchange the sides of blocks, as in a transposed tensor, but keep the grid."""
    (height, width), (down, across) = _padded(task)
    rows = np.minimum(np.arange(task.x.shape[0]) // width, down - 1)
    columns = np.minimum(np.arange(task.x.shape[1]) // height, across - 1)
    amax = np.zeros((down, across), F32)
    np.maximum.at(
        amax, np.ix_(rows, columns), np.where(np.isfinite(task.x), np.abs(task.x), F32(0))
    )
    groups = task.of_blocks(task.amax_of_groups(amax))
    _, exponent, scale = right(task.scaling, task.largest, groups, amax)
    return finished(task, scale, amax=amax, exponent=exponent)


KERNELS = [
    Kernel("smallest_scale", whole(smallest_scale), "a block of zeros has the scale 1"),
    Kernel("edges_of_the_last", whole(edges_of_the_last), "edges are padded with numbers"),
    Kernel("dropped_edges", whole(dropped_edges), "blocks at the edges have no amax"),
    Kernel("one_group", whole(one_group), "one mantissa, whatever the groups"),
    Kernel("turned_groups", whole(turned_groups), "groups are indexed by column and row"),
    Kernel("group_of_the_first", whole(group_of_the_first), "a group's first row of blocks"),
    Kernel("turned_blocks", whole(turned_blocks), "the sides of blocks are exchanged"),
]
