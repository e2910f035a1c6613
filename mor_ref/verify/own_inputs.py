"""A user's tensors, from files or as arrays, each with its random words if it has any.

The headers of files say which tensors there are; numbers are read on demand. Tensors that no
recipe takes are skipped, each with its reason.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.analysis.bit_files import ENDINGS, bits_in
from mor_ref.analysis.listing import Selection
from mor_ref.analysis.piped_files import as_file
from mor_ref.analysis.stored_tensors import DTYPES, SkippedTensor, StoredTensor, name_shown
from mor_ref.analysis.tensor_files import tensors_of
from mor_ref.arrays import numbers_from
from mor_ref.counts_in_words import counted, listed
from mor_ref.golden.inputs.own_tensors import SOURCES, OwnTensor
from mor_ref.mapped_files import in_memory
from mor_ref.operations.given_words import BITS, WORD

_END, _EMPTY = f"/{WORD}", "it is empty"
_GIVEN = "float64, float32, float16, bfloat16 or a CPU torch tensor of one of these"
_WIDE, _BINARY32 = "f64", "float32"
_FEW, _LINES = 3, 20  # skipped tensors of an error, and of a report
ALL = Selection()


@dataclass(frozen=True)
class OwnInputs:
    """The tensors of a user, from the first one on each time, and those that are skipped.

    `rounded` are the names of the tensors of float64, which are binary32 here (QNT-004).
    """

    each: Callable[[], Iterator[OwnTensor]]
    skipped: tuple[SkippedTensor, ...] = ()
    named: str = "own tensors"
    rounded: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[OwnTensor]:
        return self.each()

    def refuse_nothing(self) -> None:
        """Refuse inputs without a tensor that a recipe takes."""
        if next(iter(self), None) is None:
            reasons = "; ".join(map(str, self.skipped[:_FEW])) or "there is none"
            raise ValueError(
                f"inputs have no tensor that a recipe takes: {reasons}; give float32, float16 or "
                "bfloat16 tensors that are not empty, or float64, which is rounded first"
            )


def from_files(
    files: Iterable[str], selection: Selection = ALL, *, with_words: bool = False
) -> OwnInputs:
    """Return the tensors of files, each once.

    The words of a tensor are the array TENSOR/random_word of any of the files.
    """
    named = list(files)
    words = _words_in(named) if with_words else {}

    def stored() -> Iterator[StoredTensor | SkippedTensor]:
        for _, one, is_again in tensors_of(named):
            is_word = with_words and one.name.endswith(_END)
            if not is_word and not is_again and selection.reason_against(one) is None:
                yield _with_numbers(one)

    headers = [*stored()]
    found = OwnInputs(
        lambda: (_taken(one, words) for one in stored() if isinstance(one, StoredTensor)),
        tuple(one for one in headers if isinstance(one, SkippedTensor)),
        ", ".join(named),
        tuple(one.name for one in headers if isinstance(one, StoredTensor) and one.dtype == _WIDE),
    )
    found.refuse_nothing()
    return found


def _with_numbers(one: StoredTensor | SkippedTensor) -> StoredTensor | SkippedTensor:
    """Return a tensor, or the reason why no recipe takes it."""
    if isinstance(one, StoredTensor) and 0 in one.shape:
        return SkippedTensor(one.name, one.shape, one.dtype, _EMPTY)
    return one


def _taken(one: StoredTensor, words: Mapping[str, Callable[[], Any]]) -> OwnTensor:
    """Return a tensor as one that a recipe takes."""
    dtype, load = DTYPES[one.dtype].name, one.load
    if dtype not in SOURCES:
        dtype, load = _BINARY32, partial(_rounded, one.name, one.load)
    return OwnTensor(one.name, one.shape, dtype, load, words.get(one.name))


def _rounded(name: str, load: Callable[[], Any]) -> NDArray[np.float32]:
    """Return a tensor of float64 as binary32 (QNT-004)."""
    numbers = numbers_from(load(), f"tensor {name!r}", _GIVEN)
    with np.errstate(all="ignore"):
        wide = in_memory(numbers.bits).view(np.float64)
        return wide.astype(np.float32).reshape(numbers.shape)


def _words_in(files: Iterable[str]) -> dict[str, Callable[[], Any]]:
    """Return the readers of the random words, by the names of tensors."""
    return {
        tensor: fields[WORD].load
        for file in files
        if as_file(file).suffix in ENDINGS
        for tensor, fields in bits_in(file)
        if WORD in fields and fields[WORD].format is None
    }


def from_arrays(arrays: Mapping[str, Any], *, with_words: bool = False) -> OwnInputs:
    """Return the tensors of a mapping of arrays by name, with the words that are named after one.

    An array of another dtype is refused, as who calls can convert it.
    """
    taken, skipped, rounded = [], [], []
    for name, array in arrays.items():
        if not isinstance(name, str):
            raise TypeError(f"the name of a tensor is {name!r}; give text, such as {str(name)!r}")
        if with_words and name.endswith(_END):
            continue
        if name.endswith(_END) and name.removesuffix(_END) in arrays:
            raise ValueError(
                f"{name} has random words, which the recipe does not ask for; add {BITS}= to the "
                f"recipe, such as nvfp4:{BITS}=16, or leave the words out"
            )
        numbers = numbers_from(array, f"tensor {name!r}", _GIVEN)
        key, dtype, load = f"{name}{_END}", numbers.dtype.name, _giving(array)
        words = _giving(arrays[key]) if with_words and key in arrays else None
        if 0 in numbers.shape:
            skipped.append(SkippedTensor(name, numbers.shape, dtype, _EMPTY))
            continue
        if dtype not in SOURCES:
            rounded.append(name)
            dtype, load = _BINARY32, partial(_rounded, name, load)
        taken.append(OwnTensor(name, numbers.shape, dtype, load, words))
    found = OwnInputs(lambda: iter(taken), tuple(skipped), rounded=tuple(rounded))
    found.refuse_nothing()
    return found


def _giving(array: Any) -> Callable[[], Any]:
    return lambda: array


def lines_of_rounded(rounded: tuple[str, ...]) -> Iterator[str]:
    """Yield the line that names the tensors of float64, if there are any."""
    if rounded:
        names = listed([name_shown(name) for name in rounded])
        yield f"rounded from float64 to float32 first (QNT-004): {names}"


def lines_of_skipped(skipped: tuple[SkippedTensor, ...]) -> Iterator[str]:
    """Yield how many tensors are skipped, and each of the first ones with its reason."""
    if skipped:
        yield f"skipped: {counted(len(skipped), 'tensor')}"
    yield from (f"  {one}" for one in skipped[:_LINES])
    if len(skipped) > _LINES:
        yield f"  and {len(skipped) - _LINES:,} more"
