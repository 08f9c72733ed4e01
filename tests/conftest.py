"""Fixtures that every test may use."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.shipped_code import take_shipped_code

ROOT = Path(__file__).resolve().parent.parent

MOST_CASES = 3
"""Cases of one parametrised test in the default run, spread evenly over its matrix."""

LONG = (
    "tests/suites/",
    "tests/test_packaging.py",
    "tests/test_notebooks.py",
    "tests/cli/test_certify_killed.py",
    "tests/api/test_warmup.py",
)
"""Tests that take longest each."""

# How long an example takes says nothing about it: the first one may compile a kernel.
settings.register_profile("mtpp", deadline=None)
settings.load_profile("mtpp")


def pytest_configure(config: pytest.Config) -> None:
    """Take the kernels that are compiled already, before any worker starts; keep byte code; hear of interruptions.

    What the package starts is forked from a process that has imported it all.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # a shell ignores it for what it starts in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.dont_write_bytecode = False  # else each of hundreds of processes compiles every module anew
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if not hasattr(config, "workerinput"):
        take_shipped_code(ROOT)
    from processes import fork_all_children  # late: it keeps the environment as it is then

    fork_all_children()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Look for no garbage among what is collected, neither then nor in the tests."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # before cases are chosen by their markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Count all but a few cases of each long matrix as slow; those of models that once showed faults are all kept.

    Whole suites of other projects and wheels come first: a minute of one test is none that a worker should end with.
    """
    matrices: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("slow") is None and not item.nodeid.startswith("tests/cases/"):
            matrices[item.nodeid.partition("[")[0]].append(item)
    for cases in matrices.values():
        if len(cases) > MOST_CASES:
            kept = {len(cases) * place // MOST_CASES for place in range(MOST_CASES)}
            for place, item in enumerate(cases):
                if place not in kept:
                    item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))


@pytest.fixture(scope="session")
def checkout() -> Path:
    """Return the root of the checkout that holds these tests."""
    return ROOT


@pytest.fixture
def chain_file(tmp_path: Path) -> Path:
    """Return a path of four ops of 10, 20, 30 and 40 ms, 1 ms between neighbours: 61 ms in two stages."""
    from plans_beside_models import write_model  # late: it imports the package

    write_model(tmp_path / "chain.json")
    return tmp_path / "chain.json"


@pytest.fixture
def two_chains(tmp_path: Path) -> Path:
    """Return a folder of two chains: in 2 stages ``a`` takes 61 ms and ``b`` 25, in 4 stages 41 and 20 ms."""
    from plans_beside_models import write_model  # late: it imports the package

    write_model(tmp_path / "models" / "b.json", [10, 10, 10], 5)
    write_model(tmp_path / "models" / "a.json")
    return tmp_path / "models"


@pytest.fixture(scope="session")
def training_chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of a model to be trained: six equal layers in a row."""
    from given_plans import chain_model  # late: it imports the package

    from mtpp.formats.training.native import write_training_model

    path = tmp_path_factory.mktemp("training") / "chain.json"
    path.write_text(write_training_model(chain_model()))
    return path


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
