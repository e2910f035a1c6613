"""ptxas, if it is installed, as a judge of texts: whether it takes one, and the bytes it makes."""

import shutil
import struct
import subprocess
import tempfile
from pathlib import Path

import pytest


def needed():
    """Skip a test if ptxas is not there."""
    if not shutil.which("ptxas"):
        pytest.skip("ptxas is not installed: pip install nvidia-cuda-nvcc")


def assembled(text, target="sm_90a"):
    """Return the cubin of a text, or None if ptxas refuses it."""
    with tempfile.TemporaryDirectory() as directory:
        path, made = Path(directory) / "one.ptx", Path(directory) / "one.cubin"
        path.write_text(text, "ascii")
        command = ["ptxas", f"-arch={target}", "-o", str(made), str(path)]
        done = subprocess.run(command, capture_output=True, check=False)
        return made.read_bytes() if not done.returncode else None


def section(cubin, name):
    """Return the bytes of a section of a cubin, which is an ELF file, or b"" without it."""
    first = struct.unpack_from("<Q", cubin, 0x28)[0]
    count, of_names = struct.unpack_from("<HH", cubin, 0x3C)
    heads = [struct.unpack_from("<IIQQQQ", cubin, first + 64 * k) for k in range(count)]
    for at, kind, _, _, begin, size in heads:
        start = heads[of_names][4] + at
        if kind != 8 and cubin[start : cubin.index(0, start)].decode() == name:
            return cubin[begin : begin + size]
    return b""
