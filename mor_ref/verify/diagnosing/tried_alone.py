"""Which deviations are tried one by one, within a bound that is the same on every machine."""

import itertools
from collections.abc import Collection, Sequence

from mor_ref.golden.suites import SUITES
from mor_ref.verify.comparing.evidence import Evidence
from mor_ref.verify.diagnosing.entries import differing_fields
from mor_ref.verify.diagnosing.sample import Sample
from mor_ref.verify.diagnosing.scoring import Model, Together

ALONE_END = 1 << 20  # elements that the model computes of the first cases


def tried_alone(
    model: Model, evidence: Evidence, differing: Sequence[Sample], first: Collection[Sample]
) -> list[Together]:
    """Return the deviations that are tried one by one, as many as the bound allows.

    All are tried on the `first` cases. First come those that the suite exposes in a case that
    differs, then others that a suite of the operation exposes. Of each, those of the rules of the
    first field that differs take turns with those of other rules, and those that many suites expose
    come first. One that is not reached costs nothing.
    """
    names = {sample.question.name for sample in differing}
    suites = {name for name, suite in SUITES.items() if suite.operation == evidence.operation}
    wrong = next(differing_fields(differing), None)
    rules = {rule for field in evidence.fields if field.name == wrong for rule in field.rules}

    def groups(those: Together) -> tuple[bool, bool, bool]:
        (one,) = those
        case, _ = evidence.witnesses.get(one.name, ("", ""))
        return case not in names, suites.isdisjoint(one.suites), rules.isdisjoint(one.rules)

    broad = sorted(model.alone, key=lambda those: (*groups(those), -len(those[0].suites)))
    turns = {
        those: (*group[:2], turn, group[2])
        for group, alike in itertools.groupby(broad, groups)
        for turn, those in enumerate(alike)
    }
    room = max(ALONE_END // max(sum(one.size for one in first), 1), 1)
    ordered = sorted(broad, key=turns.__getitem__)
    reached = [(one,) for (one,) in ordered if any(model.is_reached(one, case) for case in first)]
    left_out = {*reached[room:]}
    return [those for those in ordered if those not in left_out]
