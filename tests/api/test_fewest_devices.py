"""The proof in a plan that no fewer devices keep to a bottleneck: verified from the document alone, and forged."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from graph_strategies import random_graph
from machine_models import model_of
from oracles import brute_force_optimum
from random_devices import NEVER, random_case

import mtpp
from mtpp.errors import Infeasible
from mtpp.machine.presets import load_device

ROW = "fewest devices"


def row_of(document: dict[str, Any]) -> Any:
    """Return what the verifier says of the claim."""
    row = ROW if "machine" in document else "fewest stages"
    return next(one for one in mtpp.verify(document).rows if one.claim == row)


def numbers_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where numbers and texts stand."""
    if isinstance(value, dict | list):
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from numbers_in(one, (*path, key))
    elif isinstance(value, int | str):
        yield path


@pytest.mark.parametrize("seed", range(12))
def test_the_fewest_stages_of_equal_devices(seed: int) -> None:
    """As brute force says, with a proof in the document; that of a smaller limit is false."""
    graph, chance = random_graph(seed, 6, time_unit="us", fractional=seed % 2 == 0), Random(seed)
    optima = {k: brute_force_optimum(graph, load_device(), k) for k in range(1, 7)}
    limit = optima[chance.randint(2, 6)] + chance.randint(0, 10**6)
    document = mtpp.partition(graph, max_bottleneck=f"{limit}ps").document(embed=True)
    assert document["k"] == min(k for k in optima if optima[k] <= limit)
    assert row_of(document).verdict == "ok"
    assert mtpp.verify(document).passed
    forged = copy.deepcopy(document)
    forged["fewest_devices"]["max_bottleneck"] = document["bottleneck"] - 1
    assert row_of(forged).verdict == "false"
    if document["k"] > 1:
        forged = copy.deepcopy(document)
        forged["fewest_devices"]["lower_bound"]["value"] = optima[document["k"] - 1] + 1
        assert row_of(forged).verdict == "false"


@pytest.mark.filterwarnings("ignore:device d. can hold no op")
@pytest.mark.parametrize("seed", range(200))
def test_the_document_holds_the_proof(seed: int) -> None:
    """Whoever has the document checks it; the claim for one device fewer, or for a smaller limit, is false."""
    chance, case = Random(seed), random_case(seed)
    free, count = chance.random() < 0.5, len(case.devices)
    limit = case.optimum(chance.randint(1, count), free=free)
    try:
        document = mtpp.partition(model_of(case, free=free), max_bottleneck=f"{limit}ps").document(embed=True)
    except Infeasible:
        assert limit == NEVER  # no plan keeps to the memories
        return
    most = min(limit, NEVER - 1)  # of plans that there are
    due = next(used for used in range(1, count + 1) if case.optimum(used, free=free) <= most)
    assert document["k"] == due
    assert document["bottleneck"] <= document["fewest_devices"]["max_bottleneck"] <= limit
    assert row_of(document).verdict == "ok"
    if document["bottleneck"]:
        forged = copy.deepcopy(document)
        forged["fewest_devices"]["max_bottleneck"] = document["bottleneck"] - 1
        assert row_of(forged).verdict == "false"
    if due < count:  # the plan of more devices than it takes
        forged = copy.deepcopy(document)
        forged["k"] = due + 1
        assert row_of(forged).verdict == "false"
    if due > 1:
        forged = copy.deepcopy(document)
        del forged["fewest_devices"]["lower_bound"]
        assert row_of(forged).verdict == "false"
        forged = copy.deepcopy(document)
        optimum = case.optimum(due - 1, free=free)
        forged["fewest_devices"]["lower_bound"]["value"] = optimum + 1
        assert row_of(forged).verdict == "false"


@pytest.mark.filterwarnings("ignore:device d. can hold no op")
def test_proofs_by_search_are_run_again() -> None:
    """Each number that is changed makes it false, or leaves it true of the plan; a shallow look leaves it unchecked."""
    searched = 0
    for seed in range(400):
        case = random_case(seed)
        count = len(case.devices)
        limit = case.optimum(count, free=False)
        if count < 2 or limit > 10**9:
            continue
        document = mtpp.partition(model_of(case, free=False), max_bottleneck=f"{limit}ps").document(embed=True)
        bound = document["fewest_devices"].get("lower_bound", {"method": ""})
        if bound["method"] != "downset":
            continue
        searched += 1
        assert mtpp.verify(document).passed
        shallow = next(row for row in mtpp.verify(document, shallow=True).rows if row.claim == ROW)
        assert shallow.verdict == "unchecked"
        for path in numbers_in(bound):
            forged = copy.deepcopy(document)
            inside = forged["fewest_devices"]["lower_bound"]
            for key in path[:-1]:
                inside = inside[key]
            old = inside[path[-1]]
            inside[path[-1]] = old + 1 if isinstance(old, int) else f"{'0' if old[:1] != '0' else '1'}{old[1:]}"
            try:
                verdict = row_of(forged).verdict
            except mtpp.InputError:
                continue
            assert verdict == "false", (seed, path, json.dumps(bound))
        if searched == 6:
            return
    raise AssertionError("too few proofs by search")


def test_states_rule_out_one_device(tmp_path: Path) -> None:
    """They count whole beside a fast memory: one device holds the weights in the time, and the states nowhere."""
    ops = [{"name": "a", "work": 13, "param_bytes": 3}, {"name": "b", "work": 25, "param_bytes": 3}]
    states = [
        {"name": f"s{op}", "input": f"s{op}", "output": f"s{op}", "bytes": 10, "readers": [op]} for op in ("a", "b")
    ]
    tensors = [{"name": "t", "producer": "a", "consumers": ["b"], "transfer": 20, "bytes": 1}]
    head = {"format": "mtpp-graph", "version": 1, "name": "g", "time_unit": "ps"}
    (tmp_path / "machine.toml").write_text(
        '[[device]]\nname = "d"\ncount = 3\nmemory = "16B"\nsystem = {fast_memory = "10B", bandwidth = "1GB/s"}\n'
    )
    graph = {**head, "ops": ops, "tensors": tensors, "states": states}
    model = mtpp.read(graph, machine=tmp_path / "machine.toml")
    document = mtpp.partition(model, max_bottleneck="50ps").document(embed=True)
    assert document["k"] == 2
    assert document["fewest_devices"]["lower_bound"]["proof"]["rules"] == ["crossings", "fit", "whole"]
    assert row_of(document).verdict == "ok"
    assert mtpp.verify(document).passed
