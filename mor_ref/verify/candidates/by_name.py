"""Candidates by their names: `numba`, `cuda`, `module:function`, `dir:PATH` and others."""

from pathlib import Path

from mor_ref.argument_checks import known_name
from mor_ref.verify.candidates.candidate import Candidate
from mor_ref.verify.candidates.numba_engine import Engine
from mor_ref.verify.candidates.program import Program
from mor_ref.verify.candidates.python_process import PythonProcess
from mor_ref.verify.candidates.results_directory import ResultsDirectory

SECONDS = 60.0  # for a case, unless another time is given
_LONGEST = 1e6  # seconds
_OF_LIBRARIES = (".so", ".dll", ".dylib")
_OF_ARRAYS = (".npy", ".npz", ".safetensors", ".pt", ".bin")


def candidate_named(text: str, seconds: float = SECONDS) -> Candidate:
    """Return the candidate of this name, or of this kind and place; `with` ends it after its use.

    `seconds` is how long a program or a function may take for a case.
    """
    if not 0 < seconds <= _LONGEST:
        raise ValueError(
            f"timeout is {seconds}; give a number of seconds above 0, at most {_LONGEST:.0f}"
        )
    if text == "numba":
        return Engine()
    if text in ("cuda", "cuda-host", "cuda-ptx") or text.startswith("cuda-ptx:"):
        from mor_ref.verify.candidates.kernels import kernels_named

        return kernels_named(text)
    kind, colon, rest = text.partition(":")
    if kind == "dir" and rest:
        return ResultsDirectory(Path(rest))
    if kind == "exec" and colon:
        return Program(rest, seconds)
    if kind == "peer" and colon:
        from mor_ref.verify.candidates.peers import PEERS

        known_name("peer", rest, PEERS)
        return PythonProcess(text, seconds)
    if kind.endswith(".py") or (rest and "/" in kind):
        raise ValueError(
            f"candidate is {text!r}; give module:function, without .py, in the directory of the "
            f"module: {Path(kind).name.removesuffix('.py')}:{rest or 'FUNCTION'}"
        )
    if colon and kind and rest:
        return PythonProcess(text, seconds)
    raise ValueError(f"candidate is {text!r}, {_what_to_give(text)}")


def _what_to_give(text: str) -> str:
    """Say why a text is the name of no candidate, and what to give."""
    first, *_ = (*text.split(maxsplit=1), "")
    ending = Path(first).suffix
    if ending in _OF_LIBRARIES:
        return (
            "a library; give module:function, a function of (operation, parameters, inputs) in "
            "Python that calls it, such as with ctypes"
        )
    if ending in _OF_ARRAYS:
        return (
            "a file of results; give dir:DIRECTORY, and write the fields that mor-ref quantize "
            "writes to DIRECTORY/own.safetensors, as TENSOR/FIELD"
        )
    if text.isidentifier() and Path(f"{text}.py").is_file():
        return f"a module; give {text}:FUNCTION"
    if "/" in first and Path(first).exists():
        kind = "dir" if Path(first).is_dir() else "exec"
        return f"which has no kind; give '{kind}:{text}'"
    return (
        "which is not known; give numba, cuda, cuda-host, cuda-ptx, module:function, dir:PATH, "
        "exec:PROGRAM or peer:LIBRARY"
    )
