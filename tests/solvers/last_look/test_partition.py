"""Last looks at partitions: what a search says is held against the partition itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from graph_strategies import LINK, chain, random_graph

from mtpp.errors import InconsistentBound, InconsistentResult
from mtpp.inference.instance import Instance
from mtpp.inference.partition import Partition
from mtpp.machine.machine import Machine
from mtpp.solvers.aim import Aim
from mtpp.solvers.certify import cell_work
from mtpp.solvers.certify.cell_state import CellLimits
from mtpp.solvers.certify.comparison import RunLimits, run_cell
from mtpp.solvers.last_look.partition import look_at_partition
from mtpp.solvers.limits import SearchLimits, SearchResult
from mtpp.solvers.registry import PARTITIONERS, PartitionerEntry
from mtpp.solvers.solve import solve
from mtpp.solvers.variants import parse_variant

GRAPH = chain([10, 20, 30, 40], [1, 1, 1], "ms")
MS = 10**9


def instance(**system: Any) -> Instance:
    """Return four ops in a row for two stages."""
    return Instance.build(GRAPH, Machine.uniform(2, LINK.overriding(**system) if system else LINK))


def of_stages(*stages: int) -> Partition:
    """Return a partition that nobody has checked."""
    return Partition(np.array(stages, dtype=np.int32), 2)


def test_what_holds_passes() -> None:
    """A true bottleneck, in order, within groups and above its bounds, says nothing."""
    look_at_partition(
        instance(), of_stages(0, 0, 0, 1), 61 * MS, "x", together=[("op0", "op1")], bounds=[("b", 61 * MS)]
    )


@pytest.mark.parametrize(
    ("stages", "bottleneck", "more", "error", "said"),
    [
        ((0, 1, 0, 1), 61 * MS, {}, InconsistentResult, "found by x is none: .*'op2'.*runs later"),
        ((0, 0, 0, 2), 61 * MS, {}, InconsistentResult, "found by x is none"),
        ((0, 0, 0, 1), 60 * MS, {}, InconsistentResult, f"bottleneck of {60 * MS} ticks.* costs {61 * MS}"),
        ((0, 0, 0, 1), 61 * MS, {"together": [("op2", "op3")]}, InconsistentResult, "'op2'.* stages 0 and 1"),
        ((0, 0, 0, 1), 61 * MS, {"bounds": [("simple", 61 * MS + 1)]}, InconsistentBound, f"{61 * MS + 1} .simple.*"),
    ],
)
def test_contradictions(
    stages: tuple[int, ...], bottleneck: int, more: dict[str, Any], error: type[Exception], said: str
) -> None:
    """A wrong order, another bottleneck, groups torn apart and bounds above it are errors with both values."""
    with pytest.raises(error, match=said):
        look_at_partition(instance(), of_stages(*stages), bottleneck, "x", **more)


def test_stages_above_the_memory() -> None:
    """A stage that needs more than the limit on its memory is a contradiction, not an infeasible model."""
    graph = random_graph(3, 6, time_unit="us")
    made = Instance.build(graph, Machine.uniform(2, LINK))
    whole = Partition(np.zeros(6, dtype=np.int32), 2)
    need = int(made.param_bytes.sum())
    tight = Instance.build(graph, Machine.uniform(2, LINK.overriding(memory_bytes=need - 1)))
    with pytest.raises(InconsistentResult, match=f"needs {need} bytes, and the limit is {need - 1}"):
        look_at_partition(tight, whole, int(made.work.sum()), "x")


def _lying(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a partitioner say one tick less than its partition costs."""
    load = PARTITIONERS["random"].load

    def lying() -> Any:
        def search(instance: Instance, limits: SearchLimits) -> SearchResult:
            found = load()(instance, limits)
            return replace(found, bottleneck=found.bottleneck - 1)

        return search

    monkeypatch.setattr(PartitionerEntry, "load", lambda self: lying())


def test_every_way_to_a_partition_gets_a_last_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """A partitioner that lies by a tick is found out in plans, cells of certificates and comparisons."""
    _lying(monkeypatch)
    made = instance()
    with pytest.raises(InconsistentResult, match="costs 61000000000"):
        solve(made, GRAPH, SearchLimits(10), algorithm="random")
    with pytest.raises(InconsistentResult, match="costs 61000000000"):
        cell_work.certify(made, CellLimits(None, bounds=("simple",), algorithm="random"))
    with pytest.raises(InconsistentResult, match="costs 61000000000"):
        run_cell(Aim(made), "chain", parse_variant("random-10", "algorithms"), RunLimits())
