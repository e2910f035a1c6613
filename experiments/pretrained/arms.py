"""Arms as data: what the encoder is evaluated under."""

from dataclasses import dataclass
from typing import Literal

Family = Literal["baseline", "null", "recipe"]
OPERANDS = ("input", "weight")  # of the forward product
DELAYED = ("fp8_delayed", "fp8_lm")  # whose scales come from earlier steps


@dataclass(frozen=True)
class Arm:
    """A named recipe, or bfloat16 with noise, or float32 if there is no recipe."""

    name: str
    family: Family
    recipe: str | None
    has_noise: bool = False

    @property
    def file(self) -> str:
        """The file of its vectors, in the directory of all."""
        return f"{self.name}.safetensors"


_RECIPES = (
    *("mor_tensor", "mor_channel", "mor_block", "mor_two_way", "mor_three_way"),
    *("fp8_current", *DELAYED),
)
ARMS = {
    arm.name: arm
    for arm in (
        Arm("bf16", "baseline", "bf16"),
        Arm("fp32", "null", None),
        Arm("matched_noise", "null", "bf16", has_noise=True),
        *(Arm(name, "recipe", name) for name in _RECIPES),
        Arm("mxfp8", "recipe", "mxfp8:rceil"),
        Arm("nvfp4", "recipe", "nvfp4_2d"),
    )
}
