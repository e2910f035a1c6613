"""Lines of a source for lines of its PTX, as `.file` and `.loc` name them."""

import re
from bisect import bisect_right
from pathlib import PurePosixPath

_FILE = re.compile(r'\s*\.file\s+(?P<number>\d+)\s+(?P<paths>"[^\n]*")')
_PATH = re.compile(r'"([^"\n]*)"')
_LOC = re.compile(
    r"\s*\.loc\s+(?P<file>\d+)\s+(?P<line>\d+)[^\n]*?(?:inlined_at\s+(?P<at>\d+\s+\d+).*)?"
)


class SourceLines:
    """Where the compiler took each line of a PTX text from, if it says so."""

    def __init__(self, text: str) -> None:
        self._files: dict[int, str] = {}
        self._begins, self._places = list[int](), list[tuple[int, int]]()
        for number, line in enumerate(text.split("\n"), 1):
            if file := _FILE.match(line):
                name = PurePosixPath(_PATH.findall(file.group("paths"))[-1]).name
                self._files[int(file.group("number"))] = name
            elif loc := _LOC.fullmatch(line):
                at = loc.group("at") or f"{loc.group('file')} {loc.group('line')}"
                self._begins.append(number)
                self._places.append(tuple(map(int, at.split())))  # type: ignore[arg-type]  # two

    def of(self, line: int) -> str:
        """Return the place of a line, such as kernel.py:17, or nothing."""
        at = bisect_right(self._begins, line) - 1
        if at < 0 or not self._places[at][1]:
            return ""
        file, number = self._places[at]
        return f"{self._files.get(file, f'file {file}')}:{number}"
