"""Launches that reach only a part of a block, unit or group, with a kernel for each shape.

Rows, columns and squares have separate kernels: a mistake in one hides behind the others.
"""

import functools
import itertools
from dataclasses import replace

import numpy as np

from wrong import launches
from wrong.kernel import Kernel
from wrong.microscaling import Register, decoded, encoded
from wrong.mor_launches import places
from wrong.mor_right import (
    LADDERS,
    acceptance,
    back,
    extremes,
    fields,
    mixed,
    read,
    scales,
    sides,
    written,
)
from wrong.porting import CASTS, Task, by, dispatch, finished
from wrong.reaches import (
    ALL_OF_THEM,
    FEWER,
    SCALINGS,
    SMALLER,
    first_numbers,
    mor,
    of_tensors,
    seeing_first,
    writing,
)
from wrong.scaling import right

KERNELS = Register()


def cut_of(block):
    """Return the kind of kernel for a block: row, column, square or a name."""
    if not isinstance(block, list):
        return block
    rows, columns = block
    return "row" if rows == 1 else "column" if columns == 1 else "square"


# The rows and columns that a launch reaches in a block, by the shape of the block.
REACHES = {
    "row": {"1024_columns": (1, 1024)},
    "column": {"64_rows": (64, 1), "1024_rows": (1024, 1)},
    "square": {"64_rows": (64, ALL_OF_THEM), "64_columns": (ALL_OF_THEM, 64)},
    "tensor": {"2048_rows": (2048, ALL_OF_THEM), "2048_columns": (ALL_OF_THEM, 2048)},
}


def reaches():
    """Yield the shape of blocks, the name of a reach, and its rows and columns."""
    for cut, sizes in REACHES.items():
        for name, (rows, columns) in sizes.items():
            yield cut, name, rows, columns


def only(cut, run):
    """Restrict a kernel to blocks of a shape."""

    def answer(operation, parameters, inputs):
        is_its = cut_of(parameters.get("block", "tensor")) == cut
        return run(operation, parameters, inputs) if is_its else None

    return answer


# Quantizing, for each format and scaling


def quantize(name, mistake, run, kinds, shown=()):
    """Register a kernel of tensors for each kind; small tensors expose the kinds in `shown`."""
    for fmt, scaling in kinds:
        unseen = {} if (fmt, scaling) in shown else {"quantize": SMALLER}
        (one,) = by("format", (fmt,), Kernel(name, run, mistake, unseen))
        KERNELS.extend(by("scaling", (scaling,), one))


def group_amax_of(rows, columns):
    """Return the entry of a kernel that takes the amax of groups from their first blocks."""

    def run(parameters, inputs):
        task = Task.of(parameters, inputs)
        amax = task.amax()
        down, across = (
            place_of_each(starts, of_groups)
            for starts, of_groups in (
                (task.blocks.rows, task.groups.rows),
                (task.blocks.columns, task.groups.columns),
            )
        )
        seen = (down < rows)[:, None] & (across < columns)
        groups = task.amax_of_groups(np.where(seen, amax, np.float32(0)))
        mantissa, _, _ = right(task.scaling, task.largest, groups, groups)
        _, exponent, scale = right(task.scaling, task.largest, task.of_blocks(groups), amax)
        return finished(task, scale, amax=amax, mantissa=mantissa, exponent=exponent)

    return of_tensors(dispatch(quantize=run))


def amax_of_blocks(task, columns):
    """Return the amaxes of blocks, with 0 after the first columns of blocks."""
    amax = task.amax()
    amax[:, columns:] = 0
    return amax


def place_of_each(starts, of_groups):
    """Return the place of each block in its group, from the starts of blocks and groups."""
    first = np.searchsorted(starts, of_groups)
    return np.arange(len(starts)) - first[np.searchsorted(of_groups, starts, side="right") - 1]


def in_groups(run):
    """Restrict a kernel to groups that have given rows and columns."""

    def answer(operation, parameters, inputs):
        is_whole = isinstance(parameters.get("group"), str)
        return None if is_whole else run(operation, parameters, inputs)

    return answer


KINDS = tuple(itertools.product(CASTS, SCALINGS))
# `quantize` has no blocks of columns with these.
WITHOUT_COLUMNS = tuple(itertools.product(("e2m3", "e3m2"), ("fp32", "e8m0")))
for cut, name, rows, columns in reaches():
    limited = launches.launch(functools.partial(launches.limited, rows=rows, columns=columns))
    mistake = f"the amax of a block that is a {cut} is that of its first {name}"
    shown = WITHOUT_COLUMNS if cut == "column" else ()
    quantize(f"amax_of_{name}_in_a_{cut}", mistake, only(cut, of_tensors(limited)), KINDS, shown)
