"""Cases of whole tensors, named after the tensor and the parameters."""

from collections.abc import Iterable, Iterator
from typing import Any

from mor_ref.golden.inputs.tensors import Tensor
from mor_ref.golden.model.suite import Case


def tensor_case(tensor: Tensor, **parameters: Any) -> Case:
    """Return a case; its name leaves out the profile, as the name of the suite has it."""
    named = (_word(value) for name, value in parameters.items() if name != "profile")
    listed = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in parameters.items()
    }
    return Case(
        ".".join((tensor.name, *named)), {**listed, "source": tensor.source}, {"x": tensor.x}
    )


def each_once(cases: Iterable[Case]) -> Iterator[Case]:
    """Yield the first case of each name: a name says what a case is."""
    names = set()
    for case in cases:
        if case.name not in names:
            names.add(case.name)
            yield case


def _word(value: Any) -> str:
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)
