"""MoR as a library with a launch for each rung of a policy, if one launch ends early."""

from dataclasses import replace

import numpy as np

from wrong.microscaling import Register
from wrong.mor_right import LADDERS, back, mixed, units_of
from wrong.porting import by
from wrong.reaches import ALL_OF_THEM, FEWER, INDEX, SCALINGS, first_numbers

KERNELS = Register()
ENDS = {
    "1024_rows": ("1,024 threads have a row each", 1024, ALL_OF_THEM, ALL_OF_THEM),
    "1024_columns": ("1,024 threads have a column each", ALL_OF_THEM, 1024, ALL_OF_THEM),
    "65536_numbers": (INDEX, ALL_OF_THEM, ALL_OF_THEM, 1 << 16),
}
RUNGS = {policy: [*ladder, "bf16"] for policy, ladder in LADDERS.items()}


def written_to(rung, rows, columns, numbers):
    """Return the function of a kernel that writes only a part of the output of a rung."""

    def mix(bits_in, parameters):
        found = dict(mixed(bits_in, parameters))
        choice = back(found["choice"], units_of(bits_in, parameters), bits_in.shape)
        reached = first_numbers(np.ones(bits_in.shape), numbers) > 0
        reached[rows:], reached[:, columns:] = False, False
        of_the_rung = choice == RUNGS[parameters["policy"]].index(rung)
        found["output"] = np.where(of_the_rung & ~reached, np.uint16(0), found["output"])
        return found

    return mix


for policy, rungs in RUNGS.items():
    for rung in rungs:
        for end, (mistake, *sizes) in ENDS.items():
            one = Register()
            one.mor(f"{rung}_of_{end}", f"in {rung}, {mistake}", (policy,), {"policies": FEWER})(
                written_to(rung, *sizes)
            )
            for kernel in by("scaling", SCALINGS, one[0]):
                KERNELS.append(replace(kernel, name=f"{kernel.name}.{policy}"))
