"""The sources of the kernels: what they define, and copies of them with a change."""

import re
import shutil
import subprocess
from pathlib import Path

from mor_ref.cuda import host, source


def exported(program):
    """Return the kernels that a source defines, by all its macros."""
    command = [*host.compiler(), "-E", "-P", "-std=c++17", f"-I{source.ON_CPU}", "-x", "c++"]
    done = subprocess.run(
        [*command, source.KERNELS / f"{program}.cu"], capture_output=True, text=True, check=True
    )
    return set(re.findall(r"\bmor_launch_(\w+)\(", done.stdout))


def with_wrong_ones(folder):
    """Copy all kernels, and wrong.cu with them."""
    shutil.copytree(source.KERNELS, folder)
    shutil.copy(Path(__file__).with_name("wrong.cu"), folder)
    return folder


def changed(folder, file, old, new):
    """Copy all kernels, and change one place of a file."""
    shutil.copytree(source.KERNELS, folder)
    text = (folder / file).read_text()
    assert text.count(old) == 1, f"{file} has {old!r} {text.count(old)} times"
    (folder / file).write_text(text.replace(old, new))
    return folder
