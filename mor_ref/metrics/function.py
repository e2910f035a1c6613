"""A function as a metric: it is given a unit, and its state if it has one."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from mor_ref.definitions.roles import Role
from mor_ref.metrics.metric import Metric

if TYPE_CHECKING:
    from mor_ref.metrics.unit import Unit

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)

_STATE = "state"


@dataclass(frozen=True)
class FunctionMetric(Metric):
    """Asks a function of a `Unit`, or of a unit and a state (MOR-014, MOR-016).

    `Rung` makes it of a function. The state is a dict, which the function changes.

    >>> from mor_ref import Policy, Rung
    >>> Rung("e4m3", lambda unit: unit.sqnr > 20).metric.has_state
    False
    """

    function: Callable[..., object]
    role: Role | None = field(default=None, compare=False, repr=False)
    has_state: bool = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Read from the signature whether there is a state."""
        object.__setattr__(self, "has_state", _arguments(self.function) == 2)

    @property
    def name(self) -> str:
        """The name of the function."""
        return getattr(self.function, "__name__", type(self.function).__name__)

    @property
    def rule(self) -> str:
        """Its rule: what it decides is its own."""
        return "MOR-014"

    def for_tensor(self, role: Role) -> "FunctionMetric":
        """Return the metric for a tensor, whose role the function is given."""
        return replace(self, role=role) if self.role is None else self

    def accepts(self, own: "Unit", errors: "Mapping[str, Unit]", amax: float, amin: float) -> Any:
        """Return what the function returns."""
        del errors, amax, amin
        role = Role() if self.role is None else self.role
        unit = replace(own, role=role)
        function = getattr(self.function, "py_func", self.function)  # Numba knows no units
        if not self.has_state:
            return function(unit)
        row, column = unit.index
        key = f"{unit.representation} {row} {column}"
        return function(unit, role.memory.setdefault(key, {}))


def _arguments(function: Callable[..., object]) -> int:
    """Return how many arguments a function takes; refuse all but one or two."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # of a function without a signature, as some of C are
        return 1
    taken = [p for p in parameters if p.kind in _POSITIONAL]
    needed = [p for p in taken if p.default is p.empty]
    if len(needed) not in (1, 2) or any(
        p.kind is p.KEYWORD_ONLY and (p.default is p.empty or p.name == _STATE) for p in parameters
    ):
        names = ", ".join(p.name for p in parameters)
        raise TypeError(
            f"metric is a function of ({names}); give a function of (unit), or of (unit, state)"
        )
    is_state_given = len(taken) > 1 and taken[1].name == _STATE  # also if it could be left out
    return 2 if is_state_given else len(needed)
