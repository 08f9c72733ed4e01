"""State of models from their files: found, named by hand, for several sequences, and verified."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import mtpp
from mtpp.errors import Infeasible, InputError

LAYERS, MIB = 4, 2**20


def decoder(path: Path, *, layers: int = LAYERS, names: tuple[str, str] = ("past_key_values", "present")) -> Path:
    """Write a decoder step whose layers keep 8 MiB of keys and 8 MiB of values each."""
    heads, length, width = 8, 8192, 64

    def port(name: str, steps: int) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT16, [1, heads, steps, width])

    nodes, inputs, outputs, x = [], [port("x", 1)], [], "x"
    for layer in range(layers):
        for part in ("key", "value"):
            past, present = (f"{name}.{layer}.{part}" for name in names)
            inputs.append(port(past, length - 1))
            outputs.append(port(present, length))
            nodes.append(helper.make_node("Concat", [past, x], [present], axis=2, name=f"cat_{part}_{layer}"))
        key, value = (f"{names[1]}.{layer}.{part}" for part in ("key", "value"))
        nodes += [
            helper.make_node("Transpose", [key], [f"kt{layer}"], perm=[0, 1, 3, 2]),
            helper.make_node("MatMul", [x, f"kt{layer}"], [f"score{layer}"]),
            helper.make_node("Softmax", [f"score{layer}"], [f"share{layer}"], axis=-1),
            helper.make_node("MatMul", [f"share{layer}", value], [f"y{layer}"]),
        ]
        x = f"y{layer}"
    outputs.append(port(x, 1))
    graph = helper.make_graph(nodes, "decoder", inputs, outputs)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


def mtpp_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command."""
    return subprocess.run([sys.executable, "-m", "mtpp", *arguments], capture_output=True, text=True, check=False)


def test_a_decoder_whose_caches_fit_nowhere_is_proven_infeasible(tmp_path: Path) -> None:
    """Four layers of 8 MiB keys and values on two devices: 4 MiB never do, 32 MiB just do, for one sequence."""
    model = decoder(tmp_path / "decoder.onnx")
    for peak in ("reserve", "order"):
        ran = mtpp_command("partition", str(model), "-k", "2", "--stage-memory", "4MiB", "--peak", peak)
        assert ran.returncode == 1
        assert "proven infeasible" in ran.stderr
        assert ran.stdout == ""
    with pytest.raises(Infeasible, match="proven infeasible"):
        mtpp.partition(mtpp.read(model, stage_memory="31MiB"), 2)
    plan = mtpp.partition(mtpp.read(model, stage_memory="32MiB"), 2)
    assert plan.optimal
    assert [stage.state_bytes for stage in plan.stages] == [32 * MIB, 32 * MIB]
    assert [stage.param_bytes for stage in plan.stages] == [0, 0]
    assert "32 MiB per stage" in plan.text()
    assert mtpp.verify(plan, model=str(model)).verdict == "ok"
    with pytest.raises(Infeasible):
        mtpp.partition(mtpp.read(model, stage_memory="32MiB", sequences=2), 2)
    assert mtpp.partition(mtpp.read(model, stage_memory="64MiB", sequences=2), 2).optimal


def test_inspection_lists_states(tmp_path: Path) -> None:
    """Each with input, output and bytes for one sequence; a model without has none."""
    model = decoder(tmp_path / "decoder.onnx", layers=1)
    inspection = mtpp.inspect(mtpp.read(model))
    found = json.loads(inspection.to_json())["states"]
    assert [{key: row[key] for key in ("input", "output", "bytes")} for row in found] == [
        {"input": f"past_key_values.0.{part}", "output": f"present.0.{part}", "bytes": 8 * MIB}
        for part in ("key", "value")
    ]
    assert "16 MiB for each sequence" in inspection.text()
    assert json.loads(mtpp.inspect(mtpp.read(mtpp.datasets.sample_path("resnet50"))).to_json())["states"] == []


def test_states_survive_conversion_and_tables(tmp_path: Path) -> None:
    """A converted graph has the same plan, and a table of certificates counts states as well."""
    model, graph = decoder(tmp_path / "decoder.onnx"), tmp_path / "graph.json"
    mtpp.convert(mtpp.read(model), graph)
    terms: dict[str, Any] = {"stage_memory": "64MiB", "sequences": 2}
    plans = [mtpp.partition(mtpp.read(file, **terms), 2) for file in (model, graph)]
    assert plans[0].assignment == plans[1].assignment
    assert plans[0].bottleneck == plans[1].bottleneck
    table = mtpp.certify([str(model)], k=2, reading=mtpp.Reading(**terms))
    row = json.loads(table.to_json())["rows"][0]
    assert row["upper"] == plans[0].bottleneck
    assert row["system"]["sequences"] == 2
    assert mtpp.verify(table, model=str(model)).verdict == "ok"


