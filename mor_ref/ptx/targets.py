"""Targets and versions of PTX, and which have an instruction, as ptxas 12.9 and 13.5 have it."""

import functools
import re
from dataclasses import dataclass

from mor_ref.ptx.errors import PtxError, refusal
from mor_ref.ptx.program import Instruction

_FAMILIES = (100, 110, 120)  # a target of a family, such as sm_103f, is of the last of these
_TARGET = re.compile(r"sm_(?P<number>\d+)(?P<suffix>[af]?)")


@dataclass(frozen=True)
class Need:
    """The first target and PTX version of the opcodes that match a pattern.

    `only` has the targets that have such an opcode if later ones lack it: a name that ends in f
    stands for its family from this target on, with f or a behind it.
    """

    pattern: str
    target: int = 0
    version: str = ""
    only: tuple[str, ...] = ()


_NARROW = r"(?:e2m1|e2m3|e3m2|ue8m0)"
_OF_FAMILIES = ("sm_100f", "sm_110f", "sm_120f")
# An opcode needs all that the patterns it matches need.
NEEDS = (
    # Numbers of half precision.
    Need(r"(?:add|sub|mul|fma|neg|abs)\.(?:\w+\.)*f16(?:x2)?|setp?\..*\bf16(?:x2)?\b.*", 53),
    Need(r"abs\.(?:ftz\.)?f16(?:x2)?|set\..*[us](?:16|32)\.f16(?:x2)?", version="6.5"),
    Need(r"(?:neg|abs|min|max|fma)\.(?:\w+\.)*bf16(?:x2)?", 80, "7.0"),
    Need(r"(?:min|max)\.(?:\w+\.)*f16(?:x2)?|(?:min|max)\.(?:ftz\.)?NaN\..*", 80, "7.0"),
    Need(r"fma\.rn\.(?:\w+\.)*relu\.\w+", 80, "7.0"),
    Need(r"(?:add|sub|mul)\.(?:\w+\.)*bf16(?:x2)?|setp?\..*\bbf16(?:x2)?\b.*", 90, "7.8"),
    Need(r"(?:min|max)\..*xorsign.*", 86, "7.2"),
    Need(r"(?:add|sub|fma)\.(?:\w+\.)*f32\.b?f16|(?:add|sub|mul|fma)\.(?:\w+\.)*f32x2", 100, "8.6"),
    Need(r"tanh\.approx\.f32", 75, "7.0"),
    # Conversions.
    Need(r"cvt\.(?:\w+\.)*bf16(?:x2)?\.f32|cvt\.(?:\w+\.)*relu\..*|cvt\..*\bf16x2\.f32", 80, "7.0"),
    Need(r"cvt\.rna\..*tf32\.f32", 80, "7.0"),
    Need(r"cvt\.(?:r[nzmp]\.)?f32\.bf16", 80, "7.1"),
    Need(r"cvt\.(?:r[nzmp]\.)?ftz\.f32\.bf16", 90, "7.8"),
    Need(r"cvt\.r[nz]\.(?:\w+\.)*satfinite\.(?:\w+\.)*f16\.f32", 70, "8.1"),
    Need(r"cvt\.r[nz]\.(?:\w+\.)*satfinite\.(?:\w+\.)*(?:bf16|b?f16x2)\.f32", 80, "8.1"),
    Need(r"cvt\.rna\.(?:\w+\.)*satfinite\.tf32\.f32", 80, "8.1"),
    Need(r"cvt\.r[nz]\.(?:relu\.)*tf32\.f32", 90, "7.8"),
    Need(r"cvt\.r[nz]\.(?:\w+\.)*satfinite\.(?:relu\.)?tf32\.f32", 100, "8.6"),
    Need(r"cvt\.(?!rs\.)(?:\w+\.)*e[45]m[23]x2\.(?:f32|f16x2)", 89, "7.8"),
    Need(r"cvt\.(?:\w+\.)*f16x2\.e[45]m[23]x2", 89, "7.8"),
    Need(rf"cvt\.(?!rs\.).*\b{_NARROW}x2\b.*", version="8.6", only=_OF_FAMILIES),
    Need(r"cvt\.(?:\w+\.)*e\dm\dx2\.bf16x2", version="9.1", only=_OF_FAMILIES),
    Need(r"cvt\.(?:\w+\.)*e[23]m[23]x2\.f16x2", version="9.1"),
    Need(r"cvt\.(?:\w+\.)*bf16x2\.e\dm\dx2", version="9.2", only=_OF_FAMILIES),
    Need(r"cvt\.rs\..*", version="8.7", only=("sm_100a", "sm_103a", "sm_107a")),
    Need(r"cvt\.pack\..*", 72, "6.5"),
    Need(r"cvt\.pack\..*[us][24]\..*", 75, "6.5"),
    Need(
        r"cvt\.(?:r[nzmp]i?\.)?(?:(?:[us]\d+|f64|f16|bf16)\.bf16|bf16\.(?:[us]\d+|f64|f16))",
        90,
        "7.8",
    ),
    # Integers.
    Need(r"dp[24]a\..*", 61),
    Need(r"(?:bmsk|szext)\..*", 70, "7.6"),
    Need(r"(?:min|max)\..*relu.*|(?:add|min|max)\.[us]16x2.*", 90, "8.0"),
    # Memory.
    Need(r"(?:ld|st)\..*\b(?:weak|relaxed|acquire|release|mmio)\b.*", 70),
    Need(r"(?:ld|st)\..*\bL1::.*", 70, "7.4"),
    Need(r"(?!cp\.).*\bshared::cta\b.*|bar(?:rier)?\.cta\..*", version="7.8"),
    Need(r"(?:ld|st)\.mmio\..*", 70, "8.2"),
    Need(r"ld\..*\bL2::(?:64|128)B.*", 75, "7.4"),
    Need(r"(?:ld|st|atom|red)\..*\bL2::(?:256B|cache_hint).*|createpolicy\..*", 80, "7.4"),
    Need(r"(?:ld|st|atom|red|fence)\..*\.cluster\b.*", 90, "7.8"),
    Need(r"(?:ld|ldu|st|mov)\.(?:.*\.)?b128", 70, "8.3"),
    Need(r"(?:ld|st)\..*\b(?:sys|mmio)\b.*b128|atom\..*\bsys\b.*b128", version="8.4"),
    Need(r"(?:cvta|isspacep)\.(?:to\.)?param.*", 70, "7.7"),
    Need(r"(?:cvta|isspacep)\.(?:to\.)?shared::cluster.*", 90, "7.8"),
    Need(r"(?:ld|ldu|st)\..*\b(?:v8\.[busf]32|v4\.[busf]64)", 100, "8.8"),
    Need(r".*\.param::(?:entry|func).*", version="8.3"),
    Need(r"(?:prefetch\..*L2::evict|applypriority|discard).*", 80, "7.4"),
    Need(r"prefetch\..*tensormap", 90, "8.0"),
    Need(r"(?:membar|fence)\.proxy\..*", 70, "7.5"),
    Need(r"fence\.proxy\.(?:async|tensormap).*", 90, "8.0"),
    Need(r"fence\.proxy\.tensormap.*", version="8.3"),
    Need(r"fence\.mbarrier_init.*|elect\..*", 90, "8.0"),
    Need(r"fence\.(?:proxy\..*)?(?:acquire|release)\..*", 90, "8.6"),
    Need(r"(?:atom|red)\..*\.(?:cta|gpu|sys)\b.*", 60),
    Need(r"(?:atom|red)\..*\b(?:relaxed|acquire|release|acq_rel)\b.*|fence\..*", 70),
    Need(r"(?:atom|red)\..*\badd\.(?:noftz\.)?f64", 60),
    Need(r"(?:atom|red)\..*\badd\.noftz\.f16x2", 60, "6.2"),
    Need(r"(?:atom|red)\..*\badd\.noftz\.f16|atom\..*\bcas\.b16", 70, "6.3"),
    Need(r"(?:atom|red)\..*\bbf16(?:x2)?", 90, "7.8"),
    Need(r"(?:atom|red)\..*\bv[248]\b.*", 90, "8.1"),
    Need(r"atom\..*\bb128", 90, "8.3"),
    Need(r"cp\.async\..*", 80, "7.0"),
    Need(r"cp\.async\..*\bL2::.*", version="7.4"),
    # Warps.
    Need(r"match\.\w+\.sync\..*", 70),
    Need(r"nanosleep\..*", 70, "6.3"),
    Need(r"lop3\.(?:and|or)\.b32", 70, "8.2"),
    Need(r"redux\.sync\..*", 80, "7.0"),
    Need(r"redux\.sync\..*\.f32", version="8.6", only=("sm_100f",)),
    Need(r"(?:elect|griddepcontrol)\..*", 90, "7.8"),
    Need(r"setmaxnreg\..*", version="8.0", only=("sm_90a", *_OF_FAMILIES)),
    # Matrices.
    Need(r"ldmatrix\..*\.b16|movmatrix\..*", 75, "6.5"),
    Need(r"movmatrix\..*|stmatrix\..*\.b16", version="7.8"),
    Need(r"stmatrix\..*", 90),
    Need(r"(?:ld|st)matrix\..*\.b8(?:x16.*)?", version="8.6", only=_OF_FAMILIES),
    Need(r"mma\..*\.f16\.f16\.f(?:16|32)", 75, "6.5"),
    Need(r"mma\..*m16n8k16\..*\.f16\.f16\.f(?:16|32)", 80, "7.0"),
    Need(r"mma\..*\.(?:bf16|tf32|f64)\..*", 80, "7.0"),
    Need(r"mma\..*\.(?:[su][48]|b1)\..*", 75, "6.5"),
    Need(r"mma\..*m16n8k\d+\..*\.(?:[su][48]|b1)\..*", 80, "7.0"),
    Need(r"mma\..*\.and\.popc", 80, "7.1"),
    Need(r"mma\..*\b(?:m16n8k(?:4|8|16)\..*\.f64\..*)", 90, "7.8"),
    Need(r"mma\.(?!.*kind).*m16n8k32\..*\.f32\.e[45]m[23]\..*", 89, "8.4"),
    Need(r"mma\.(?!.*kind)(?:.*k16\..*\.e[45]m[23]\..*|.*\.e[45]m[23]\.f16)", 89, "8.7"),
    Need(r"mma\..*kind::f8f6f4.*", version="8.6", only=_OF_FAMILIES),
    Need(r"mma\..*kind::f8f6f4.*\.f16", version="8.7"),
    Need(r"mma\..*kind::(?:.*e[23]m[123].*|mx.*)", version="8.7", only=("sm_120f",)),
    Need(r"mma\..*kind::mxf4nvf4.*4X.*ue8m0", version="9.1", only=("sm_120f",)),
    Need(r"wgmma\..*", version="8.0", only=("sm_90a",)),
    Need(r"wgmma\..*\.[su]8", version="8.4"),
)
# The first version with each target, by its number or its name; ptxas 13.0 has those from 75 on.
_FIRST_VERSIONS = {
    "30": "3.0",
    "32": "4.0",
    "35": "3.1",
    "37": "4.1",
    "50": "4.0",
    "52": "4.1",
    "53": "4.2",
    "60": "5.0",
    "61": "5.0",
    "62": "5.0",
    "70": "6.0",
    "72": "6.1",
    "75": "6.3",
    "80": "7.0",
    "86": "7.1",
    "87": "7.4",
    "88": "7.3",
    "89": "7.8",
    "90": "7.8",
    "90a": "8.0",
    "100": "8.6",
    "100f": "8.8",
    "101": "8.6",
    "101f": "8.8",
    "103": "8.8",
    "110": "9.0",
    "120": "8.7",
    "120f": "8.8",
    "121": "8.8",
}
_OF_THREE = Need("", 100, "8.8")  # a minimum or a maximum of three
_NEEDS = tuple((re.compile(each.pattern), each) for each in NEEDS)


