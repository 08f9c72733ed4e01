"""The ladder of one cell: strong bounds side by side, and what a bound of tier solver ends and what it does not."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from graph_strategies import LINK, chain, random_graph
from oracles import brute_force_optimum

from mtpp.errors import InconsistentBound
from mtpp.host.deadline import Deadline
from mtpp.host.progress import Silent
from mtpp.host.stop_reason import StopReason
from mtpp.inference.certificate import LowerBound
from mtpp.inference.goal import Goal
from mtpp.inference.instance import Instance
from mtpp.inference.objective import bottleneck
from mtpp.inference.partition import Partition
from mtpp.machine.device import DeviceGroup
from mtpp.machine.link import Link
from mtpp.machine.machine import Machine
from mtpp.names import LATENCY_OBJECTIVE
from mtpp.solvers.bounds.limits import BoundLimits, BoundResult
from mtpp.solvers.bounds.registry import BOUNDS
from mtpp.solvers.certify import cell_work as certifying
from mtpp.solvers.certify.cell_state import CellLimits, Certification
from mtpp.solvers.certify.cell_work import Headway, certify
from mtpp.solvers.limits import SearchResult
from mtpp.solvers.reduction.reduced_instance import ReducedInstance


def test_a_bound_that_fails_ends_the_other_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A contradiction is reported at once, not when the time of the cell is up."""
    stops: list[str | None] = []

    def absurd(instance: Instance, limits: BoundLimits) -> BoundResult:
        return BoundResult(LowerBound(limits.upper + 1, "configuration", "solver", {}), solved=True)

    def endless(instance: Instance, limits: BoundLimits) -> BoundResult:
        while not limits.ended():
            pass
        stops.append(limits.stop)
        return BoundResult(None, solved=False)

    names = [name for name, entry in BOUNDS.items() if entry.lane is not None and not entry.ahead]
    bounds = dict.fromkeys(names, endless) | {"configuration": absurd}
    monkeypatch.setattr(
        certifying, "bound_entry", lambda name: SimpleNamespace(load=lambda: bounds[name], tier="solver")
    )
    instance = Instance.build(random_graph(1, 8), Machine.uniform(3, LINK))
    with pytest.raises(InconsistentBound):
        certify(instance, CellLimits(10.0, bounds=tuple(names), algorithm="random"))
    assert set(stops) == {"interrupted"}


@pytest.mark.parametrize("time_limit_s", [None, 60.0])
def test_nothing_is_begun_once_the_user_has_ended_it(
    monkeypatch: pytest.MonkeyPatch, time_limit_s: float | None
) -> None:
    """Neither bounds nor the search for a partition: the cell has a cut into equal work and the simple bound."""

    def never(name: str) -> SimpleNamespace:
        raise AssertionError(name)

    monkeypatch.setattr(certifying, "bound_entry", never)
    monkeypatch.setattr("mtpp.solvers.aim.search_in_time", never)
    instance = Instance.build(random_graph(1, 40), Machine.uniform(3, LINK))
    found = certify(instance, CellLimits(time_limit_s), interrupted=lambda: True)
    assert (found.stopped, found.upper_algorithm, found.lower.method) == ("interrupted", "equal work", "simple")
    assert found.upper is not None
    assert found.lower.value <= found.upper


def ladder_of(
    monkeypatch: pytest.MonkeyPatch, **limits: Any
) -> tuple[Certification, list[str], dict[str, BoundLimits]]:
    """Certify with a solver's bound that is the bottleneck, and then a weak proof; return what was tried, and how."""
    tried: list[str] = []
    asked: dict[str, BoundLimits] = {}

    def tell(name: str, tier: str, value: Callable[[BoundLimits], int]) -> SimpleNamespace:
        def bound(instance: Instance, limits: BoundLimits) -> BoundResult:
            tried.append(name)
            asked[name] = limits
            return BoundResult(LowerBound(value(limits), name, tier, {}), solved=True)

        return SimpleNamespace(load=lambda: bound, tier=tier)

    entries = {
        "bottleneck": tell("bottleneck", "solver", lambda limits: limits.upper),
        "crossings": tell("crossings", "exact", lambda limits: limits.lower + 1),
    }
    monkeypatch.setattr(certifying, "bound_entry", lambda name: entries[name])
    instance = Instance.build(random_graph(1, 8), Machine.uniform(3, LINK))
    names = ("bottleneck", "crossings")
    return certify(instance, CellLimits(10.0, bounds=names, algorithm="random", **limits)), tried, asked


