"""A user's tensors as cases of an operation, under a treatment."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from mor_ref.arrays import numbers_from
from mor_ref.definitions.blocks import rows_and_columns
from mor_ref.golden.model.suite import Case
from mor_ref.treatments import OwnRecipe

_LONGEST_NAME = 80  # characters, so that one more word fits
SOURCES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}


def cases_of(recipe: OwnRecipe, tensors: Iterable[tuple[str, Any]]) -> Iterator[Case]:
    """Yield a case for each tensor with numbers, as rows and columns (BLK-001).

    With the axis columns, the rows and columns are transposed.

    >>> import numpy as np
    >>> from mor_ref.treatments import own_recipe
    >>> (case,) = cases_of(own_recipe("mxfp8:rceil"), [("a/b", np.ones((2, 3, 4), np.float32))])
    >>> case.name, case.arrays["x"].shape, case.parameters["source"]
    ('a_b', (6, 4), 'f32')
    """
    _ = recipe.asked  # refuses a recipe without an operation before anything is read
    taken: set[str] = set()
    for name, tensor in tensors:
        numbers = numbers_from(tensor, f"tensor {name!r}")
        source = SOURCES.get(numbers.dtype.name)
        if source is None:
            raise ValueError(
                f"tensor {name!r} has dtype {numbers.dtype}; give float32, float16 or bfloat16"
            )
        if numbers.bits.size:
            x = numbers.bits.reshape(rows_and_columns(numbers.shape))
            if recipe.axis == "columns":
                x = np.ascontiguousarray(x.T)
            parameters = {**recipe.parameters_for(name), "source": source}
            yield Case(_case_name(name, taken), parameters, {"x": x})


def _case_name(name: str, taken: set[str]) -> str:
    """Return a name that also is one of files and of C, and add it to those that are taken."""
    plain = re.sub("[^A-Za-z0-9_.+-]", "_", name)[-_LONGEST_NAME:]
    plain = plain.lstrip(".+-").rstrip(".") or "tensor"
    found, count = plain, 1
    while _in_c(found) in taken:
        count += 1
        found = f"{plain}-{count}"
    taken.add(_in_c(found))
    return found


def _in_c(name: str) -> str:
    return re.sub(r"\W", "_", name.lower())
