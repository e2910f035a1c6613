"""Report: the results of a candidate, with the text of the command line."""

from dataclasses import fields

from mor_ref.verify.reporting.text import lines, verdict_line
from mor_ref.verify.running.run import Verification


class Report(Verification):
    """A verification that prints as `mor-ref verify` does; `headline` is the last line.

    It is true only if each tensor that was given was compared, and all matches.
    """

    def __init__(self, found: Verification) -> None:
        super().__init__(**{field.name: getattr(found, field.name) for field in fields(found)})

    def __bool__(self) -> bool:
        named = {name for result in self.results for name in result.case_names}
        answered = {
            name
            for result in self.results
            for name in set(result.case_names).difference(result.not_answered)
        }
        return super().__bool__() and not self.skipped and named == answered

    def __str__(self) -> str:
        return "\n".join(lines(self))

    def __repr__(self) -> str:
        return f"<{self.headline}>"

    @property
    def headline(self) -> str:
        """The verdict in a line, and how many suites have which."""
        return verdict_line(self)
