"""Searches that a verification gives up, at its limit or as it is interrupted, come to an end in their threads."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from downset_proofs import narrow_case
from graph_strategies import random_graph

import mtpp
from mtpp.errors import Interrupted
from mtpp.solvers.recheck.compiled import Unwatched, search_compiled

SEARCH = "work with a limit"
"""Name of the threads that searches run in."""


@pytest.fixture(scope="module")
def endless() -> dict[str, Any]:
    """Return a plan for ops that any order is right for, with the proof of a search that takes days."""
    case = narrow_case(0)
    search_compiled(case.claim(case.optimum, ["crossings", "fit", "maximal"]), 100, 100, Unwatched())  # now, not then
    graph = random_graph(5, 60, consumers_per_tensor=0.05)
    document = mtpp.partition(graph, 8, algorithm="slice").document(embed=True)
    value = document["bottleneck"]
    proof = {"merges": [], "cutoff": value - 1, "k": 8, "rules": ["fit"], "digest": "0" * 64}
    proof |= {"downsets": 10**15, "pairs": 10**17}
    bound = {"value": value - 1, "method": "downset", "tier": "enumerated", "proof": proof}
    ratio = document["bottleneck"] / bound["value"]
    return document | {"lower_bound": bound, "ratio": ratio, "optimal": False}


def _searches() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == SEARCH}


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Wait until no search of the test runs; the processor is idle then, if other tests have left it so."""
    before = _searches()
    yield
    give_up = time.monotonic() + 20
    while _searches() - before:
        assert time.monotonic() < give_up, "a search goes on"
        time.sleep(0.02)
    if not before:
        spent, began = time.process_time(), time.monotonic()
        time.sleep(0.5)
        assert time.process_time() - spent < 0.5 * (time.monotonic() - began)


def _verdict_on_bound(verification: Any) -> tuple[str, str]:
    row = next(row for row in verification.rows if row.claim == "lower bound")
    return row.verdict, row.detail


def test_the_search_ends_after_the_limit(endless: dict[str, Any]) -> None:
    """In the main thread, where an alarm rings."""
    verdict, detail = _verdict_on_bound(mtpp.verify(endless, time_limit_s=2))
    assert (verdict, "out of time" in detail) == ("unchecked", True), detail


def test_so_it_does_in_another_thread(endless: dict[str, Any]) -> None:
    """Where no alarm can ring."""
    with ThreadPoolExecutor(1) as thread:
        found = thread.submit(mtpp.verify, endless, time_limit_s=2).result()
    verdict, detail = _verdict_on_bound(found)
    assert (verdict, "out of time" in detail) == ("unchecked", True), detail


def test_so_it_does_after_ctrl_c(endless: dict[str, Any]) -> None:
    """The search does not outlive the call that it was for."""

    class Impatient(mtpp.Observer):
        asked = False

        def show(self, text: str, done: int = 0, total: int | None = None) -> None:
            if not self.asked:
                self.asked = True
                signal.raise_signal(signal.SIGINT)

    with pytest.raises(Interrupted):
        mtpp.verify(endless, observer=Impatient())
