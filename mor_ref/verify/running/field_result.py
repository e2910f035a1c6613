"""The result of a candidate on a field of a suite."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class FieldResult:
    """A field of a suite: how many of its entries were compared, and how many differ.

    `nans` counts those that are a NaN where a NaN is expected, and `not_comparable` the cases in
    which nothing was compared.
    """

    name: str
    rules: tuple[str, ...]
    compared: int
    differing: int
    nans: int = 0
    not_comparable: int = 0

    def __add__(self, more: "FieldResult") -> "FieldResult":
        """Return the result of both parts of a field."""
        return replace(
            self,
            compared=self.compared + more.compared,
            differing=self.differing + more.differing,
            nans=self.nans + more.nans,
            not_comparable=self.not_comparable + more.not_comparable,
        )

    @property
    def matches(self) -> bool:
        """Whether all of it could be compared, and nothing differs."""
        return not self.differing and not self.not_comparable

    def __bool__(self) -> bool:
        return self.matches