def test_a_state_that_is_named_by_hand_is_kept_and_verified(tmp_path: Path) -> None:
    """Names that nobody would guess; the plan says them, and without them it is another plan."""
    model = decoder(tmp_path / "decoder.onnx", layers=1, names=("kept", "later"))
    assert json.loads(mtpp.inspect(mtpp.read(model)).to_json())["states"] == []
    pairs = {f"kept.0.{part}": f"later.0.{part}" for part in ("key", "value")}
    plan_file = tmp_path / "plan.json"
    given = [text for one, other in pairs.items() for text in ("--keep-state", f"{one}={other}")]
    limit = ["-k", "2", "--stage-memory", "16MiB", "-o", str(plan_file)]
    assert mtpp_command("partition", str(model), *given, *limit).returncode == 0
    document = json.loads(plan_file.read_text())
    assert document["model"]["keep_state"] == pairs
    assert sum(stage["state_bytes"] for stage in document["stages"]) == 16 * MIB
    assert mtpp_command("verify", str(plan_file), "--model", str(model)).returncode == 0
    assert mtpp.verify(document, model=mtpp.read(model, stage_memory="16MiB")).verdict == "ok"
    as_planned = mtpp.read(model, keep_state=pairs, stage_memory="16MiB")
    assert mtpp.verify(document, model=as_planned).verdict == "ok"
    del document["model"]["keep_state"]
    assert mtpp.verify(document, model=str(model)).verdict == "false"
    table = mtpp.certify([str(model)], k=2, reading=mtpp.Reading(keep_state=pairs, stage_memory="16MiB"))
    assert json.loads(table.to_json())["rows"][0]["keep_state"] == pairs
    assert mtpp.verify(table, model=str(model)).verdict == "ok"


@pytest.mark.parametrize(
    ("pairs", "problem"),
    [
        (["nothing=later.0.key"], "no input 'nothing'"),
        (["kept.0.key=nothing"], "no result 'nothing'"),
        (["kept.0.key=later.0.key", "kept.0.value=later.0.key"], "two states come out as"),
        (["kept.0.key=later.0.key", "kept.0.key=later.0.value"], "twice"),
        (["kept.0.key"], "no pair of names"),
        (["=later.0.key"], "no pair of names"),
        ([5], "not a text"),
        ("kept.0.key=later.0.key", "is not a mapping"),
        ({"kept.0.key": 5}, "not a text"),
        (["other=later.0.key"], "types float32 and float16"),
        (["flat=later.0.key"], "1 and 4 axes"),
        (["unread=later.0.key"], "no op reads the input"),
    ],
)
def test_wrong_pairs_are_refused(pairs: Any, problem: str, tmp_path: Path) -> None:
    """One line that names the option; as a command, exit code 2."""
    path = decoder(tmp_path / "decoder.onnx", layers=1, names=("kept", "later"))
    model = onnx.load(path)
    for name, kind, shape in (("other", TensorProto.FLOAT, [1, 8, 1, 64]), ("flat", TensorProto.FLOAT16, [4])):
        model.graph.input.append(helper.make_tensor_value_info(name, kind, shape))
        model.graph.output.append(helper.make_tensor_value_info(f"{name}_y", kind, shape))
        model.graph.node.append(helper.make_node("Neg", [name], [f"{name}_y"]))
    model.graph.input.append(helper.make_tensor_value_info("unread", TensorProto.FLOAT16, [1, 8, 1, 64]))
    onnx.save(model, path)
    with pytest.raises(InputError, match=problem) as caught:
        mtpp.read(path, keep_state=pairs)
    assert caught.value.parameter == "keep_state"


def test_wrong_pairs_end_commands_with_usage_errors(tmp_path: Path) -> None:
    """Exit code 2 and one line; a table names the pair that no model has."""
    model = decoder(tmp_path / "decoder.onnx", layers=1)
    for command in (["partition", "-k", "2"], ["inspect"], ["certify", "-k", "2"], ["bound", "-k", "2"]):
        ran = mtpp_command(command[0], str(model), *command[1:], "--keep-state", "nothing=present.0.key")
        assert ran.returncode == 2
        assert "--keep-state" in ran.stderr
        assert "'nothing'" in ran.stderr
    assert mtpp_command("partition", str(model), "-k", "2", "--sequences", "0").returncode == 2


