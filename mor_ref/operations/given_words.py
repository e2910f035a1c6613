"""Random words that a case of a tensor may have, and with which its elements are rounded."""

from typing import Any

from mor_ref.exact.quantization import RandomWords
from mor_ref.operations.call import Call
from mor_ref.operations.fields import Fields, given

WORD, BITS = "random_word", "n_random_bits"  # the input, and the parameter that it comes with
_WORDS = given(f"{WORD} u32 rc", "the random bits of each number, n_random_bits of them")
GIVEN: dict[str, Fields] = {BITS: {WORD: _WORDS}}


def words_of(call: Call) -> RandomWords | None:
    """Return the random words as the exact model takes them; None if there are none."""
    return RandomWords(call.numbers(WORD), call[BITS]) if call.get(BITS) else None


def words_for_engine(call: Call) -> dict[str, Any]:
    """Return the random words as arguments of the public functions."""
    return {"random_bits": call.arrays[WORD], BITS: call[BITS]} if call.get(BITS) else {}


def refuse_words(call: Call) -> None:
    """Refuse random words: no kernel takes them with a scale."""
    from mor_ref.cuda.unavailable import CudaError

    if call.get(BITS):
        raise CudaError(
            f"{BITS} is given, and the kernels of tensors round to nearest; verify numba instead"
        )
