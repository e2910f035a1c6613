"""Launches that stop before the end of a unit, where its infinity or its smallest number is."""

import functools
import itertools

import numpy as np

from wrong.kernel import Kernel
from wrong.losses import counted
from wrong.microscaling import Register
from wrong.mor_launches import places
from wrong.mor_right import (
    acceptance,
    errors,
    extremes,
    fields,
    read,
    tiled,
    written,
)
from wrong.porting import CASTS, by, lost
from wrong.reaches import (
    ALL_OF_THEM,
    SCALINGS,
    SMALLER,
    first_numbers,
    first_of,
    mor,
    of_tensors,
)

KERNELS = Register()
REACHES = {"2048_columns": (ALL_OF_THEM, 2048), "2048_rows": (2048, ALL_OF_THEM)}


def lost_in_first(x, y, *, rows, columns):
    """Return which numbers are lost, only in the first rows and columns of a tensor."""
    seen = np.zeros(x.shape, bool)
    seen[:rows, :columns] = True
    return lost(x, y) & seen


for name, (rows, columns) in REACHES.items():
    run = of_tensors(counted(functools.partial(lost_in_first, rows=rows, columns=columns)))
    mistake = f"losses behind {name} are not counted"
    one = Kernel(f"lost_in_{name}", run, mistake, {"quantize": SMALLER})
    for fmt, scaling in itertools.product(CASTS, SCALINGS):
        KERNELS.extend(by("scaling", (scaling,), by("format", (fmt,), one)[0]))


def choosing_by_losses_of(rows, columns):
    """Return a function that computes choices and output from the losses in a part of each unit."""

    def mix(bits_in, parameters):
        x, unit, ys = read(bits_in, parameters)
        down, across = places(x, unit)
        seen, found = (down < rows) & (across < columns), fields(x, unit, ys)
        for name, y in ys.items():
            losses = errors(x, y)[2] & seen
            found[f"{name}.nonfinite"] = tiled(losses, unit, dtype=np.uint64)
        return written(bits_in, parameters, acceptance(parameters, found), ys)

    return mix


def amin_of(first, *sizes):
    """Return a function that takes amin from the first numbers of the tensor."""

    def mix(bits_in, parameters):
        x, unit, ys = read(bits_in, parameters)
        _, amin = extremes(first(x, *sizes), unit)
        found = fields(x, unit, ys) | {"amin": amin}
        return found | written(bits_in, parameters, acceptance(parameters, found), ys)

    return mix


for name, (rows, columns) in REACHES.items():
    behind = f"behind {name} are not seen"
    mor(
        KERNELS,
        f"chosen_by_losses_of_{name}",
        f"losses {behind}",
        choosing_by_losses_of(rows, columns),
    )
    mor(KERNELS, f"amin_of_{name}", f"small numbers {behind}", amin_of(first_of, rows, columns))
mor(KERNELS, "amin_of_65536_numbers", "an index of 16 bits ends", amin_of(first_numbers, 1 << 16))
