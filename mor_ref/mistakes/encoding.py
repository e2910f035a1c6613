"""Mistakes of encoders and decoders: the sites of their steps, and the operators there."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from mor_ref.deviations.deviation import Function, everywhere
from mor_ref.deviations.domains import is_narrow
from mor_ref.exact import decoding, encoding, mx, nvfp4, quantization
from mor_ref.mistakes import calls_of_encoders as calls
from mor_ref.mistakes import operators_of_encoding as operators
from mor_ref.mistakes.mistake import Mistake, Operator
from mor_ref.mistakes.source import SourceSite, sites_of

_WIDE = {"bf16": "bfloat16", "f16": "binary16", "f32": "binary32"}


class _Group(NamedTuple):
    """Operators at the site of a kind in a step, the rule they break, and the calls they are in."""

    step: Function
    kind: str
    rule: str
    operators: tuple[Operator, ...]
    where: Callable[..., bool] = everywhere

    @property
    def site(self) -> SourceSite:
        """The site that the operators share."""
        (site,) = (site for site in sites_of(self.step) if site.kind == self.kind)
        return replace(site, rule=self.rule, where=self.where)


def _in_wide_formats(
    group: _Group, of: Callable[[Callable[..., bool]], Callable[..., bool]]
) -> Iterator[_Group]:
    """Yield a group of narrow formats in each wide one, which has conversions of its own."""
    for name, words in _WIDE.items():
        there = tuple(
            one._replace(name=f"{name}-{one.name}", words=f"in {words}, {one.words}")
            for one in group.operators
        )
        yield group._replace(operators=there, where=of(calls.is_named(name)))


def _to_nearest(test: Callable[..., bool]) -> Callable[..., bool]:
    return calls.rounded_by(test, "rne")


_NEAREST = _Group(
    encoding.code_goes_up, "goes-up", "ENC-003", operators.NEAREST, _to_nearest(is_narrow)
)
_ZEROS = _Group(
    encoding.encode, "signed", "ENC-011", operators.ZEROS, calls.to(calls.has_negative_zero)
)
_SUBNORMALS = _Group(
    encoding.encode,
    "signed",
    "ENC-002",
    operators.SUBNORMALS,
    calls.to(calls.has_narrow_subnormals),
)

_IN_ENCODE = (
    _Group(encoding.encode, "inputs", "ENC-001", operators.THROUGH, calls.to(is_narrow)),
    _Group(encoding.encode, "inputs", "ENC-001", operators.UPPER_WORDS),
    _Group(encoding.encode, "inputs", "ENC-001", operators.THROUGH_F32, calls.wider_than_binary32),
    _Group(encoding.encode, "inputs", "ENC-002", operators.FLUSHED, calls.telling_subnormals),
    _Group(encoding.encode, "inputs", "ENC-002", operators.FLUSHED_IN_F16),
    _Group(
        encoding.encode,
        "units",
        "ENC-002",
        operators.FRACTIONS,
        calls.without_random_bits(calls.is_float),
    ),
    _Group(
        encoding.encode,
        "encoded",
        "ENC-002",
        operators.SMALL_CODES,
        calls.to(calls.has_narrow_subnormals),
    ),
    _Group(encoding.encode, "encoded", "ENC-003", operators.ADDED_HALVES, calls.under_rna),
    _Group(
        encoding.encode,
        "encoded",
        "ENC-004",
        operators.CARRIES,
        calls.to(calls.has_narrow_subnormals),
    ),
    _Group(encoding.encode, "encoded", "ENC-005", operators.ALIGNED, calls.at_random),
    _Group(encoding.encode, "encoded", "ENC-007", operators.EARLY, calls.under_ieee),
    _Group(
        encoding.encode, "encoded", "ENC-007", operators.EARLY_AT_RANDOM, calls.at_random_under_ieee
    ),
    _Group(encoding.encode, "largest-code", "ENC-007", operators.LARGEST, calls.under_ieee),
    _Group(
        encoding.encode,
        "infinity",
        "ENC-008",
        operators.NOT_SATURATED_INFINITIES,
        calls.under_satfinite,
    ),
    _Group(
        encoding.encode, "infinity", "ENC-008", operators.SATURATED_INFINITIES, calls.under_ieee
    ),
    _Group(encoding.encode, "infinity", "ENC-008", operators.INFINITIES),
    _Group(encoding.encode, "encoded", "ENC-008", operators.INFINITE, calls.directed_under_ieee),
    _Group(encoding.encode, "sign", "ENC-011", operators.SIGNS, calls.to(calls.is_signed)),
    _ZEROS,
    _SUBNORMALS,
    *_in_wide_formats(_ZEROS, calls.to),
    *_in_wide_formats(_SUBNORMALS, calls.to),
    _Group(encoding.encode, "signed", "ENC-011", operators.OF_FNUZ, calls.to(calls.is_fnuz)),
    _Group(
        encoding.encode,
        "signed",
        "ENC-015",
        operators.OF_INTEGERS,
        calls.to(calls.is_integer),
    ),
    _Group(
        encoding.encode,
        "encoded",
        "ENC-015",
        operators.INTEGERS,
        calls.to(calls.is_integer),
    ),
    _Group(encoding.encode, "special", "ENC-016", operators.SPECIAL, calls.of_special_cases),
)
_IN_ROUNDINGS = (
    _NEAREST,
    *_in_wide_formats(_NEAREST, _to_nearest),
    *(
        _Group(encoding.code_goes_up, "goes-up", rule, some, calls.rounded_by(test, *modes))
        for rule, some, test, modes in (
            ("ENC-003", operators.NEAREST_AWAY, calls.is_float, ("rna",)),
            ("ENC-003", operators.TOWARD_ZERO, calls.is_float, ("rtz",)),
            ("ENC-003", operators.DIRECTED, calls.is_signed, ("rtp", "rtn")),
            ("ENC-003", operators.ODD, calls.is_float, ("rto",)),
            ("ENC-013", operators.POWERS, calls.is_power_of_two, ("rtp", "rna", "rtz")),
        )
    ),
    _Group(encoding.goes_up_at_random, "goes-up-at-random", "ENC-005", operators.RANDOM),
    _Group(encoding.goes_up_at_random, "threshold", "ENC-005", operators.THRESHOLDS),
    _Group(encoding.goes_up_at_random, "fraction", "ENC-005", operators.FS),
    _Group(encoding.goes_up_at_random, "sum", "ENC-005", operators.SUMS),
    _Group(encoding.goes_up_at_random, "word", "ENC-005", operators.WORDS),
)
_IN_SPECIAL_CASES = (
    *(
        _Group(encoding.overflow_code, "overflow", rule, some, where)
        for rule, some, where in (
            ("ENC-006", operators.NOT_SATURATED, calls.beyond_under_satfinite),
            ("ENC-006", operators.FIRST_KEPT, calls.beyond(calls.is_of_8_bits)),
            ("ENC-006", operators.WRAPPED, everywhere),
            ("ENC-007", operators.SATURATED, calls.beyond_under_ieee()),
            ("ENC-007", operators.DIRECTIONS, calls.beyond_under_ieee("rtz", "rtp", "rtn", "rto")),
            ("ENC-007", operators.SIGNS_OF_OVERFLOWS, calls.beyond_under_ieee("rtp", "rtn")),
            ("ENC-007", operators.NANS_OF_OVERFLOWS, calls.beyond_to_nan),
            ("ENC-015", operators.LOWEST, calls.beyond(calls.is_integer)),
        )
    ),
    *(
        _Group(encoding.nan_code, "nan-code", rule, some, where)
        for rule, some, where in (
            ("ENC-009", operators.KEPT_SIGNS, calls.canonical),
            ("ENC-009", operators.NEGATIVE_NANS, calls.canonical_of_two),
            ("ENC-009", operators.NANS_OF_IEEE, calls.nan_next_to_infinity),
            ("ENC-009", operators.NANS_OF_BF16, calls.nan_in(calls.is_named("bf16"))),
            ("ENC-009", operators.NANS, calls.nan_in(is_narrow)),
            ("ENC-009", operators.NANS_OF_FLOATS, calls.nan_in_a_narrow_float),
            ("ENC-010", operators.LOST_SIGNS, calls.signed_of_two),
        )
    ),
    _Group(encoding.power_of_two_code, "units", "ENC-013", operators.FRACTIONS),
    _Group(encoding.power_of_two_code, "power-of-two", "ENC-013", operators.LOGARITHMS),
    _Group(encoding.power_of_two_code, "power-of-two", "ENC-014", operators.ZEROS_OF_POWERS),
    _Group(encoding.power_of_two_code, "power-of-two", "ENC-012", operators.NEGATIVE_POWERS),
)
_IN_DECODING = (
    *(
        _Group(decoding.decode, "decoded", rule, some, calls.codes_of(test))
        for rule, some, test in (
            ("DEC-001", operators.DECODED_SUBNORMALS, calls.has_subnormals),
            ("DEC-001", operators.DECODED_INTEGERS, calls.is_integer),
            ("DEC-002", operators.DECODED_NANS, calls.has_nan),
            ("DEC-002", operators.DECODED_PAYLOADS, calls.is_ieee),
            ("DEC-002", operators.DECODED_AS_IEEE, calls.is_fn),
            ("DEC-002", operators.DECODED_AS_FN, calls.is_fnuz),
            ("DEC-003", operators.DECODED_POWERS, calls.is_power_of_two),
        )
    ),
    _Group(decoding.decode, "value", "DEC-001", operators.LOWEST_VALUES),
    _Group(decoding.decode, "value", "DEC-002", operators.SPECIAL_VALUES),
    _Group(decoding.nan_bits, "nan-bits", "ART-003", operators.NAN_BITS),
)
GROUPS = (*_IN_ENCODE, *_IN_ROUNDINGS, *_IN_SPECIAL_CASES, *_IN_DECODING)

_AT_BOTH = (
    ((operators.NOT_SATURATED, operators.NOT_SATURATED_INFINITIES), operators.NEITHER_SATURATED),
    ((operators.SATURATED, operators.SATURATED_INFINITIES), operators.BOTH_SATURATED),
)
_SIGNED_INFINITIES = _Group(encoding.infinite_code, "infinite", "ENC-007", ())
_SIGNED_NANS = _Group(encoding.nan_code, "nan-code", "ENC-010", (), calls.signed_of_two)
_ON_THE_WAY_BACK = (
    _Group(decoding.decode, "decoded", "DEC-001", ()),
    _Group(quantization.restored, "restored", "QNT-002", ()),
    _Group(nvfp4.restored, "restored", "NVF-010", ()),
    _Group(mx.restored, "restored", "MXS-008", ()),
)

# Pairs of a site and an operator that are no mistake of their own, each with the reason.
NO_MISTAKES: Mapping[str, str] = {
    "ENC-005/word-complemented": "It is ENC-005/word-below-fraction: F + 2^n - 1 - r >= 2^n if "
    "r < F.",
}


def mistakes_of_encoding() -> list[Mistake]:
    """Return the mistakes of encoders and decoders, each once."""
    return [
        mistake for mistake in pairs_of_sites_and_operators() if mistake.name not in NO_MISTAKES
    ]


def is_at_random(mistake: Mistake) -> bool:
    """Return whether a mistake is one of encoders with random bits alone."""
    wheres = (calls.at_random, calls.at_random_under_ieee)
    changes = mistake.deviation.changes
    return all(one.step is encoding.goes_up_at_random or one.where in wheres for one in changes)


def pairs_of_sites_and_operators() -> Iterator[Mistake]:
    """Yield each operator at its sites, and those that are at several at once."""
    for group in GROUPS:
        yield from (Mistake((group.site,), operator) for operator in group.operators)
    for some, operator in _AT_BOTH:
        groups = {group.operators: group for group in GROUPS}
        yield Mistake(tuple(groups[one].site for one in some), operator)
    yield Mistake((_SIGNED_INFINITIES.site, _SIGNED_NANS.site), operators.SIGNED_NANS)
    yield Mistake(tuple(group.site for group in _ON_THE_WAY_BACK), operators.NEGATIVE_ZERO)
