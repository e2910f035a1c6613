"""A directory of results as a candidate."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from mor_ref.golden.model.suite import Case
from mor_ref.golden.store.suite_files import SEPARATOR
from mor_ref.golden.store.whole_files import load_arrays, read_inside
from mor_ref.verify.candidates.candidate import Answer, CandidateError, is_name

_SHOWN = 100  # characters of a name
_FEW = 5  # names of a list
_SUFFIX = ".safetensors"


class ResultsDirectory:
    """Files of results: SUITE.safetensors with arrays named CASE/FIELD, as in the suites."""

    def __init__(self, path: Path) -> None:
        self.name = f"dir:{path}"
        self._path = path
        self._loaded: tuple[str, dict[str, dict[str, np.ndarray[Any, Any]]]] | None = None
        if not path.is_dir():
            raise CandidateError(
                f"{path} is not a directory; give one with SUITE.safetensors files"
            )
        if not self.suites:
            some = ", ".join(sorted(ascii(file.name)[1:-1] for file in path.iterdir())[:_FEW])
            raise CandidateError(
                f"{path} has no file of results, but {some or 'nothing at all'}; "
                "give one with SUITE.safetensors files"
            )

    @property
    def suites(self) -> list[str]:
        """The suites that there are files for, whether or not there are such suites."""
        return [ascii(file.stem)[1:-1] for file in self._path.glob(f"*{_SUFFIX}")]

    def cases(self, suite: str) -> Collection[str]:
        """Return the cases that the file of a suite has arrays for, known or not."""
        return self._of_suite(suite).keys()

    def answer(self, suite: str, operation: str, case: Case) -> Answer | None:
        """Return the fields that the file of the suite has for the case."""
        del operation
        return self._of_suite(suite).get(case.name)

    def _of_suite(self, suite: str) -> dict[str, dict[str, np.ndarray[Any, Any]]]:
        if self._loaded is None or self._loaded[0] != suite:
            self._loaded = (suite, self._load(suite))
        return self._loaded[1]

    def _load(self, suite: str) -> dict[str, dict[str, np.ndarray[Any, Any]]]:
        """Return the fields of each case."""
        path = self._path / f"{suite}{_SUFFIX}"
        try:
            arrays = load_arrays(read_inside(self._path, path.name))
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise CandidateError(
                f"{path} cannot be read ({error.strerror}); give a file of results, or none",
                ends="suite",
            ) from error
        except ValueError as error:
            raise CandidateError(
                f"{path} is not a safetensors file of unsigned integers ({error}); "
                "save bit patterns",
                ends="suite",
            ) from error
        found: dict[str, dict[str, np.ndarray[Any, Any]]] = {}
        for key, array in arrays.items():
            case, _, field = key.partition(SEPARATOR)
            if not is_name(case) or not is_name(field):
                raise CandidateError(
                    f"{path} has an array {ascii(key)[:_SHOWN]}; name arrays CASE/FIELD",
                    ends="suite",
                )
            found.setdefault(case, {})[field] = array
        return found