def test_a_bound_of_the_solver_ends_a_cell_and_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What ended the work is named, and what is proven is kept beside the bound."""
    found, tried, _ = ladder_of(monkeypatch)
    assert tried == ["bottleneck"]
    assert found.stopped == "solver-target"
    assert (found.lower.tier, found.lower.value) == ("solver", found.upper)
    assert found.proven.method == "simple"


@pytest.mark.parametrize("time_limit_s", [None, 60.0])
def test_threads_end_with_their_cell(time_limit_s: float | None) -> None:
    """A process that certifies many cells has no more threads after the last than after the first."""
    before = {*threading.enumerate()}
    certify(Instance.build(random_graph(1, 20), Machine.uniform(3, LINK)), CellLimits(time_limit_s))
    for thread in {*threading.enumerate()} - before:
        thread.join(60)
        assert not thread.is_alive()


def test_work_ends_once_nobody_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception in the caller's thread leaves no bound that is computed on and on."""
    begun, ended = threading.Event(), threading.Event()

    def endless(instance: Instance, limits: BoundLimits) -> BoundResult:
        begun.set()
        while not limits.ended():
            pass
        ended.set()
        return BoundResult(None, solved=False)

    def interrupted() -> bool:
        if begun.is_set() and threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        return False

    monkeypatch.setattr(certifying, "bound_entry", lambda name: SimpleNamespace(load=lambda: endless, tier="solver"))
    instance = Instance.build(random_graph(1, 8), Machine.uniform(3, LINK))
    with pytest.raises(KeyboardInterrupt):
        certify(instance, CellLimits(None, bounds=("crossings",), algorithm="random"), interrupted=interrupted)
    assert ended.wait(60)


def test_where_proofs_are_required_the_work_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exact bounds are told what is proven, not what the solver says."""
    found, tried, asked = ladder_of(monkeypatch, proofs_only=True)
    assert tried == ["bottleneck", "crossings"]
    assert found.stopped == "finished"
    assert (found.lower.method, found.proven.method) == ("bottleneck", "crossings")
    assert asked["crossings"].lower == found.proven.value - 1 < found.lower.value


def test_a_proof_is_shown_before_a_solvers_bound_of_the_same_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever came first."""

    def same(tier: str) -> SimpleNamespace:
        def bound(instance: Instance, limits: BoundLimits) -> BoundResult:
            return BoundResult(LowerBound(limits.upper, tier, tier, {}), solved=True)

        return SimpleNamespace(load=lambda: bound, tier=tier)

    entries = {"bottleneck": same("solver"), "crossings": same("exact")}
    monkeypatch.setattr(certifying, "bound_entry", lambda name: entries[name])
    instance = Instance.build(random_graph(1, 8), Machine.uniform(3, LINK))
    for names in (("bottleneck", "crossings"), ("crossings", "bottleneck")):
        found = certify(instance, CellLimits(10.0, bounds=names, algorithm="random", each=True))
        assert (found.lower.tier, found.proven.tier) == ("exact", "exact")


def test_a_cutoff_by_hand_asks_for_no_partition() -> None:
    """Bounds are found without one, and none of tier solver reaches the cutoff."""
    instance = Instance.build(random_graph(1, 8), Machine.uniform(3, LINK))
    limits = CellLimits(20.0, bounds=("crossings", "bottleneck", "exact-mip"), each=True, cutoff=100)
    found = certify(instance, limits)
    assert (found.partition, found.upper, found.upper_algorithm) == (None, None, None)
    assert list(found.bounds) == ["simple", "crossings", "bottleneck", "exact-mip"]
    assert all((found.bounds[name].value or 0) < 100 for name in ("bottleneck", "exact-mip"))


