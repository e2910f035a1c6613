"""Whole implementations with a mistake each, and those that they are the mistaken copies of."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Arrays = Mapping[str, np.ndarray]
Run = Callable[[str, Mapping[str, Any], Arrays], Arrays | None]


@dataclass(frozen=True)
class Kernel:
    """An implementation as `mor-ref verify` takes it, and its mistake, as one sentence.

    `unseen` has the suites that cannot show the mistake, each with the reason. An implementation
    without a mistake is right.
    """

    name: str
    run: Run
    mistake: str = ""
    unseen: Mapping[str, str] = field(default_factory=dict)
