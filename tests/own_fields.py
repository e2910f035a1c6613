"""A tensor for policies, and the fields that a recipe stores of it, by the exact model."""

import numpy as np

from mor_ref.operations import OPERATIONS
from mor_ref.recipes import Asked, rungs_of


def exact_fields(operation, case):
    """Return the fields of a case, and those of the rungs of a policy as RUNG.FIELD."""
    found = dict(OPERATIONS[operation].exact(case.parameters, case.arrays))
    for rung, asked in rungs_of(Asked(operation, case.parameters)).items():
        of_rung = OPERATIONS[asked.operation].exact(asked.parameters, case.arrays)
        found |= {f"{rung}.{name}": a for name, a in of_rung.items() if name not in ("y", "sum")}
    return found


def rungs_in_blocks():
    """Return a tensor in which blocks of 4x16 take e4m3, e5m2 and bfloat16."""
    random = np.random.default_rng(11)
    x = random.standard_normal((20, 70), dtype=np.float32)
    x[8:16] *= np.exp2(random.integers(-24, 1, (8, 70))).astype(np.float32)
    x[16:] *= np.exp2(random.integers(-50, 1, (4, 70))).astype(np.float32)
    x[3, 3] = -0.0
    return x