rows_of_blocks = only("row", writing(64, ALL_OF_THEM))
quantize("first_64_rows_of_blocks", "64 threads have a row each", rows_of_blocks, KINDS)
for name, rows, columns in (
    ("16_rows", 16, ALL_OF_THEM),
    ("17_rows", 17, ALL_OF_THEM),
    ("32_columns", ALL_OF_THEM, 32),
    ("128_columns", ALL_OF_THEM, 128),
):
    mistake = f"the amax of a group is that of its first {name} of blocks"
    run = in_groups(group_amax_of(rows, columns))
    quantize(f"groups_of_{name}", mistake, run, [kind for kind in KINDS if kind[1] == "gam"])
quantize(
    "blocks_of_128_columns",
    "128 threads have a column of blocks each",
    of_tensors(launches.launch(functools.partial(amax_of_blocks, columns=128))),
    [kind for kind in KINDS if kind[1] == "gam"],
)
quantize(
    "block_of_65536_numbers",
    "the loop over the numbers of a block counts in 16 bits",
    of_tensors(launches.launch(launches.first_numbers(1 << 16))),
    KINDS,
)


# MoR, for each policy and scaling

# The blocks of `policies`.
OF_POLICIES = {
    *itertools.product(("row", "square"), LADDERS, SCALINGS),
    ("tensor", "tensor", "gam"),
}


def mor_in(cut, name, mistake, function, policies=tuple(LADDERS)):
    """Register a function of (bit patterns, parameters) for blocks of a shape."""
    kinds = list(itertools.product(policies, SCALINGS))
    kernels, no_reason = Register(), [kind for kind in kinds if (cut, *kind) not in OF_POLICIES]
    mor(kernels, name, mistake, function, no_reason, kinds)
    KERNELS.extend(replace(one, run=only(cut, one.run)) for one in kernels)


def scaled_by(rows, columns):
    """Return a function that takes scales from the first rows and columns of each block."""

    def mix(bits_in, parameters):
        x, unit, ys = read(bits_in, parameters)
        block = sides(parameters["block"], x.shape)
        down, across = places(x, block)
        amax, _ = extremes(np.where((down < rows) & (across < columns), x, np.float32(0)), block)
        # A block that is the tensor is its own group.
        whole = amax if parameters["block"] == "tensor" else extremes(x, x.shape)[0]
        for fmt in ys.keys() - {"nvfp4"}:
            scale = back(scales(amax, whole.max(), fmt, parameters["scaling"]), block, x.shape)
            ys[fmt] = decoded(encoded(x * scale, fmt), fmt) / scale
        found = fields(x, unit, ys)
        return found | written(bits_in, parameters, acceptance(parameters, found), ys)

    return mix


for cut, name, rows, columns in reaches():
    first = f"of a block that is a {cut} the first {name}"
    mor_in(cut, f"scaled_by_{name}_in_a_{cut}", f"{first} set the scale", scaled_by(rows, columns))
    mor_in(
        cut,
        f"seeing_{name}_in_a_{cut}",
        f"{first} are seen",
        seeing_first(rows, columns),
        [policy for policy in LADDERS if policy != "tensor"],  # its unit is the tensor
    )


# MoR, whole grids of units, and the numbers that binary32 counts


def units_of(rows, columns):
    """Return a launch with threads only for the first rows and columns of units."""

    def mix(bits_in, parameters):
        found = dict(mixed(bits_in, parameters))
        for name in found.keys() - {"output"}:
            found[name] = found[name].copy()
            found[name][rows:], found[name][:, columns:] = 0, 0
        return found

    return mix


def amax_counted(bits_in, parameters):
    """Return the fields of a kernel that finds the amax of a unit with a counter in binary32."""
    x, unit, ys = read(bits_in, parameters)
    found = fields(x, unit, ys) | {"amax": extremes(first_numbers(x, 1 << 24), unit)[0]}
    return found | written(bits_in, parameters, acceptance(parameters, found), ys)


def mor_of(policy, name, mistake, function):
    """Register a function of (bit patterns, parameters) for one policy with gam scaling."""
    one = Register()
    one.mor(name, mistake, (policy,), {"policies": FEWER})(function)
    KERNELS.extend(by("scaling", ("gam",), one[0]))


ROWS, COLUMNS = units_of(1024, ALL_OF_THEM), units_of(ALL_OF_THEM, 1024)
mor_of("two_way", "1024_rows_of_units", "1,024 threads have a row of units each", ROWS)
mor_of("three_way", "1024_columns_of_units", "1,024 threads have a column each", COLUMNS)
mor_of("tensor", "amax_counted_in_binary32", "a count ends at 2^24", amax_counted)
