"""Runs as data: their models, arms and seeds, and the measurements of each."""

from dataclasses import dataclass
from typing import Literal

from mor_ref.definitions.scales import Scaling

Family = Literal["baseline", "null", "main", "beyond"]
Disturbance = Literal["one_ulp", "noise"]
Cut = Literal["tensor", "channel"] | int
Direction = Literal["row", "column"]

OPERANDS = ("input", "weight", "grad_output")
LOST = -1  # the mean of an operand with a number that is not finite: no threshold accepts it


@dataclass(frozen=True)
class Size:
    """A model and its batches; `rate` is the highest learning rate."""

    name: str
    layers: int
    width: int
    heads: int
    batch: int
    context: int
    rate: float


@dataclass(frozen=True)
class Setting:
    """A partition, scales and a policy that operands are measured with.

    `cut` is "tensor", "channel" (along the contraction) or the side of a square block.
    """

    policy: Literal["tensor", "two_way", "three_way"]
    cut: Cut
    scaling: Scaling = "gam"

    @property
    def name(self) -> str:
        """The name by which results have it."""
        return f"{self.policy}/{self.cut}/{self.scaling}"

    @property
    def is_by_tensor(self) -> bool:
        """Whether one decision is for the whole tensor."""
        return self.policy == "tensor"


@dataclass(frozen=True)
class Arm:
    """A recipe with its scales, or bfloat16 with a disturbance; `seeds` says how many runs.

    `measured` has the settings that its own operands are measured with.
    """

    name: str
    family: Family
    recipe: str
    seeds: int
    measured: tuple[Setting, ...]
    disturbance: Disturbance | None = None
    scaling: Scaling = "gam"

    @property
    def is_quantized(self) -> bool:
        """Whether its layers are converted."""
        return self.recipe != "bf16"


@dataclass(frozen=True)
class Run:
    """One arm, one seed, one size: the piece of work that a worker takes."""

    size: str
    steps: int
    arm: str
    seed: int

    @property
    def directory(self) -> str:
        """The directory of the runs of its size and length."""
        return f"{self.size}-{self.steps}"

    @property
    def path(self) -> str:
        """The file of its results, in the directory of all."""
        return f"{self.directory}/{self.arm}-{self.seed}.json"


SIZES = {
    size.name: size
    for size in (
        Size("smoke", layers=1, width=32, heads=2, batch=2, context=32, rate=2e-3),
        Size("A", layers=4, width=128, heads=4, batch=16, context=64, rate=2e-3),
        Size("B", layers=4, width=256, heads=4, batch=8, context=256, rate=1e-3),
        Size("C", layers=8, width=512, heads=8, batch=32, context=512, rate=1e-3),
        Size("D", layers=8, width=1024, heads=16, batch=32, context=1024, rate=6e-4),
    )
}
STEPS = 1200
FULLY_MEASURED = 4  # seeds of bf16 that are measured with all settings

TENSOR, CHANNEL, BLOCK = (
    Setting("tensor", "tensor"),
    Setting("tensor", "channel"),
    Setting("tensor", 128),
)
TWO_WAY, THREE_WAY = Setting("two_way", 128), Setting("three_way", 128)
PARTITIONS = (TENSOR, CHANNEL, BLOCK, Setting("tensor", 64), Setting("tensor", 32))
SCALINGS = tuple(
    Setting("tensor", cut, scaling) for cut in ("channel", 128, 32) for scaling in ("e8m0", "fp32")
)
BY_BLOCK = (THREE_WAY, Setting("three_way", 32))
ALL_SETTINGS = (*PARTITIONS, *SCALINGS, *BY_BLOCK)

ARMS = {
    arm.name: arm
    for arm in (
        Arm("bf16", "baseline", "bf16", 8, ALL_SETTINGS),
        Arm("one_ulp", "null", "bf16", 8, (), "one_ulp"),
        Arm("matched_noise", "null", "bf16", 8, (), "noise"),
        Arm("mor_tensor", "main", "mor_tensor", 8, (TENSOR,)),
        Arm("mor_channel", "main", "mor_channel", 8, (CHANNEL,)),
        Arm("mor_block", "main", "mor_block", 8, (BLOCK,)),
        Arm("mor_two_way", "main", "mor_two_way", 8, (TWO_WAY,)),
        Arm("mor_three_way", "main", "mor_three_way", 8, (THREE_WAY,)),
        Arm(
            "mor_block_e8m0",
            "beyond",
            "mor_block",
            4,
            (Setting("tensor", 128, "e8m0"),),
            scaling="e8m0",
        ),
        Arm(
            "mor_block_fp32",
            "beyond",
            "mor_block",
            4,
            (Setting("tensor", 128, "fp32"),),
            scaling="fp32",
        ),
        Arm("fp8_current", "beyond", "fp8_current", 4, ()),
        Arm("fp8_delayed", "beyond", "fp8_delayed", 4, ()),
        Arm("mxfp8", "beyond", "mxfp8:rceil", 4, ()),
        Arm("nvfp4", "beyond", "nvfp4_2d", 4, ()),
    )
}


def measured_in(run: Run) -> tuple[Setting, ...]:
    """Return the settings that the operands of a run are measured with."""
    is_spared = ARMS[run.arm].family == "baseline" and run.seed >= FULLY_MEASURED
    return () if is_spared else ARMS[run.arm].measured


def planned(
    size: str, steps: int, arms: tuple[str, ...] = (), seeds: tuple[int, ...] = ()
) -> list[Run]:
    """Return the runs of some arms and seeds, of all if none is given.

    They are seed by seed: an experiment that is stopped early has whole pairs.
    """
    chosen = [ARMS[name] for name in arms] if arms else list(ARMS.values())
    highest = max(arm.seeds for arm in chosen)
    return [
        Run(size, steps, arm.name, seed)
        for seed in (seeds or range(highest))
        for arm in chosen
        if seeds or seed < arm.seeds
    ]


def rows(layers: tuple[str, ...], setting: Setting) -> list[tuple[str, str, Direction]]:
    """Return what a row of a setting is about, in the order of its numbers."""
    directions: tuple[Direction, ...] = ("row", "column") if setting.cut == "channel" else ("row",)
    return [(n, operand, way) for n in layers for operand in OPERANDS for way in directions]
