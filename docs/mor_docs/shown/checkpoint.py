"""The picture that the commands of the page on checkpoints make."""

import functools
import tempfile
from pathlib import Path

from mor_docs.shown.running import block_of, mor_ref_in, python_in

PICTURE = "_images/checkpoint-errors.png"
_PAGE = "docs/guide/checkpoint.md"
_ARGUMENTS = ("model.safetensors", "--policy", "three_way", "--block", "64x64")


@functools.cache
def _made() -> bytes:
    """Make the checkpoint of the page, and return the picture of its errors."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "make.py").write_text(block_of(_PAGE, ":caption: make_checkpoint.py\n"), "utf-8")
        made = python_in(folder, "make.py")
        done = mor_ref_in(folder, "analyze", *_ARGUMENTS, "--plot", "errors.png")
        if made.returncode or done.returncode:
            raise ValueError(f"no picture of the checkpoint: {made.stderr}{done.stderr}")
        return (folder / "errors.png").read_bytes()


def write(target: Path) -> None:
    """Write the picture among the images of the site."""
    (target / PICTURE).parent.mkdir(exist_ok=True)
    (target / PICTURE).write_bytes(_made())


def errors() -> str:
    """Show the picture, on a page one directory below the top."""
    said = (
        "The mean relative error of both tensors with the thresholds of the policy, the share of "
        "each representation, and the blocks of the second tensor"
    )
    return f'```{{raw}} html\n<p class="made"><img src="../{PICTURE}" alt="{said}"></p>\n```\n'