def test_a_bound_that_stands_still_makes_room_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what has become known in the meantime, and its seconds add up; *finished* is said when nothing is left."""
    tried: list[tuple[str, int]] = []

    def raising(name: str, times: int) -> Callable[[Instance, BoundLimits], BoundResult]:
        def go_on(limits: BoundLimits) -> BoundResult:
            tried.append((name, limits.lower))
            left = times - sum(told == name for told, _ in tried)
            lower = LowerBound(limits.lower + 1, name, "exact", {"merges": []})
            return BoundResult(lower, solved=not left, resume=go_on if left else None)

        return lambda instance, limits: go_on(limits)

    bounds = {"relaxation": raising("relaxation", 3), "node-convex": raising("node-convex", 1)}
    monkeypatch.setattr(
        certifying, "bound_entry", lambda name: SimpleNamespace(load=lambda: bounds[name], tier="exact")
    )
    graph = chain([10_000, 1, 1, 10_000], [1, 1, 1], "1")
    found = certify(
        Instance.build(graph, Machine.uniform(1, LINK)),
        CellLimits(10.0, bounds=tuple(bounds), algorithm="slice", cutoff=10**6),
    )
    assert [name for name, _ in tried] == ["relaxation", "node-convex", "relaxation", "relaxation"]
    assert [lower for _, lower in tried] == list(range(tried[0][1], tried[0][1] + 4))
    assert found.stopped == "finished"
    assert all(found.bounds[name].solved for name in bounds)


def test_what_can_go_on_has_not_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the time is up and a bound could be resumed, that is what stopped the cell."""

    def slow(limits: BoundLimits) -> BoundResult:
        time.sleep(0.05)
        return BoundResult(None, solved=False, resume=slow)

    monkeypatch.setattr(
        certifying,
        "bound_entry",
        lambda name: SimpleNamespace(load=lambda: lambda _, limits: slow(limits), tier="exact"),
    )
    instance = Instance.build(random_graph(1, 8), Machine.uniform(3, LINK))
    found = certify(instance, CellLimits(0.5, bounds=("relaxation",), cutoff=10**6))
    assert found.stopped == "time-limit"
    assert 0.05 < found.bounds["relaxation"].seconds <= found.total_seconds


@pytest.mark.parametrize(("jobs", "searches"), [(2, True), (1, False)])
def test_the_search_for_partitions_goes_on_beside_bounds(
    monkeypatch: pytest.MonkeyPatch, *, jobs: int, searches: bool
) -> None:
    """Where one makes room for another that is further, and a core is free: what is found is that of the cell."""
    graph = random_graph(1, 8)
    instance = Instance.build(graph, Machine.uniform(3, LINK))

    def stands_still(limits: BoundLimits) -> BoundResult:
        return BoundResult(None, solved=False, resume=stands_still)

    def leads(limits: BoundLimits) -> BoundResult:
        limits.observer.bound(1)
        while not limits.ended():
            time.sleep(0.01)
        return BoundResult(None, solved=False)

    bounds = {"relaxation": stands_still, "convex-weights": leads}
    monkeypatch.setattr(
        certifying,
        "bound_entry",
        lambda name: SimpleNamespace(load=lambda: lambda _, limits: bounds[name](limits), tier="exact"),
    )
    monkeypatch.setattr(certifying._CellWork, "seconds", lambda self, name: 1e6)
    start = Partition.from_stages(instance, [0] * 8)
    found = SearchResult(start, bottleneck(instance, start), "slice", 0, StopReason.BUDGET)
    told: list[Certification] = []
    last = certify(instance, CellLimits(3.0, bounds=tuple(bounds), jobs=jobs), told.append, found=found)
    assert last.upper == (brute_force_optimum(graph, LINK, 3) if searches else found.bottleneck)
    assert last.upper_algorithm == ("anneal" if searches else "slice")
    assert last.partition is not None
    assert bottleneck(instance, last.partition) == last.upper == told[-1].upper


EQUAL = Machine.uniform(2, LINK)
UNEQUAL = replace(EQUAL, groups=(DeviceGroup(LINK, 1), DeviceGroup(replace(LINK, link=Link(10**8)), 1)))


