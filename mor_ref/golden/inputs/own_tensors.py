"""A user's tensors as cases of an operation, with a recipe."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import numbers_from, unsigned_from
from mor_ref.definitions.blocks import check_groups, rows_and_columns
from mor_ref.golden.model.suite import Case
from mor_ref.mapped_files import in_memory
from mor_ref.operations import OPERATIONS
from mor_ref.operations.given_words import WORD
from mor_ref.recipes import OwnRecipe, rungs_of

_LONGEST_NAME = 80  # characters, so that one more word fits
SOURCES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}


@dataclass(frozen=True)
class OwnTensor:
    """A tensor of a user: its name, shape and dtype, and how its numbers are read.

    `words` reads the random words of its elements, if there are any.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    load: Callable[[], Any]
    words: Callable[[], Any] | None = None


@dataclass(frozen=True)
class OwnCase:
    """A case that is not read yet: its name, its parameters, and the rows and columns of x."""

    name: str
    parameters: dict[str, Any]
    shape: tuple[int, int]
    recipe: OwnRecipe
    tensor: OwnTensor

    @property
    def size(self) -> int:
        """The count of numbers."""
        return self.shape[0] * self.shape[1]

    def read(self) -> Case:
        """Return the case, with the tensor as rows and columns (BLK-001).

        The numbers of a large tensor may stay in its file: `case_in_memory` reads them.
        """
        numbers = numbers_from(self.tensor.load(), f"tensor {self.tensor.name!r}")
        arrays = {"x": self._folded(numbers.bits)}
        if self.recipe.n_random_bits is not None:
            arrays[WORD] = self._folded(self._words(self.recipe.n_random_bits))
        return Case(self.name, self.parameters, arrays)

    def _folded(self, array: NDArray[Any]) -> NDArray[Any]:
        folded = array.reshape(rows_and_columns(self.tensor.shape))
        if self.recipe.axis != "columns":
            return folded
        return np.ascontiguousarray(in_memory(folded).T)

    def _words(self, bits: int) -> NDArray[Any]:
        named = f"{self.tensor.name}/{WORD}"
        if self.tensor.words is None:
            raise ValueError(
                f"tensor {self.tensor.name!r} has no random words, which n_random_bits in the "
                f"recipe asks for; give an array of unsigned integers named {named}"
            )
        words = unsigned_from(self.tensor.words(), bits, np.dtype(np.uint32), named)
        if words.shape != self.tensor.shape:
            raise ValueError(
                f"{named} has shape {words.shape}, and the tensor has {self.tensor.shape}; give a "
                "word for each number"
            )
        return words


def unread_cases(recipe: OwnRecipe, tensors: Iterable[OwnTensor]) -> Iterator[OwnCase]:
    """Yield a case for each tensor with numbers, before the numbers are read.

    With the axis columns, the rows and columns are transposed.
    """
    _check_operations(recipe)  # before anything is read
    taken: set[str] = set()
    for tensor in tensors:
        source = SOURCES.get(tensor.dtype)
        if source is None:
            raise ValueError(
                f"tensor {tensor.name!r} has dtype {tensor.dtype}; give float32, float16 or "
                "bfloat16"
            )
        rows, columns = rows_and_columns(tensor.shape)
        if rows * columns:
            shape = (columns, rows) if recipe.axis == "columns" else (rows, columns)
            parameters = {**recipe.parameters_for(tensor.name), "source": source}
            if "groups" in parameters:
                _check_groups(tensor.name, parameters["groups"], shape[1])
            yield OwnCase(_case_name(tensor.name, taken), parameters, shape, recipe, tensor)


def _check_groups(tensor: str, groups: int, columns: int) -> None:
    """Refuse groups that do not divide the columns of a tensor (AFF-010)."""
    try:
        check_groups(groups, columns)
    except ValueError as error:
        raise ValueError(f"tensor {tensor!r}: {error}, or leave the tensor out") from error


def _check_operations(recipe: OwnRecipe) -> None:
    """Refuse a recipe without an operation, and operations that are not known."""
    own = {recipe.tensor_recipe.head: recipe.asked}
    for name, asked in (own | rungs_of(recipe.asked)).items():
        if asked.operation not in OPERATIONS:
            raise ValueError(
                f"asked of {name!r} returned the operation {asked.operation!r}, which is not in "
                "mor_ref.operations.OPERATIONS; add it there"
            )


def cases_of(recipe: OwnRecipe, tensors: Iterable[OwnTensor]) -> Iterator[Case]:
    """Yield a case for each tensor with numbers; each is read when its turn comes.

    >>> import numpy as np
    >>> from mor_ref.recipes import own_recipe
    >>> tensor = OwnTensor("a/b", (2, 3, 4), "float32", lambda: np.ones((2, 3, 4), np.float32))
    >>> (case,) = cases_of(own_recipe("mxfp8:rceil"), [tensor])
    >>> case.name, case.arrays["x"].shape, case.parameters["source"]
    ('a_b', (6, 4), 'f32')
    """
    return (case.read() for case in unread_cases(recipe, tensors))


def _case_name(name: str, taken: set[str]) -> str:
    """Return a name that is valid in C and for files, and add it to `taken`."""
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
