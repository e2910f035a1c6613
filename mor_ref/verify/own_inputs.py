"""A user's tensors, from files or as arrays, each with its random words if it has any.

The headers of files say which tensors there are; numbers are read on demand.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from mor_ref.analysis.bit_files import ENDINGS, bits_in
from mor_ref.analysis.stored_tensors import DTYPES
from mor_ref.analysis.tensor_files import StoredTensor, tensors_in
from mor_ref.arrays import numbers_from
from mor_ref.golden.inputs.own_tensors import OwnTensor
from mor_ref.operations.given_words import WORD

_END = f"/{WORD}"


def from_files(files: Iterable[str], *, with_words: bool = False) -> Iterator[OwnTensor]:
    """Yield the tensors of floats of files; refuse files without any.

    The words of a tensor are the array TENSOR/random_word of any of the files.
    """
    named = list(files)
    words = _words_in(named) if with_words else {}
    is_without = True
    for file in named:
        for one in tensors_in(file):
            if isinstance(one, StoredTensor):
                is_without = False
                dtype = DTYPES[one.dtype].name
                yield OwnTensor(one.name, one.shape, dtype, one.load, words.get(one.name))
    if is_without:
        raise ValueError("the files have no tensor of floats; give a file that has one")


def _words_in(files: Iterable[str]) -> dict[str, Callable[[], Any]]:
    """Return the readers of the random words, by the names of tensors."""
    return {
        tensor: fields[WORD].load
        for file in files
        if file.endswith(ENDINGS)
        for tensor, fields in bits_in(file)
        if WORD in fields
    }


def from_arrays(arrays: Mapping[str, Any], *, with_words: bool = False) -> Iterator[OwnTensor]:
    """Yield the tensors of a mapping of arrays by name, with the words that are named after one."""
    for name, array in arrays.items():
        if with_words and name.endswith(_END):
            continue
        numbers = numbers_from(array, f"tensor {name!r}")
        key = f"{name}{_END}"
        words = _giving(arrays[key]) if with_words and key in arrays else None
        yield OwnTensor(name, numbers.shape, numbers.dtype.name, _giving(array), words)


def _giving(array: Any) -> Callable[[], Any]:
    return lambda: array
