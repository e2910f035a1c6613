"""Chromium with the format explorer in it, for tests; skipped where a part of it is missing."""

import base64
import shutil
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
EXPLORER = ROOT / "docs" / "explorer"
ADDRESS = (EXPLORER / "index.html").as_uri()
ADAPTER = Path(__file__).with_name("explorer_adapter.js")


@contextmanager
def chromium():
    """A browser without a window."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("chromium is not installed")
    with api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


def packed(array):
    """An array as the adapter takes it."""
    words = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return {"width": array.itemsize, "words": base64.b64encode(words.tobytes()).decode()}


def answer(page, operation, parameters, inputs):
    """What the page's arithmetic gives for an operation of golden vectors, as lists of words."""
    arrays = {name: packed(array.ravel()) for name, array in inputs.items()}
    found = page.evaluate("question => adapter(question)", [operation, parameters, arrays])
    return {name: np.frombuffer(base64.b64decode(text), "<u8") for name, text in found.items()}
