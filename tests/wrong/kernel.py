"""Record of a whole implementation with one mistake, or without a mistake."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Arrays = Mapping[str, np.ndarray]
Run = Callable[[str, Mapping[str, Any], Arrays], Arrays | None]


@dataclass(frozen=True)
class Kernel:
    """An implementation that `mor-ref verify` can run, and its mistake in one sentence.

    `unseen` names the suites that cannot show the mistake, each with the reason. An implementation
    without a mistake is right.
    """

    name: str
    run: Run
    mistake: str = ""
    unseen: Mapping[str, str] = field(default_factory=dict)