torch = pytest.importorskip("torch", reason="PyTorch is not installed")


class Layer(torch.nn.Module):  # type: ignore[misc,name-defined]
    """Attention to keys and values in buffers that each step writes in place."""

    def __init__(self, width: int = 16, length: int = 32) -> None:
        super().__init__()
        self.query, self.key, self.value = (torch.nn.Linear(width, width) for _ in range(3))
        self.register_buffer("keys", torch.zeros(1, length, width))
        self.register_buffer("values", torch.zeros(1, length, width))

    def forward(self, x: Any, place: Any) -> Any:
        """Write one key and value, and attend to all."""
        self.keys.index_copy_(1, place, self.key(x))
        self.values.index_copy_(1, place, self.value(x))
        return x + torch.softmax(self.query(x) @ self.keys.transpose(1, 2), -1) @ self.values


class Layers(torch.nn.Module):  # type: ignore[misc,name-defined]
    """Two layers in a row."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Layer(), Layer()

    def forward(self, x: Any, place: Any) -> Any:
        """Run both."""
        return self.second(self.first(x, place), place)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("core", [False, True])
def test_buffers_that_a_program_writes_are_states(core: bool, tmp_path: Path) -> None:
    """Caches in buffers are states and no parameters, written in place or by a program of core operators."""
    program = torch.export.export(Layers().eval(), (torch.zeros(1, 1, 16), torch.tensor([3])))
    path = tmp_path / "layers.pt2"
    torch.export.save(program.run_decompositions() if core else program, path)
    graph = mtpp.read(path).graph
    size = 32 * 16 * 4
    assert graph.states.inputs == ("first.keys", "first.values", "second.keys", "second.values")
    assert graph.states.held.bytes.tolist() == [size] * 4
    weights = 2 * 3 * (16 * 16 + 16) * 4
    assert graph.all_bytes == graph.metadata["parameter_bytes"] == weights
    assert int(graph.read_bytes.sum()) == weights + 4 * size
    assert np.isin(["x", "place"], graph.inputs.names).all()
    with pytest.raises(Infeasible, match="proven infeasible"):
        mtpp.partition(mtpp.read(path, stage_memory=f"{weights // 2 + 2 * size - 1}B"), 2)
    plan = mtpp.partition(mtpp.read(path, stage_memory=f"{weights // 2 + 2 * size}B"), 2)
    assert [stage.state_bytes for stage in plan.stages] == [2 * size, 2 * size]
    assert mtpp.verify(plan, model=str(path)).verdict == "ok"


@pytest.mark.filterwarnings("ignore")
def test_inputs_that_a_program_writes_are_states(tmp_path: Path) -> None:
    """A cache that the caller hands in and the program writes; an input that it reads is none."""

    class Step(torch.nn.Module):  # type: ignore[misc,name-defined]
        def forward(self, x: Any, cache: Any) -> Any:
            cache.add_(x)
            return cache * 2

    path = tmp_path / "step.pt2"
    torch.export.save(torch.export.export(Step(), (torch.zeros(4), torch.zeros(4))), path)
    states = mtpp.read(path).graph.states
    assert (states.inputs, states.outputs, states.held.bytes.tolist()) == (("cache",), ("cache",), [16])


@pytest.mark.filterwarnings("ignore")
def test_results_go_by_the_keys_that_a_program_returns_them_under(tmp_path: Path) -> None:
    """Keys of a dictionary tell states, nested ones too; a pair without keys does not, and is named by hand."""

    class Step(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self, *, keyed: bool) -> None:
            super().__init__()
            self.keyed = keyed

        def forward(self, x: Any, past: Any) -> Any:
            grown = [torch.cat([one, x], 1) for one in past]
            y = x + sum(one.sum(1, keepdim=True) for one in grown)
            return {"y": y, "none": None, "present": grown} if self.keyed else (y, grown)

    given = (torch.zeros(1, 1, 4), [torch.zeros(1, 7, 4), torch.zeros(1, 9, 4)])
    for keyed in (True, False):
        torch.export.save(torch.export.export(Step(keyed=keyed), given), tmp_path / "step.pt2")
        states = mtpp.read(tmp_path / "step.pt2").graph.states
        assert states.inputs == (("past_0", "past_1") if keyed else ())
        assert states.outputs == (("cat", "cat_1") if keyed else ())
        assert states.held.bytes.tolist() == ([8 * 16, 10 * 16] if keyed else [])
    by_hand = mtpp.read(tmp_path / "step.pt2", keep_state={"past_0": "cat"}).graph.states
    assert (by_hand.inputs, by_hand.outputs) == (("past_0",), ("cat",))
