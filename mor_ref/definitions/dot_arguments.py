"""The arguments of dot products, as far as shapes and names show a fault."""

from dataclasses import dataclass
from typing import Any

from mor_ref.argument_checks import whole_number
from mor_ref.definitions.dot import DOT_PROFILES, DotProfile, operand_format
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import FormatLike, as_format

Formats = tuple[FormatLike, FormatLike]
Shape = tuple[int, ...]
_SIGNIFICAND = 53  # bits of a term that the implementations hold
_CARRIES = 4  # of sixteen products


@dataclass(frozen=True, eq=False)
class DotArguments:
    """The arguments of `dot` and of `dot_chunks`, as they are given."""

    a: Any
    b: Any
    c: Any
    formats: Formats
    scales: Any
    scale_format: FormatLike | None
    block: int | None
    profile: str | DotProfile

    @property
    def rule(self) -> DotProfile:
        """The profile itself."""
        return dot_profile(self.profile)

    @property
    def has_scales(self) -> bool:
        """Whether a pair of scales is given, if the profile takes it."""
        profile = self.rule
        if self.scales is None:
            if profile.needs_scales:
                raise ValueError(f"{profile.name} needs scales; give a pair, for a and b")
            for name in ("scale_format", "block"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name} is given without scales; give both, or leave it out")
            return False
        if profile.family != "exact" and not profile.scales:
            raise ValueError(f"{profile.name} has no scales; leave them out")
        if not isinstance(self.scales, tuple | list) or len(self.scales) != 2:
            kind = type(self.scales).__name__
            raise TypeError(f"scales is of type {kind}; give a pair, for a and b")
        return True

    def block_of(self, count: int, fmt: Format, columns: int) -> int:
        """Return the length of a block of scales; a row has so many blocks."""
        return block_of(count, fmt, self.block, self.rule, columns)


def dot_profile(profile: str | DotProfile) -> DotProfile:
    """Return the profile itself, or the one of that name."""
    return profile if isinstance(profile, DotProfile) else DOT_PROFILES[profile]


def operand_formats(formats: Formats, profile: DotProfile) -> tuple[Format, Format]:
    """Return the formats of a and b, if the profile has them (DOT-002)."""
    if not isinstance(formats, tuple | list) or len(formats) != 2:
        raise TypeError(f"formats is {formats!r}; give a pair, for a and b")
    fmt_a, fmt_b = (operand_format(fmt) for fmt in formats)
    for fmt in (fmt_a, fmt_b):
        if profile.formats and fmt.name not in profile.formats:
            raise ValueError(
                f"formats has {fmt.name!r}, which {profile.name} does not take; give "
                f"{' or '.join(profile.formats)}"
            )
    return fmt_a, fmt_b


def check_shapes(a: Shape, b: Shape) -> None:
    """Refuse operands that are not the same rows of codes."""
    if b != a:
        raise ValueError(f"b has the shape {b}; give the shape of a, {a}")
    if not a:
        raise ValueError("a and b are single codes; give rows of codes, (n, K)")


def check_scale_shapes(a: Shape, b: Shape, rows: Shape) -> None:
    """Refuse scales that are not codes for the blocks of each row."""
    if a != b or not a or a[:-1] != rows:
        raise ValueError(
            f"scales have the shapes {a} and {b}; give codes for the blocks of each row, "
            f"({', '.join(map(str, (*rows, 'blocks')))})"
        )


def scale_format_of(scale_format: FormatLike | None, profile: DotProfile) -> Format:
    """Return the format of scales: that of the profile, unless it has several."""
    known = tuple(dict.fromkeys(name for name, _ in profile.scales))
    if scale_format is None:
        if len(known) != 1:
            raise ValueError(f"{profile.name} takes scales of several formats; give scale_format")
        return as_format(known[0])
    fmt = as_format(scale_format)
    if known and fmt.name not in known:
        raise ValueError(
            f"scale_format is {fmt.name!r}, which {profile.name} does not take; give "
            f"{' or '.join(known)}"
        )
    return fmt


def block_of(count: int, fmt: Format, block: int | None, profile: DotProfile, columns: int) -> int:
    """Return the length of a block; a row has so many blocks (DOT-006)."""
    known = [side or max(columns, 1) for name, side in profile.scales if name == fmt.name]
    if block is not None:
        side = whole_number("block", block, 1, 1 << 62)
        if known and side not in known:
            raise ValueError(
                f"block is {side}; {profile.name} takes {' or '.join(map(str, known))}"
            )
        known = [side]
    if not known and count and columns % count == 0:
        known = [max(columns // count, 1)]
    for side in known:
        if -(-columns // side) == count:
            return side
    wanted = f"blocks of {' or '.join(map(str, known))}" if known else "equal blocks, or block"
    raise ValueError(f"scales have {count} blocks for {columns} products; give scales of {wanted}")


def check_terms(profile: DotProfile, fmts: tuple[Format, Format], scales: Format | None) -> None:
    """Refuse a profile from elsewhere whose terms do not fit the words of the implementations."""
    if scales is None or profile.family not in ("st_fdpa", "gst_fdpa"):
        return
    bits = 2 * (scales.mantissa_bits + 1)
    if profile.family == "st_fdpa":
        bits += sum(fmt.mantissa_bits + 1 for fmt in fmts)
    else:  # a group is summed in units of the smallest product
        bits += sum(_range_of(fmt) for fmt in fmts) + _CARRIES
    if bits > _SIGNIFICAND:
        names = " and ".join(fmt.name for fmt in (*fmts, scales))
        raise ValueError(
            f"profile {profile.name!r} is not computed: terms of {names} have {bits} bits; take "
            f"formats and scales whose terms have at most {_SIGNIFICAND}"
        )


def _range_of(fmt: Format) -> int:
    """Return the number of bits of the largest number in units of the smallest."""
    unit = fmt.smallest_exponent - fmt.mantissa_bits
    return int(fmt.largest / 2.0**unit).bit_length() + 1