@pytest.mark.parametrize(
    ("machine", "limits", "searches"),
    [
        (EQUAL, CellLimits(60.0), True),
        (EQUAL, CellLimits(None), False),
        (EQUAL, CellLimits(60.0, each=True), False),
        (EQUAL, CellLimits(60.0, goal=Goal(LATENCY_OBJECTIVE)), False),
        (UNEQUAL, CellLimits(60.0), False),
    ],
)
def test_partitions_are_searched_beside_bounds_in_time_on_equal_devices_for_bottlenecks(
    machine: Machine, limits: CellLimits, *, searches: bool
) -> None:
    """Without a clock results depend on counts alone."""
    instance = Instance.build(random_graph(1, 8), machine)
    work = certifying._CellWork(instance, limits, lambda state: None, lambda: False, Silent())
    work._reduced = ReducedInstance(instance.envelope)
    assert (work._spare_search() is not None) is searches


RESUMED = ("relaxation", "configuration", "branch-and-bound")
WEAK = [(0.08, 0.96)]
SCHEDULE = {
    "simple": [],
    "downset": WEAK,
    "node": [(0.08,)],
    "crossings": WEAK,
    "fraction": WEAK,
    "capacity": WEAK,
    "bottleneck-no-dag": WEAK,
    "bottleneck-no-cut-io": WEAK,
    "bottleneck": WEAK,
    "bottleneck-guess": WEAK,
    "relaxation": [(1.0, 0.96), (0.96,)],
    "node-convex": [(0.08, 0.96), (0.96,)],
    "convex-weights": [(0.3, 0.96), (0.75, 0.96)],
    "position-weights": [(0.4, 0.96), (0.7, 0.96)],
    "configuration": [(1.0, 0.96), (0.96,)],
    "branch-and-bound": [(1.0, 0.96), (0.96,)],
    "exact-mip": [(0.4, 0.96), (0.96,)],
}
"""Shares of the time left that each bound is given, one after the other, turn by turn."""


@pytest.mark.parametrize(
    ("k", "lanes"),
    [
        (3, ["relaxation node-convex relaxation node-convex",
             "convex-weights position-weights configuration configuration",
             "branch-and-bound exact-mip branch-and-bound exact-mip"]),
        (50, ["relaxation node-convex branch-and-bound exact-mip branch-and-bound relaxation exact-mip node-convex",
              "convex-weights position-weights configuration configuration"]),
    ],
)  # fmt: skip
def test_every_bound_has_its_lane_its_turns_and_its_shares(
    monkeypatch: pytest.MonkeyPatch, k: int, lanes: list[str]
) -> None:
    """Weak ones one after the other, then two ahead of their lane of strong ones, large models in the first.

    Those that make room go on after others that can be resumed.
    """
    share = Deadline.share

    def shared(self: Deadline, part: float) -> Deadline:
        made = share(self, part)
        made.parts = (*getattr(self, "parts", ()), part)  # type: ignore[attr-defined]
        return made

    tried: list[tuple[str, tuple[float, ...]]] = []

    def entry(name: str) -> SimpleNamespace:
        def bound(limits: BoundLimits) -> BoundResult:
            tried.append((name, limits.deadline.parts))  # type: ignore[attr-defined]
            again = sum(told == name for told, _ in tried) == 1
            return BoundResult(None, solved=not again, resume=bound if again and name in RESUMED else None)

        return SimpleNamespace(load=lambda: lambda instance, limits: bound(limits), tier="exact")

    rooms: list[str] = []
    monkeypatch.setattr(Deadline, "share", shared)
    monkeypatch.setattr(certifying, "bound_entry", entry)
    monkeypatch.setattr(Headway, "make_room", lambda self, lane, *others: rooms.append(" ".join(lane)))
    instance = Instance.build(random_graph(1, 150), Machine.uniform(k, LINK))
    certify(instance, CellLimits(600.0, bounds=tuple(BOUNDS), algorithm="slice"))
    assert {name: [parts for told, parts in tried if told == name] for name in BOUNDS} == SCHEDULE
    order = [name for name, _ in tried]
    weak = [name for name in BOUNDS if name not in " ".join(lanes).split() and name not in ("simple", "node")]
    ahead = [name for name in BOUNDS if BOUNDS[name].ahead]
    assert order[: len(weak) + 1] == ["node", *weak]
    strong = order[len(weak) + 1 :]
    assert strong[0] in ahead
    for name in ahead:
        strong.remove(name)  # its turn ahead; a lane may begin before that of the other one
    for lane in lanes:
        assert [name for name in strong if name in lane.split()] == lane.split()
    assert rooms == [" ".join(dict.fromkeys(lanes[0].split()))]
