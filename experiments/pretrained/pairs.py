"""Pairs of a query and a document, as tokens: the two portions of a docstring."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

Tokens = tuple[int, ...]

LONGEST = 64  # tokens of a document
_QUERY = range(20, 201)  # characters
_SHORTEST_DOCUMENT = 150


@dataclass(frozen=True)
class Pairs:
    """Queries, and the document of each in the same place; `others` are documents of no pair."""

    queries: tuple[Tokens, ...]
    documents: tuple[Tokens, ...]
    others: tuple[Tokens, ...]

    @property
    def digest(self) -> str:
        """The SHA-256 of all tokens, for the results."""
        return hashlib.sha256(json.dumps([self.queries, self.documents]).encode()).hexdigest()


def pairs_of(docstrings: Iterable[bytes], tokenizer: Any) -> Pairs:
    """Return the pairs that docstrings make, as README.md has it."""
    divided = [_divided(one.decode()) for one in docstrings]
    fit = [
        (query, document)
        for query, document in divided
        if len(query) in _QUERY and len(document) >= _SHORTEST_DOCUMENT
    ]
    queries, documents = (_tokens(texts, tokenizer) for texts in zip(*fit, strict=True))
    of_query, of_document = Counter(queries), Counter(documents)
    unique = [
        (query, document)
        for query, document in zip(queries, documents, strict=True)
        if of_query[query] == of_document[document] == 1
    ]
    chosen = {document for _, document in unique}
    rest = dict.fromkeys(_tokens([document for _, document in divided if document], tokenizer))
    others = tuple(document for document in rest if document not in chosen)
    return Pairs(tuple(q for q, _ in unique), tuple(d for _, d in unique), others)


def _divided(docstring: str) -> tuple[str, str]:
    """Return the first paragraph and the rest, with single spaces."""
    first, _, rest = docstring.partition("\n\n")
    return " ".join(first.split()), " ".join(rest.split())


def _tokens(texts: Iterable[str], tokenizer: Any) -> list[Tokens]:
    """Return the tokens of texts, cut to the longest, between [CLS] and [SEP]."""
    tokenizer.enable_truncation(LONGEST)
    return [tuple(one.ids) for one in tokenizer.encode_batch(list(texts))]
