"""One element of a block format as terms: what becomes of a number under given amaxes."""

from collections.abc import Callable, Iterator
from itertools import pairwise

from mor_ref.definitions.block_formats import BlockFormat, BlockScale, percentiles_of
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.proofs.rules import NoTermError, decoded, encoded, of_formula
from mor_ref.proofs.terms import (
    Term,
    absolute,
    all_of,
    any_of,
    arithmetic,
    choice,
    is_class,
    is_less,
    is_not,
    number,
    true,
    variable,
    word,
)

X = variable("x")
Stored = Callable[[Term, BlockScale], tuple[Term, Term]]  # the code and the number of a scale
Codes = Callable[[Term, BlockFormat], Term]


def stored(t: Term, scale: BlockScale) -> tuple[Term, Term]:
    """Return the code and the number of a scale; one of binary32 is its own code (BLF-003)."""
    if scale.fmt == formats["f32"]:
        return t, t
    code = encoded(t, scale.fmt, scale.rounding or "rne")
    return code, decoded(code, scale.fmt)


def element_code(xs: Term, record: BlockFormat) -> Term:
    """Return the code of a scaled number (BLF-004, BLF-014)."""
    return encoded(xs, element_format(record), record.rounding)


def element_format(record: BlockFormat) -> Format:
    """Return the format of elements, unless they come from a table."""
    if not isinstance(record.fmt, Format):
        raise NoTermError("elements of a table")
    return record.fmt


def amax_of(scale: BlockScale) -> Term:
    """Return the amax of a scale."""
    return variable(f"amax_{scale.name}")


def outputs(
    record: BlockFormat, place: int = 0, stored: Stored = stored, codes: Codes = element_code
) -> dict[str, Term]:
    """Return what a try of a block format makes of a number, by name.

    Each output is after those that it is made of. A scale has the name of its code; its number
    before it is stored, that with a word more.
    """
    names: dict[str, Term] = {}
    results: dict[str, Term] = {}
    for scale in record.scales:
        names |= {"amax": amax_of(scale), f"amax_{scale.name}": amax_of(scale)}
        names |= {one.name: variable(one.name) for one in percentiles_of(record, scale)}
        t = of_formula(scale.number, names)
        if scale is record.scales[-1]:
            t = of_formula(record.tries[place], names | {"t": t})
        results[f"{scale.name} before"] = t
        results[scale.name], names[scale.name] = stored(t, scale)
    for name, formula in (("decode", record.decode), ("encode", record.encode)):
        if formula is not None:
            results[name] = names[name] = of_formula(formula, names)
    by, back = names.get("encode"), names.get("decode")
    xs = _scaled(X, by, back)
    fmt = element_format(record)
    if fmt.sign == "none":
        xs = choice(is_less(xs, number(0)), number(0), xs)
    code = codes(xs, record)
    if not record.has_negative_zero:
        code = choice(is_class("zero", decoded(code, fmt)), word(0), code)
    if record.drops_sign_of_zero:
        code = choice(is_class("zero", xs), word(0), code)
    v = decoded(code, fmt)
    results["code"] = code
    results["y"] = _scaled(v, back, by)
    return results


def _scaled(x: Term, factor: Term | None, divisor: Term | None) -> Term:
    """Return a number times a factor, or divided by the other one if there is none."""
    if factor is not None:
        return arithmetic("*", x, factor)
    if divisor is None:
        raise NoTermError("a block format without factors")
    return arithmetic("/", x, divisor)


def facts(record: BlockFormat) -> Iterator[Term]:
    """Yield what holds of the number and the amaxes of each tensor (BLF-003)."""
    amaxes = [amax_of(scale) for scale in record.scales]
    for scale, amax in zip(record.scales, amaxes, strict=True):
        yield is_not(is_class("signed", amax))
        yield _counts(amax, record)
        for one in percentiles_of(record, scale):
            percentile = variable(one.name)
            yield is_not(is_class("signed", percentile))
            yield is_not(is_less(amax, percentile))
            yield _counts(percentile, record)
    for above, below in pairwise(amaxes):
        yield is_not(is_less(above, below))
        if record.counted == "all":
            yield any_of((is_not(is_class("nan", below)), is_class("nan", above)))
    last = amaxes[-1]
    within = is_not(is_less(last, absolute(X)))
    yield any_of((within, is_not(_counts(X, record))))
    if record.counted == "all":
        yield any_of((is_not(is_class("nan", X)), is_class("nan", last)))


def _counts(x: Term, record: BlockFormat) -> Term:
    """Return whether a number counts in an amax."""
    is_number = is_not(is_class("nan", x))
    if record.counted == "finite":
        return all_of((is_number, is_not(is_class("infinite", x))))
    return true() if record.counted == "all" else is_number
