"""NVFP4 profiles as data."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, SupportsFloat

from mor_ref.argument_checks import binary32_number, known_name, shown, whole_number
from mor_ref.definitions.blocks import LARGEST_SIDE, pair_of
from mor_ref.definitions.catalogue import NAMES_OF_REPRESENTATIONS, Catalogue
from mor_ref.definitions.scales import AmaxOrScale, given_amax, given_scale


@dataclass(frozen=True)
class BlockScaleRule:
    """One order of operations that leads to the scales of tiles (NVF-004 to NVF-009).

    `id` is that of the rule in the specification, and `formula` says what the code of a scale is
    the code of. `global_scale` is the symbol of the global scale that comes first; the other is its
    reciprocal. `error` is how a rule that tries two scales adds errors (NVF-006). `divides` is
    whether elements are divided by the scale, and not multiplied by its reciprocal. `takes_nan` is
    whether the rule is for NaN, too.
    """

    id: str
    formula: str
    global_scale: Literal["S_enc", "g", "G"] = "S_enc"
    error: Literal["mae", "mse"] | None = None
    divides: bool = False
    takes_nan: bool = True


_SMALLER_ERROR = "the candidate with the smaller error"
# In the order of the kernels' TileRule.
BLOCK_SCALE_RULES: Mapping[str, BlockScaleRule] = {
    "te": BlockScaleRule("NVF-004", "block_amax · (S_enc · (1/6))"),
    "te_2_13": BlockScaleRule("NVF-005", "(block_amax / 6) · S_enc"),
    "4over6_mae": BlockScaleRule("NVF-006", _SMALLER_ERROR, error="mae"),
    "4over6_mse": BlockScaleRule("NVF-006", _SMALLER_ERROR, error="mse"),
    "torchao": BlockScaleRule(
        "NVF-007", "(block_amax / 6) / g in [2^-6, 448]", "g", takes_nan=False
    ),
    "modelopt": BlockScaleRule(
        "NVF-008", "block_amax / (6 · g) in [2^-9, 448]", "g", divides=True, takes_nan=False
    ),
    "compressed_tensors": BlockScaleRule(
        "NVF-009", "G · (block_amax / 6)", "G", divides=True, takes_nan=False
    ),
}
ROW_TILE = (1, 16)  # of every profile
TILES = (ROW_TILE, (16, 16))
_ROWS = (ROW_TILE,)
_LEAST_RANGE = 2.0  # below it, the global decode scale of a tensor can overflow


@dataclass(frozen=True)
class Nvfp4Profile:
    """One way of quantizing to NVFP4 (NVF-001 and NVF-003 to NVF-009).

    `range` is the product of the largest scale and the largest element that the global scale aims
    at. `per_row` is whether each row has a global scale of its own (NVF-012); it is not for tiles
    of many rows, and not for 4 over 6.
    """

    name: str
    rule: str
    range: float = 2688.0
    per_row: bool = False
    tiles: tuple[tuple[int, int], ...] = TILES

    def __post_init__(self) -> None:
        known_name("rule", self.rule, BLOCK_SCALE_RULES)
        aim = binary32_number("range", self.range, "2688.0")
        if aim < _LEAST_RANGE:
            raise ValueError(f"range is {aim!r}; give a number of at least 2, such as 2688.0")
        object.__setattr__(self, "range", aim)
        is_tuple = isinstance(self.tiles, tuple) and self.tiles
        if not is_tuple or not all(tile in TILES for tile in self.tiles):
            raise ValueError(
                f"tiles is {self.tiles!r}; give a tuple of (1, 16), of (16, 16) or of both"
            )
        if self.per_row and self.tiles != _ROWS:
            raise ValueError(
                f"per_row is given with tiles {self.tiles!r}, which have many rows; give "
                "tiles=((1, 16),)"
            )
        if self.per_row and self.scales.error:
            raise ValueError(
                f"per_row is given with rule {self.rule!r}, which has one global scale of the "
                "tensor; leave per_row out, or give another rule, such as te"
            )

    def __hash__(self) -> int:
        return hash(self.name)  # looked up for each number, and profiles of one name are rare

    @property
    def scales(self) -> BlockScaleRule:
        """Its rule of scales."""
        return BLOCK_SCALE_RULES[self.rule]

    @property
    def divides(self) -> bool:
        """Whether elements are divided by the scale, and not multiplied by its reciprocal."""
        return self.scales.divides

    @property
    def begins_with_decode(self) -> bool:
        """Whether the global decode scale comes first, and the other is its reciprocal."""
        return self.scales.global_scale == "g"

    @property
    def takes_global_scale(self) -> bool:
        """Whether a global scale can be given (NVF-014); 4 over 6 needs the amax."""
        return self.scales.error is None

    @property
    def drops_sign_of_zero(self) -> bool:
        """Whether a quotient of -0 has the code 0."""
        return self.divides


PROFILES: Catalogue[Nvfp4Profile] = Catalogue(
    "profile",
    Nvfp4Profile,
    (
        Nvfp4Profile("te", "te"),
        Nvfp4Profile("te_2_13", "te_2_13"),
        Nvfp4Profile("te_row", "te", per_row=True, tiles=_ROWS),
        Nvfp4Profile("te_4over6_mae", "4over6_mae", 1536.0),
        Nvfp4Profile("te_4over6_mse", "4over6_mse", 1536.0),
        Nvfp4Profile("te_4over6_mae_448", "4over6_mae"),
        Nvfp4Profile("te_4over6_mse_448", "4over6_mse"),
        Nvfp4Profile("torchao", "torchao", tiles=_ROWS),
        Nvfp4Profile("modelopt", "modelopt", tiles=_ROWS),
        Nvfp4Profile("compressed_tensors", "compressed_tensors", tiles=_ROWS),
    ),
    {
        **dict.fromkeys(("transformerengine", "nvte", "nvidia"), ("te",)),
        **dict.fromkeys(("llmcompressor", "compressedtensor"), ("compressed_tensors",)),
        **dict.fromkeys(("modeloptimizer", "tensorrtmodeloptimizer", "amo"), ("modelopt",)),
    },
    namespace=NAMES_OF_REPRESENTATIONS,
)


def given_in(
    profile: Nvfp4Profile, amax: SupportsFloat | None, global_scale: SupportsFloat | None
) -> AmaxOrScale:
    """Return a given amax or global scale; refuse both, a wrong number, and 4 over 6."""
    if global_scale is None:
        return AmaxOrScale(None if amax is None else given_amax("amax", amax))
    if amax is not None:
        raise ValueError(f"amax is {amax!r} and global_scale is {global_scale!r}; give one of them")
    if not profile.takes_global_scale:
        raise ValueError(
            f"global_scale is given with profile {profile.name!r}, whose errors need the amax; "
            "give amax"
        )
    return AmaxOrScale(scale=given_scale("global_scale", global_scale))


def tile_of(profile: Nvfp4Profile, tile: object) -> tuple[int, int]:
    """Return the tile as a tuple, if the profile takes it."""
    wanted = [whole_number("a side of tile", side, 1, LARGEST_SIDE) for side in pair_of(tile) or ()]
    for sides in profile.tiles:
        if [*sides] == wanted:
            return sides
    taken = " or ".join(map(str, profile.tiles))
    raise ValueError(f"tile is {shown(tile)}; profile {profile.name!r} takes {taken}")


@dataclass(frozen=True)
class TeKernel:
    """A kernel of Transformer Engine that rounds at random, with threads that have a stream each.

    A thread takes `words` of its stream for the rows of a chunk of 128 x 128 elements, and as many
    for its columns. The sides of a matrix are multiples of `multiple` (NVF-017).
    """

    name: str
    threads: int  # of a chunk
    words: int
    multiple: int
    outputs: tuple[str, ...]

    def words_of(self, outputs: str) -> int:
        """Return how many words a thread takes for these outputs of a chunk."""
        return self.words * (2 if outputs == "both" else 1)


TE_KERNELS: Mapping[str, TeKernel] = {
    kernel.name: kernel
    for kernel in (
        TeKernel("tuned_1d", 128, 32, 32, ("rows", "both")),
        TeKernel("vector_blockwise", 256, 16, 16, ("rows", "columns", "both")),
    )
}
