"""Plans whose stages stand on several devices: reference values, proven and verified; forged plans."""

from __future__ import annotations

import copy
import json
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest
from device_cells import FORK
from seeds import sampled
from tampering import Path as Place
from tampering import altered, leaves

import mtpp
from mtpp.errors import Infeasible, InputError, MtppError

EQUAL = [
    (name, f"memory {share} k {k}")
    for name in ("resnet50_p", "efficientnet_p")
    for share in ("None", "0.5", "0.25")
    for k in (4, 8, 16)
]

MIXED: dict[str, list[tuple[int, str, str, str]]] = {
    "4x(1)+4x(2.5), memory 1/4": [(4, "1", "1", "1/4"), (4, "5/2", "4", "1/4")],
    "6+2, memory .3/.6": [(6, "1", "1", ".3"), (2, "3", "2", ".6")],
    "4+3+1, memory .4/.3/.6": [(4, "1", "1", ".4"), (3, "5/2", "4", ".3"), (1, "1/2", "1", ".6")],
}
"""Of each group of devices: how many, speed, link speed, memory as a share of all parameters."""


def model_path(name: str, shared_data: Path) -> Path:
    """Return the file of a model of the reference values."""
    if name == "resnet50_p":
        return Path(mtpp.datasets.sample_path("resnet50"))
    return shared_data / "onnx" / "efficientnet.onnx"


@pytest.mark.parametrize(("name", "cell"), EQUAL)
def test_reference_values_of_equal_devices(name: str, cell: str, shared_data: Path, shared_reference: Path) -> None:
    """Exactly the least bottleneck with replicas, proven; and the proof holds when it is searched again."""
    rows = json.loads((shared_reference / "machine.json").read_text())["replicas_equal"][name]["results"]
    _, share, _, k = cell.split()
    path = model_path(name, shared_data)
    limits: dict[str, Any] = {}
    if share != "None":
        limits["stage_memory"] = int(Fraction(share) * mtpp.read(path, dims="auto").graph.all_bytes)
    model = mtpp.read(path, dims="auto", **limits)
    if rows[cell][1] is None:
        with pytest.raises(Infeasible, match="proven infeasible"):
            mtpp.partition(model, int(k), replicas=True)
        return
    plan = mtpp.partition(model, int(k), replicas=True)
    assert plan.bottleneck == rows[cell][1]
    assert plan.optimal
    assert mtpp.verify(plan, path).passed


@pytest.mark.parametrize("cell", list(MIXED))
def test_reference_values_of_devices_that_differ(cell: str, shared_reference: Path, tmp_path: Path) -> None:
    """The same on three mixes of devices in free order."""
    due = json.loads((shared_reference / "machine.json").read_text())["replicas_mixed"]["resnet50_p"][cell]["mixed"]
    path = model_path("resnet50_p", tmp_path)
    params = mtpp.read(path, dims="auto").graph.all_bytes
    lines = ['order = "free"']
    for count, speed, link, share in MIXED[cell]:
        memory = int(Fraction(share) * params)
        lines += ["[[device]]", f"count = {count}", f'speed = "{speed}"', f'link_speed = "{link}"']
        lines += [f'memory = "{memory}B"']
    (tmp_path / "machine.toml").write_text("\n".join(lines))
    plan = mtpp.partition(mtpp.read(path, dims="auto", machine=tmp_path / "machine.toml"), replicas=True)
    assert plan.bottleneck == due
    assert plan.optimal
    assert mtpp.verify(plan, path).passed


MACHINES = {
    "free": """
order = "free"
[[device]]
name = "slow"
count = 3
memory = "60B"
[[device]]
name = "fast"
speed = 2
link_speed = "1/2"
memory = "50B"
""",
    "fixed": """
[[device]]
name = "first"
memory = "60B"
[[device]]
name = "fast"
speed = 3
memory = "40B"
[[device]]
name = "slow"
count = 2
memory = "60B"
""",
    "whole": """
[[device]]
name = "slow"
[[device]]
name = "fast"
speed = 2
""",
}


