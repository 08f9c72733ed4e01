"""The ticks that bounds at work have reached, and lanes that trail."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import chain, repeat

from observers import Heard

from mtpp.host.progress import Silent
from mtpp.solvers.certify.headway import Headway


def test_a_lane_trails_while_a_bound_at_work_is_further() -> None:
    """Its own bounds do not count, nor do those that have ended; what is heard is passed on."""
    headway, heard = Headway(), Heard()
    with headway.at_work("configuration", heard) as observer:
        observer.bound(7)
        observer.bound(5)
        assert headway.trails(["relaxation"])
        assert not headway.trails(["configuration", "relaxation"])
        with headway.at_work("relaxation", heard) as other:
            other.bound(7)
        assert not headway.trails(["relaxation"])
        observer.bound(8)
        assert headway.trails(["relaxation", "node-convex"])
    assert not headway.trails(["relaxation"])
    assert [headway.raised(name) for name in ("configuration", "relaxation", "node-convex")] == [8, 7, 0]
    assert heard.bounds == [7, 5, 7, 8]


def test_room_is_made_no_longer_than_needed() -> None:
    """Until the other one ends, or all is over; not at all for a lane that is as far. A search goes on meanwhile."""
    headway, searches = Headway(), []

    def search(seconds: float, ended: Callable[[], bool]) -> None:
        searches.append((seconds, ended()))

    headway.make_room(["relaxation"], 1e9, lambda: False, search)
    begun, end = threading.Event(), threading.Event()

    def work() -> None:
        with headway.at_work("configuration", Silent()) as observer:
            observer.bound(3)
            begun.set()
            end.wait()

    other = threading.Thread(target=work)
    other.start()
    begun.wait()
    headway.make_room(["relaxation"], 0.0, lambda: False, search)
    assert searches == []
    looks = chain([False] * 3, repeat(True))
    headway.make_room(["relaxation"], 1e9, lambda: next(looks), search)
    assert [ended for _, ended in searches] == [False, True]
    assert 1e9 - 100 < searches[1][0] < searches[0][0] < 1e9
    threading.Timer(0.05, end.set).start()
    headway.make_room(["relaxation"], 1e9, lambda: False, lambda _, ended: [None for _ in iter(ended, True)])
    other.join()


def test_bounds_at_work_fill_cores() -> None:
    """One each, but for those that work on all there are."""
    headway = Headway()
    assert not headway.fills(1)
    with headway.at_work("convex-weights", Silent()):
        assert [headway.fills(cores) for cores in (1, 2, 3)] == [True, False, False]
        with headway.at_work("branch-and-bound", Silent()):
            assert [headway.fills(cores) for cores in (1, 2, 3)] == [True, True, False]
    with headway.at_work("configuration", Silent()):
        assert headway.fills(3)
    assert not headway.fills(1)
