"""Pages about bounds: one for each, whose figures are those of the bound and of brute force."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import oracles
import pytest
from graph_plan_oracles import best_iteration
from looped_oracles import every_split, family_rows, needed_bytes, replayed, warm_ups
from planning import plan_with
from processes import ROOT
from training_oracles import best_time

import mtpp
from docs.drawing.example import Example
from docs.drawing.pictures import PICTURES
from docs.drawing.training.example import CHAIN, LAYERS, MEMORY_BYTES, split_plan
from mtpp.formats.graphs.native import read_native
from mtpp.formats.training.models import read_training_model
from mtpp.machine.machine import Machine
from mtpp.machine.presets import load_device
from mtpp.solvers.bounds.registry import BOUNDS
from mtpp.solvers.planners.bounds.work import work_bound
from mtpp.solvers.planners.graphpipe.bound import iteration_bound
from mtpp.solvers.planners.pfeife.least_memory import memory_bound
from mtpp.training.graph_problem import GraphProblem, GraphRules
from mtpp.training.pfeife.line import graph_line
from mtpp.training.pfeife.problem import SplitProblem
from mtpp.training.problem import PlanningProblem, Schemes

FOLDER = ROOT / "docs" / "bounds"
PAGES = sorted(FOLDER.glob("*.md"))
TRAINING = ("training-work", "layer-downsets", "chains", "exhaustive", "paths", "loads", "shares")
_TABLE = re.compile(r"^\| ([^|]+) \| (?:ticks|ms|MB) \|\n\|---\|---:\|\n((?:\| [^|]+ \| [^|]+ \|\n)+)", re.MULTILINE)
MS = 10**9


def _table(page: Path) -> tuple[str, dict[str, Fraction]]:
    """Return the title of a page's table of figures, and the figures by name."""
    (found,) = _TABLE.findall(page.read_text(encoding="utf-8"))
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", found[1], re.MULTILINE)
    return found[0], {name.strip("`"): Fraction(value) for name, value in rows}


def _example(title: str) -> Example:
    name, k = re.fullmatch(r"(.+), k = (\d+)", title).groups()  # type: ignore[union-attr]
    return Example(name.replace(" ", "-"), int(k))


def _graph_pages() -> list[Path]:
    return [page for page in PAGES if page.stem in BOUNDS]


