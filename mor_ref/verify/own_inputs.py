"""A user's tensors, from files or as arrays, each with its random words if it has any.

The headers of files say which tensors there are; numbers are read on demand. Tensors that no
recipe takes are skipped, each with its reason.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mor_ref.analysis.bit_files import ENDINGS, bits_in
from mor_ref.analysis.listing import Selection
from mor_ref.analysis.stored_tensors import DTYPES, SkippedTensor, StoredTensor
from mor_ref.analysis.tensor_files import tensors_of
from mor_ref.arrays import numbers_from
from mor_ref.golden.inputs.own_tensors import SOURCES, OwnTensor
from mor_ref.operations.given_words import BITS, WORD
from mor_ref.verify.counts_in_words import counted

_END, _EMPTY = f"/{WORD}", "it is empty"
_GIVEN = "float32, float16, bfloat16 or a CPU torch tensor of one of these"
_FEW, _LINES = 3, 20  # skipped tensors of an error, and of a report
ALL = Selection()


@dataclass(frozen=True)
class OwnInputs:
    """The tensors of a user, from the first one on each time, and those that are skipped."""

    each: Callable[[], Iterator[OwnTensor]]
    skipped: tuple[SkippedTensor, ...] = ()
    named: str = "own tensors"

    def __iter__(self) -> Iterator[OwnTensor]:
        return self.each()

    def refuse_nothing(self) -> None:
        """Refuse inputs without a tensor that a recipe takes."""
        if next(iter(self), None) is None:
            reasons = "; ".join(map(str, self.skipped[:_FEW])) or "there is none"
            raise ValueError(
                f"inputs have no tensor that a recipe takes: {reasons}; give float32, float16 or "
                "bfloat16 tensors that are not empty"
            )


def from_files(
    files: Iterable[str], selection: Selection = ALL, *, with_words: bool = False
) -> OwnInputs:
    """Return the tensors of files, each once.

    The words of a tensor are the array TENSOR/random_word of any of the files.
    """
    named = list(files)
    words = _words_in(named) if with_words else {}

    def each() -> Iterator[OwnTensor | SkippedTensor]:
        for _, one, is_again in tensors_of(named):
            is_word = with_words and one.name.endswith(_END)
            if not is_word and not is_again and selection.reason_against(one) is None:
                yield _taken(one, words)

    skipped = tuple(one for one in each() if isinstance(one, SkippedTensor))
    found = OwnInputs(
        lambda: (one for one in each() if isinstance(one, OwnTensor)), skipped, ", ".join(named)
    )
    found.refuse_nothing()
    return found


def _taken(
    one: StoredTensor | SkippedTensor, words: Mapping[str, Callable[[], Any]]
) -> OwnTensor | SkippedTensor:
    """Return a tensor as one that a recipe takes, or with the reason why none does."""
    if isinstance(one, SkippedTensor):
        return one
    dtype = DTYPES[one.dtype].name
    if 0 in one.shape:
        return SkippedTensor(one.name, one.shape, one.dtype, _EMPTY)
    if dtype not in SOURCES:
        reason = f"recipes take {', '.join(SOURCES)}, and round nothing before; convert it yourself"
        return SkippedTensor(one.name, one.shape, one.dtype, reason)
    return OwnTensor(one.name, one.shape, dtype, one.load, words.get(one.name))


def _words_in(files: Iterable[str]) -> dict[str, Callable[[], Any]]:
    """Return the readers of the random words, by the names of tensors."""
    return {
        tensor: fields[WORD].load
        for file in files
        if file.endswith(ENDINGS)
        for tensor, fields in bits_in(file)
        if WORD in fields and fields[WORD].format is None
    }


def from_arrays(arrays: Mapping[str, Any], *, with_words: bool = False) -> OwnInputs:
    """Return the tensors of a mapping of arrays by name, with the words that are named after one.

    An array of another dtype is refused, as who calls can convert it.
    """
    taken, skipped = [], []
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
        key, dtype = f"{name}{_END}", numbers.dtype.name
        words = _giving(arrays[key]) if with_words and key in arrays else None
        if 0 in numbers.shape:
            skipped.append(SkippedTensor(name, numbers.shape, dtype, _EMPTY))
        else:
            taken.append(OwnTensor(name, numbers.shape, dtype, _giving(array), words))
    found = OwnInputs(lambda: iter(taken), tuple(skipped))
    found.refuse_nothing()
    return found


def _giving(array: Any) -> Callable[[], Any]:
    return lambda: array


def lines_of_skipped(skipped: tuple[SkippedTensor, ...]) -> Iterator[str]:
    """Yield how many tensors are skipped, and each of the first ones with its reason."""
    if skipped:
        yield f"skipped: {counted(len(skipped), 'tensor')}"
    yield from (f"  {one}" for one in skipped[:_LINES])
    if len(skipped) > _LINES:
        yield f"  and {len(skipped) - _LINES:,} more"
