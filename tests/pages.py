"""Pages as scripts: what a reader would type, in the order of the page, in an empty directory.

A block with a caption is a file of that name, and so is a block that begins with `# NAME.py`. A
`console` block has commands after `$`, each followed by its output, with `...` for any text. A `sh`
block is a script.
"""

import doctest
import os
import re
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(
    r"^(?P<fence>`{3,})(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=fence)$", re.MULTILINE | re.DOTALL
)
CAPTION = re.compile(r"\A:caption: *(\S+)\n(?::[a-z-]+:.*\n)*\n?")
NAME = re.compile(r"\A# (\w+\.py)\n")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
# Programs of the environment that the tests run in are next to its Python.
PATH = os.pathsep.join([os.environ["PATH"], str(Path(sys.executable).parent)])
# The workers of a cluster take as long to come as the machine is busy.
MAIN = (
    "import sys; sys.argv[0] = 'mor-ref'; from mor_ref.workers import pools; "
    "pools._PATIENCE = pools._PATIENCE_FOR_WORKERS = 1e6; from mor_ref.cli import main; main()"
)


@dataclass(frozen=True)
class Block:
    """A block of code: its language, the file that it is, if it is one, and its text."""

    language: str
    file: str | None
    text: str


def blocks_of(page):
    """Yield the blocks of a page, without those that the site computes."""
    for found in FENCE.finditer(page.read_text()):
        info, body = found["info"].strip(), found["body"]
        if info.startswith("{code-block}"):
            caption = CAPTION.match(body)
            language = info.removeprefix("{code-block}").strip()
            yield Block(language, caption[1], body[caption.end() :])
        elif not info.startswith("{"):
            named = NAME.match(body)
            yield Block(info, named and named[1], body)


def commands_of(text):
    """Yield the commands of a console, each with its output."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        while command.endswith("\\"):
            more, _, output = output.partition("\n")
            command = f"{command[:-1]} {more.strip().removeprefix('>')}"
        yield command, output


class Shell:
    """A directory in which commands run, where `mor-ref` and `python` are those of the tests."""

    def __init__(self, folder):
        self.folder = folder
        programs = folder / ".programs"
        programs.mkdir()
        for name, arguments in (("mor-ref", ["-c", MAIN]), ("python", []), ("python3", [])):
            quoted = " ".join(f"'{a}'" if "'" not in a else f'"{a}"' for a in arguments)
            program = programs / name
            program.write_text(f'#!/bin/sh\nexec "{sys.executable}" {quoted} "$@"\n')
            program.chmod(0o755)
        path = os.pathsep.join([str(programs), PATH])
        package = os.pathsep.join(filter(None, [str(folder), *sys.path]))
        self.environment = {**os.environ, "PATH": path, "PYTHONPATH": package, "COLUMNS": "80"}
        # PTX in the cache names the file that its kernel was first compiled from.
        self.environment["TRITON_CACHE_DIR"] = str(folder / ".triton")

    def run(self, script):
        """Return the output and the end of a script of bash."""
        return subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def start(self, script):
        """Start a command that goes on in the background, until the page is done."""
        output = subprocess.DEVNULL
        return subprocess.Popen(
            ["bash", "-c", f"exec {script.strip().removesuffix('&')}"],
            cwd=self.folder,
            env=self.environment,
            stdin=output,
            stdout=output,
            stderr=output,
        )

    def follow(self, page, instead=()):
        """Run a page, and compare the results with those that it shows.

        `instead` has pairs of a text of a command and its meaning here.
        """
        with ExitStack() as going_on:
            self._follow(page, dict(instead), going_on)

    def _follow(self, page, instead, going_on):
        for block in blocks_of(page):
            if block.file:
                target = self.folder / block.file
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(block.text)
            elif block.language == "console":
                for written, wanted in commands_of(block.text):
                    command = written
                    for said, meant in instead.items():
                        command = command.replace(said, meant)
                    if command.endswith("&"):
                        process = going_on.enter_context(self.start(command))
                        going_on.callback(process.terminate)
                        continue
                    done = self.run(command)
                    told = f"$ {command}\n{done.stdout}\n{done.stderr}"
                    assert doctest.OutputChecker().check_output(wanted, done.stdout, FLAGS), told
