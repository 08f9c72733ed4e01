"""Plans of chains on devices with times of stages in which latency counts: brute force, proofs, forged proofs."""

from __future__ import annotations

import copy
import json
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from random_chains import RandomChain, random_chain
from seeds import sampled

import mtpp
from mtpp.errors import Infeasible, MtppError
from mtpp.formats.graphs.native import to_document
from mtpp.names import DEVICE_ORDERS

SEEDS = sampled(range(2_600), 50)


def model_of(chain: RandomChain, order: str) -> mtpp.Model:
    """Return a chain as it is read from a file."""
    return mtpp.read(json.dumps(to_document(chain.graph())).encode(), machine=chain.machine(order))


def plan_of(chain: RandomChain, chance: Random) -> dict[str, Any] | None:
    """Return a plan for a random goal, which embeds its graph, after holding it to brute force; None: there is none."""
    order, most = chance.choice(DEVICE_ORDERS), chance.randint(1, len(chain.devices))
    points = chain.frontier(order, most)
    top, total = chance.choice(points) if points else (10, 10)
    top, total = max(0, top + chance.choice((-1, 0, 1))), max(0, total + chance.choice((-1, 0, 1)))
    asked, least = chance.choice(
        [
            ({"objective": "latency"}, [one for _, one in points]),
            ({"objective": "latency", "max_bottleneck": f"{top}ps"}, [one for ticks, one in points if ticks <= top]),
            ({"max_latency": f"{total}ps"}, [ticks for ticks, one in points if one <= total]),
            ({"frontier": True}, [ticks for ticks, _ in points]),
        ]
    )
    model = model_of(chain, order)
    if not least:
        with pytest.raises(Infeasible, match="proven"):
            mtpp.partition(model, most, **asked)  # type: ignore[arg-type]
        return None
    plan: dict[str, Any] = mtpp.partition(model, most, **asked).document(embed=True)  # type: ignore[arg-type]
    assert plan[plan["objective"]] == min(least)
    assert plan["optimal"]
    if "frontier" in asked:
        assert [(point["bottleneck"], point["latency"]) for point in plan["frontier"]] == points
        assert all(point["latency"] == point["lower_bound"]["value"] for point in plan["frontier"])
    return json.loads(json.dumps(plan))  # type: ignore[no-any-return]


def _forged(plan: dict[str, Any], chance: Random) -> dict[str, Any]:
    """Return a plan whose bound is too high by one, with a proof that goes along, or whose proof has a wrong term."""
    forged = copy.deepcopy(plan)
    bound = forged["lower_bound"]
    proof = bound["proof"]
    kind = chance.choice(("above", "cutoff", "k", "objective", "limit", "order"))
    if kind == "above" or "rule" not in proof:
        bound["value"] += 1
        proof["cutoff"] = bound["value"]
    elif kind in ("cutoff", "k"):
        proof[kind] += 1
    elif kind == "limit":
        proof["limit"] = plan["latency" if plan["objective"] == "bottleneck" else "bottleneck"] - 1
    else:
        other = {"bottleneck": "latency", "latency": "bottleneck", "free": "fixed", "fixed": "free"}
        proof[kind] = other[proof[kind]] if kind in proof else "latency"
    return forged


@pytest.mark.parametrize("seed", SEEDS)
def test_random_chains(seed: int) -> None:
    """The optimum and the whole frontier of brute force, proven and verified; forged proofs are found out."""
    chance = Random(seed)
    plan = plan_of(random_chain(chance), chance)
    if plan is None:
        return
    assert mtpp.verify(plan).verdict == "ok"
    forged = _forged(plan, chance)
    with suppress(MtppError):
        assert mtpp.verify(forged).verdict != "ok"


@pytest.mark.parametrize("order", DEVICE_ORDERS)
def test_layers_measured_by_their_number(order: str, tmp_path: Path) -> None:
    """Forty layers on eleven devices: the frontier is complete, and less bottleneck takes more latency."""
    path = tmp_path / "layers.json"
    path.write_text(
        json.dumps(
            {
                "format": "mtpp-graph", "version": 1, "name": "layers", "time_unit": "ms",
                "ops": [{"name": f"op{i}", "work": 1} for i in range(40)],
                "tensors": [
                    {"name": f"t{i}", "producer": f"op{i}", "consumers": [f"op{i + 1}"], "bytes": 8} for i in range(39)
                ],
            }
        )
    )  # fmt: skip
    machine = (Path(__file__).parents[3] / "examples" / "measured-layers.toml").read_text()
    (tmp_path / "machine.toml").write_text(machine.replace('order = "free"', f'order = "{order}"'))
    model = mtpp.read(path, machine=tmp_path / "machine.toml")
    plan = mtpp.partition(model, frontier=True)
    tops = [point["bottleneck"] for point in plan.frontier]
    assert plan.optimal
    assert tops == sorted(tops)
    assert all(point["latency"] == point["lower_bound"]["value"] for point in plan.frontier)
    assert mtpp.verify(plan, path).verdict == "ok"
