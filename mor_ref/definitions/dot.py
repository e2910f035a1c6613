"""Dot products: the families of sums, and the profiles of matrix instructions."""

from dataclasses import dataclass, replace
from typing import Literal, get_args

from mor_ref.argument_checks import fault_of_name
from mor_ref.definitions.catalogue import Catalogue
from mor_ref.definitions.format import Format, FormatError
from mor_ref.definitions.formats import FormatLike, as_format, formats

Family = Literal[
    "exact",
    "f32_fma",
    "f32_pairwise",
    "t_fdpa",
    "st_fdpa",
    "gst_fdpa",
    "promoted",
    "e_fdpa",
    "ftz_mul_add",
    "tr_fdpa",
    "gtr_fdpa",
    "int32",
    "switchback",
]
GROUP = 16  # products of gst_fdpa that are summed before they are cut (DOT-009)
PERIOD = 128  # products between two promotions (DOT-011)
RIGHT_BITS = 32  # of a sum below the largest exponent, in tr_fdpa and gtr_fdpa (DOT-017)
STEPS_OF_INT8 = 127  # of the largest number of a row (DOT-020)
INT8 = Format(
    "int8",
    exponent_bits=0,
    mantissa_bits=7,
    bias=-6,
    specials="none",
    sign="twos-complement",
)
CUTS = ("t_fdpa", "st_fdpa", "gst_fdpa", "tr_fdpa", "gtr_fdpa")  # families with a cut sum
ROUNDED_ONCE = ("t_fdpa", "st_fdpa", "gst_fdpa", "promoted")  # by DOT-010
WITHOUT_C = ("int32", "switchback")  # families that take no c
_WITHOUT_CHUNK = ("exact", "f32_fma", "f32_pairwise", "int32", "switchback")
_MOST_BITS, _LONGEST = 40, 128  # so that a cut sum has less than 63 bits
_KEPT_BITS = 23  # at most, as in binary32
_WORDS = {"family": get_args(Family), "result": ("f32", "f16"), "first_c": ("", "f16")}
_COUNTS = ("chunk", "fraction_bits", "kept_bits", "ignored_bits", "flushed_every")
_NUMBERS = (*_COUNTS, "zero_exponent")
_WITH_SCALES = ("exact", "st_fdpa", "gst_fdpa", "promoted", "switchback")
_USED_BY: dict[str, tuple[str, ...]] = {  # the families that use a field
    "chunk": (*CUTS, "promoted", "e_fdpa", "ftz_mul_add"),
    "fraction_bits": (*CUTS, "promoted"),
    "zero_exponent": ROUNDED_ONCE,
    "kept_bits": ROUNDED_ONCE,
    "result": ROUNDED_ONCE[:3],
    "first_c": ROUNDED_ONCE[:3],
    "flushed_every": ("ftz_mul_add",),
    "scales": _WITH_SCALES,
}
_WHOLE_BLOCKS = {"gst_fdpa": GROUP, "promoted": PERIOD}  # products that have one scale
_LENGTHS: dict[str, tuple[range, str]] = {  # lengths of chunks, in whole groups
    "gst_fdpa": (range(GROUP, _LONGEST + 1, GROUP), f"a multiple of {GROUP}"),
    "ftz_mul_add": (range(2, 5, 2), "2 or 4"),
    "gtr_fdpa": (range(2, _LONGEST + 1, 2), "an even number"),
}


