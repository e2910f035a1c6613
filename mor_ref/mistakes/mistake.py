"""A mistake: where a program is wrong, and what it does there."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from mor_ref.deviations.deviation import Change, Deviation, Function
from mor_ref.exact.step import Step, replaced


class Operator(NamedTuple):
    """What a wrong program does at a site: a part of its name, words, and what takes the place.

    What `wrong` is depends on the kind of site: a function, or a tree of a formula.
    """

    name: str
    words: str
    wrong: Any


class Site(Protocol):
    """A place of a program that can be wrong."""

    @property
    def at(self) -> str:
        """The first part of a name."""

    @property
    def noun(self) -> str:
        """What it is, before the name of the operator; empty if that says it."""

    @property
    def words(self) -> str:
        """The subject of sentences about it; empty if the operator's words have one."""

    @property
    def rule(self) -> str:
        """The rule that it belongs to."""

    def change(self, operator: Operator) -> Change:
        """Return the change of the exact model that is wrong here."""


@dataclass(frozen=True)
class Place:
    """The step from which sites are reached: what it reaches from elsewhere is right."""

    step: Step
    rule: str
    words: str

    def change(self, inside: Change) -> Change:
        """Return the change that is made only in what the step calls."""

        def run(reference: Function, *arguments: Any) -> Any:
            with replaced([(inside.step, inside)]):
                return reference(*arguments)

        return Change(self.step, run)


@dataclass(frozen=True)
class Mistake:
    """Sites, an operator at all of them, and the place that reaches them.

    A mistake at several sites is one that a program has in each: a constant that is wrong wherever
    it is used. A site can be that of one kind of call.
    """

    sites: tuple[Site, ...]
    operator: Operator
    place: Place | None = None

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules that it breaks."""
        if self.place is not None:
            return (self.place.rule,)
        return tuple(dict.fromkeys(site.rule for site in self.sites))

    @property
    def name(self) -> str:
        """Its id, such as SCL-002/floor-left-out."""
        places = [site.at for site in self.sites] if self.place is None else self.rules
        first = self.sites[0]
        return f"{'+'.join(dict.fromkeys(places))}/{first.noun}{self.operator.name}"

    @property
    def summary(self) -> str:
        """What a kernel with it does, in a sentence."""
        parts = (self.place.words if self.place else "", self.sites[0].words, self.operator.words)
        text = " ".join(part for part in parts if part)
        return f"{text[:1].upper()}{text[1:]}."

    @property
    def deviation(self) -> Deviation:
        """The wrong program: the changes of the exact model."""
        changes = [site.change(self.operator) for site in self.sites]
        if self.place is not None:
            changes = [self.place.change(change) for change in changes]
        return Deviation(self.name, self.summary, self.rules, (), tuple(changes))
