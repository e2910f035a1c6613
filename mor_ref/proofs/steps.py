"""Mistakes in the steps of block formats as terms: other codes of scales and of elements."""

from collections.abc import Callable, Mapping

from mor_ref.definitions.block_formats import BlockFormat, BlockScale
from mor_ref.definitions.encoding import DETERMINISTIC_ROUNDINGS, ElementRounding, Rounding
from mor_ref.mistakes.mistake import Mistake
from mor_ref.proofs.elements import Codes, Stored, element_code, element_format, outputs, stored
from mor_ref.proofs.rules import NoTermError, decoded, encoded, literal_of
from mor_ref.proofs.terms import (
    Term,
    absolute,
    choice,
    in_format,
    is_class,
    is_less,
    negative,
    number,
    word,
)


def with_wrong_step(record: BlockFormat, mistake: Mistake, place: int) -> dict[str, Term]:
    """Return what a try of a block format makes of a number with a mistake in a step."""
    site, name = mistake.sites[0], mistake.operator.name
    if site.at == "elements" and name in _CODES:
        return outputs(record, place, codes=_CODES[name])
    if name not in _STORED:
        raise NoTermError("a step that sees several numbers")

    def one_stored(t: Term, scale: BlockScale) -> tuple[Term, Term]:
        return (_STORED[name] if scale.name == site.at else stored)(t, scale)

    return outputs(record, place, stored=one_stored)


def _rounded(rounding: ElementRounding | Rounding) -> Codes:
    return lambda xs, record: encoded(xs, element_format(record), rounding)


def _overflowing(xs: Term, record: BlockFormat) -> Term:
    fmt = element_format(record)
    beyond = encoded(xs, fmt, "rne", saturates=False)
    return choice(is_less(literal_of(fmt.largest), absolute(xs)), beyond, element_code(xs, record))


def _flushed(xs: Term, record: BlockFormat) -> Term:
    fmt, code = element_format(record), element_code(xs, record)
    value = decoded(code, fmt)
    zeros = [encoded(zero, fmt, "rne") for zero in (number(0), negative(number(0)))]
    zero = choice(is_class("signed", value), zeros[1], zeros[0])
    return choice(is_less(absolute(value), literal_of(fmt.smallest_normal or 0.0)), zero, code)


def _through(exponent_bits: int, significand_bits: int) -> Codes:
    return lambda xs, record: element_code(in_format(xs, exponent_bits, significand_bits), record)


_CODES: Mapping[str, Codes] = {
    **{name: _rounded(name) for name in DETERMINISTIC_ROUNDINGS},
    "rnz": _rounded("rnz"),
    "overflow": _overflowing,
    "flushed": _flushed,
    "through-bf16": _through(8, 8),
    "through-f16": _through(5, 11),
}


def _with_code(change: Callable[[Term, Term, BlockScale], Term]) -> Stored:
    """Return the code and the number of a scale with another code."""

    def run(t: Term, scale: BlockScale) -> tuple[Term, Term]:
        code = change(t, stored(t, scale)[0], scale)
        return code, decoded(code, scale.fmt)

    return run


def _flushed_scale(t: Term, code: Term, scale: BlockScale) -> Term:
    del t
    normal = literal_of(scale.fmt.smallest_normal or 0.0)
    return choice(is_less(decoded(code, scale.fmt), normal), word(0), code)


def _scale_not_zero(t: Term, code: Term, scale: BlockScale) -> Term:
    del t
    return choice(is_class("zero", decoded(code, scale.fmt)), word(1), code)


def _overflowing_scale(t: Term, code: Term, scale: BlockScale) -> Term:
    beyond = encoded(t, scale.fmt, scale.rounding or "rne", saturates=False)
    return choice(is_less(literal_of(scale.fmt.largest), t), beyond, code)


_STORED: Mapping[str, Stored] = {
    "stored-flushed": _with_code(_flushed_scale),
    "stored-not-zero": _with_code(_scale_not_zero),
    "stored-overflows": _with_code(_overflowing_scale),
    "unrounded-factor": lambda t, scale: (stored(t, scale)[0], t),
}