@dataclass(frozen=True)
class DotProfile:
    """A family of sums, and the numbers of its rules (DOT-002).

    `formats` are those that an operand may have, all if it is empty. `chunk` is the number of
    products that are summed at once, `fraction_bits` is F and `zero_exponent` is e0. `result` is
    the format of c and of the result, which keeps `kept_bits` behind its leading one. `scales` are
    the admitted formats of scales with the lengths of their blocks; 0 is the whole row. The lowest
    `ignored_bits` of operands are read as 0. An instruction of `flushed_every` products flushes the
    c that it takes. `first_c` is the format of the given c, if it is not that of the result. `wide`
    is the profile of the same architecture that multiplies blocks upcast to bfloat16 (GEM-004).
    """

    name: str
    family: Family
    formats: tuple[str, ...] = ()
    chunk: int = 0
    fraction_bits: int = 0
    zero_exponent: int = 0
    result: Literal["f32", "f16"] = "f32"
    kept_bits: int = 23
    scales: tuple[tuple[str, int], ...] = ()
    ignored_bits: int = 0
    flushed_every: int = 0
    first_c: Literal["", "f16"] = ""
    wide: str = ""

    def __post_init__(self) -> None:
        fault = fault_of_name(self.name) or self._fault_of_types()
        fault = fault or _fault_of_unused_fields(self) or self._fault() or _fault_of_scales(self)
        if fault:
            raise FormatError(f"profile {self.name!r} cannot exist: {fault}")

    def _fault_of_types(self) -> str | None:
        """Return a field of another type than its own, and the next step."""
        for name, known in _WORDS.items():
            value = getattr(self, name)
            if value not in known:
                return f"{name} is {value!r}; give {' or '.join(map(repr, known))}"
        for name in _NUMBERS:
            value = getattr(self, name)
            if type(value) is not int:
                return f"{name} is {value!r}; give an int"
        for name in ("formats", "scales"):
            if not isinstance(getattr(self, name), tuple):
                return f"{name} is {getattr(self, name)!r}; give a tuple"
        if not isinstance(self.wide, str):
            return f"wide is {self.wide!r}; give the name of a profile that multiplies bfloat16"
        return None

    def _fault(self) -> str | None:
        """Return the fault of the numbers, and the next step."""
        if not 0 <= self.fraction_bits <= _MOST_BITS or not 0 <= self.chunk <= _LONGEST:
            return (
                f"fraction_bits is {self.fraction_bits} and chunk is {self.chunk}; give 0 to "
                f"{_MOST_BITS} and 0 to {_LONGEST}"
            )
        if not 1 <= self.kept_bits <= _KEPT_BITS:
            return f"kept_bits is {self.kept_bits}; give 1 to {_KEPT_BITS}"
        admitted, wanted = _LENGTHS.get(self.family, (range(1, _LONGEST + 1), "1 or more"))
        if self.family not in _WITHOUT_CHUNK and self.chunk not in admitted:
            return f"chunk is {self.chunk}; for {self.family}, give {wanted}"
        if self.family == "promoted" and PERIOD % self.chunk:
            return f"chunk is {self.chunk}; for promoted, give a divisor of {PERIOD}"
        if self.family in ("tr_fdpa", "gtr_fdpa") and self.fraction_bits > RIGHT_BITS:
            return (
                f"fraction_bits is {self.fraction_bits}; for {self.family}, give 0 to {RIGHT_BITS}"
            )
        if not 0 <= self.ignored_bits <= _KEPT_BITS:
            return f"ignored_bits is {self.ignored_bits}; give 0 to {_KEPT_BITS}"
        if self.ignored_bits and tuple(self.formats) != ("f32",):
            return (
                f"ignored_bits is {self.ignored_bits} and formats is {self.formats!r}; leave it "
                "out, or give formats=('f32',), whose last bits tf32 and xf32 ignore"
            )
        if self.flushed_every < 0 or (self.chunk and self.flushed_every % self.chunk):
            return (
                f"flushed_every is {self.flushed_every}; give 0, or a multiple of chunk, which is "
                f"{self.chunk}"
            )
        lowest = formats[self.result].smallest_exponent
        if self.family in ROUNDED_ONCE and self.zero_exponent > lowest:
            return (
                f"zero_exponent is {self.zero_exponent}, above that of the smallest normal number "
                f"of {self.result}; give one of at most {lowest}"
            )
        return None

    @property
    def start(self) -> str:
        """The format of the given c."""
        return self.first_c or self.result

    @property
    def result_bits(self) -> int:
        """How many bits a result keeps behind its leading one."""
        return self.kept_bits if self.result == "f32" else formats[self.result].mantissa_bits

    @property
    def is_cut(self) -> bool:
        """Whether its chunks have a largest exponent and a cut sum."""
        return self.family in CUTS

    @property
    def has_sums(self) -> bool:
        """Whether its chunks have a sum: of cut terms, or of integers."""
        return self.is_cut or self.family in WITHOUT_C

    def __hash__(self) -> int:
        return hash(self.name)  # looked up in each call, and profiles of one name are rare

    @property
    def needs_scales(self) -> bool:
        """Whether a dot product has scales in any case."""
        return self.family in ("st_fdpa", "gst_fdpa", "switchback")


