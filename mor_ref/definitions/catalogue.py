"""Catalogues: rows by name, those of the specification and those that a user adds."""

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from typing import Any, Protocol, TypeVar

from mor_ref.argument_checks import fault_of_name, known_name


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

    def __init__(
        self,
        noun: str,
        kind: type[Any],
        rows: Iterable[Row],
        other_names: Mapping[str, str] | None = None,
        namespace: "list[Catalogue[Any]] | None" = None,
    ) -> None:
        """`noun` is the word for a row in errors, and `kind` its class or its protocol.

        `other_names` are names in other software, for hints. Catalogues of one `namespace` share no
        names.
        """
        self.noun = noun
        self._kind = kind
        self._rows = {row.name: row for row in rows}
        self._other_names = other_names
        self._namespace = [] if namespace is None else namespace
        self._namespace.append(self)
        self.specified = tuple(self._rows)

    def __getitem__(self, name: str) -> Row:
        return self._rows[known_name(self.noun, name, self._rows, self._other_names)]

    def __setitem__(self, name: str, row: Row) -> None:
        if isinstance(row, type) or not isinstance(row, self._kind):
            raise TypeError(
                f"{self.noun} {name!r} is given {row!r}, which is not a row of this catalogue; "
                f"give a {self._kind.__name__}"
            )
        self._refuse_specified(name)
        fault = fault_of_name(row.name)
        if fault:
            raise ValueError(f"{self.noun} is not added: {fault}")
        if name != row.name:
            raise ValueError(
                f"{self.noun} {row.name!r} is given the name {name!r}; give it its own name"
            )
        for other in self._namespace:
            if other is not self and name in other:
                raise ValueError(
                    f"{self.noun} {name!r} has the name of a {other.noun}, which also names a "
                    "representation; give a row of another name"
                )
        self._rows[name] = row

    def __delitem__(self, name: str) -> None:
        self._refuse_specified(name)
        del self._rows[name]

    def _refuse_specified(self, name: str) -> None:
        if name in self.specified:
            raise ValueError(
                f"{self.noun} {name!r} is of the specification, which stays as it is; give a row "
                "of another name"
            )

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<catalogue: {' '.join(self._rows)}>"


# A rung finds formats, NVFP4 profiles and representations by name (MOR-007).
NAMES_OF_REPRESENTATIONS: list[Catalogue[Any]] = []
