"""A directory of results as a candidate."""

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

from mor_ref.golden.model.suite import Case
from mor_ref.golden.store.suite_files import SEPARATOR
from mor_ref.mapped_files import ChangedFileError, in_memory
from mor_ref.operations import OPERATIONS
from mor_ref.verify.candidates.candidate import Answer, Candidate, CandidateError, NoArray, is_name
from mor_ref.verify.candidates.result_columns import ColumnsError, columns_of, only_output
from mor_ref.verify.candidates.result_texts import names_in, of_bytes, of_lines, of_memory, text_of
from mor_ref.whole_files import arrays_inside, read_inside

_SHOWN = 100  # characters of a name
_FEW = 5  # names of a list
SIDECAR = "fields.json"
_SUFFIX = ".safetensors"
_LINES, _MEMORY, _RAW = ".txt", (".mem", ".hex"), ".bin"
_OF_CASES = (_LINES, *_MEMORY, _RAW)
_GIVE = "give one with SUITE.safetensors files, or with directories SUITE of files of cases"


class _Loaded(NamedTuple):
    """A suite: the answers of its one file, and the names of the files of each case."""

    suite: str
    answers: Mapping[str, Answer]
    files: Mapping[str, list[str]]


class ResultsDirectory(Candidate):
    """Files of results: SUITE.safetensors with arrays named CASE/FIELD, or SUITE/CASE files.

    A file of a case has lines of numbers (.txt), is a memory file (.mem, .hex), or has raw bytes
    (.bin). A file `fields.json` next to it names its fields, or its comments do, as in an export;
    else the operation has only one. A file SUITE/CASE/FIELD has one field.
    """

    def __init__(self, path: Path) -> None:
        self.name = f"dir:{path}"
        self._path = path
        self._loaded: _Loaded | None = None
        if not path.is_dir():
            raise CandidateError(f"{path} is not a directory; {_GIVE}")
        if not self.suites:
            some = ", ".join(sorted(ascii(file.name)[1:-1] for file in path.iterdir())[:_FEW])
            raise CandidateError(
                f"{path} has no file of results, but {some or 'nothing at all'}; {_GIVE}"
            )

    @property
    def suites(self) -> list[str]:
        """The suites that there are results for, whether or not there are such suites."""
        whole = [file.stem for file in self._path.glob(f"*{_SUFFIX}")]
        parts = [
            directory.name
            for directory in self._path.iterdir()
            if directory.is_dir() and self._files(directory.name)
        ]
        return [ascii(name)[1:-1] for name in dict.fromkeys([*whole, *parts])]

    def cases(self, suite: str) -> Collection[str]:
        """Return the cases that there are results for, known or not."""
        loaded = self._of_suite(suite)
        return {*loaded.answers, *(ascii(name)[1:-1] for name in loaded.files)}

    def answer(self, suite: str, operation: str, case: Case) -> Answer | None:
        """Return the fields that the files of the suite have for the case."""
        found = self.unread(suite, operation, case)
        return found and {
            name: array if isinstance(array, NoArray) else read_part(array)
            for name, array in found.items()
        }

    def unread(self, suite: str, operation: str, case: Case) -> Answer | None:
        """Return the fields for the case; those of safetensors are not read yet."""
        loaded = self._of_suite(suite)
        found, names = loaded.answers.get(case.name), loaded.files.get(case.name, [])
        if not names:
            return found
        if found is not None or len(names) > 1:
            others = ", ".join([*names, *([f"{suite}{_SUFFIX}"] if found is not None else [])])
            raise CandidateError(f"{self._path} has case {case.name} in {others}; give one of them")
        name = names[0]
        directory = self._path / suite / name
        if not directory.is_dir():
            return self._read(suite, name, operation, case, None)
        answers: dict[str, Any] = {}
        for file in self._in(directory):
            found = self._read(suite, f"{name}/{file}", operation, case, [Path(file).stem])
            if answers.keys() & found.keys():
                raise CandidateError(f"{directory} has {Path(file).stem} twice; give it once")
            answers |= found
        return answers

    def _files(self, suite: str) -> dict[str, list[str]]:
        """Return the names of the files of each case that a suite has in its directory.

        A case can be a directory with a file for each field.
        """
        directory, found = self._path / suite, dict[str, list[str]]()
        for file in sorted(directory.iterdir()) if directory.is_dir() else ():
            if _suffix(file) in _OF_CASES and not file.is_dir():
                found.setdefault(file.stem, []).append(file.name)
            elif file.is_dir() and self._in(file):
                found.setdefault(file.name, []).append(file.name)
        return found

    def _in(self, directory: Path) -> list[str]:
        """Return the names of the files of fields of a case."""
        return sorted(file.name for file in directory.iterdir() if _suffix(file) in _OF_CASES)

    def _read(
        self, suite: str, name: str, operation: str, case: Case, fields: list[str] | None
    ) -> Answer:
        """Return the fields of a file; the file itself, or one next to it, says which if None."""
        try:
            content, suffix = self._content(suite, name), _suffix(Path(name))
            sidecar = self._sidecar(suite)
            text = "" if suffix == _RAW else text_of(content)
            named = fields or sidecar.get("fields") or names_in(text) or only_output(operation)
            columns = columns_of(operation, case, named)
            if suffix == _RAW:
                return of_bytes(content, columns, sidecar.get("byteorder", "little"))
            numbers = of_lines if suffix == _LINES else of_memory
            return numbers(text, columns, by_row=OPERATIONS[operation].is_by_row)
        except ColumnsError as error:
            raise CandidateError(f"{self._path / suite / name} {error}") from error

    def _sidecar(self, suite: str) -> Mapping[str, Any]:
        """Return what the sidecar of a suite says; nothing if there is none."""
        try:
            said = json.loads(self._content(suite, SIDECAR))
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise ColumnsError(f"has a {SIDECAR} next to it that is not JSON") from error
        fields = said.get("fields") if isinstance(said, dict) else None
        is_list = isinstance(fields, list) and all(isinstance(one, str) for one in fields)
        if not fields or not is_list:
            raise ColumnsError(
                f"has a {SIDECAR} next to it without names; write "
                '{"fields": ["scale", "code"], "byteorder": "little"}'
            )
        if said.get("byteorder", "little") not in ("little", "big"):
            raise ColumnsError(
                f"has a {SIDECAR} next to it with byteorder {ascii(said['byteorder'])[:_SHOWN]}; "
                "write little or big"
            )
        return dict(said)

    def _content(self, suite: str, name: str) -> bytes:
        try:
            return read_inside(self._path, f"{suite}/{name}")
        except FileNotFoundError:
            raise
        except OSError as error:
            raise ColumnsError(f"cannot be read ({error.strerror})") from error

    def _of_suite(self, suite: str) -> "_Loaded":
        if self._loaded is None or self._loaded.suite != suite:
            self._loaded = _Loaded(suite, self._load(suite), self._files(suite))
        return self._loaded

    def _load(self, suite: str) -> Mapping[str, Answer]:
        """Return the fields of each case in the file of a suite.

        Numbers are read when they are compared: a file may be larger than the memory.
        A name that is not CASE/FIELD is a case that no suite has, so that the others are compared.
        """
        path = self._path / f"{suite}{_SUFFIX}"
        try:
            arrays, others = arrays_inside(self._path, path.name)
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
        given: dict[str, Any] = dict(arrays)
        wrong = "has dtype {}; give bit patterns as unsigned integers"
        given |= {key: NoArray(wrong.format(dtype)) for key, dtype in others.items()}
        found: dict[str, dict[str, Any]] = {}
        for key, array in given.items():
            case, _, field = key.partition(SEPARATOR)
            if is_name(case) and is_name(field):
                found.setdefault(case, {})[field] = array
            else:
                found.setdefault(ascii(key)[1:-1][:_SHOWN], {})
        return found


def _suffix(file: Path) -> str:
    """Return the ending of a file, in small letters."""
    return file.suffix.lower()


def read_part(array: NDArray[Any]) -> NDArray[Any]:
    """Return a part of an array of results, which may be in a file; else it is a copy."""
    try:
        found = in_memory(array)
    except ChangedFileError as error:
        raise CandidateError(str(error), "suite") from error
    return found.copy() if found is array else found
