"""The rows: every built-in format, and every profile. The only file that holds format numbers."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol, TypeVar

from mor_ref.argument_checks import known_name, text_of
from mor_ref.definitions.catalogue import NAMES_OF_REPRESENTATIONS, Catalogue
from mor_ref.definitions.encoding import RandomBits, SpecialCases, special_cases
from mor_ref.definitions.format import Format
from mor_ref.definitions.format_names import OTHER_NAMES, format_of_dtype

_Row = TypeVar("_Row")


class _Named(Protocol):
    """A format, or a table of values."""

    @property
    def name(self) -> str: ...


_FORMATS = (
    # The formats of MoR, NVFP4 and MX (FMT-009).
    Format("e4m3", exponent_bits=4, mantissa_bits=3, bias=7, specials="fn"),
    Format("e5m2", exponent_bits=5, mantissa_bits=2, bias=15),
    Format("e2m1", exponent_bits=2, mantissa_bits=1, bias=1, specials="none"),
    Format("e2m3", exponent_bits=2, mantissa_bits=3, bias=1, specials="none"),
    Format("e3m2", exponent_bits=3, mantissa_bits=2, bias=3, specials="none"),
    Format("e8m0", exponent_bits=8, mantissa_bits=0, bias=127, specials="fn", sign="none"),
    Format("bf16", exponent_bits=8, mantissa_bits=7, bias=127),
    Format("f16", exponent_bits=5, mantissa_bits=10, bias=15),
    Format("f32", exponent_bits=8, mantissa_bits=23, bias=127),
    Format(
        "int8_mx",
        exponent_bits=0,
        mantissa_bits=7,
        bias=0,
        specials="none",
        sign="twos-complement",
    ),
    # The other small formats in wide use, under their names in ml_dtypes.
    Format("e4m3fnuz", exponent_bits=4, mantissa_bits=3, bias=8, specials="fnuz"),
    Format("e5m2fnuz", exponent_bits=5, mantissa_bits=2, bias=16, specials="fnuz"),
    Format("e4m3b11fnuz", exponent_bits=4, mantissa_bits=3, bias=11, specials="fnuz"),
    Format("e4m3_ieee", exponent_bits=4, mantissa_bits=3, bias=7),
    Format("e3m4", exponent_bits=3, mantissa_bits=4, bias=3),
    # The FP4 with infinities and NaN that MoFQ compares with (MFQ-001).
    Format("e2m1_ieee", exponent_bits=2, mantissa_bits=1, bias=1),
)

_IEEE = SpecialCases(overflow="ieee")
_IEEE_SIGNED = SpecialCases(overflow="ieee", nan="signed")
_SATFINITE = SpecialCases()

# The special cases of other libraries (ENC-016).
_ENCODING_PROFILES: dict[str, dict[str, SpecialCases]] = {
    # The conversions of CUDA's headers, saturating where they offer it.
    "cuda": {
        **dict.fromkeys(("e4m3", "e5m2", "e2m1", "e2m3", "e3m2", "e8m0"), _SATFINITE),
        **dict.fromkeys(("bf16", "f16", "f32"), _IEEE),
    },
    # astype from float32; a float64 it rounds to float32 first. float16 is NumPy's own and keeps
    # NaN payloads, so it has no row.
    "ml_dtypes": {
        "e4m3": _IEEE_SIGNED,
        "e5m2": SpecialCases(overflow="ieee", nan=(0x7E, 0xFE)),
        "e2m1": SpecialCases(nan=(0x8, 0x0)),
        "e2m3": SpecialCases(nan=(0x20, 0x00)),
        "e3m2": SpecialCases(nan=(0x20, 0x00)),
        "e8m0": SpecialCases(
            overflow="ieee",
            zero_code=0xFF,
            negative_code=0xFF,
            above_smallest_goes_up=True,
            power_of_two_rounding="rna",
        ),
        "bf16": SpecialCases(overflow="ieee", nan=(0x7FC0, 0xFFC0)),
        "e4m3fnuz": _IEEE,
        "e5m2fnuz": _IEEE,
        "e4m3b11fnuz": _IEEE,
        "e4m3_ieee": SpecialCases(overflow="ieee", nan=(0x7C, 0xFC)),
        "e3m4": SpecialCases(overflow="ieee", nan=(0x78, 0xF8)),
    },
    # Tensor.to on a CPU. bfloat16 has no row: which NaN it stores depends on the place of the
    # element in the tensor. Nor has float16, which keeps NaN payloads.
    "torch": {
        "e4m3": SpecialCases(nan="signed"),
        "e5m2": _IEEE_SIGNED,
        "e8m0": SpecialCases(
            overflow="ieee", above_smallest_goes_up=True, power_of_two_rounding="rna"
        ),
        "e4m3fnuz": _IEEE,
        "e5m2fnuz": _IEEE,
    },
}

_RANDOM_HALVES = (((15, 0),), ((0, 15),), ((31, 16),), ((16, 31),))
_RANDOM_BYTES = (
    ((23, 16), (7, 0)), ((0, 7), (16, 23)), ((31, 24), (15, 8)), ((8, 15), (24, 31)),
)  # fmt: skip
_BYTES_IN_ORDER = (((7, 0),), ((15, 8),), ((23, 16),), ((31, 24),))
_ROUNDED_SUM = "0" * 16 + "1"  # half an ulp below 1/2 in binary32, as a share of the step there
# Random bits as instructions take them, for elements in the order of memory (ENC-017).
random_bits: Mapping[str, Mapping[str, RandomBits]] = MappingProxyType(
    {
        # cvt.rs of PTX, from sm_100a on.
        "cuda": {
            "bf16": RandomBits(16, (((15, 0),), ((31, 16),))),
            "f16": RandomBits(13, (((12, 0),), ((28, 16),))),
            **dict.fromkeys(("e4m3", "e5m2", "e2m3", "e3m2"), RandomBits(16, _RANDOM_HALVES)),
            "e2m1": RandomBits(16, _RANDOM_BYTES),
        },
        # Transformer Engine on processors without cvt.rs.
        "te": {"e2m1": RandomBits(25, _BYTES_IN_ORDER, ending=_ROUNDED_SUM)},
    }
)

formats: Catalogue[Format] = Catalogue(
    "format", Format, _FORMATS, OTHER_NAMES, namespace=NAMES_OF_REPRESENTATIONS
)
encoding_profiles: Mapping[str, Mapping[str, SpecialCases]] = MappingProxyType(
    {name: MappingProxyType(rows) for name, rows in _ENCODING_PROFILES.items()}
)


class TorchDtype(Protocol):
    """A dtype of torch, for type checkers that have no torch."""

    @property
    def is_floating_point(self) -> bool:
        """Whether it has floats; of a tensor, this is a method."""

    @property
    def itemsize(self) -> int:
        """The bytes of a number."""


class ArrayDtype(Protocol):
    """A dtype of arrays, for type checkers."""

    @property
    def kind(self) -> str:
        """A letter for floats, integers and so on."""

    @property
    def itemsize(self) -> int:
        """The bytes of a number."""


class ArrayScalar(Protocol):
    """A number of an array, whose class stands for its dtype, for type checkers."""

    @property
    def dtype(self) -> ArrayDtype:
        """Its dtype."""


FormatLike = str | Format | ArrayDtype | type[ArrayScalar] | TorchDtype


def as_format(fmt: object) -> Format:
    """Return the format itself, or the one of a name, in any case, or of a dtype that is one.

    >>> as_format("E4M3").name, as_format("float8_e4m3fnuz").name, as_format("torch.bfloat16").name
    ('e4m3', 'e4m3fnuz', 'bf16')
    """
    if isinstance(fmt, Format):
        return fmt
    row = formats.known(fmt) if isinstance(fmt, str) else None
    if row is not None:
        return row
    name = format_of_dtype(fmt) or text_of(fmt).lower()
    return formats[name if name in formats else fmt]  # type: ignore[index]  # which refuses it


def special_cases_for(
    fmt: Format, overflow: str | None, nan: str | None, profile: str | None
) -> SpecialCases:
    """Return the record for these arguments: of the profile, or of this reference's own rules."""
    if profile is None:
        return special_cases(overflow, nan)
    if overflow is not None or nan is not None:
        argument = "overflow" if overflow is not None else "nan"
        raise ValueError(
            f"profile is {profile!r} and {argument} is given too, but a profile sets the codes of "
            "overflow and of NaN; give only one of the two"
        )
    return _profile_cases(profile, fmt)


def random_bits_for(profile: str, fmt: _Named) -> RandomBits:
    """Return which random bits of a word the instructions of a profile take for a format."""
    return _row_of_profile("n_random_bits", profile, random_bits, fmt, "has no bits for")


def _profile_cases(profile: str, fmt: Format) -> SpecialCases:
    """Return another library's special cases for a built-in format that the library has."""
    return _row_of_profile("profile", profile, encoding_profiles, fmt, "says nothing of")


def _row_of_profile(
    argument: str,
    profile: str,
    tables: Mapping[str, Mapping[str, _Row]],
    fmt: _Named,
    lack: str,
) -> _Row:
    """Return the row that a profile has for a built-in format; an error says `lack`."""
    rows = tables[known_name(argument, profile, tables)]
    if formats.get(fmt.name) != fmt or fmt.name not in rows:
        raise ValueError(
            f"{argument} is {profile!r}, which {lack} the format {fmt.name!r}; "
            f"it covers {', '.join(rows)}"
        )
    return rows[fmt.name]
