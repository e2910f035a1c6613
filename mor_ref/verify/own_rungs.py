"""The codes and scales of rungs in answers to a policy: each rung is a suite of its own.

A mixed tensor is stored as codes and scales, and not as the output. If a candidate returns them,
named RUNG.FIELD, they are compared with those of the recipe of the rung.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from mor_ref.golden.model.suite import Case
from mor_ref.golden.model.views import SEPARATOR
from mor_ref.recipes import Asked, rungs_of
from mor_ref.verify.candidates.candidate import Answer, Candidate
from mor_ref.verify.comparing.evidence import ALL_ASKED, NO_REPEATS, Evidence
from mor_ref.verify.comparing.names_given import fields_of
from mor_ref.verify.running.ask import Ask
from mor_ref.verify.running.suites import Suites

Expected = Callable[[str, Asked, Case], Case]  # of a suite, an operation and a case


def name_of(suite: str, rung: str) -> str:
    """Return the name of the suite of a rung."""
    return f"{suite}.{rung}"


def with_rungs(ask: Ask, expected: Expected) -> Ask:
    """Return a way to ask that yields, after the answers to a policy, those to its rungs."""

    def asked(candidate: Candidate, suites: Suites) -> Iterator[Evidence]:
        for evidence in ask(candidate, suites):
            own, rungs = _split(evidence)
            del evidence
            found = [own]  # nothing here holds the answers when the next ones are asked for
            del own
            yield found.pop()
            for rung, (operation, part) in rungs.items():
                name = name_of(part.suite, rung)
                cases = [expected(name, operation, case) for case in part.cases]
                fields = fields_of(suites.of_rungs[name])
                yield replace(
                    part, suite=name, operation=operation.operation, fields=fields, cases=cases
                )

    return asked


def _split(evidence: Evidence) -> tuple[Evidence, dict[str, tuple[Asked, Evidence]]]:
    """Return the answers without the fields of rungs, and those of each rung that has any."""
    rungs: dict[str, tuple[Asked, Evidence]] = {}
    for case in evidence.cases:
        for rung, asked in rungs_of(Asked(evidence.operation, case.parameters)).items():
            answer = _of_rung(rung, evidence, evidence.answers.get(case.name, {}))
            if answer:
                _, before = rungs.get(rung, (asked, None))
                cases = [*(before.cases if before else ()), case]
                answers = {**(before.answers if before else {}), case.name: answer}
                own = replace(evidence, cases=cases, answers=answers, failures=(), witnesses={})
                second = {
                    name: again and _of_rung(rung, evidence, again)
                    for name, again in evidence.second.items()
                    if name in answers
                }
                rungs[rung] = (
                    asked,
                    replace(own, repeats=NO_REPEATS, not_asked=ALL_ASKED, second=second),
                )
    if not rungs:
        return evidence, {}
    taken = {
        (case, f"{rung}.{name}")
        for rung, (_, own) in rungs.items()
        for case, answer in own.answers.items()
        for name in answer
    }
    left = {
        case: {name: array for name, array in answer.items() if (case, name) not in taken}
        for case, answer in evidence.answers.items()
    }
    return replace(evidence, answers=left), rungs


def _of_rung(rung: str, evidence: Evidence, answer: Answer) -> Answer:
    """Return the fields of a rung in an answer, without the name of the rung."""
    own, start = {field.name for field in evidence.fields}, f"{rung}."
    return {
        name.removeprefix(start): array
        for name, array in answer.items()
        if name.startswith(start) and name.split(SEPARATOR)[0] not in own
    }
