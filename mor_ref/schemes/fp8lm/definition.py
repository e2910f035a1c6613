"""FP8-LM: the formats, the profiles, and the numbers of Adam."""

import math
from typing import Literal, NamedTuple

from mor_ref.argument_checks import known_name
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats

FP8LM_FORMATS = ("e4m3", "e5m2", "f16")
SCALE_PROFILES = ("msamp", "exact")
BY_AMAX = ("msamp_max", "msamp_0_4_max")  # reductions that share an amax, and the root of N
REDUCTIONS = ("paper", "msamp_min", *BY_AMAX)
SUMS = ("exact", "by_rank")
AUTOMATIC = ("paper", "msamp")
FIRST_MOMENT, SECOND_MOMENT, MASTER = "e4m3", "f16", "f16"
PAPER_PARTS, PAPER_WINDOW = 100_000, 1000  # one part of so many saturates; steps until mu doubles

ScaleProfile = Literal["msamp", "exact"]


def format_of(fmt: str) -> Format:
    """Return a format that FP8-LM scales into; refuse any other (FLM-001)."""
    return formats[known_name("fmt", fmt, FP8LM_FORMATS)]


class Adam(NamedTuple):
    """The numbers of one step of Adam, each of binary32 (FLM-011)."""

    lr: float
    beta1: float
    beta2: float
    eps: float
    weight_decay: float


def check_rate(argument: str, number: float, rounded: float, below: float) -> None:
    """Refuse a number of Adam that is negative, or not finite or too large in binary32."""
    if not (number >= 0 and rounded < below):
        end = "" if below == math.inf else f" and below {below:g}"
        raise ValueError(
            f"{argument} is {number!r}; give a finite number from 0 on{end}, also in binary32"
        )
