"""Catalogues: rows by name, those of the specification and those that a user adds."""

import re
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Protocol, TypeVar

from mor_ref.argument_checks import OtherNames, fault_of_name, known_name, lacking


class Named(Protocol):
    """A row of a catalogue."""

    @property
    def name(self) -> str:
        """The name of the row in arguments and in results."""


Row = TypeVar("Row", bound=Named)


class Catalogue(MutableMapping[str, Row]):
    """Rows by name, in the order in which they are listed.

    A user adds a row under its own name: `formats["mine"] = Format("mine", ...)`. The rows of the
    specification stay as they are.
    """

    # Of all catalogues, and of kernels that are loaded again: as long as it stays, names mean the
    # same, and what is kept of calls is right.
    changes: ClassVar[int] = 0

    def __init__(
        self,
        noun: str,
        kind: type[Any],
        rows: Iterable[Row],
        other_names: OtherNames | None = None,
        namespace: "Namespace | None" = None,
        members: Sequence[str] = (),
    ) -> None:
        """`noun` is the word for a row in errors, and `kind` its class or its protocol.

        `other_names` are names in other software, for hints. Catalogues of one `namespace` share no
        names. `members` are those of a row, where it is a protocol.
        """
        self.noun = noun
        self._kind, self._members = kind, members
        self._given = rows
        self._other_names = other_names
        self._namespace = Namespace() if namespace is None else namespace
        self._namespace.catalogues.append(self)

    @cached_property
    def _rows(self) -> dict[str, Row]:
        """The rows, which are made when one is first asked for."""
        return {row.name: row for row in self._given}

    @cached_property
    def specified(self) -> tuple[str, ...]:
        """The names of the rows of the specification."""
        return tuple(self._rows)

    def __getitem__(self, name: str) -> Row:
        if isinstance(name, str) and name in self._rows:
            return self._rows[name]
        return self._rows[known_name(self.noun, name, self._rows, self._other_names)]

    def known(self, name: str) -> Row | None:
        """Return the row of that name; None if there is none."""
        return self._rows.get(name)

    def __setitem__(self, name: str, row: Row) -> None:
        if isinstance(row, type) or not isinstance(row, self._kind):
            lacks = "" if isinstance(row, type) else lacking(row, self._members)
            raise TypeError(
                f"{self.noun} {name!r} is given {row!r}{lacks}{', so it' if lacks else ', which'} "
                f"is not a row of this catalogue; give a {self._kind.__name__}"
            )
        self._refuse_specified(name)
        fault = fault_of_name(row.name)
        if fault:
            raise ValueError(f"{self.noun} is not added: {fault}")
        if name != row.name:
            raise ValueError(
                f"{self.noun} {row.name!r} is given the name {name!r}; give it its own name"
            )
        owner = self._namespace.owner_of(name, self)
        if owner:
            raise ValueError(
                f"{self.noun} {name!r} has the name of {owner}; give a row of another name"
            )
        self._rows[name] = row
        Catalogue.changes += 1

    def __delitem__(self, name: str) -> None:
        self._refuse_specified(name)
        del self._rows[name]
        Catalogue.changes += 1

    def _refuse_specified(self, name: str) -> None:
        if name in self.specified:
            raise ValueError(
                f"{self.noun} {name!r} is a row of the specification, which cannot change; give "
                "the new row another name"
            )

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<catalogue: {' '.join(self._rows)}>"


@dataclass
class Namespace:
    """Catalogues that share no names, and names that none of their rows may have."""

    reserved: str = "$."  # a regular expression, which matches nothing
    meaning: str = ""
    catalogues: list[Catalogue[Any]] = field(default_factory=list)

    def rows_named(self, name: str) -> Iterator[Any]:
        """Yield the row of each catalogue that has one of this name."""
        for catalogue in self.catalogues:
            if name in catalogue:
                yield catalogue[name]

    def is_specified(self, name: str) -> bool:
        """Return whether a catalogue has a row of this name from the specification."""
        return any(name in catalogue.specified for catalogue in self.catalogues)

    def owner_of(self, name: str, asking: Catalogue[Any]) -> str | None:
        """Return the owner of a name outside a catalogue, in words; None without an owner."""
        if re.fullmatch(self.reserved, name):
            return self.meaning
        for catalogue in self.catalogues:
            if catalogue is not asking and name in catalogue:
                return f"a {catalogue.noun}, which also names a representation or a recipe"
        return None


INTEGERS = "u?int[0-9]+"  # the names of grids of integers (AFF-001)

# A rung finds formats, NVFP4 profiles and representations by name, and integers (MOR-007). A recipe
# has these names and mor, which begins a policy.
NAMES_OF_REPRESENTATIONS = Namespace(f"mor|{INTEGERS}", "integers or of a policy")