def _fault_of_unused_fields(profile: DotProfile) -> str | None:
    """Return a field that the family does not use, and the next step (DOT-002)."""
    for name, families in _USED_BY.items():
        value, usual = getattr(profile, name), type(profile).__dataclass_fields__[name].default
        if value != usual and profile.family not in families:
            return (
                f"{name} is {value!r}, which {profile.family} does not use; leave it out, or give "
                f"{usual!r}"
            )
    usual = type(profile).__dataclass_fields__["kept_bits"].default
    if profile.result == "f16" and profile.kept_bits != usual:
        return (
            f"kept_bits is {profile.kept_bits}, which a result in f16 does not use; leave it out, "
            f"or give {usual}"
        )
    return None


def _fault_of_scales(profile: DotProfile) -> str | None:
    """Return the fault of the scales, and the next step (DOT-006)."""
    length = _WHOLE_BLOCKS.get(profile.family, 1)
    if profile.needs_scales and not profile.scales:
        return f"scales is (), and {profile.family} needs some; give pairs of a format and a block"
    for pair in profile.scales:
        if not isinstance(pair, tuple) or tuple(map(type, pair)) != (str, int) or pair[1] < 0:
            return f"scales has {pair!r}; give pairs of the name of a format and a block"
        if pair[1] % length:
            family = profile.family
            return f"scales has a block of {pair[1]}; for {family}, give a multiple of {length}"
    return None


_FP8 = ("e4m3", "e5m2")
_F8F6F4 = (*_FP8, "e2m3", "e3m2", "e2m1")
_FNUZ = ("e4m3fnuz", "e5m2fnuz")
_MX = (("e8m0", 32),)
_MXFP4 = (("e8m0", 32), ("e8m0", 16))
_NVFP4 = (("e4m3", 16),)
_TF32 = 13  # low bits of binary32 that TF32 lacks

