"""Parameters of all public functions: what is right works, what is wrong is refused at the door by its own name."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device_maps import configuration
from graph_strategies import chain
from language_models import LLAMA
from planning import of_planner, plan_with

import mtpp
from mtpp.api.recipes import Chain
from mtpp.datasets import sample_path
from mtpp.datasets.transformer_training import transformer_training
from mtpp.formats.graphs.native import to_document, write_native

TRAINING = {"devices": 4, "memory": "2GiB", "bandwidth": "25GB/s", "max_micro_batches": 4}
STAGES = {"op0": 0, "op1": 0, "op2": 1, "op3": 1}


class Stage:
    """What a stage of a training plan is known by."""

    stage_index = 0


def _right(tmp_path: Path) -> dict[str, dict[str, Any]]:
    """Return parameters of a quick call of every public function but the one without any."""
    path = tmp_path / "chain.json"
    path.write_text(write_native(chain([10, 20, 30, 40], [1, 1, 1], "ms")))
    plan = mtpp.evaluate(path, STAGES).document()
    resnet, stages = sample_path("resnet50"), tmp_path / "stages"
    listing = tmp_path / "gpus.csv"
    listing.write_text("NVIDIA L4, 23034 MiB, 4 MiB")
    llama = tmp_path / "config.json"
    llama.write_text(json.dumps(LLAMA))
    model = transformer_training(2, hidden=64, heads=4)
    training = plan_with(model, **TRAINING).document()
    return {
        "bound": {"models": path, "k": 2, "bounds": "simple"},
        "certify": {"models": path, "k": 2, "jobs": 1},
        "compare": {"models": path, "k": 2, "algorithms": "slice"},
        "compare_layouts": {"models": llama, "k": 2, "layouts": "vllm"},
        "convert": {"model": path, "to": "csv", "plan": STAGES},
        "describe_machine": {"listing": listing},
        "systems": {"name": "a100"},
        "device_map": {"model": configuration("olmo2"), "max_memory": {0: "24GiB", 1: "24GiB"}},
        "emit": {"model": path, "plan": STAGES, "form": "cut-names"},
        "evaluate": {"model": path, "assignment": STAGES},
        "evaluate_layout": {"model": llama, "engine": "vllm", "layout": "1,1"},
        "generate": {"recipe": Chain(n=9)},
        "inspect": {"model": path},
        "load": {"plan": plan},
        "partition": {"model": path, "k": 2},
        "pipeline_schedule": {"folder": stages, "modules": [Stage()], "loss": print},
        "plan_training": {"model": model, **of_planner("piper", TRAINING)},
        "profile": {"model": resnet, "repeats": 1, "warmup": 0},
        "read": {"source": path},
        "read_layout": {"engine": "vllm", "layout": "2,2", "layers": 4},
        "report": {"result": plan, "path": tmp_path / "page.html", "model": path},
        "run_pipeline": {"folder": stages, "batches": 1, "warmup": 0},
        "run_training": {"folder": stages, "model": sample_path("gpt2", "pt2")},
        "simulate": {"pipeline": training, "model": model, "batch_size": 840, "micro_batch_size": 1},
        "split": {"model": resnet, "plan": STAGES, "folder": stages},
        "stage_modules": {"folder": stages, "model": sample_path("gpt2", "pt2")},
        "sweep_training": {"model": model, **of_planner("piper", TRAINING), "devices": [1, 2]},
        "verify": {"result": plan, "model": path},
    }


FUNCTIONS = sorted(name for name in mtpp.__all__ if inspect.isfunction(getattr(mtpp, name)) and name != "warmup")
WRONG = (
    None,
    0.5,
    [1.5],
    -1,
    True,
    np.True_,
    Decimal("0.5"),
    Fraction(1, 2),
    float("nan"),
    object(),
    print,
    "nonsense",
)
ALSO_WRONG: dict[str, dict[str, tuple[Any, ...]]] = {
    "certify": {
        "models": ([],),
        "bounds": ([], ["none such"]),
        "scheduler": ("nowhere",),
        "memory_limit": ("1 MiB",),
        "reading": ({},),
    },
    "compare": {"algorithms": ([],)},
    "evaluate": {"assignment": (b"{}", ["0", 0, 0, 0], [0, 0, 0, -1]), "cuts": ("op9",)},
    "split": {"plan": ([0, 1],)},
    "sweep_training": {"devices": ("8", 0, [], [2, True]), "sums": ("4", [0], [5], 4)},
    "verify": {
        "result": ({"k": {1, 2}}, [1]),
        "model": (["model.json", None], ["one.json", "two.json"]),
    },
}
"""Values that would do elsewhere, by function and parameter."""

IN_PLACE_OF = {
    ("certify", "scheduler"): ["jobs"],
    ("evaluate", "cuts"): ["assignment"],
    ("partition", "max_bottleneck"): ["k"],
    ("plan_training", "topology"): ["devices", "bandwidth"],
}
"""Parameters that another one stands for."""

OPEN = {("convert", "plan"), ("emit", "model"), ("split", "model")}
"""Parameters that may be None although they have no default."""

FLAGS = {
    *("together_blocks", "ignore_engine", "ops", "check", "force", "optimise", "proofs_only", "shallow", "backward"),
    *("loading_time", "exact_micro_batches", "data_parallel", "tensor_parallel", "recompute", "scale_grads"),
    *("frontier", "replicas", "tied", "compare", "open_page"),
}
NUMBERS = {"time_limit_s", "total_time_limit_s", "utilization"}
ANY_TEXT = {
    *("model", "models", "source", "plan", "result", "assignment", "path", "pipeline", "folder", "costs", "inputs"),
    *("store", "scheduler", "topology", "device", "listing", "machine", "machines"),
    *("against", "title"),
}
"""Parameters for which any text is of the right type: paths, mostly."""


def _is_right(function: str, parameter: inspect.Parameter, value: Any) -> bool:
    """Say whether a value is allowed, by its type at least."""
    if value is None:
        required = parameter.default is inspect.Parameter.empty and (function, parameter.name) not in OPEN
        return not required and (
            parameter.default is None or "None" in str(parameter.annotation) or (function, parameter.name) in OPEN
        )
    if value is print:
        return parameter.name == "loss"
    if value is True:
        return parameter.name in FLAGS
    if isinstance(value, str):
        return parameter.name in ANY_TEXT
    return parameter.name in NUMBERS and isinstance(value, float | Decimal | Fraction) and value > 0


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Return right parameters of every function."""
    return _right(tmp_path_factory.mktemp("parameters"))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_wrong_ones_are_refused_by_name(right: dict[str, dict[str, Any]], name: str) -> None:
    """An InputError that says which one it is, as the function's own signature has it."""
    for parameter in inspect.signature(getattr(mtpp, name)).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            continue  # refused as a whole
        arguments = right[name] | dict.fromkeys(IN_PLACE_OF.get((name, parameter.name), ()))
        wrong = [value for value in WRONG if not _is_right(name, parameter, value)]
        for value in (*wrong, *ALSO_WRONG.get(name, {}).get(parameter.name, ())):
            with pytest.raises(mtpp.InputError) as caught:
                getattr(mtpp, name)(**arguments | {parameter.name: value})
            assert (value, caught.value.parameter) == (value, parameter.name)
            assert str(caught.value).startswith(f"{parameter.name}: ")


