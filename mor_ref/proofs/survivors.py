"""What becomes of a mistake that no vector shows: proved to change nothing, shown, or open."""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mor_ref.definitions.block_formats import BlockFormat
from mor_ref.mistakes.block_formats import wrong_record
from mor_ref.mistakes.mistake import Mistake
from mor_ref.proofs.columns import values_of
from mor_ref.proofs.elements import facts, outputs
from mor_ref.proofs.replay import differs_for
from mor_ref.proofs.rules import NoTermError
from mor_ref.proofs.samples import samples
from mor_ref.proofs.solver import Answer, decide
from mor_ref.proofs.steps import with_wrong_step
from mor_ref.proofs.terms import (
    Term,
    all_of,
    any_of,
    is_not,
    number,
    same,
    variable,
    with_others,
)

_SAMPLES = 200_000


@dataclass(frozen=True)
class Proved:
    """A mistake that changes no bit of any tensor."""

    kind = "proved"
    words = ""


@dataclass(frozen=True)
class ShownBy:
    """The numbers that show a mistake: a number of a block and the amaxes, as patterns."""

    numbers: Mapping[str, int]
    kind = "shown"

    @property
    def words(self) -> str:
        """The numbers, as patterns."""
        numbers = (f"{name} = 0x{bits:08X}" for name, bits in self.numbers.items())
        return ", ".join(numbers)


@dataclass(frozen=True)
class Open:
    """A mistake of which nothing is known, and why."""

    why: str
    kind = "open"

    @property
    def words(self) -> str:
        """Why it is open."""
        return self.why


Verdict = Proved | ShownBy | Open


def verdict_on(record: BlockFormat, mistake: Mistake, seconds: float) -> Verdict:
    """Return what becomes of a mistake; each question to the solver has so many seconds.

    Numbers count if the exact model has other bits for them with the mistake.
    """
    other = wrong_record(mistake)
    if other is not None and other.counted != record.counted:
        return Open("it is about which numbers an amax counts")
    if other is not None and (len(other.tries), other.error) != (len(record.tries), record.error):
        return Open("it is about the errors of tries, which are sums")
    try:
        for place in range(len(record.tries)):
            wrong = outputs(other, place) if other else with_wrong_step(record, mistake, place)
            for answer in _Search(record, outputs(record, place), seconds).answers(wrong):
                if isinstance(answer, Open):
                    return answer
                if isinstance(answer, Mapping) and differs_for(record, mistake, answer):
                    return ShownBy(answer)
    except NoTermError as reason:
        return Open(f"terms do not have {reason}")
    return Proved()  # tries that have the same bits have the same errors


_Answer = Mapping[str, int] | Open


@dataclass(frozen=True)
class _Search:
    """A search for a number and amaxes that have other outputs than the right ones."""

    record: BlockFormat
    right: Mapping[str, Term]
    seconds: float

    def answers(self, wrong: Mapping[str, Term]) -> Iterator[_Answer]:
        """Yield numbers that may show a mistake, and at last why nothing is proved, if so.

        Outputs are compared one after the other. Where one is proved to be right, those that are
        made of it have the right one in its place.
        """
        yield from self._among_samples(wrong)
        for name, right in self.right.items():
            if name not in wrong or wrong[name] is right:
                continue
            answer = self._decided(self._facts, right, wrong[name])
            if answer == "never":
                put = {wrong[name]: right}
                wrong = {other: with_others(term, put) for other, term in wrong.items()}
            elif isinstance(answer, str) and name in self._stored:
                yield Open(f"no answer within {self.seconds:g} s for {name}")
                return
            elif not isinstance(answer, str) and name in self._stored:
                yield answer
                yield Open(f"{name} can differ, but a tensor of the numbers found shows nothing")
                return
            elif not isinstance(answer, str):
                yield from self._under_amaxes(answer, wrong)

    @functools.cached_property
    def _stored(self) -> list[str]:
        return [scale.name for scale in self.record.scales] + ["code", "y"]

    @functools.cached_property
    def _facts(self) -> list[Term]:
        return list(facts(self.record))

    def _decided(self, known: list[Term], a: Term, b: Term) -> Mapping[str, int] | Answer:
        return decide([*known, is_not(same(a, b))], self.seconds)

    def _among_samples(self, wrong: Mapping[str, Term]) -> Iterator[Mapping[str, int]]:
        columns = _samples(self.record)
        differs = any_of(is_not(same(self.right[name], wrong[name])) for name in self._stored)
        test = values_of(all_of((*self._facts, differs)), columns)
        for place in np.flatnonzero(np.broadcast_to(test, _SAMPLES))[:1]:
            yield {name: int(column[place].view(np.uint32)) for name, column in columns.items()}

    def _under_amaxes(
        self, amaxes: Mapping[str, int], wrong: Mapping[str, Term]
    ) -> Iterator[Mapping[str, int]]:
        """Yield numbers that have other codes under amaxes which have other factors."""
        fixed = {variable(name): number(bits) for name, bits in amaxes.items() if name != "x"}
        known = [with_others(fact, fixed) for fact in self._facts]
        for name in ("code", "y"):
            right, other = (with_others(term[name], fixed) for term in (self.right, wrong))
            answer = self._decided(known, right, other)
            if not isinstance(answer, str):
                yield {**amaxes, **answer}


@functools.lru_cache(maxsize=1)
def _samples(record: BlockFormat) -> Mapping[str, Any]:
    return samples(record, _SAMPLES)
