"""Recordings: measures of every quantization of a training run, every so many steps."""

from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Self

from torch import nn

from mor_ref.argument_checks import whole_number
from mor_ref.torch.layers import Observation, observe
from mor_ref.torch.measures import Measured, measure


class Recording(AbstractContextManager["Recording"]):
    """The measures of a model in training, until it is stopped.

    `rows` has all that was measured, and a recording is an iterable of them. `counted` leaves out
    the quantizations that a checkpoint computed again.
    """

    def __init__(self, model: nn.Module, every: int) -> None:
        self._model, self._every, self._step = model, every, -1
        self._times: Counter[tuple[Any, ...]] = Counter()
        self.rows: list[Measured] = []
        self._until = observe(model, self._hear)
        self._is_stopped = False

    def __enter__(self) -> Self:
        if self._is_stopped:
            raise RuntimeError("the recording was stopped; call mor_ref.torch.record for another")
        return self

    def __iter__(self) -> Iterator[Measured]:
        return iter(self.rows)

    @property
    def counted(self) -> list[Measured]:
        """The rows, each quantization once."""
        return [row for row in self.rows if not row.is_recomputed]

    def stop(self) -> None:
        """Stop; the rows stay."""
        self._is_stopped = True
        self._until.__exit__(None, None, None)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _hear(self, seen: Observation) -> None:
        if seen.step % self._every or not self._model.training:
            return
        if seen.step != self._step:
            self._step = seen.step
            self._times.clear()
        place = seen.layer, seen.operand, seen.axis, seen.is_recomputed
        self.rows.append(measure(seen, self._times[place]))
        self._times[place] += 1


def record(model: nn.Module, every: int = 20) -> Recording:
    """Record each quantization of a converted model at step 0, `every`, 2 * `every` and so on.

    `advance(model)` counts the steps: call it after `optimizer.step()` under every recipe. A
    model in evaluation is not recorded. Nothing of the training changes (TRN-013).

    >>> import torch
    >>> from mor_ref.torch import advance, convert
    >>> model = nn.Sequential(nn.Linear(8, 4))
    >>> names = convert(model, "mor_tensor")
    >>> with record(model, every=2) as recording:
    ...     for _ in range(3):
    ...         model(torch.ones(2, 8)).sum().backward()
    ...         advance(model)
    >>> [(row.step, row.operand) for row in recording.rows if row.operand != "weight"]
    [(0, 'input'), (0, 'grad_output'), (2, 'input'), (2, 'grad_output')]
    """
    return Recording(model, whole_number("every", every, 1, 1 << 31))