def test_every_function_is_tried(right: dict[str, dict[str, Any]]) -> None:
    """With each of its parameters."""
    assert sorted(right) == FUNCTIONS


@pytest.mark.parametrize("of", [np.int64, np.int8, np.uint16, int])
def test_whole_numbers_of_any_kind(right: dict[str, dict[str, Any]], of: Callable[[int], Any]) -> None:
    """NumPy's are as good as Python's."""
    model = right["partition"]["model"]
    due = mtpp.partition(model, 2, seed=3, jobs=2, work_limit=5)
    assert mtpp.partition(model, of(2), seed=of(3), jobs=of(2), work_limit=of(5)).assignment == due.assignment
    assert mtpp.evaluate(model, [of(stage) for stage in (0, 0, 1, 1)], k=of(3)).k == 3
    assert mtpp.evaluate(model, {name: of(stage) for name, stage in STAGES.items()}).k == 2
    assert len(mtpp.bound(model, [of(2), of(3)], bounds="simple", cutoff=of(100))) == 2
    assert plan_with(right["plan_training"]["model"], **TRAINING | {"devices": of(4)}).devices_used <= 4
    assert [graph.name for graph in mtpp.generate(Chain(n=9), seed=of(4), count=of(1))] == ["chain-9-4"]
    assert mtpp.read(model, bandwidth=of(100), fast_memory=of(0)).system.link.bandwidth_bytes_per_s == 100


@pytest.mark.parametrize("of", [float, np.float64, np.float32, Fraction, Decimal, int, np.int64])
@pytest.mark.slow
def test_real_numbers_of_any_kind(right: dict[str, dict[str, Any]], of: Callable[[Any], Any]) -> None:
    """Limits, ratios and bottlenecks are taken exactly as they are."""
    model = right["partition"]["model"]
    assert mtpp.partition(model, 2, time_limit_s=of(9)).optimal
    assert len(mtpp.certify(model, 2, target_ratio=of(2), time_limit_s=of(9), jobs=1)) == 1
    abstract = to_document(chain([1, 2, 3], [0, 0]))
    assert mtpp.partition(abstract, max_bottleneck=of(3)).k == 2
    with pytest.raises(mtpp.InputError, match="max_bottleneck: "):
        mtpp.partition(model, max_bottleneck=of(3))  # seconds, or what?


def test_fractions_are_exact() -> None:
    """No decimal stands for a third."""
    thirds = to_document(chain([Fraction(1, 4), Fraction(1, 4), Fraction(1, 4)], [0, 0]))
    assert mtpp.partition(thirds, max_bottleneck=Fraction(1, 3)).k == 3
    assert mtpp.partition(thirds, max_bottleneck=Fraction(3, 4)).k == 1
