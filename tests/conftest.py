"""Fixtures of the tests in a browser."""

import pytest


@pytest.fixture(scope="module")
def browser():
    from explorer_browser import chromium

    with chromium() as found:
        yield found


@pytest.fixture
def page(browser):
    """Yield the page of the format explorer."""
    from explorer_browser import opened

    with opened(browser) as found:
        yield found
