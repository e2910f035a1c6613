"""Functions of a user as words of formulas: Numba compiles them, and nobody else has them."""

import functools
import inspect
import keyword
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mor_ref.argument_checks import shown
from mor_ref.definitions.catalogue import NAMES_OF_REPRESENTATIONS, Catalogue
from mor_ref.definitions.code_digest import code_digest
from mor_ref.processor_modes import in_usual_modes

WORDS = {"min": 2, "max": 2, "abs": 1, "square": 1, "pow2": 2}  # and how many arguments they take
PERCENTILE = "percentile"
RESERVED = frozenset((*WORDS, PERCENTILE, "MAX", *keyword.kwlist))


@dataclass(frozen=True)
class FormulaFunction:
    """A function of numbers that formulas of block formats call by its name (BLF-010).

    It is given numbers of binary32, one for each argument, and returns a number, which is rounded
    to binary32. It is of Numba, or Numba can compile it.

    >>> import mor_ref
    >>> def halfway(amax, mean):
    ...     return (amax + mean) / 2
    >>> mor_ref.formula_functions["halfway"] = FormulaFunction(halfway)
    >>> scale = mor_ref.BlockScale("s", (1, 32), "halfway(amax, percentile(50)) / 6 or 1", "e4m3")
    >>> own = mor_ref.BlockFormat("own", "e2m1", (scale,), decode="s")
    >>> mor_ref.quantize([[4.0, 0.5, 1.0]], own).scale_numbers["s"]
    array([[0.40625]], dtype=float32)
    >>> del mor_ref.formula_functions["halfway"]
    """

    function: Callable[..., Any]
    name: str = ""

    def __post_init__(self) -> None:
        """Take the name of the function if none is given."""
        if not callable(self.function):
            raise TypeError(f"function is {shown(self.function)}; give a function of numbers")
        if not self.name:
            object.__setattr__(self, "name", getattr(self.function, "__name__", ""))
        if not self.name.isidentifier() or not self.name.isascii() or self.name in RESERVED:
            raise ValueError(
                f"name is {self.name!r}; give a word of letters and digits that formulas do not "
                "have yet"
            )

    @functools.cached_property
    def count(self) -> int:
        """How many arguments it takes."""
        parameters = inspect.signature(_plain(self.function)).parameters.values()
        if any(parameter.kind is not parameter.POSITIONAL_OR_KEYWORD for parameter in parameters):
            raise ValueError(
                f"function {self.name!r} has arguments that are not given by place; give a "
                "function such as def f(amax, s)"
            )
        return len(parameters)

    @functools.cached_property
    def digest(self) -> str:
        """A digest of its code, which the text of a block format has."""
        return code_digest(self)

    @functools.cached_property
    def compiled(self) -> Any:
        """The compiled function, of numbers of binary32."""
        import numba

        compiled: Any = numba.njit(error_model="numpy")(_plain(self.function))
        signature = (numba.float32,) * self.count
        try:
            compiled.compile(signature)
        except numba.core.errors.NumbaError as error:
            reason = next(filter(None, map(str.strip, str(error).splitlines()[1:])), str(error))
            raise TypeError(
                f"function {self.name!r} cannot be compiled: {reason}; write it with numbers, and "
                "with functions of math and NumPy that Numba knows"
            ) from None
        kind = compiled.overloads[signature].signature.return_type
        if not isinstance(kind, numba.types.Number | numba.types.Boolean):
            raise TypeError(f"function {self.name!r} returns {kind}; return a number")
        compiled.disable_compile()
        return compiled

    @in_usual_modes
    def number(self, *arguments: float) -> float:
        """Return its number for numbers of binary32, not yet rounded to binary32."""
        return float(self.compiled(*arguments))


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that Numba compiles."""
    plain: Callable[..., Any] = getattr(function, "py_func", function)
    return plain


formula_functions: Catalogue[FormulaFunction] = Catalogue(
    "formula function", FormulaFunction, (), namespace=NAMES_OF_REPRESENTATIONS
)