def check_version(target: str, version: str) -> None:
    """Refuse a version of PTX that does not have the target yet."""
    number, suffix = _parts(target)
    names = (f"{number}{suffix}", str(number))
    first = next((_FIRST_VERSIONS[one] for one in names if one in _FIRST_VERSIONS), "0.0")
    if _number(version) < _number(first):
        found = target.split(",", maxsplit=1)[0]
        raise PtxError(
            f".target {found} needs .version {first} or higher; the module has {version}"
        )


def check_target(of: Instruction, target: str, version: str) -> None:
    """Refuse an instruction that the target or the version of its module does not have."""
    for need in needs_of(of.opcode, len(of.operands)):
        if not is_target(need, target):
            names = " or ".join(map(_named, need.only)) or f"sm_{need.target} or higher"
            found = target.split(",", maxsplit=1)[0]
            raise refusal(of.line, of.text, f"it needs .target {names}; the module has {found}")
        if need.version and _number(version) < _number(need.version):
            why = f"it needs .version {need.version} or higher; the module has {version}"
            raise refusal(of.line, of.text, why)


@functools.cache
def needs_of(opcode: str, count: int) -> tuple[Need, ...]:
    """Return what an opcode with so many operands needs of its module."""
    found = tuple(need for pattern, need in _NEEDS if pattern.fullmatch(opcode))
    is_of_three = opcode.startswith(("min.", "max.")) and opcode.endswith(".f32") and count > 3
    return (*found, *[_OF_THREE] * is_of_three)


def is_target(need: Need, target: str) -> bool:
    """Return whether a target such as sm_90a has what needs this."""
    number, suffix = _parts(target)
    if not need.only:
        return number >= need.target
    return any(_is_one(number, suffix, *_parts(one)) for one in need.only)


def _is_one(number: int, suffix: str, first: int, of: str) -> bool:
    """Return whether a target is the one that is named, or of the family that is."""
    if of == "f":
        return bool(suffix) and number >= first and _family(number) == _family(first)
    return (number, suffix) == (first, of)


def _parts(target: str) -> tuple[int, str]:
    found = _TARGET.match(target)
    return (int(found["number"]), found["suffix"]) if found else (0, "")


def _family(number: int) -> int:
    return max((each for each in _FAMILIES if each <= number), default=0)


def _named(target: str) -> str:
    """Return a target as an error names it: with f, those with a and f are meant."""
    return f"{target[:-1]}a/f" if target.endswith("f") else target


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
