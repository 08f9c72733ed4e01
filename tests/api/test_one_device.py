"""The fastest device that holds a whole graph, which plans and runs compare with: brute force, forged, in manifests."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from machine_models import model_of
from random_devices import NEVER, random_case

import mtpp
from mtpp.formats.results.stage_manifest import WholeModel
from mtpp.views.run import run_text

ROW = "one device"
MACHINE = '[[device]]\nname = "slow"\n[[device]]\nname = "fast"\nspeed = 2\nplace = "cpu"\n'


def row_of(document: dict[str, Any]) -> Any:
    """Return what the verifier says of the claim; None where there is none."""
    return next((row for row in mtpp.verify(document).rows if row.claim == ROW), None)


@pytest.mark.filterwarnings("ignore:device d. can hold no op")
@pytest.mark.parametrize("seed", range(200))
def test_the_fastest_device_is_that_of_brute_force(seed: int) -> None:
    """Whatever order the devices stand in; another device, another time or none in its place is false."""
    case = random_case(seed)
    free, count = seed % 2 == 1, len(case.devices)
    if case.optimum(count, free=free) == NEVER or len(model_of(case, free=free).machine.classes) == 1:
        return
    document = mtpp.partition(model_of(case, free=free)).document(embed=True)
    alone = [case.cost(range(case.ops), i) for i in range(count)]
    least = min(alone)
    due = None if least == NEVER else {"index": alone.index(least), "cost": least}
    assert document["one_device"] == due
    assert row_of(document).verdict == "ok"
    others: list[Any] = [{"index": i, "cost": ticks} for i, ticks in enumerate(alone) if ticks != least]
    others += [{"index": count, "cost": 0}]
    others += [None, {"index": due["index"], "cost": least - 1 if least else 1}] if due is not None else []
    for other in others:
        forged = copy.deepcopy(document)
        forged["one_device"] = other
        assert row_of(forged).verdict == "false"


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a plan for two devices of which one is faster."""
    folder = tmp_path_factory.mktemp("planned")
    (folder / "machine.toml").write_text(MACHINE)
    model = mtpp.read(mtpp.datasets.sample_path("resnet50"), machine=folder / "machine.toml")
    plan = mtpp.partition(model)
    plan.save(folder / "plan.json")
    assert "× over one stage on fast, the fastest device that holds it" in str(plan)
    assert "× over one stage on fast, the fastest device that holds it" in str(mtpp.load(folder / "plan.json"))
    return folder


def test_runs_predict_a_speed_up_over_one_device(planned: Path) -> None:
    """Stages' times on unlike devices are not summed: the whole model on the fastest one is the measure."""
    pytest.importorskip("onnxruntime")
    plan = json.loads((planned / "plan.json").read_text())
    parts = mtpp.split(mtpp.datasets.sample_path("resnet50"), planned / "plan.json", planned / "stages")
    cost = plan["one_device"]["cost"]
    assert cost < sum(stage["work"] for stage in plan["stages"])
    assert parts.manifest.one_device == WholeModel("fast", "cpu", cost)
    done = mtpp.run_pipeline(parts, batches=2, warmup=0)
    assert done.comparison.predicted_speedup == pytest.approx(cost / plan["bottleneck"])
    assert "predicted on fast, the fastest device that holds it" in run_text(done.comparison, "plain")
    unsplit = done.document()["unsplit"]
    assert (unsplit["device"], unsplit["predicted_s"]) == ("fast", pytest.approx(cost * 1e-12, rel=1e-5))


def test_models_that_no_device_holds_have_no_prediction(planned: Path, tmp_path: Path) -> None:
    """Nor have those of plans that do not say it."""
    plan = json.loads((planned / "plan.json").read_text())
    for change in (None, "absent"):
        plan["one_device"] = None
        if change:
            del plan["one_device"]
        (tmp_path / "plan.json").write_text(json.dumps(plan))
        folder = tmp_path / f"stages-{change}"
        parts = mtpp.split(mtpp.datasets.sample_path("resnet50"), tmp_path / "plan.json", folder)
        assert parts.manifest.on_machine
        assert parts.manifest.whole_ticks is None
