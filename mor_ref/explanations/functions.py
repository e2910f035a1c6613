"""Single numbers: the public functions that explain a code, and find the numbers next to one."""

from typing import TYPE_CHECKING

from mor_ref.api.border import public
from mor_ref.argument_checks import binary64_number
from mor_ref.definitions.encoding import Nan, Overflow, Rounding
from mor_ref.definitions.formats import FormatLike, as_format, special_cases_for
from mor_ref.explanations import encoding
from mor_ref.explanations.decoding import Neighbours, numbers_next_to
from mor_ref.explanations.encoding import ExplainedEncoding

if TYPE_CHECKING:
    from typing import SupportsFloat

_EXAMPLE = "0.3"


@public
def explain(
    x: "SupportsFloat",
    fmt: FormatLike,
    *,
    rounding: Rounding | None = None,
    overflow: Overflow | None = None,
    nan: Nan | None = None,
    profile: str | None = None,
    random_word: int | None = None,
    n_random_bits: int | None = None,
) -> ExplainedEncoding:
    """Return why a number has its code: its neighbours, the midpoint, and the rule that chooses.

    `x` is one number that binary64 has. The other arguments are those of `encode`, but
    for the random bits of "sr": `random_word` is one word below 2**n_random_bits. `print` shows
    what `mor-ref explain` does.

    >>> import mor_ref
    >>> explanation = mor_ref.explain(0.3, "e4m3")
    >>> explanation.code, explanation.value, explanation.rule
    (42, 0.3125, 'ENC-003')
    >>> print(explanation)
    e4m3, rounding rne
    input              0.3       0x1.3333333333333p-2
                                 0x3fd3333333333333 as binary64
    code               0x2A      0 0101 010
    value              0.3125    0x1.4000000000000p-2
    nearer zero        0.28125   0x29
    farther from zero  0.3125    0x2A
    midpoint           0.296875
    error              +0.4 ulp
    up in magnitude: the fraction, 0.6 of a unit, is above one half (ENC-003)
    see on the site: spec/ENC-003
    """
    target = as_format(fmt)
    special = special_cases_for(target, overflow, nan, profile)
    return encoding.explain(
        binary64_number("x", x, _EXAMPLE),
        target,
        rounding,
        special,
        random_word=random_word,
        n_random_bits=n_random_bits,
    )


@public
def neighbours(x: "SupportsFloat", fmt: FormatLike) -> Neighbours:
    """Return the finite numbers of a format next to a number: the one below, and the one above.

    `x` itself is neither of them, whether the format has it or not. Where there is none, it is
    None.

    >>> import mor_ref
    >>> mor_ref.neighbours(0.3, "e4m3")
    Neighbours(below=0.28125, above=0.3125)
    >>> mor_ref.neighbours(448, "e4m3")
    Neighbours(below=416.0, above=None)
    """
    return numbers_next_to(binary64_number("x", x, _EXAMPLE), as_format(fmt))
