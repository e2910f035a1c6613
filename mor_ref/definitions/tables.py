"""Tables whose entries never change, so that records can have them."""

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

Entry = TypeVar("Entry")


class FrozenTable(Mapping[str, Entry], Generic[Entry]):
    """A mapping that can be hashed; two are equal if they have the same entries in one order.

    >>> FrozenTable({"weight": "0.1"}) == FrozenTable({"weight": "0.1"})
    True
    """

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        self._entries = dict(entries)

    def __getitem__(self, key: str) -> Entry:
        return self._entries[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and (*self.items(),) == (*other.items(),)

    def __hash__(self) -> int:
        return hash((*self.items(),))

    def __repr__(self) -> str:
        return repr(self._entries)
