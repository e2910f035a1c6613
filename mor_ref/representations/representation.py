"""The protocol of a representation: its name, and how each implementation quantizes with it."""

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from mor_ref.definitions.blocks import Partition
from mor_ref.definitions.scales import Scaling, ScalingBlocks

if TYPE_CHECKING:
    from mor_ref.api.dequantization import Tried
    from mor_ref.arrays import Bits, Numbers
    from mor_ref.cuda import launching, measuring
    from mor_ref.exact.blocks import Rows
    from mor_ref.exact.quantization import Element


@runtime_checkable
class Representation(Protocol):
    """A representation of tensors, which a rung of a ladder or a yardstick can have (MOR-007).

    Each implementation is imported when it is called, so that the exact model needs neither the
    engine nor CUDA. All of them quantize the whole tensor. Policies sum the errors of each unit.
    `optional_members` has more members, which a representation may lack.
    """

    @property
    def name(self) -> str:
        """The name in results."""

    @property
    def bits(self) -> int:
        """The number of bits of a code."""

    def exact(self, x: "Rows", scaling: Scaling, parts: Partition) -> "list[list[Element]]":
        """Return the elements of a tensor, computed by the exact model.

        `parts` are the scaling blocks of the policy, and their groups.
        """

    def engine(
        self,
        numbers: "Numbers",
        blocks: ScalingBlocks,
        out: "Bits | None",
        threads: int | None,
    ) -> "Tried":
        """Return a quantized tensor, with the error sums of each scaling block.

        `out` takes y as bfloat16.
        """

    def cuda(
        self, device: "launching.Device", x: "launching.Bits", blocks: ScalingBlocks
    ) -> "measuring.ErrorRule":
        """Return the rule by which kernels quantize each element."""