Row = DotProfile
_ROWS = (
    Row("exact", "exact"),
    Row("f32_fma", "f32_fma"),
    Row("f32_pairwise", "f32_pairwise"),
    Row("volta_fp16", "t_fdpa", ("f16",), 4, 23, -131),
    Row("volta_fp16_from_f16", "t_fdpa", ("f16",), 4, 23, -131, first_c="f16"),
    Row("volta_fp16_f16", "t_fdpa", ("f16",), 4, 23, -19, "f16"),
    Row("turing_fp16", "t_fdpa", ("f16",), 8, 24, -132),
    Row("turing_fp16_k4", "t_fdpa", ("f16",), 4, 23, -131),
    Row("turing_fp16_from_f16_k4", "t_fdpa", ("f16",), 4, 23, -131, first_c="f16"),
    Row("turing_fp16_f16", "t_fdpa", ("f16",), 8, 24, -20, "f16"),
    Row("turing_fp16_f16_k4", "t_fdpa", ("f16",), 4, 23, -19, "f16"),
    Row("ampere_fp16", "t_fdpa", ("f16",), 8, 24, -132),
    Row("ampere_fp16_f16", "t_fdpa", ("f16",), 8, 24, -20, "f16"),
    Row("ampere_bf16", "t_fdpa", ("bf16",), 8, 24, -132),
    Row("ampere_tf32", "t_fdpa", ("f32",), 4, 24, -132, ignored_bits=_TF32),
    Row("ada_fp16", "t_fdpa", ("f16",), 8, 24, -132),
    Row("ada_fp16_f16", "t_fdpa", ("f16",), 8, 24, -20, "f16"),
    Row("ada_bf16", "t_fdpa", ("bf16",), 8, 24, -132),
    Row("ada_tf32", "t_fdpa", ("f32",), 4, 24, -132, ignored_bits=_TF32),
    Row("ada_fp8", "t_fdpa", _FP8, 16, 13, -132, "f32", 13),
    Row("ada_fp8_f16", "t_fdpa", _FP8, 16, 13, -20, "f16"),
    Row("hopper_fp16", "t_fdpa", ("f16",), 16, 25, -133),
    Row("hopper_fp16_k8", "t_fdpa", ("f16",), 8, 25, -133),
    Row("hopper_fp16_f16", "t_fdpa", ("f16",), 16, 25, -21, "f16"),
    Row("hopper_fp16_f16_k8", "t_fdpa", ("f16",), 8, 25, -21, "f16"),
    Row("hopper_bf16", "t_fdpa", ("bf16",), 16, 25, -133),
    Row("hopper_bf16_k8", "t_fdpa", ("bf16",), 8, 25, -133),
    Row("hopper_tf32", "t_fdpa", ("f32",), 8, 25, -133, ignored_bits=_TF32),
    Row("hopper_tf32_k4", "t_fdpa", ("f32",), 4, 25, -133, ignored_bits=_TF32),
    Row("hopper_fp8", "t_fdpa", _FP8, 32, 13, -133, "f32", 13),
    Row("hopper_fp8_f16", "t_fdpa", _FP8, 32, 13, -21, "f16"),
    Row("hopper_fp8_promoted", "promoted", _FP8, 32, 13, -133, "f32", 13, (("f32", PERIOD),)),
    Row("blackwell_fp16", "t_fdpa", ("f16",), 16, 25, -133),
    Row("blackwell_fp16_k8", "t_fdpa", ("f16",), 8, 25, -133),
    Row("blackwell_fp16_f16", "t_fdpa", ("f16",), 16, 25, -21, "f16"),
    Row("blackwell_fp16_f16_k8", "t_fdpa", ("f16",), 8, 25, -21, "f16"),
    Row("blackwell_bf16", "t_fdpa", ("bf16",), 16, 25, -133),
    Row("blackwell_bf16_k8", "t_fdpa", ("bf16",), 8, 25, -133),
    Row("blackwell_tf32", "t_fdpa", ("f32",), 8, 25, -133, ignored_bits=_TF32),
    Row("blackwell_tf32_k4", "t_fdpa", ("f32",), 4, 25, -133, ignored_bits=_TF32),
    Row("blackwell_fp8", "t_fdpa", _F8F6F4, 32, 25, -133),
    Row("blackwell_fp8_f16", "t_fdpa", _F8F6F4, 32, 25, -21, "f16"),
    Row("blackwell_mxfp8", "st_fdpa", _F8F6F4, 32, 25, -133, scales=_MX),
    Row("blackwell_mxfp4", "gst_fdpa", ("e2m1",), 64, 35, -139, scales=_MXFP4),
    Row("blackwell_nvfp4", "gst_fdpa", ("e2m1",), 64, 35, -139, scales=_NVFP4),
    Row("rtx_blackwell_fp16", "t_fdpa", ("f16",), 16, 25, -133),
    Row("rtx_blackwell_fp16_k8", "t_fdpa", ("f16",), 8, 25, -133),
    Row("rtx_blackwell_fp16_f16", "t_fdpa", ("f16",), 16, 25, -21, "f16"),
    Row("rtx_blackwell_fp16_f16_k8", "t_fdpa", ("f16",), 8, 25, -21, "f16"),
    Row("rtx_blackwell_bf16", "t_fdpa", ("bf16",), 16, 25, -133),
    Row("rtx_blackwell_bf16_k8", "t_fdpa", ("bf16",), 8, 25, -133),
    Row("rtx_blackwell_tf32", "t_fdpa", ("f32",), 8, 25, -133, ignored_bits=_TF32),
    Row("rtx_blackwell_tf32_k4", "t_fdpa", ("f32",), 4, 25, -133, ignored_bits=_TF32),
    Row("rtx_blackwell_fp8", "t_fdpa", _F8F6F4, 32, 25, -133),
    Row("rtx_blackwell_fp8_k16", "t_fdpa", _FP8, 16, 25, -133),
    Row("rtx_blackwell_fp8_f16", "t_fdpa", _F8F6F4, 32, 25, -21, "f16"),
    Row("rtx_blackwell_fp8_f16_k16", "t_fdpa", _FP8, 16, 25, -21, "f16"),
    Row("rtx_blackwell_mxfp8", "st_fdpa", _F8F6F4, 32, 25, -133, scales=_MX),
    Row("rtx_blackwell_mxfp4", "gst_fdpa", ("e2m1",), 64, 35, -139, scales=_MXFP4),
    Row("rtx_blackwell_nvfp4", "gst_fdpa", ("e2m1",), 64, 35, -139, scales=_NVFP4),
    Row("int32", "int32", ("int8",)),
    Row("switchback", "switchback", ("int8",), scales=(("f32", 0),)),
    Row("cdna1_fp32", "f32_fma", ("f32",)),
    Row("cdna1_fp16", "e_fdpa", ("f16",), 4),
    Row("cdna1_bf16", "e_fdpa", ("bf16",), 2),
    Row("cdna2_fp32", "f32_fma", ("f32",)),
    Row("cdna2_fp16", "ftz_mul_add", ("f16",), 4, flushed_every=16),
    Row("cdna2_bf16", "ftz_mul_add", ("bf16",), 2, flushed_every=8),
    Row("cdna2_bf16_k4", "ftz_mul_add", ("bf16",), 2, flushed_every=4),
    Row("cdna2_bf16_k2", "ftz_mul_add", ("bf16",), 2, flushed_every=2),
    Row("cdna2_bf16_1k", "ftz_mul_add", ("bf16",), 4, flushed_every=16),
    Row("cdna2_bf16_1k_k8", "ftz_mul_add", ("bf16",), 4, flushed_every=8),
    Row("cdna2_bf16_1k_k4", "ftz_mul_add", ("bf16",), 4, flushed_every=4),
    Row("cdna3_fp32", "f32_fma", ("f32",)),
    Row("cdna3_xf32", "tr_fdpa", ("f32",), 4, 24, ignored_bits=_TF32),
    Row("cdna3_fp16", "tr_fdpa", ("f16",), 8, 24),
    Row("cdna3_fp16_k4", "tr_fdpa", ("f16",), 4, 24),
    Row("cdna3_bf16", "tr_fdpa", ("bf16",), 8, 24),
    Row("cdna3_bf16_k4", "tr_fdpa", ("bf16",), 4, 24),
    Row("cdna3_fp8", "gtr_fdpa", _FNUZ, 16, 24),
)
# The profile of each architecture that multiplies blocks upcast to bfloat16 (GEM-004).
_WIDE = {
    "ampere": "ampere_bf16",
    "ada": "ada_bf16",
    "hopper": "hopper_bf16",
    "blackwell": "blackwell_bf16",
    "rtx": "rtx_blackwell_bf16",
    "cdna1": "cdna1_bf16",
    "cdna2": "cdna2_bf16_1k",
    "cdna3": "cdna3_bf16",
}


def _with_wide(row: DotProfile) -> DotProfile:
    """Return a row with the profile for bfloat16 of its architecture, which can be itself."""
    name = row.name if "bf16" in row.formats else _WIDE.get(row.name.split("_")[0], "")
    return replace(row, wide=name)


DOT_PROFILES: Catalogue[DotProfile] = Catalogue("profile", DotProfile, map(_with_wide, _ROWS))


def operand_format(fmt: FormatLike) -> Format:
    """Return the format of an operand: one of the catalogue, or the integers int8 (DOT-019)."""
    return INT8 if fmt == INT8.name else as_format(fmt)
