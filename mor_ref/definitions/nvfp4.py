"""NVFP4 profiles as data."""

from dataclasses import dataclass
from typing import Literal

from mor_ref.definitions.catalogue import Catalogue

BlockScaleRule = Literal[
    "te", "te_2_13", "4over6_mae", "4over6_mse", "torchao", "modelopt", "compressed_tensors"
]
TILES = ((1, 16), (16, 16))


@dataclass(frozen=True)
class Nvfp4Profile:
    """One way of quantizing to NVFP4 (NVF-001 and NVF-003 to NVF-009).

    `range` is the product of the largest scale and the largest element that the global scale aims
    at. `per_row` is whether each row has a global scale of its own (NVF-012).
    """

    name: str
    rule: BlockScaleRule
    range: float = 2688.0
    per_row: bool = False
    tiles: tuple[tuple[int, int], ...] = TILES

    @property
    def divides(self) -> bool:
        """Whether elements are divided by the scale, and not multiplied by its reciprocal."""
        return self.rule in ("modelopt", "compressed_tensors")

    @property
    def drops_sign_of_zero(self) -> bool:
        """Whether a quotient of -0 has the code 0."""
        return self.divides


_ROWS = ((1, 16),)
PROFILES: Catalogue[Nvfp4Profile] = Catalogue(
    "profile",
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
)


def tile_of(profile: Nvfp4Profile, tile: object) -> tuple[int, int]:
    """Return the tile as a tuple, if the profile takes it."""
    given = tuple(tile) if isinstance(tile, tuple | list) else tile
    for sides in profile.tiles:
        if sides == given:
            return sides
    taken = " or ".join(map(str, profile.tiles))
    raise ValueError(f"tile is {tile!r}; profile {profile.name!r} takes {taken}")