@pytest.fixture(params=[*MACHINES, "equal"])
def document(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """Return a proven plan of a small graph on several devices, which embeds it."""
    (tmp_path / "graph.json").write_text(json.dumps(FORK))
    if request.param == "equal":
        model, k = mtpp.read(tmp_path / "graph.json", stage_memory="60B"), 4
        plan = mtpp.partition(model, k, replicas=True)
    else:
        (tmp_path / "machine.toml").write_text(MACHINES[request.param])
        plan = mtpp.partition(mtpp.read(tmp_path / "graph.json", machine=tmp_path / "machine.toml"), replicas=True)
    document: dict[str, Any] = json.loads(json.dumps(plan.document(embed=True)))
    assert document["optimal"]
    assert document["replicas"] is True
    assert any(len(stage["devices"]) > 1 for stage in document["stages"])
    assert mtpp.verify(document).passed
    return document


def test_forged_proofs_are_refused(document: dict[str, Any]) -> None:
    """Another cutoff, order, k, price, rule, count or digest; a proof that does not say of what it is."""
    proof = document["lower_bound"]["proof"]
    changes: dict[str, Any] = {"order": "free" if proof["order"] == "fixed" else "fixed", "replicated": False}
    changes |= {key: proof[key] + 1 for key in ("cutoff", "k", "downsets", "labels") if key in proof}
    changes |= {"rules": ["fit", "maximal"], "digest": "0" * 64} if "digest" in proof else {}
    changes["prices"] = [price + 1 for price in proof["prices"]] + [1]
    for key, value in changes.items():
        wrong = copy.deepcopy(document)
        wrong["lower_bound"]["proof"][key] = value
        assert not mtpp.verify(wrong).passed, key
    wrong = copy.deepcopy(document)
    del wrong["lower_bound"]["proof"]["replicated"]
    assert not mtpp.verify(wrong).passed


def test_a_bound_above_the_optimum_is_refused(document: dict[str, Any]) -> None:
    """Stages that claim to cost more, and a bound that rises with them."""
    wrong = copy.deepcopy(document)
    for place in (wrong, wrong["lower_bound"]["proof"]):
        key = "bottleneck" if place is wrong else "cutoff"
        place[key] += 1
    wrong["lower_bound"]["value"] += 1
    slowest = max(wrong["stages"], key=lambda stage: stage["cost"])
    slowest["cost"] += 1
    assert not mtpp.verify(wrong).passed


CLAIMS = ("stages", "assignment", "bottleneck", "latency", "ratio", "optimal", "lower_bound", "k", "together")


def mutated(document: dict[str, Any], chance: Random) -> tuple[dict[str, Any], Place]:
    """Return a plan with one of its claims changed, and the place of that."""
    wrong = copy.deepcopy(document)
    if chance.random() < 0.3:
        stages = wrong["stages"]
        one, other = chance.choice(stages)["devices"], chance.choice(stages)["devices"]
        moved = one.pop(chance.randrange(len(one)))
        if chance.random() < 0.5:
            other.append({**moved, "cost": chance.choice([moved["cost"], other[0]["cost"] if other else 1])})
            other.sort(key=lambda device: device["index"])
        if wrong != document:
            return wrong, ("stages", "devices")
    found = [(path, value) for path, value in leaves(document) if path[0] in CLAIMS and "first" not in path]
    path, value = chance.choice(found)
    others: list[Any] = [0, 1, 2, None, True, "d1", "fast", 10**30]
    if isinstance(value, int | float) and not isinstance(value, bool):
        others += 3 * [value + 1, value - 1, 2 * value, value + chance.randrange(1, 50)]
    other = chance.choice([one for one in others if one != value])
    return altered(document, path, other), path


@pytest.mark.parametrize("seed", sampled(range(2_500), 40))
def test_mutations_are_never_verified(document: dict[str, Any], seed: int) -> None:
    """A plan with one claim changed at random is false, unchecked or refused; a proof may still be one."""
    wrong, place = mutated(document, Random(seed))
    try:
        found = mtpp.verify(wrong)
    except MtppError:
        return
    assert not found.passed or place[:2] == ("lower_bound", "proof"), place


@pytest.mark.parametrize(
    "given",
    [{"algorithm": "mla"}, {"objective": "latency"}, {"max_latency": "1ms"}, {"frontier": True}],
)
def test_refused_beside_replicas(given: dict[str, Any], tmp_path: Path) -> None:
    """Options that have no search with replicas are refused, by name."""
    (tmp_path / "graph.json").write_text(json.dumps(FORK))
    with pytest.raises(InputError, match="replicas"):
        mtpp.partition(tmp_path / "graph.json", 3, replicas=True, **given)


def test_other_commands_refuse_such_plans(document: dict[str, Any], tmp_path: Path) -> None:
    """A partition with stages on several devices is no assignment of a device to each stage."""
    (tmp_path / "graph.json").write_text(json.dumps(FORK))
    with pytest.raises(InputError, match="several devices"):
        mtpp.evaluate(tmp_path / "graph.json", document)
