"""Shared exponents: the kinds of block formats, and the profiles of their special numbers."""

from dataclasses import dataclass

from mor_ref.argument_checks import known_name
from mor_ref.definitions.catalogue import NAMES_OF_REPRESENTATIONS, Catalogue

BLOCK, PAIR = 16, 2  # numbers that share an exponent, and a shift (SHX-001)
NAN_BLOCK = 255  # the exponent of a block whose numbers are NaN (SHX-002)
LARGEST_EXPONENT = 254


@dataclass(frozen=True)
class SharedKind:
    """A block format: the bits of a magnitude, and which exponents its numbers have (SHX-001).

    If it `shifts`, a pair has an exponent one below that of the block. If it `carries`, a block
    takes the next exponent where a number rounds up to it.
    """

    name: str
    magnitude_bits: int
    shifts: bool = True
    carries: bool = False

    @property
    def code_bits(self) -> int:
        """The bits of an element: its magnitude and its sign."""
        return self.magnitude_bits + 1

    @property
    def block_bytes(self) -> int:
        """The bytes of a packed block (SHX-007)."""
        return 1 + self.shifts + BLOCK * self.code_bits // 8

    def row_bytes(self, columns: int) -> int:
        """Return the bytes of a packed row (SHX-007)."""
        return -(-columns // BLOCK) * self.block_bytes


@dataclass(frozen=True)
class SharedProfile:
    """What a library makes of NaN, infinities and zeros (SHX-002, SHX-005, SHX-006).

    If it makes `nan_blocks`, one of them makes all numbers of its block NaN. If not, they pass. If
    it `keeps_signs`, a zero and a subnormal number keep their sign.
    """

    name: str
    nan_blocks: bool
    keeps_signs: bool


SHARED_KINDS: Catalogue[SharedKind] = Catalogue(
    "kind",
    SharedKind,
    (
        SharedKind("mx9", 7),
        SharedKind("mx6", 4),
        SharedKind("mx4", 2),
        SharedKind("bfp16", 7, shifts=False),
        SharedKind("bfp16_carry", 7, shifts=False, carries=True),
    ),
    namespace=NAMES_OF_REPRESENTATIONS,
)
SHARED_PROFILES: Catalogue[SharedProfile] = Catalogue(
    "profile",
    SharedProfile,
    (
        SharedProfile("quark_torch", nan_blocks=False, keeps_signs=False),
        SharedProfile("quark_onnx", nan_blocks=True, keeps_signs=True),
    ),
)


def shared_kind(kind: str) -> SharedKind:
    """Return the kind of that name."""
    return SHARED_KINDS[known_name("representation", kind, SHARED_KINDS)]


def shared_profile(profile: str) -> SharedProfile:
    """Return the profile of that name."""
    return SHARED_PROFILES[known_name("profile", profile, SHARED_PROFILES)]