def _blocks(page: Path) -> Iterator[Any]:
    for block in re.findall(r"^```json\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
        yield json.loads(block)


def _within(part: Any, whole: Any) -> bool:
    """Tell whether a block shows what a proof has: some of its keys, and lists up to ``"…"``."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(key in whole and _within(part[key], whole[key]) for key in part)
    if isinstance(part, list) and part and part[-1] == "…":
        return len(whole) >= len(part) - 1 and all(map(_within, part[:-1], whole))
    if isinstance(part, list):
        return isinstance(whole, list) and len(part) == len(whole) and all(map(_within, part, whole))
    return bool(part == whole)


def test_every_bound_has_a_page_with_a_drawing() -> None:
    """One of each name in the registry, one of each bound on plans, one of merges; each shows its drawing."""
    assert {page.stem for page in PAGES} == {*BOUNDS, *TRAINING, "merges"}
    for page in PAGES:
        assert f"]({page.stem}.svg)" in page.read_text(encoding="utf-8")
        assert page.stem in PICTURES


@pytest.mark.parametrize("name", PICTURES)
def test_drawings_are_those_of_the_proofs(name: str) -> None:
    """Drawn anew, every picture is what the repository has (python -m docs.drawing writes it)."""
    assert PICTURES[name]() == (FOLDER / f"{name}.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", _graph_pages(), ids=[page.stem for page in _graph_pages()])
def test_figures_of_bounds_on_partitions(page: Path) -> None:
    """The optimum in a page's table is that of brute force, and bounds are what the command proves, none above it."""
    title, figures = _table(page)
    example = _example(title)
    graph = read_native(example.path.read_bytes(), str(example.path))
    optimum = oracles.brute_force_optimum(graph, load_device("reference"), example.k)
    assert figures.pop("OPT") == optimum
    rows = mtpp.bound(str(example.path), example.k, bounds=list(figures))
    assert {row.bound: row.ticks for row in rows if row.bound in figures} == figures
    assert page.stem in figures
    assert max(figures.values()) <= optimum


@pytest.mark.parametrize("page", _graph_pages(), ids=[page.stem for page in _graph_pages()])
def test_certificates_are_those_of_the_bounds(page: Path) -> None:
    """What a page shows of a certificate is in the one that the command writes."""
    proof = _example(_table(page)[0]).bound(page.stem)["lower_proof"]
    for block in _blocks(page):
        assert _within(block, proof)


def test_the_merge_of_the_page_is_made() -> None:
    """The proof of the node bound lists it."""
    (block,) = _blocks(FOLDER / "merges.md")
    assert _within(block, Example("merge", 3).bound("node")["lower_proof"])


def _layers_problem() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the model of four layers, and what is asked, as the oracle of stage graphs takes both.

    Micro-batches have one sample, so that no stage has replicas.
    """
    model = json.loads(LAYERS.read_text())
    model["micro_batch_size"] = 1
    for layer in model["layers"]:
        (one,) = layer["configurations"]["1"]
        kept = one["memory_bytes_per_micro_batch"]
        passes = {"forward": one["time"] * MS // 3, "backward": 2 * one["time"] * MS // 3, "memory_bytes": kept}
        one["micro_batches"] = {"1": passes}
    asked = {"devices": 2, "memory_bytes": MEMORY_BYTES, "bandwidth": 4 * 10**9, "mini_batch": 4, "sizes": [1]}
    return model, asked


def _plan_bound(planner: str, **asked: Any) -> Any:
    plan = plan_with(
        str(LAYERS), planner=planner, devices=2, memory=MEMORY_BYTES, bandwidth="4GB/s", data_parallel=False, **asked
    )
    return plan.document()["lower_bound"]


def test_figures_of_layers_in_a_line() -> None:
    """The best time per sample of all pipelines, by brute force, is the bound; the work of all layers is below."""
    _, figures = _table(FOLDER / "layer-downsets.md")
    model, _ = read_training_model(str(LAYERS), None)
    problem = PlanningProblem(
        model,
        machine=Machine.of_devices(2, memory_bytes=MEMORY_BYTES, bandwidth_bytes_per_s=4 * 10**9),
        micro_batches=4,
        schemes=Schemes(data_parallel=False),
    )
    best = best_time(problem)
    assert best == figures["best plan"] * MS
    found = _plan_bound("piper", max_micro_batches=4)
    assert found["method"] == "downset"
    assert Fraction(*found["value"]) == figures["downset"] * MS == best
    (block,) = _blocks(FOLDER / "layer-downsets.md")
    assert _within(block, found["proof"])
    _, work = _table(FOLDER / "training-work.md")
    single = work_bound(problem)
    assert single is not None
    assert single.value == work["work"] * MS
    assert work["best plan"] == figures["best plan"]
    assert work["work"] == figures["work"]


def test_figures_of_stage_graphs() -> None:
    """The shortest iteration of all stage graphs, by brute force, and the bound of chains below it."""
    _, figures = _table(FOLDER / "exhaustive.md")
    best = best_iteration(*_layers_problem())
    assert best == figures["best plan"] * MS
    asked = {"batch_size": 4, "micro_batch_size": 1, "micro_batch_sizes": [1]}
    found = _plan_bound("graphpipe", **asked)
    assert (found["method"], found["value"]) == ("exhaustive", figures["exhaustive"] * MS)
    model, _ = read_training_model(str(LAYERS), None)
    problem = GraphProblem.build(
        model,
        machine=Machine.of_devices(2, memory_bytes=MEMORY_BYTES, bandwidth_bytes_per_s=4 * 10**9),
        mini_batch=4,
        micro_batch_size=1,
        rules=GraphRules(micro_batch_sizes=[1], data_parallel=False),
    )
    lower = iteration_bound(problem, 10**15)
    assert (lower.method, lower.value) == ("chains", figures["chains"] * MS)
    _, chains = _table(FOLDER / "chains.md")
    assert chains["chains"] == figures["chains"]
    assert chains["best plan"] == figures["best plan"]
    assert chains["work"] * MS == sum(4 * 10**9 * layer for layer in (6, 9, 3, 12)) // 2


def _best_of_all_splits(micro_batches: int) -> int:
    """Return the shortest iteration of the chain over all splits and schedules, replayed pass by pass."""
    work = [2, 3, 1, 2]
    best = None
    for loops in (1, 2):
        for loop_batch in range(1, micro_batches + 1):
            if micro_batches % loop_batch:
                continue
            for warm_up in _all_warm_ups(loops * micro_batches):
                rows = family_rows(2, micro_batches, loops, loop_batch, warm_up)
                for split in every_split(4, 2 * loops):
                    forward = [sum(work[a:b]) * MS for a, b in pairwise(split)]
                    handover = [MS // 2] * (len(forward) - 1)
                    time = replayed(rows, forward, [2 * f for f in forward], handover)
                    if time is not None and (best is None or time < best):
                        best = time
    assert best is not None
    return best


def _all_warm_ups(most: int) -> list[tuple[int, int]]:
    return [(a, b) for a in range(1, most + 1) for b in range(1, a + 1)]


def test_figures_of_schedules() -> None:
    """No split under any schedule is below the best plan, and the bounds are below that."""
    _, figures = _table(FOLDER / "paths.md")
    assert _best_of_all_splits(2) == figures["best plan"] * MS
    plan = split_plan()
    assert plan["iteration_ticks"] == figures["best plan"] * MS
    assert plan["lower_bound"]["value"] == plan["family_bound"]["value"] == figures["paths"] * MS
    (block,) = _blocks(FOLDER / "paths.md")
    assert _within(block, plan["lower_bound"]["proof"])
    assert figures["loads"] == (2 + 3 + 1 + 2) * 3
    _, loads = _table(FOLDER / "loads.md")
    direct = split_plan(3, "direct")
    assert direct["iteration_ticks"] == loads["best plan"] * MS
    assert (direct["lower_bound"]["method"], direct["lower_bound"]["value"]) == ("loads", loads["loads"] * MS)


def test_figures_of_memory() -> None:
    """The bound on memory, and the least that any split of the chain needs, gone through one by one."""
    _, figures = _table(FOLDER / "shares.md")
    model = mtpp.read(str(CHAIN))
    line = graph_line(model.graph, model.instance(2), backward_ratio=2, state=4)
    problem = SplitProblem.build(line, machine=Machine.of_devices(2, bandwidth_bytes_per_s=25 * 10**9), micro_batches=2)
    assert memory_bound(problem) == figures["shares"] * 10**6
    needs = [
        max(needed_bytes(problem, family_rows(2, 2, 1, 2, warm_up), split))
        for split in every_split(4, 2)
        for warm_up in warm_ups((2, 1), 2)  # the first pass of each device before the one behind it
    ]
    assert min(needs) == figures["least memory found"] * 10**6
