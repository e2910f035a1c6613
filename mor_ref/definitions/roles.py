"""The role of a tensor in a model: its layer, its kind, the step, and what is remembered of it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal

from mor_ref.argument_checks import known_name

Kind = Literal["weight", "activation", "gradient"]
KINDS: tuple[Kind, ...] = ("weight", "activation", "gradient")


@dataclass(frozen=True)
class Role:
    """What a decision may depend on that the numbers of a tensor do not say.

    `kind` is None if nobody said it. `memory` has the state of each unit by its key; functions
    with a state change it (MOR-016).
    """

    layer: str = ""
    kind: Kind | None = None
    step: int = 0
    memory: dict[str, dict[str, Any]] = field(default_factory=dict, compare=False)


def kind_named(name: str) -> Kind:
    """Return the kind of tensors of this name."""
    known_name("kind", name, KINDS)
    return next(kind for kind in KINDS if kind == name)


def is_layer(name: str, patterns: Iterable[str]) -> bool:
    """Return whether a pattern matches the name of a layer, or a part of it between dots.

    >>> is_layer("layers.0.mlp.up_proj", ["*proj"]), is_layer("layers.10", ["layers.1"])
    (True, False)
    """
    words = name.split(".")
    ends = range(1, len(words) + 1)
    parts = {".".join(words[first:end]) for end in ends for first in range(end)}
    return any(fnmatchcase(part, pattern) for part in parts for pattern in patterns)
