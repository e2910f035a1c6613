"""Random words that a case of a tensor may have, and with which its elements are rounded."""

from typing import TYPE_CHECKING, Any

from mor_ref.operations.fields import Fields, fields
from mor_ref.operations.operation import Arrays, Parameters

if TYPE_CHECKING:
    from mor_ref.exact.quantization import RandomWords

WORD, BITS = "random_word", "n_random_bits"  # the input, and the parameter that it comes with
GIVEN: dict[str, Fields] = {BITS: fields(f"rc {WORD} u32")}


def words_of(parameters: Parameters, arrays: Arrays) -> "RandomWords | None":
    """Return the random words as the exact model takes them; None if there are none."""
    from mor_ref.exact.quantization import RandomWords

    return RandomWords(arrays[WORD].tolist(), parameters[BITS]) if BITS in parameters else None


def words_for_engine(parameters: Parameters, arrays: Arrays) -> dict[str, Any]:
    """Return the random words as arguments of the public functions."""
    if BITS not in parameters:
        return {}
    return {"random_bits": arrays[WORD], BITS: parameters[BITS]}


def refuse_words(parameters: Parameters) -> None:
    """Refuse random words: no kernel takes them with a scale."""
    from mor_ref.cuda.unavailable import CudaError

    if BITS in parameters:
        raise CudaError(
            f"{BITS} is given, and the kernels of tensors round to nearest; verify numba instead"
        )
