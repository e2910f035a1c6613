"""The picture that the commands of the page on checkpoints make."""

import functools
import tempfile
from pathlib import Path

from mor_docs.shown.running import block_of, mor_ref_in, python_in

PICTURES = ("_images/checkpoint-errors.png", "_images/checkpoint-errors-dark.png")
_PAGE = "docs/guide/checkpoint.md"
_ARGUMENTS = ("model.safetensors", "--policy", "three_way", "--block", "64x64")
# The style of matplotlib on a dark page: the file that it reads in the working directory.
_INK, _GROUND = "d8dce2", "131416"
_DARK = "".join(
    f"{name}: {colour}\n"
    for colour, names in {
        _INK: ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"),
        _GROUND: ("figure.facecolor", "axes.facecolor", "savefig.facecolor"),
    }.items()
    for name in names
)


@functools.cache
def _made() -> tuple[bytes, bytes]:
    """Make the checkpoint of the page, and return the picture of its errors, light and dark."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "make.py").write_text(block_of(_PAGE, ":caption: make_checkpoint.py\n"), "utf-8")
        made = python_in(folder, "make.py")
        if made.returncode:
            raise ValueError(f"no checkpoint: {made.stderr}")
        light = _picture_in(folder)
        (folder / "matplotlibrc").write_text(_DARK, "utf-8")
        return light, _picture_in(folder)


def _picture_in(folder: Path) -> bytes:
    done = mor_ref_in(folder, "analyze", *_ARGUMENTS, "--plot", "errors.png")
    if done.returncode:
        raise ValueError(f"no picture of the checkpoint: {done.stderr}")
    return (folder / "errors.png").read_bytes()


def write(target: Path) -> None:
    """Write the pictures among the images of the site."""
    for name, picture in zip(PICTURES, _made(), strict=True):
        (target / name).parent.mkdir(exist_ok=True)
        (target / name).write_bytes(picture)


def errors() -> str:
    """Show the picture in the colours of the page, one directory below the top."""
    said = (
        "The mean relative error of both tensors with the thresholds of the policy, the share of "
        "each representation, and the blocks of the second tensor"
    )
    shown = "".join(
        f'<img class="only-{kind}" src="../{name}" alt="{said}">'
        for kind, name in zip(("light", "dark"), PICTURES, strict=True)
    )
    return f'```{{raw}} html\n<p class="made">{shown}</p>\n```\n'
