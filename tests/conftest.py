"""Fixtures that every test may use."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.shipped_code import take_shipped_code

ROOT = Path(__file__).resolve().parent.parent

# How long an example takes says nothing about it: the first one may compile a kernel.
settings.register_profile("mtpp", deadline=None)
settings.load_profile("mtpp")


def pytest_configure(config: pytest.Config) -> None:
    """Take the kernels that are compiled already, before any worker starts; hear of interruptions."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # a shell ignores it for what it starts in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(config, "workerinput"):
        take_shipped_code(ROOT)


@pytest.fixture(scope="session")
def checkout() -> Path:
    """Return the root of the checkout that holds these tests."""
    return ROOT


def _shared(folder: str) -> Path:
    path = ROOT.parent / "shared" / folder
    if not path.is_dir():
        pytest.skip(f"no shared {folder} beside the checkout")
    return path


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of real inputs beside the checkout, or skip where there is none."""
    return _shared("data")


@pytest.fixture(scope="session")
def shared_reference() -> Path:
    """Return the folder of known answers beside the checkout, or skip where there is none."""
    return _shared("reference")
