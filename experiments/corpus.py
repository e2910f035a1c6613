"""The text of the experiment: docstrings of two packages that a fresh machine can install."""

import ast
import base64
import hashlib
import importlib.metadata
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments.files import write_whole

PACKAGES = {"sympy": "1.14.0", "networkx": "3.6.1"}
DIGEST = "dde513cffdd02cdf470bc30bc26ba11af29e5f43016586d719b0e8d2807e2073"
_SHORTEST = 200  # characters; shorter docstrings are mostly formulas of signatures
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class CorpusError(RuntimeError):
    """A text that is not the text of the experiment."""


@dataclass(frozen=True)
class Corpus:
    """The text as bytes, which are its tokens: the last 5 % are for validation."""

    training: NDArray[np.uint8]
    validation: NDArray[np.uint8]


def corpus(place: Path) -> Corpus:
    """Return the text of the experiment; a file keeps it, as reading all sources takes a while."""
    path = place / "corpus.txt"
    if not path.exists():
        write_whole(path, checked(b"\n\n".join(docstrings())))
    return divided(checked(path.read_bytes()))


def divided(text: bytes) -> Corpus:
    """Return the two portions of a text."""
    numbers = np.frombuffer(text, np.uint8)
    cut = len(numbers) * 19 // 20
    return Corpus(numbers[:cut], numbers[cut:])


def checked(text: bytes) -> bytes:
    """Return the text if its digest is the expected one."""
    digest = hashlib.sha256(text).hexdigest()
    if digest != DIGEST:
        raise CorpusError(
            f"the text has SHA-256 {digest}, not {DIGEST}; remove corpus.txt, so that it is made "
            "from the packages again"
        )
    return text


def docstrings() -> list[bytes]:
    """Return all long docstrings, each once.

    They are in the order of their hashes: so the end, which is for validation, is of the same kind
    as the rest.
    """
    found = {text for name in PACKAGES for text in _docstrings_of(name)}
    return sorted(found, key=lambda text: hashlib.sha256(text).digest())


def _docstrings_of(package: str) -> Iterator[bytes]:
    for source in _sources_of(package):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # escapes of their regular expressions
            warnings.simplefilter("ignore", DeprecationWarning)  # as they were called before 3.12
            tree = ast.parse(source)
        for node in ast.walk(tree):
            text = ast.get_docstring(node) if isinstance(node, _DOCUMENTED) else None
            if text is not None and len(text) > _SHORTEST:
                yield text.encode()


def _sources_of(package: str) -> Iterator[bytes]:
    """Yield the Python sources of an installed package, each checked by the hash of its RECORD."""
    expected = PACKAGES[package]
    advice = f"install it with pip install {package}=={expected}"
    try:
        installed = importlib.metadata.distribution(package)
    except importlib.metadata.PackageNotFoundError as error:
        raise CorpusError(f"{package} is not installed; {advice}") from error
    if installed.version != expected:
        raise CorpusError(f"{package} is {installed.version}, not {expected}; {advice}")
    for file in sorted(installed.files or ()):
        if file.suffix == ".py" and file.hash is not None:
            source = Path(file.locate()).read_bytes()
            found = base64.urlsafe_b64encode(hashlib.new(file.hash.mode, source).digest())
            if found.rstrip(b"=").decode() != file.hash.value:
                raise CorpusError(f"{file} of {package} is not as its RECORD says; {advice} again")
            yield source
