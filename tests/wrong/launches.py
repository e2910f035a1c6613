"""Whole tensors, as kernels walk over them: what a launch, a warp or a loop leaves out."""

import numpy as np

from wrong.kernel import Kernel
from wrong.porting import (
    ORDINARY,
    Grid,
    Task,
    dispatch,
    errors,
    finished,
    from_code,
    lost,
    to_code,
)
from wrong.scaling import right

F32, U32 = np.float32, np.uint32


def launch(amaxes):
    """The entry of a kernel whose function has the amax of blocks, or None for what it lacks."""

    def quantize(parameters, inputs):
        task = Task.of(parameters, inputs)
        amax = amaxes(task)
        if amax is None:
            return None
        groups = task.amax_of_groups(amax)
        mantissa, _, _ = right(task.scaling, task.largest, groups, groups)
        of_blocks = task.of_blocks(groups)
        _, exponent, scale = right(task.scaling, task.largest, of_blocks, amax)
        return finished(task, scale, amax=amax, mantissa=mantissa, exponent=exponent)

    return dispatch(quantize=quantize, quantize_block=quantize)


def whole(function):
    """The entry of a kernel that has all of a tensor's results."""
    entry = lambda parameters, inputs: function(Task.of(parameters, inputs))  # noqa: E731
    return dispatch(quantize=entry, quantize_block=entry)


def _finite(x):
    magnitudes = np.abs(x)
    return np.where(magnitudes < np.inf, magnitudes, F32(0))


def integers(task):
    """The largest bit pattern without its sign, of the finite ones: the right one."""
    bits = np.ascontiguousarray(task.x).view(U32) & U32(0x7FFFFFFF)
    bits = np.where(bits < 0x7F800000, bits, U32(0))
    return task.blocks.reduce(np.maximum, bits).view(F32)


def without_abs(task):
    """The largest number, not magnitude."""
    x = np.where(np.isfinite(task.x), task.x, F32(0))
    return np.maximum(task.blocks.reduce(np.maximum, x), F32(0))


def larger_of_the_ends(task):
    """The largest number, and the negated smallest if the block has none that is positive."""
    x = np.where(np.isfinite(task.x), task.x, F32(0))
    top = task.blocks.reduce(np.maximum, x)
    return np.where(top > 0, top, -task.blocks.reduce(np.minimum, x))


def with_infinities(task):
    """fmaxf, which skips NaN but no infinity."""
    return task.blocks.reduce(np.fmax, np.abs(task.x))


def with_nan(task):
    """The maximum of torch, which NaN wins."""
    x = np.where(np.isinf(task.x), F32(0), np.abs(task.x))
    return task.blocks.reduce(np.maximum, x)


def clamped(task):
    """Take FLT_MAX for an infinity."""
    return np.fmin(task.blocks.reduce(np.fmax, np.abs(task.x)), np.finfo(F32).max)


def none_if_any_is_infinite(task):
    """An amax that is not finite counts as 0."""
    amax = task.blocks.reduce(np.maximum, np.abs(task.x))
    return np.where(np.isfinite(amax), amax, F32(0))


def begun_with_the_first(task):
    """Begin with the first element, and compare: a NaN there stays."""
    x = np.where(np.isinf(task.x), F32(0), np.abs(task.x))
    first = x[np.ix_(task.blocks.rows, task.blocks.columns)]
    return np.where(np.isnan(first), first, task.blocks.reduce(np.fmax, x))


def in_half(task):
    """Reduce bfloat16, for speed."""
    bits = np.ascontiguousarray(_finite(task.x)).view(U32) & U32(0xFFFF0000)
    return task.blocks.reduce(np.maximum, bits.view(F32))


def _inside(task):
    """The row and the column of each element inside of its block."""
    return (
        np.arange(n) - starts[np.searchsorted(starts, np.arange(n), side="right") - 1]
        for n, starts in zip(task.x.shape, (task.blocks.rows, task.blocks.columns), strict=True)
    )


def _widths(task):
    widths = np.diff([*task.blocks.columns, task.x.shape[1]])
    return np.broadcast_to(widths, (task.blocks.rows.size, widths.size))


def _limited(task, rows, columns):
    """The amax of what lies in the first rows and columns of each block."""
    down, across = _inside(task)
    inside = (down < rows)[:, None] & (across < columns)
    return task.blocks.reduce(np.maximum, np.where(inside, _finite(task.x), F32(0)))


def one_warp(task):
    """A lane for each column of a block, of which a warp has 32."""
    return _limited(task, 1 << 30, 32)


def half_a_warp(task):
    return _limited(task, 1 << 30, 16)


def launch_of_512(task):
    return _limited(task, 1 << 30, 512)


def rows_of_1024(task):
    return _limited(task, 1024, 1 << 30)


def rows_of_16(task):
    """Sixteen rows of threads, without a loop."""
    return _limited(task, 16, 1 << 30)


def threads_of_1024(task):
    """A thread for each element of a block, of which there are 1,024 at most."""
    rows, columns = _inside(task)
    spread = task.of_elements(_widths(task))
    inside = rows[:, None] * spread + columns < 1024
    return task.blocks.reduce(np.maximum, np.where(inside, _finite(task.x), F32(0)))


def grid_of_65535(task):
    """A block of threads for each row of blocks, in the dimension that has 16 bits."""
    amax = task.amax()
    amax[65535:] = 0
    return amax


