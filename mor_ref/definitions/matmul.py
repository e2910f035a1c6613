"""Products of matrices: the kinds of records that they multiply."""

from collections.abc import Mapping
from dataclasses import dataclass

OUTPUTS = ("f32", "bf16", "f16")
BINARY32_FAMILIES = ("f32_fma", "f32_pairwise")  # families that multiply y of records
TO_QUANTIZE = "quantize B.T, and give transposed(...) of the record"


@dataclass(frozen=True)
class RecordKind:
    """A kind of record as an operand: the scales of its blocks, and the formats of their codes.

    Codes are divided by scales of binary32, and multiplied by those of any other format (GEM-003).
    `element` is the one format of the codes of all such records. Blocks of a record `are_mixed` if
    each has a format of its own. It `has_overall` if rows have a scale of their own, too.
    """

    name: str
    scale_format: str
    element: str = ""
    are_mixed: bool = False
    has_overall: bool = False

    @property
    def divides(self) -> bool:
        """Whether codes are divided by the scale, which no instruction takes."""
        return self.scale_format == "f32"


RECORD_KINDS: Mapping[str, RecordKind] = {
    row.name: row
    for row in (
        RecordKind("scaled", "f32", are_mixed=True),
        RecordKind("mx", "e8m0"),
        RecordKind("nvfp4", "e4m3", "e2m1", has_overall=True),
    )
}
