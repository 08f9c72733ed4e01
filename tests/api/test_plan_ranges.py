"""Plans for several numbers of stages: each the optimum, and the claims that compare them checked and forged."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from graph_strategies import chain, random_graph
from oracles import brute_force_optimum
from refusals import refusal

import mtpp
from mtpp.api.partitioning.plan_range import PlanRange
from mtpp.errors import InputError
from mtpp.formats.results.plan_range import RangePoint, gains, knee
from mtpp.machine.machine import DeviceGroup, Level, Machine
from mtpp.machine.presets import load_device

COUNTS = range(1, 6)

_GROUPS = (DeviceGroup(load_device(), 2, "a"), DeviceGroup(replace(load_device(), speed=Fraction(3, 2)), 1, "b"))
UNEQUAL = Machine(_GROUPS, (Level(3, load_device().link),), "three", "free")


def knee_by_hand(rates: dict[int, Fraction]) -> int | None:
    """Return the last number of stages that a step of a tenth per device leads to, looked for from the front."""
    counts = sorted(rates)
    for i, k in enumerate(counts[:-1]):
        later = zip(counts[i:], counts[i + 1 :], strict=False)
        if all((rates[b] - rates[a]) / (b - a) < rates[a] / 10 for a, b in later):
            return k
    return None


@pytest.mark.parametrize("seed", range(12))
def test_every_plan_is_the_optimum_and_the_knee_follows(seed: int) -> None:
    """As brute force says, never worse with more stages; the verifier agrees with the graph at hand."""
    graph = random_graph(seed, 6, time_unit="us")
    found = mtpp.partition(graph, COUNTS)
    optima = {k: brute_force_optimum(graph, load_device(), k) for k in COUNTS}
    assert {row.k: row.bottleneck for row in found.rows} == optima
    assert all(row.optimal for row in found.rows)
    assert found.knee == knee_by_hand({k: Fraction(1, ticks) for k, ticks in optima.items()})
    assert mtpp.verify(found, graph).passed


def test_figures_of_a_row(chain_file: Path) -> None:
    """Throughput in a second, and what each further device gains of it over the plan before."""
    found = mtpp.partition(chain_file, [1, 2, 4])
    one, two, four = found.rows
    assert (one.gain_per_device, one.throughput_per_s) == (None, 1 / one.bottleneck_s)
    assert two.gain_per_device == float(Fraction(one.bottleneck, two.bottleneck) - 1)
    assert four.gain_per_device == float((Fraction(two.bottleneck, four.bottleneck) - 1) / 2)
    assert [plan.k for plan in found] == [1, 2, 4]
    assert found.plan(4).bottleneck == four.bottleneck
    with pytest.raises(InputError, match="there is no plan for 3"):
        found.plan(3)


def test_a_range_is_read_back(chain_file: Path, tmp_path: Path) -> None:
    """The same document; it is claimed until it is verified, and verified with or without its graphs."""
    found = mtpp.partition(chain_file, range(1, 4))
    assert isinstance(found, PlanRange)
    found.save(tmp_path / "range.json")
    loaded = mtpp.load(tmp_path / "range.json")
    assert isinstance(loaded, PlanRange)
    assert (found.verified, loaded.verified) == (True, False)
    assert loaded.document() == found.document()
    assert "claimed, not verified" in repr(loaded)
    assert mtpp.verify(tmp_path / "range.json", chain_file).passed
    found.save(tmp_path / "whole.json", embed=True)
    assert mtpp.verify(tmp_path / "whole.json").passed
    assert "<table>" in found._repr_html_()


def _forged(document: dict[str, Any], *path: Any, to: Any) -> dict[str, Any]:
    forged = copy.deepcopy(document)
    target = forged
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = to
    return forged


def test_forged_claims_are_false_and_refused(chain_file: Path) -> None:
    """A knee, a gain or a throughput that the plans do not come to, and a plan of another model."""
    document = json.loads(mtpp.partition(chain_file, range(1, 4)).to_json())
    for path, to, row in (
        (("knee",), 1 if document["knee"] != 1 else 2, "knee"),
        (("rows", 1, "gain_per_device"), 0.5, "throughput and gain"),
        (("rows", 2, "throughput_per_s"), None, "throughput and gain"),
        (("plans", 1, "model", "name"), "another", "one model"),
    ):
        forged = _forged(document, *path, to=to)
        false = [one.claim for one in mtpp.verify(forged, chain_file).rows if one.verdict == "false"]
        assert row in false
    with pytest.raises(InputError) as caught:
        mtpp.load(_forged(document, "knee", to=3))
    assert caught.value.where == "/knee"
    for path, to, where in (
        (("plans",), [], "/plans"),
        (("plans",), document["plans"][::-1], "/plans/1/k"),
        (("rows",), document["rows"][:2], "/rows"),
        (("missing",), [{"k": 2, "why": "x"}], "/missing/0/k"),
        (("plans", 1, "k"), 0, "/plans/1/k"),
    ):
        with pytest.raises(InputError) as caught:
            mtpp.verify(_forged(document, *path, to=to), chain_file)
        assert caught.value.where == where


def test_plans_of_other_sizes_are_no_range(chain_file: Path) -> None:
    """Their throughputs cannot be compared: a gain would be one of the sizes."""
    document = mtpp.partition(chain_file, range(1, 4)).document(embed=True)
    for plan in document["plans"]:
        del plan["model"]["path"]
    assert mtpp.verify(document).passed
    for key, to in (("dims", {"batch": 2}), ("keep_state", {"a": "b"})):
        checked = mtpp.verify(_forged(document, "plans", 1, "model", key, to=to))
        assert [one.claim for one in checked.rows if one.verdict == "false"] == ["one model"]


def test_figures_outside_of_their_place_are_refused(chain_file: Path) -> None:
    """A throughput in the part on the system would be one that no check looks at."""
    document = mtpp.partition(chain_file, 2).document(embed=True)
    for key in ("throughput_per_s", "speed_up", "crossing"):
        with pytest.raises(InputError) as caught:
            mtpp.verify(_forged(document, "system", key, to=document[key]))
        assert caught.value.where == f"/system/{key}"


def test_numbers_of_stages_without_a_plan_are_named() -> None:
    """One stage exceeds the memory: the document says so, and claims nothing of it."""
    graph = {
        "format": "mtpp-graph", "version": 1, "name": "pair", "time_unit": "ms",
        "ops": [{"name": "a", "work": 1, "param_bytes": 60}, {"name": "b", "work": 2, "param_bytes": 60}],
        "tensors": [{"name": "t", "producer": "a", "consumers": ["b"], "transfer": 1}],
    }  # fmt: skip
    model = mtpp.read(graph, stage_memory="100B")
    found = mtpp.partition(model, [1, 2])
    assert list(found.missing) == [1]
    assert [row.k for row in found.rows] == [2]
    assert found.knee is None
    checked = mtpp.verify(found, model)
    assert checked.passed
    assert [one.verdict for one in checked.rows if one.claim == "no plan"] == [None]
    with pytest.raises(mtpp.errors.Infeasible):
        mtpp.partition(model, [1])


def test_more_stages_than_devices_are_refused_before_the_work(chain_file: Path) -> None:
    """In one line that names the number."""
    model = mtpp.read(chain_file, machine=Machine.uniform(2, load_device()))
    assert refusal(mtpp.partition, model, [1, 3]).parameter == "k"


def test_gains_of_points_without_a_bottleneck() -> None:
    """A graph of no cost has no throughput, no gain and no knee."""
    points = [RangePoint(k, 0, 0, None, timed=True) for k in (1, 2)]
    assert gains(points) == [None, None]
    assert knee(points) is None
    assert knee(points[:1]) is None


def test_the_bound_of_a_stage_settles_the_rest() -> None:
    """Beyond the number where one stage is the bottleneck, plans are the same with more empty stages."""
    graph = chain([1, 9, 1], [20, 20], "ms")
    found = mtpp.partition(graph, range(1, 6))
    assert len({row.bottleneck for row in found.rows[1:]}) == 1
    assert all(plan.optimal for plan in found)
    assert mtpp.verify(found, graph).passed


@pytest.mark.parametrize("on_machine", [False, True])
def test_a_bound_for_more_stages_holds_for_fewer(on_machine: bool) -> None:
    """It is checked for the number of stages that its proof says, which is none below the plan's."""
    graph = random_graph(3, 6, time_unit="us")
    model = mtpp.read(graph, machine=UNEQUAL) if on_machine else graph
    more, plan = (mtpp.partition(model, k).document(embed=True) for k in (3, 2))
    bound = {**more["lower_bound"], "proof": {"of_stages": 3, **more["lower_bound"]["proof"]}}
    ratio = plan["bottleneck"] / bound["value"]
    plan |= {"lower_bound": bound, "ratio": ratio, "optimal": ratio == 1, "stopped": "budget"}
    assert ratio > 1
    assert mtpp.verify(plan).passed
    for stages in (1, 2, 4):
        bound["proof"]["of_stages"] = stages
        assert "lower bound" in [row.claim for row in mtpp.verify(plan).rows if row.verdict == "false"]
    bound["proof"]["of_stages"] = "3"
    assert refusal(mtpp.verify, plan).where == "/lower_bound/proof/of_stages"


def test_a_plan_of_a_range_is_scored(chain_file: Path, tmp_path: Path) -> None:
    """By its number of stages, from the file, the document or the result; without one it is refused."""
    found = mtpp.partition(chain_file, range(1, 4))
    found.save(tmp_path / "range.json")
    for given in (tmp_path / "range.json", found.document(), found):
        scored = mtpp.evaluate(chain_file, given, k=2)
        assert (scored.k, scored.bottleneck) == (2, found.plan(2).bottleneck)
        assert "1, 2, 3" in refusal(mtpp.evaluate, chain_file, given).problem
        assert "1, 2, 3" in str(refusal(mtpp.evaluate, chain_file, given, k=4).remedy)
    assert refusal(mtpp.split, chain_file, tmp_path / "range.json", tmp_path / "out").where == "/plans"
