"""Stage graphs as files: read exactly, and refused with the place and the fault."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import numpy as np
import pytest

from mtpp.errors import InputError
from mtpp.formats.io.json_text import parse_json
from mtpp.formats.training.stage_graph import stage_graph_from_document
from mtpp.training.stage_graph import PipelineStage, StageGraph, StageTransfer, interleaved_order

GOOD = {
    "format": "mtpp-stage-graph",
    "version": 1,
    "name": "two",
    "time_unit": "ns",
    "mini_batch": 4,
    "stages": [
        {"name": "a", "micro_batch": 1, "forward": 1.5, "backward": 2, "in_flight": 2, "k": 1, "synchronisation": 3},
        {"micro_batch": 2, "forward": 0.0001, "backward": 0, "order": "F1 B1 F2 B2"},
    ],
    "transfers": [{"source": 0, "target": 1, "forward": 1, "backward": 0.5}],
}


def read(document: Any) -> StageGraph:
    """Return the stage graph of a document, as of a file."""
    return stage_graph_from_document(parse_json(json.dumps(document).encode(), "x.json"), "x.json", "x")


def test_a_stage_graph_is_read() -> None:
    """Times are rounded up to picoseconds, names and orders made where they are not there."""
    graph = read(GOOD)
    first, second = graph.stages
    assert (graph.name, graph.mini_batch, graph.depth) == ("two", 4, 2)
    assert (first.name, second.name) == ("a", "stage 1")
    assert (first.forward_ticks, first.backward_ticks, first.synchronisation_ticks) == (1500, 2000, 3000)
    assert (second.forward_ticks, second.backward_ticks, second.synchronisation_ticks) == (1, 0, 0)
    assert first.order.tolist() == [1, 2, -1, 3, -2, 4, -3, -4]
    assert second.order.tolist() == [1, -1, 2, -2]
    assert (graph.transfers[0].forward_ticks, graph.transfers[0].backward_ticks) == (1000, 500)
    assert read({key: value for key, value in GOOD.items() if key != "name"}).name == "x"


BROKEN: list[tuple[tuple[Any, ...], Any, str, str]] = [
    (("version",), 2, "/version", "version"),
    (("time_unit",), "1", "/time_unit", "ps, ns, us, ms, s"),
    (("mini_batch",), 0, "/mini_batch", "at least 1"),
    (("mini_batch",), 4.5, "/mini_batch", "whole number"),
    (("mini_batch",), 5, "/stages/1/micro_batch", "do not divide"),
    (("stages",), [], "/stages", "no stages"),
    (("stages", 0, "micro_batch"), 3, "/stages/0/micro_batch", "do not divide the mini-batch of 4"),
    (("stages", 0, "micro_batch"), -1, "/stages/0/micro_batch", "at least 1"),
    (("stages", 0, "forward"), None, "/stages/0/forward", "must be a number, not null"),
    (("stages", 0, "backward"), -1, "/stages/0/backward", "negative"),
    (("stages", 0, "backward"), 10**19, "/stages/0/backward", "2^62"),
    (("stages", 0, "backward"), 4 * 10**15, "/stages", "2^62"),
    (("stages", 0, "in_flight"), 0, "/stages/0/in_flight", "at least 1"),
    (("stages", 0, "k"), 0, "/stages/0/k", "at least 1"),
    (("stages", 0, "order"), "F1", "/stages/0/in_flight", "in_flight and order are both given"),
    (("stages", 0, "depth"), 1, "/stages/0", "unknown key 'depth'"),
    (("stages", 1, "order"), "F1 B1 F2 B1", "/stages/1/order", "B1 is there twice"),
    (("stages", 1, "order"), "F1 B1 F2", "/stages/1/order", "B2 is missing"),
    (("stages", 1, "order"), ["F1"], "/stages/1/order", "must be a string"),
    (("transfers", 0, "source"), 2, "/transfers/0/source", "no stage 2"),
    (("transfers", 0, "target"), -1, "/transfers/0/target", "no stage -1"),
    (("transfers", 0, "target"), 0, "/transfers/0", "to itself"),
    (("transfers", 0, "backward"), -1, "/transfers/0/backward", "negative"),
]


@pytest.mark.parametrize(("place", "value", "where", "said"), BROKEN)
def test_broken_stage_graphs(place: tuple[Any, ...], value: Any, where: str, said: str) -> None:
    """The message names the file, the place and the fault."""
    document = deepcopy(GOOD)
    owner: Any = document
    for key in place[:-1]:
        owner = owner[key]
    owner[place[-1]] = value
    with pytest.raises(InputError) as caught:
        read(document)
    assert (caught.value.source, caught.value.where) == ("x.json", where)
    assert said in str(caught.value)


def test_missing_orders_duplicates_and_cycles() -> None:
    """What one changed value does not show."""
    document = deepcopy(GOOD)
    del document["stages"][0]["in_flight"]  # type: ignore[index]
    del document["stages"][0]["k"]  # type: ignore[index]
    with pytest.raises(InputError, match="neither in_flight nor order"):
        read(document)
    link = GOOD["transfers"][0]  # type: ignore[index]
    with pytest.raises(InputError, match="duplicate transfer from stage 0 to stage 1, first at /transfers/0"):
        read({**GOOD, "transfers": [link, link]})
    with pytest.raises(InputError, match=r"/transfers/0: the stages make a cycle: a -> stage 1 -> a"):
        read({**GOOD, "transfers": [link, {**link, "source": 1, "target": 0}]})
    with pytest.raises(InputError, match="more than 4,000,000 passes"):
        read({**GOOD, "mini_batch": 4 * 10**9})


def test_orders_in_memory_are_checked() -> None:
    """A stage graph that was never in a file has whole orders, of int32, too; messages are counted as well."""
    for order in ([1, 1, -1, -1], [1, 3, -1, -3], [1, 2, -1, 0]):
        stage = PipelineStage("a", 1, 1, 1, 0, np.array(order, dtype=np.int32))
        with pytest.raises(InputError, match="/stages/0/order: is no order of passes"):
            StageGraph("x", "ps", 2, [stage], [])
    stage = PipelineStage("a", 1, 1, 1, 0, np.array([1, -1], dtype=np.int64))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="int32"):
        StageGraph("x", "ps", 1, [stage], [])
    with pytest.raises(InputError, match="/mini_batch"):
        StageGraph("x", "ps", 2**70, [], [])
    many = [PipelineStage(str(s), 1, 1, 1, 0, interleaved_order(20_000, 100)) for s in range(32)]
    ends = [StageTransfer(a, b, 0, 0) for a in range(32) for b in range(a + 1, 32)]
    with pytest.raises(InputError, match="/transfers: all transfers together move more than 10,000,000"):
        StageGraph("x", "ps", 20_000, many, ends)
