"""Records of a diagnosis: deviations that explain mismatches, and structures of mismatches."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Condition:
    """A description of the entries that differ: none differs elsewhere.

    `differing` of the `there` entries that it describes differ. `elsewhere` counts the entries that
    it does not describe. If it `is_of_changed`, only entries count that a displacement or a
    deviation would change. It `is_of_places` if it uses no number and no expected value.
    """

    words: str
    differing: int
    there: int
    elsewhere: int
    is_of_changed: bool = False
    is_of_places: bool = False

    @property
    def is_exact(self) -> bool:
        """Whether every entry that it describes differs."""
        return self.differing == self.there


@dataclass(frozen=True)
class Structure:
    """The bits that entries of some fields have instead of the expected ones, and where they lie.

    `words` describe these bits, which `explained` of the `of` entries that differ have. The words
    are empty if only a condition is known. `kept` counts the entries that match, although the words
    imply other bits. `beyond` names deviations: if there are any, the structure is of the
    mismatches that they leave. If it `is_of_sample`, some cases were not looked at. `other` is the
    structure of all entries that differ and that this structure does not explain. `also` are the
    words of other causes of the same bits.
    """

    fields: tuple[str, ...]
    words: str
    explained: int
    of: int
    kept: int
    condition: Condition | None = None
    noun: str = "entry"
    beyond: tuple[str, ...] = ()
    is_of_sample: bool = False
    other: "Structure | None" = None
    also: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether it explains all that differ, and changes nothing else at the places it names."""
        if not self.words or (self.explained < self.of and self.other is None):
            return False
        is_of_places = self.condition is None or self.condition.is_of_places
        return self.is_certain and (not self.kept or is_of_places)

    @property
    def is_of_all(self) -> bool:
        """Whether all entries that differ have these bits, or are all entries of the condition."""
        if self.words:
            return self.is_certain and (self.explained == self.of or self.other is not None)
        return self.condition is not None and self.condition.is_exact

    @property
    def is_certain(self) -> bool:
        """Whether it would change no entry that matches, where its condition holds."""
        return not self.kept or (self.condition is not None and self.condition.is_exact)

    @property
    def is_of_most(self) -> bool:
        """Whether it describes the bits of most entries, and exactly where they are."""
        where = self.condition
        return bool(self.words) and where is not None and where.is_exact and where.is_of_places


@dataclass(frozen=True)
class Explanation:
    """Deviations that together explain mismatches of a suite: `explained` of `of`.

    They are the whole explanation if they reproduce the bits of the candidate in every case that
    was looked at, in those that differ and in those that match. Otherwise they are a guess: the
    deviations that explain the most. For a guess, `of` may count the mismatches of a sample, and
    `more` counts the matching entries that the deviations would change. `spared` names matching
    cases that they would change, and entries of other suites, and `left` the first mismatch that
    they do not explain. A guess explains every mismatch of `fields`, and would change nothing else
    there; `of_fields` counts these mismatches. If it `is_displaced`, the bits of the deviations are
    in other places, which the structures of the suite describe. `summaries` say what each
    deviation does.
    """

    deviations: tuple[str, ...]
    rules: tuple[str, ...]
    explained: int
    of: int
    is_whole: bool
    is_of_sample: bool = False
    spared: tuple[str, ...] = ()
    more: int = 0
    left: str = ""
    fields: tuple[str, ...] = ()
    of_fields: int = 0
    is_displaced: bool = False
    summaries: tuple[str, ...] = ()


@dataclass(frozen=True)
class SuiteDiagnosis:
    """The explanations of a suite; several if the suite cannot distinguish them.

    Large tensors are compared with the explanations of other suites, and with explanations of their
    parts, which have `of_parts` numbers. `leaders` are the deviations that were paired with every
    other one. The search ends after a fixed number of elements; `untried` counts the pairs that it
    did not try, and `untried_alone` the single deviations. Nothing is tried if a function of a
    user is missing that formulas call, which `lacks` names. `structures` say where entries differ,
    and which bits they have instead. `of_reference` counts further entries in which the candidate
    has the bits of the reference: there, the expected values are wrong.
    """

    suite: str
    mismatches: int
    explanations: tuple[Explanation, ...]
    is_large: bool = False
    leaders: tuple[str, ...] = ()
    untried: int = 0
    structures: tuple[Structure, ...] = ()
    of_parts: int = 0
    untried_alone: int = 0
    of_reference: int = 0
    lacks: str = ""

    @property
    def is_explained(self) -> bool:
        """Whether an explanation is whole."""
        return any(explanation.is_whole for explanation in self.explanations)

    @property
    def is_displaced(self) -> bool:
        """Whether structures explain all mismatches, so that no deviation is named."""
        explained = sum(one.of for one in self.structures if one.is_whole)
        return not self.explanations and explained >= self.mismatches

    @property
    def is_in_doubt(self) -> bool:
        """Whether structures explain all mismatches as well as deviations do."""
        first = self.structures[:1]
        return self.is_explained and any(one.is_whole and not one.beyond for one in first)

    @property
    def has_structure(self) -> bool:
        """Whether the first structure is of all entries that differ."""
        return any(one.is_of_all for one in self.structures[:1])


@dataclass(frozen=True)
class Diagnosis:
    """The explanations of each suite that has mismatches."""

    suites: tuple[SuiteDiagnosis, ...] = ()