def vectors_of_four(task):
    """Loads of four columns; those beyond the last whole four are not read."""
    columns = task.x.shape[1] // 4 * 4
    if columns == 0:
        return None
    x = _finite(task.x)
    x[:, columns:] = 0
    return task.blocks.reduce(np.maximum, x)


def _padded(task):
    """The sides of whole blocks, and how often they repeat."""
    starts = task.blocks.rows, task.blocks.columns
    sides = [int(s[1]) if s.size > 1 else n for s, n in zip(starts, task.x.shape, strict=True)]
    return sides, [s.size for s in starts]


def edges_of_the_last(task):
    """Pad the edges with the last row and column, which leaves an amax; but count them."""
    sides, counts = _padded(task)
    if task.groups is None or not task.x.size:
        return None
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
    """A grid of whole blocks: the last ones are left at what the outputs were filled with."""
    if task.groups is None:
        return None
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
    if task.groups is None:
        return None
    return _grouped(task, lambda per_block: np.full_like(per_block, per_block.max(initial=0)))


def _grouped(task, shared):
    """The results without mantissas, if the amax of each block's group is this."""
    amax = task.amax()
    groups = shared(amax).astype(F32)
    _, exponent, scale = right(task.scaling, task.largest, groups, amax)
    return finished(task, scale, amax=amax, exponent=exponent)


def turned_groups(task):
    """Take the group of a block with rows and columns of the group's grid exchanged."""
    if task.groups is None:
        return None
    groups = task.amax_of_groups(task.amax())
    flat = groups.T.reshape(groups.shape)
    return _grouped(task, lambda _: task.of_blocks(flat))


def group_of_the_first(task):
    """Reduce a group along its first row of blocks."""
    if task.groups is None:
        return None
    amax = task.amax()
    first = task.blocks.spread(amax)
    keep = np.isin(task.blocks.rows, task.groups.rows)
    first = np.where(task.blocks.spread(np.repeat(keep[:, None], amax.shape[1], 1)), first, F32(0))
    groups = task.groups.reduce(np.maximum, first)
    return _grouped(task, lambda _: task.of_blocks(groups))


def turned_blocks(task):
    """Swap the sides of blocks, as in a tensor that is transposed, and stay in the grid."""
    if task.groups is None:
        return None
    (height, width), (down, across) = _padded(task)
    rows = np.minimum(np.arange(task.x.shape[0]) // width, down - 1)
    columns = np.minimum(np.arange(task.x.shape[1]) // height, across - 1)
    amax = np.zeros((down, across), F32)
    np.maximum.at(amax, np.ix_(rows, columns), _finite(task.x))
    groups = task.of_blocks(task.amax_of_groups(amax))
    _, exponent, scale = right(task.scaling, task.largest, groups, amax)
    return finished(task, scale, amax=amax, exponent=exponent)


_SIXTEEN = {"quantize_blocks": "its blocks are one row of 16 numbers"}
_SMALL = _SIXTEEN | {"quantize": "its tensors are small"}
_ONE_GROUP = {"quantize_large": "its tensors are one group each"}
KERNELS = [
    Kernel("amax_of_integers", launch(integers)),
    Kernel("without_abs", launch(without_abs), "the amax is that of the positive numbers"),
    Kernel("larger_of_the_ends", launch(larger_of_the_ends), "negative numbers only alone"),
    Kernel("with_infinities", launch(with_infinities), "an infinity is an amax", ORDINARY),
    Kernel("with_nan", launch(with_nan), "a NaN is an amax", ORDINARY),
    Kernel("infinity_as_flt_max", launch(clamped), "an infinity counts as FLT_MAX", ORDINARY),
    Kernel(
        "none_if_infinite",
        launch(none_if_any_is_infinite),
        "an infinity hides all others",
        ORDINARY,
    ),
    Kernel(
        "begun_with_the_first", launch(begun_with_the_first), "a NaN in front is the amax", ORDINARY
    ),
    Kernel("amax_in_half", launch(in_half), "the amax is cut to bfloat16"),
    Kernel("one_warp", launch(one_warp), "an amax of the first 32 columns of a block", _SIXTEEN),
    Kernel(
        "half_a_warp", launch(half_a_warp), "an amax of the first 16 columns of a block", _SIXTEEN
    ),
    Kernel("launch_of_512", launch(launch_of_512), "an amax of the first 512 columns", _SMALL),
    Kernel("rows_of_1024", launch(rows_of_1024), "an amax of the first 1,024 rows", _SMALL),
    Kernel("rows_of_16", launch(rows_of_16), "an amax of the first 16 rows of a block", _SIXTEEN),
    Kernel(
        "threads_of_1024", launch(threads_of_1024), "an amax of 1,024 numbers of a block", _SIXTEEN
    ),
    Kernel(
        "grid_of_65535", launch(grid_of_65535), "an amax of the first 65,535 rows of blocks", _SMALL
    ),
    Kernel("vectors_of_four", launch(vectors_of_four), "the last columns have no amax", _SIXTEEN),
    Kernel("edges_of_the_last", whole(edges_of_the_last), "edges are padded with numbers"),
    Kernel("dropped_edges", whole(dropped_edges), "blocks at the edges have no amax"),
    Kernel("one_group", whole(one_group), "one mantissa, whatever the groups", _ONE_GROUP),
    Kernel(
        "turned_groups", whole(turned_groups), "groups are indexed by column and row", _ONE_GROUP
    ),
    Kernel("group_of_the_first", whole(group_of_the_first), "a group's first row of blocks"),
    Kernel("turned_blocks", whole(turned_blocks), "the sides of blocks are exchanged"),
]
