"""Chromium with the format explorer in it, for tests; skipped where a part of it is missing."""

import base64
import shutil
import tempfile
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pytest
from extras import imported, reason
from mor_docs import explorer

ROOT = Path(__file__).resolve().parent.parent
# As the site has it: with the catalogue, which is not among the sources.
_WRITTEN = tempfile.TemporaryDirectory(prefix="explorer")
EXPLORER = Path(_WRITTEN.name)
explorer.write(EXPLORER)
ADDRESS = (EXPLORER / "index.html").as_uri()
NO_LIMIT = 0  # of playwright: a machine may be as busy as it is
ONLY_A_FAULT = 600_000  # milliseconds; an element that never comes would be waited for for ever
ADAPTER = Path(__file__).with_name("explorer_adapter.js")


@contextmanager
def chromium():
    """Yield a browser without a window."""
    api = imported("playwright.sync_api")
    program = shutil.which("chromium")
    if program is None:
        pytest.skip(reason("chromium"))
    with api.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=program, args=["--no-sandbox"], timeout=NO_LIMIT
        )
        yield browser
        browser.close()


def context_of(browser, **options):
    """Return a context of the browser; only a fault lets an action in it time out."""
    context = browser.new_context(**options)
    context.set_default_timeout(ONLY_A_FAULT)
    context.set_default_navigation_timeout(NO_LIMIT)
    return context


def fulfilled(body, route):
    route.fulfill(body=body)


@contextmanager
def opened(browser, width=1280, routes=None, **state):
    """Yield the page in a state, and check that it loads only its own files without an error."""
    context = context_of(browser, viewport={"width": width, "height": 800})
    page = context.new_page()
    wrong = []
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    for path, body in (routes or {}).items():
        page.route(path, partial(fulfilled, body))
    page.goto(f"{ADDRESS}#{urlencode(state)}")
    yield page
    context.close()
    own = {path.as_uri() for path in EXPLORER.iterdir()} | {"data:,"}
    assert {url.partition("#")[0] for url in asked} <= own
    assert wrong == []


def written(code, fmt):
    """Return a code as the page writes it."""
    return f"0x{code:0{-(-fmt.bits // 4)}X}"


def packed(array):
    """Return an array as the adapter takes it."""
    words = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return {"width": array.itemsize, "words": base64.b64encode(words.tobytes()).decode()}


def answer(page, operation, parameters, inputs):
    """Return the page's results for an operation of vectors, as words."""
    arrays = {name: packed(array.ravel()) for name, array in inputs.items()}
    known = {**parameters, "rows": len(next(iter(inputs.values())))}
    found = page.evaluate("question => adapter(question)", [operation, known, arrays])
    return {name: np.frombuffer(base64.b64decode(text), "<u8") for name, text in found.items()}
