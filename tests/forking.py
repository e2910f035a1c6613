"""Programs of Python in processes of their own, which need not import a package again.

One process has imported it, and forks for each program. A program starts in a hundredth of the time
then. Its modules are there before it begins: what a program imports, and when, is for tests that
start Python.
"""

import atexit
import functools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

MAIN = "import sys; sys.argv[0] = 'mor-ref'; from mor_ref.cli import main; main()"
# A program ends as Python does, but leaves the modules as they are: to take them apart takes long.
SERVER = """
import atexit, contextlib, gc, importlib, io, json, os, pkgutil, sys, threading, traceback
gc.disable()
package = importlib.import_module(sys.argv[1])
if sys.argv[1] == "mor_ref":
    for module in pkgutil.walk_packages(package.__path__, "mor_ref."):
        if not module.name.startswith("mor_ref.cuda"):
            try:
                importlib.import_module(module.name)
            except ModuleNotFoundError as error:  # an extra that is not installed, such as torch
                if error.name.startswith("mor_ref"):
                    raise
    from mor_ref import golden
    from mor_ref.golden.store.manifest import read_manifest
    read_manifest(golden.bundled_files())
    from mor_ref.cli import app
    with contextlib.redirect_stdout(io.StringIO()):  # loads what the libraries load late
        app(["golden", "list"], standalone_mode=False)
gc.freeze()
gc.enable()
answers = os.fdopen(os.dup(1), "w")
for line in sys.stdin:
    program, sys.argv, folder, variables, streams = json.loads(line)
    if not (child := os.fork()):
        break
    answers.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\\n")
    answers.flush()
else:
    os._exit(0)
answers.close()
for number, path in enumerate(streams):
    stream = os.open(path, os.O_RDWR)
    os.dup2(stream, number)
    os.close(stream)
sys.stdin = open(0)
os.chdir(folder)
os.environ.clear()
os.environ.update(variables)
sys.path[1:1] = filter(None, variables.get("PYTHONPATH", "").split(os.pathsep))
sys.dont_write_bytecode = bool(variables.get("PYTHONDONTWRITEBYTECODE"))
status = 0
try:
    exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})
except SystemExit as end:
    status = end.code if isinstance(end.code, int) else int(end.code is not None)
    if end.code is not None and not isinstance(end.code, int):
        print(end.code, file=sys.stderr)
except BaseException:
    status = 1
    traceback.print_exc()
threading._shutdown()
atexit._run_exitfuncs()
sys.stdout.flush()
sys.stderr.flush()
os._exit(status)
"""


@functools.cache
def _server(package):
    command = [sys.executable, "-X", "utf8", "-c", SERVER, package]
    server = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    atexit.register(server.communicate)
    return server


def python(program, *arguments, text=True, input=None, cwd=None, env=None, package="mor_ref"):  # noqa: A002
    """Return the output and the end of `python -c program arguments`, with `package` imported."""
    server = _server(package)
    with tempfile.TemporaryDirectory() as folder:
        streams = [Path(folder, name) for name in ("input", "output", "errors")]
        given = input or ""
        for stream, content in zip(streams, (given, "", ""), strict=True):
            stream.write_bytes(content.encode() if isinstance(content, str) else content)
        request = [
            program,
            ["-c", *map(str, arguments)],
            os.fspath(cwd or Path.cwd()),
            dict(os.environ if env is None else env),
            list(map(str, streams)),
        ]
        server.stdin.write(f"{json.dumps(request)}\n".encode())
        server.stdin.flush()
        status = int(server.stdout.readline())
        output, errors = (stream.read_bytes() for stream in streams[1:])
    if text:
        output, errors = output.decode(), errors.decode()
    return subprocess.CompletedProcess(program, status, output, errors)


def mor_ref(*arguments, **options):
    """Return the output and the end of a command of mor-ref."""
    return python(MAIN, *arguments, **options)
