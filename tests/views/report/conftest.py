"""A browser for all tests of pages, which skip where there is none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from headless import Browser, start


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Return a headless Chromium."""
    found = start()
    yield found
    found.driver.quit()
