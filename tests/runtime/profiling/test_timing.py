"""Work beside what is measured: it goes on as long as that, and what goes wrong in it is not lost."""

from __future__ import annotations

from threading import Event

import pytest

from mtpp.runtime.profiling.timing import background_load


def test_workers_go_on_until_the_end() -> None:
    """Each is called again and again, and none after the end."""
    calls: list[int] = []
    thrice = Event()

    def work() -> None:
        calls.append(1)
        if len(calls) >= 3:
            thrice.set()

    with background_load([work]):
        assert thrice.wait(60)
    ended = len(calls)
    assert ended >= 3
    assert len(calls) == ended


def test_what_a_worker_raises_is_raised() -> None:
    """A measurement beside nobody is none."""

    def work() -> None:
        raise MemoryError

    with pytest.raises(MemoryError), background_load([work]):
        pass
