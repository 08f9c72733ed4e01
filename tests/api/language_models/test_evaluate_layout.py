"""Layouts of engines audited: time and memory as of plans, faults, the gate, and the better layout."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest
from language_models import LLAMA, T5
from refusals import refusal

import mtpp
from mtpp.api.language_models.layout_evaluation import LayoutEvaluation

LAYERS = 8
DEVICE = '[device.system]\npeak_flops = "{0}TFLOP/s"\nmemory_bandwidth = "{0}GB/s"\nbandwidth = "1GB/s"\n'


def config(folder: Path, **changed: Any) -> str:
    """Write the configuration of a small model, and return its path."""
    sizes = {"hidden_size": 64, "intermediate_size": 128, "vocab_size": 1000, "num_hidden_layers": LAYERS}
    path = folder / "config.json"
    path.write_text(json.dumps({**LLAMA, **sizes, **changed}))
    return str(path)


def machine(folder: Path, *devices: tuple[int, str], order: str = "fixed") -> str:
    """Write a machine of devices with a speed and a memory each, and return its path."""
    rows = [
        f'[[device]]\nname = "d{i}"\nmemory = "{memory}"\n{DEVICE.format(speed)}'
        for i, (speed, memory) in enumerate(devices)
    ]
    path = folder / f"machine-{len(devices)}-{order}.toml"
    path.write_text(f'name = "m"\norder = "{order}"\n' + "".join(rows))
    return str(path)


def audit(folder: Path, engine: str, layout: Any, *devices: tuple[int, str], **changed: Any) -> LayoutEvaluation:
    """Audit a layout of the small model."""
    read = mtpp.read(config(folder, **changed), machine=machine(folder, *devices), context=100, sequences=3)
    return mtpp.evaluate_layout(read, engine, layout)


@pytest.mark.parametrize("seed", range(12))
def test_contiguous_stages_cost_what_the_same_plan_costs(tmp_path: Path, seed: int) -> None:
    """Times and memory; the better layout is no slower, and reads back to its figures."""
    chance = Random(seed)
    devices = [(chance.choice([1, 2, 4]), f"{chance.choice([8, 16])}MB") for _ in range(chance.randint(1, 4))]
    tied = chance.random() < 0.5
    cuts = sorted(chance.sample(range(1, LAYERS), len(devices) - 1))
    counts = [stop - start for start, stop in zip([0, *cuts], [*cuts, LAYERS], strict=True)]
    read = mtpp.read(
        config(tmp_path, tie_word_embeddings=tied), machine=machine(tmp_path, *devices), context=100, sequences=3
    )
    engine = chance.choice(["vllm", "sglang", "tensorrt-llm"])
    found = mtpp.evaluate_layout(read, engine, ",".join(map(str, counts)))
    stage = [i for i, count in enumerate(counts) for _ in range(count)]
    plan = mtpp.evaluate(read, [0, *stage, len(counts) - 1])
    for row, told in zip(found.stages, plan.document()["stages"], strict=True):
        assert {key: row[key] for key in ("work", "input", "output", "cost")} == {
            key: told[key] for key in ("work", "input", "output", "cost")
        }
        assert row["memory_bytes"] == told["param_bytes"] + told["state_bytes"] + told["peak_bytes"]
    assert found.document()["bottleneck"] == plan.bottleneck
    assert found.findings == []
    assert found.ratio is not None
    best = mtpp.partition(read)
    assert found.document()["best"]["bottleneck"] == best.bottleneck
    assert found.ratio == pytest.approx(plan.bottleneck / best.lower_bound.value)
    better = found.better
    if better is not None and better["text"] is not None:
        if engine == "tensorrt-llm" and any("start it with CUDA" in note for note in better["notes"]):
            return  # its file has no place for the order of devices
        again = mtpp.evaluate_layout(read, engine, better["text"])
        assert (again.document()["bottleneck"], again.ratio) == (better["bottleneck"], better["ratio"])
        assert again.document()["bottleneck"] < plan.bottleneck
        assert [row["ranges"] for row in again.stages][: len(better["ranges"])] == better["ranges"]


def test_layers_in_no_stage_and_in_two(tmp_path: Path) -> None:
    """Each stage is charged for all that it runs; what the engine makes of it is said."""
    lists = [
        ["tok_embeddings", *(f"layers.{i}" for i in (0, 1, 2, 3))],
        ["layers.3", *(f"layers.{i}" for i in (5, 6, 7)), "layers.7.mlp", "norm", "output"],
    ]
    found = audit(tmp_path, "torchtitan", lists, (1, "8MB"), (1, "8MB"))
    document = found.document()
    assert (document["missing_layers"], document["doubled_layers"]) == ([4], [3])
    assert [row["ranges"] for row in found.stages] == [[[0, 4]], [[3, 4], [5, 8]]]
    assert found.findings == [
        "layers.3 in stages 0 and 1",
        "layers.4 in no stage",
        "'layers.7.mlp' in stage 1 names no module and is ignored",
        "stage 1 holds layers 3, 5, 6 and 7, which are not contiguous",
    ]
    assert document["consequences"] == [
        "torchtitan runs 7 of 8 layers: weights of the others are never used",
        "torchtitan runs layer 3 more than once, each time with weights and a cache of their own",
        "results are those of another model",
    ]
    assert found.ratio is None
    one, two = (row["work"] for row in found.stages)
    whole = audit(tmp_path, "vllm", "4,4", (1, "8MB"), (1, "8MB"))
    assert [one, two] == [row["work"] for row in whole.stages]
    better = found.better
    assert better is not None
    assert mtpp.evaluate_layout(config(tmp_path), "torchtitan", better["setting"], k=2).findings == []


def test_negative_counts(tmp_path: Path) -> None:
    """VLLM takes them in silence."""
    found = audit(tmp_path, "vllm", "-1,9", (1, "8MB"), (1, "8MB"))
    assert found.findings == ["stage 0 has -1 layers, a negative number"]
    assert found.document()["consequences"] == [
        "vllm builds stage 1 from layer -1 to layer 7: 9 layers for 8 in the model"
    ]
    assert [row["layers"] for row in found.stages] == [0, 8]


def test_memory_that_is_too_small(tmp_path: Path) -> None:
    """Is a finding, and there is no ratio; the better layout fits."""
    found = audit(tmp_path, "vllm", "7,1", (1, "500kB"), (1, "8MB"))
    (said,) = found.findings
    assert said.startswith("stage 0 needs ")
    assert "bytes on device d0, " in said
    assert found.ratio is None
    assert found.unmet(None) is None
    assert found.better is not None
    assert found.better["ratio"] == 1
    assert found.better["ranges"][0][0][1] < 7


def test_nothing_fits(tmp_path: Path) -> None:
    """The best plan is none, and so is the better layout."""
    found = audit(tmp_path, "vllm", "4,4", (1, "100kB"), (1, "100kB"))
    assert found.document()["best"] is None
    assert found.better == {"text": None, "reason": "no plan fits into the memory of the devices"}
    assert "no plan fits into the memory" in found.text()


def test_a_tied_embedding_is_held_twice(tmp_path: Path) -> None:
    """By two stages, and by the CPU and the last GPU of llama.cpp; once by one stage."""
    table = 1000 * 64 * 2
    tied = audit(tmp_path, "vllm", "4,4", (1, "8MB"), (1, "8MB"), tie_word_embeddings=True)
    alone = audit(tmp_path, "vllm", "8", (1, "8MB"), tie_word_embeddings=True)
    held = [sum(row["weight_bytes"] for row in found.stages) for found in (tied, alone)]
    assert held[0] - held[1] == table
    gguf = audit(tmp_path, "llama.cpp", "-ngl 99 -ts 1,1", (1, "8MB"), (1, "8MB"), tie_word_embeddings=True)
    assert sum(row["weight_bytes"] for row in gguf.stages) == held[0]
    assert [row["device"]["name"] for row in gguf.stages if row["embedding"]] == ["CPU"]
    assert gguf.stages[-1]["weight_bytes"] == table


def test_streamed_weights(tmp_path: Path) -> None:
    """Their bytes are told, their time is not modelled: there is no ratio, and it is no fault."""
    given = {"model.embed_tokens": 0, "model.norm": 0, "lm_head": 0, "model.rotary_emb": 0}
    given |= {f"model.layers.{i}": 0 if i < 6 else "disk" for i in range(LAYERS)}
    found = audit(tmp_path, "accelerate", given, (1, "8MB"))
    layer = (64 * 64 * 2 + 64 * 32 * 2 + 3 * 64 * 128 + 2 * 64) * 2
    document = found.document()
    assert (found.findings, found.ratio, document["comparable"]) == ([], None, False)
    assert document["streamed_bytes"] == 2 * layer
    assert found.unmet(Fraction(2)) == "the layout does not run the whole model in time that is modelled"
    assert any("sent to a device in each step; the time for that is not modelled" in note for note in document["notes"])


def test_rules_of_engines_use_the_memory_of_the_machine(tmp_path: Path) -> None:
    """Fastest layouts differ from them."""
    devices = [(1, "6MB"), (1, "3MB"), (1, "2MB")]
    layers = {
        engine: [row["layers"] for row in audit(tmp_path, engine, "default", *devices).stages]
        for engine in ("vllm", "exo", "llama.cpp", "torchtitan")
    }
    assert layers == {"vllm": [3, 3, 2], "exo": [4, 2, 2], "llama.cpp": [5, 3, 0, 0], "torchtitan": [3, 3, 2]}
    for engine in ("accelerate", "transformers"):
        filled = audit(tmp_path, engine, "auto", *devices)
        assert sum(row["layers"] for row in filled.stages) == LAYERS
    assert audit(tmp_path, "deepspeed", "uniform", *devices).stages[0]["layers"] == 3


def test_order_of_devices(tmp_path: Path) -> None:
    """Beside the text, as a shell sets it."""
    line = "CUDA_VISIBLE_DEVICES=1,0 VLLM_PP_LAYER_PARTITION=5,3 vllm serve m --pipeline-parallel-size 2"
    found = audit(tmp_path, "vllm", line, (1, "8MB"), (2, "8MB"))
    assert [row["device"]["name"] for row in found.stages] == ["d1", "d0"]
    read = mtpp.read(config(tmp_path), machine=machine(tmp_path, (1, "8MB"), (2, "8MB")))
    problem = str(refusal(mtpp.evaluate_layout, read, "vllm", line.replace("1,0", "2,0")))
    assert problem == "layout: names GPU 2, which the machine has not"


def test_virtual_stages(tmp_path: Path) -> None:
    """A rank is charged for all of its own."""
    found = audit(tmp_path, "megatron", "Et*2|t*2|t*2|t*2L", (1, "8MB"), (1, "8MB"))
    assert [row["virtual_stages"] for row in found.stages] == [[0, 2], [1, 3]]
    assert found.findings == []
    whole = audit(tmp_path, "megatron", "Et*4|t*4L", (1, "8MB"), (1, "8MB"))
    assert [row["work"] for row in found.stages] == [row["work"] for row in whole.stages]
    assert found.stages[0]["output"] == 2 * whole.stages[0]["output"]


def test_capacity_is_that_of_the_stage_with_the_least_room_for_its_own_layers(tmp_path: Path) -> None:
    """A published case (vllm#34076): 16 layers and 3.18 GiB hold 104,202 tokens, where an engine said 34,736."""
    sizes = {
        "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 128,
        "num_hidden_layers": 48,
    }  # fmt: skip
    path = config(tmp_path, **sizes)
    free = [65 * 2**30 // 10, 318 * 2**30 // 100]
    plain = mtpp.evaluate_layout(path, "vllm", "32,16")
    used = [row["weight_bytes"] + row["activation_bytes"] for row in plain.stages]
    rows = [
        f'[[device]]\nname = "d{i}"\nmemory = "{size + kept}B"\n{DEVICE.format(1)}'
        for i, (size, kept) in enumerate(zip(free, used, strict=True))
    ]
    (tmp_path / "m.toml").write_text("".join(rows))
    found = mtpp.evaluate_layout(mtpp.read(path, machine=tmp_path / "m.toml"), "vllm", "32,16")
    assert found.document()["capacity"] == {
        "objective": "context", "sequences": 1, "value": 104_202, "deciding_stage": 1, "of_stages": [106_496, 104_202],
    }  # fmt: skip


@pytest.mark.parametrize("degree", [1, 2, 4])
def test_degrees_of_tensor_parallelism(tmp_path: Path, degree: int) -> None:
    """As the text says, one for all stages; without one the fastest; the capacity is that of the shares."""
    tensor = 'tensor_parallel = {}\ntensor_link = "5GB/s"\n'
    text = f'[[device]]\nname = "d"\ncount = 2\nmemory = "2MB"\n{{}}{DEVICE.format(1)}'
    (tmp_path / "one.toml").write_text(text.format(tensor.format([degree])))
    (tmp_path / "all.toml").write_text(text.format(tensor.format([1, 2, 4])))
    path = config(tmp_path)
    one = mtpp.read(path, machine=tmp_path / "one.toml", context=100)
    every = mtpp.read(path, machine=tmp_path / "all.toml", context=100)
    plan = mtpp.evaluate(one, [0] * 6 + [1] * 4)
    line = f"VLLM_PP_LAYER_PARTITION=5,3 vllm serve m -pp 2 -tp {degree}"
    found = mtpp.evaluate_layout(every, "vllm", line)
    assert found.document()["tensor_parallel"] == degree
    assert [row["cost"] for row in found.stages] == [row["cost"] for row in plan.document()["stages"]]
    assert found.document()["bottleneck"] == plan.bottleneck
    best = mtpp.evaluate_layout(every, "vllm", "5,3")
    assert best.document()["bottleneck"] <= plan.bottleneck
    assert best.ratio == pytest.approx(best.document()["bottleneck"] / mtpp.partition(every).lower_bound.value)
    alone = mtpp.evaluate_layout(one, "vllm", "5,3")
    assert alone.document()["capacity"] == found.document()["capacity"]
    if degree > 1:
        said = str(refusal(mtpp.evaluate_layout, one, "llama.cpp", "5,4"))
        assert said.startswith("machine: llama.cpp needs a tensor degree that all of its devices have")
        plain = mtpp.read(path, machine=machine(tmp_path, (1, "8MB"), (1, "8MB")))
        assert f"has tensor degree {degree}" in str(refusal(mtpp.evaluate_layout, plain, "vllm", line))


def test_gpus_of_nodes(tmp_path: Path) -> None:
    """Texts name GPUs of nodes, of which each has as many as its largest degree; a better layout may use some alone."""
    tensor = 'tensor_parallel = {}\ntensor_link = "5GB/s"\n'
    node = '[[device]]\nname = "{}"\ncount = {}\nmemory = "2MB"\n{}{}'
    tables = [node.format("a", 1, tensor.format([1, 2]), DEVICE.format(1)),
              node.format("b", 2, tensor.format([1, 2, 4]), DEVICE.format(4))]  # fmt: skip
    (tmp_path / "machine.toml").write_text('order = "free"\n' + "".join(tables))
    read = mtpp.read(config(tmp_path), machine=tmp_path / "machine.toml", context=100)
    line = "CUDA_VISIBLE_DEVICES={} VLLM_PP_LAYER_PARTITION=5,3 vllm serve m -pp 2 -tp {}"
    whole = mtpp.evaluate_layout(read, "vllm", line.format("6,7,8,9,2,3,4,5", 4))
    assert [row["device"] for row in whole.stages] == [{"name": "b", "index": 2}, {"name": "b", "index": 1}]
    part = mtpp.evaluate_layout(read, "vllm", line.format("2,3,0,1", 2))
    assert [row["device"]["index"] for row in part.stages] == [1, 0]
    assert part.better["bottleneck"] <= part.document()["bottleneck"]
    same = str(refusal(mtpp.evaluate_layout, read, "vllm", line.format("2,3,4,5", 2)))
    assert same.startswith("layout: GPU 2 is of a device that another stage is on")
    assert "names GPU 10" in str(refusal(mtpp.evaluate_layout, read, "vllm", line.format("2,3,10,11", 2)))
    plan = mtpp.partition(read, layers_only=True)
    assert mtpp.evaluate_layout(read, "vllm", mtpp.emit(read, plan, "vllm")).document()["bottleneck"] == plan.bottleneck
    equal = mtpp.read(config(tmp_path), context=100)
    assert "has tensor degree 2" in str(refusal(mtpp.evaluate_layout, equal, "vllm", line.format("0,1,2,3", 2)))


def test_engines_own_doings(tmp_path: Path) -> None:
    """SGLang refuses an architecture when it starts; shares that are all 0 are those of free memory."""
    path = config(tmp_path, model_type="gemma2", num_hidden_layers=2)
    refuses = "SGLang 0.5.23 refuses gemma2 at start: 'Pipeline Parallel is not compatible with this model.'"
    assert refuses in mtpp.evaluate_layout(path, "sglang", "1,1").document()["notes"]
    assert mtpp.evaluate_layout(path, "sglang", "2").document()["notes"] == []
    read = mtpp.read(config(tmp_path), machine=machine(tmp_path, (1, "6MB"), (1, "2MB")))
    free, zero = (mtpp.evaluate_layout(read, "llama.cpp", text) for text in ("default", "-ngl 99 -ts 0,0"))
    assert [row["ranges"] for row in zero.stages] == [row["ranges"] for row in free.stages]
    cpu = "269.5 KiB of weights are on CPU; the time of its work with them is not modelled"
    assert cpu in mtpp.evaluate_layout(read, "llama.cpp", "-ngl 7 -ts 1,1").document()["notes"]


def test_maps_on_more_devices_than_asked_for(tmp_path: Path) -> None:
    """They are refused: the best plan would be one of fewer devices."""
    placed = {"model.embed_tokens": 0, "model.norm": 1, "lm_head": 5}
    placed |= {f"model.layers.{i}": int(i > 3) for i in range(LAYERS)}
    said = str(refusal(mtpp.evaluate_layout, config(tmp_path), "accelerate", {"device_map": placed}, k=2))
    assert said == "k: 2 is less than the 3 devices of the layout"
    ratio = mtpp.evaluate_layout(config(tmp_path), "accelerate", {"device_map": placed}, k=3).ratio
    assert ratio is not None
    assert ratio >= 1


def test_mtp_layers(tmp_path: Path) -> None:
    """On the last stage; accelerate runs none, and there is no ratio then."""
    read = mtpp.read(config(tmp_path), machine=machine(tmp_path, (1, "8MB"), (1, "8MB")), mtp=2)
    found = mtpp.evaluate_layout(read, "vllm", "5,3")
    assert [row["mtp_layers"] for row in found.stages] == [0, 2]
    assert found.ratio is not None
    assert [row["mtp_layers"] for row in mtpp.evaluate_layout(read, "llama.cpp", "-ngl 99 -ts 1,1").stages] == [0, 2, 0]
    assert mtpp.evaluate_layout(read, "megatron", "Et*5|t*3mmL").ratio == found.ratio
    assert "Number of mtp layers" in str(refusal(mtpp.evaluate_layout, read, "megatron", "Et*5|t*3L"))
    auto = mtpp.evaluate_layout(read, "accelerate", "auto")
    assert auto.ratio is None
    assert any("layers for further tokens" in note for note in auto.document()["notes"])


def test_refusals(tmp_path: Path) -> None:
    """In one line each."""
    path = config(tmp_path)
    for engine, layout, said in (
        ("vllm", "4,3", "refused: ValueError: sum(partitions)=7 does not match num_hidden_layers=8."),
        ("megatron", "Et*9L", "refused: AssertionError: Number of decoder layers 9must match num_layers 8"),
        ("vllm", "default", "k: the number of stages is needed; give it, or a machine"),
        ("vllm", tmp_path / "none", "no such file"),
        ("exo", "default", "machine: exo divides layers by memory"),
        ("deepspeed", "profile", "k: the number of stages is needed"),
    ):
        assert said in str(refusal(mtpp.evaluate_layout, path, engine, layout)), (engine, layout)
    assert "is no language model" in str(refusal(mtpp.evaluate_layout, mtpp.datasets.sample_path("resnet50"), "vllm"))
    read = mtpp.read(path, machine=machine(tmp_path, (1, "8MB"), (1, "8MB")))
    assert "and there are 2" in str(refusal(mtpp.evaluate_layout, read, "accelerate", {"": 5}))
    (tmp_path / "t5").mkdir()
    (tmp_path / "t5" / "config.json").write_text(json.dumps(T5))
    found = mtpp.evaluate_layout(tmp_path / "t5", "vllm", "1,2")
    assert found.stages[0]["encoder_layers"] == 3


def test_texts(tmp_path: Path) -> None:
    """In every form, with all parts."""
    found = audit(tmp_path, "vllm", "1,7", (1, "8MB"), (4, "8MB"))
    assert "d0" in found.text()
    assert "0, head" not in found.text()
    assert found.text("csv").splitlines()[0].startswith("index,device,ranges,layers,")
    assert found.text("markdown").startswith("### ")
    assert json.loads(found.to_json()) == found.document()
    found.save(tmp_path / "audit.json")
    assert json.loads((tmp_path / "audit.json").read_text())["format"] == "mtpp-layout-evaluation"


def test_rules_compared(tmp_path: Path) -> None:
    """On models and machines: each ratio is that of the engine's own layout."""
    for i, layers in enumerate((8, 9)):
        (tmp_path / "models" / f"m{i}").mkdir(parents=True)
        config(tmp_path / "models" / f"m{i}", num_hidden_layers=layers)
    machines = [machine(tmp_path, *[(1, "8MB")] * 3), machine(tmp_path, (1, "8MB"), (2, "8MB"))]
    found = mtpp.compare_layouts(str(tmp_path / "models"), machines)
    assert len(found) == 2 * 2 * 10
    for row in found:
        if row["refused"] is None:
            read = mtpp.read(row["source"], machine=next(path for path in machines if row["machine"] in path))
            assert row["ratio"] == mtpp.evaluate_layout(read, row["engine"]).ratio
    assert [row["engine"] for row in found if row["refused"]] == ["megatron-flags"] * 2
    assert "vllm" in found.text()
    assert len(found.text("csv").splitlines()) == 41
    (summary, *_) = found.document()["summary"]
    assert (summary["engine"], summary["models"], summary["compared"]) == ("vllm", 2, 2)
    few = mtpp.compare_layouts([tmp_path / "models" / "m0"], k=[2, 4], layouts=["vllm", "sglang"])
    assert [(row["engine"], row["devices"]) for row in few] == [("vllm", 2), ("sglang", 2), ("vllm", 4), ("sglang", 4)]
    assert "has no language model" in str(refusal(mtpp.compare_layouts, str(tmp_path), k=2))
    assert "no engine with a rule" in str(
        refusal(mtpp.compare_layouts, str(tmp_path / "models"), k=2, layouts="petals")
    )
    assert "give k or machines" in str(refusal(mtpp.compare_layouts, str(tmp_path / "models")))


def test_transport_between_neighbours(tmp_path: Path) -> None:
    """Stages pay at their boundaries as those of plans do; where they do not follow each other, a note says so."""
    links = '[[link]]\nbetween = ["d0", "d1"]\nbandwidth = "1kB/s"\n'
    path = Path(machine(tmp_path, (1, "8MB"), (2, "8MB"), (1, "8MB")))
    path.write_text(path.read_text().replace("[[device]]", 'transport = "neighbours"\n[[device]]', 1) + links)
    read = mtpp.read(config(tmp_path), machine=path)
    found = mtpp.evaluate_layout(read, "vllm", "3,3,2")
    plan = mtpp.evaluate(read, [0] * 4 + [1] * 3 + [2] * 3)
    assert [row["cost"] for row in found.stages] == [row["cost"] for row in plan.document()["stages"]]
    assert found.document()["notes"] == []
    looped = mtpp.evaluate_layout(read, "megatron", "Et*2|t*2|t*2|t|t|L")
    assert looped.document()["notes"][-1].startswith("tensors are charged as if devices sent them directly")


def test_layers_that_one_stage_has_to_hold(tmp_path: Path) -> None:
    """Shared caches apart are a finding; MTP layers may be apart from the head, as they are for the bound then."""
    sizes = {
        "model_type": "gemma3n_text", "hidden_size_per_layer_input": 8, "vocab_size_per_layer_input": 100,
        "num_kv_shared_layers": 4, "altup_num_inputs": 2, "laurel_rank": 4, "head_dim": 16, "sliding_window": 32,
        "layer_types": ["full_attention"] * 8,
    }  # fmt: skip
    apart = mtpp.evaluate_layout(config(tmp_path, **sizes), "sglang", "6,2")
    assert apart.findings == ["shared caches: layers 3 to 7 in several stages, where one has to have them"]
    assert apart.ratio is None
    together = mtpp.evaluate_layout(config(tmp_path, **sizes), "sglang", "3,5")
    assert (together.findings, together.ratio is None) == ([], False)
    read = mtpp.read(config(tmp_path), machine=machine(tmp_path, *[(1, "8MB")] * 3), mtp=3)
    found = mtpp.evaluate_layout(read, "megatron", "Et*4|t*4mmm|L")
    assert found.findings == []
    assert found.ratio is not None
    assert found.ratio >= 1


def test_weights_that_patterns_move(tmp_path: Path) -> None:
    """Their bytes are told, and there is no ratio where a CPU works on them."""
    found = audit(tmp_path, "llama.cpp", r"-ngl 99 -ts 1,1 -ot blk\.[67]\.ffn_up=CPU", (1, "8MB"), (1, "8MB"))
    plain = audit(tmp_path, "llama.cpp", "-ngl 99 -ts 1,1", (1, "8MB"), (1, "8MB"))
    moved = 2 * 64 * 128 * 2
    assert [row["weight_bytes"] for row in found.stages] == [
        row["weight_bytes"] + change for row, change in zip(plain.stages, (0, -moved, moved), strict=True)
    ]
    assert (found.ratio, found.findings) == (None, [])
    to_gpu = audit(tmp_path, "llama.cpp", r"-ngl 99 -ts 1,1 -ot blk\.[67]\.ffn_up=CUDA0", (1, "8MB"), (1, "8MB"))
    assert to_gpu.stages[0]["weight_bytes"] == plain.stages[0]["weight_bytes"] + moved


def test_both_phases(tmp_path: Path) -> None:
    """Figures are those of decoding; the first token is that of a plan with the same stages, at prefill."""
    path, on = config(tmp_path), machine(tmp_path, (1, "8MB"), (1, "8MB"))
    both = mtpp.evaluate_layout(mtpp.read(path, machine=on, context=100, phase="both"), "vllm", "5,3")
    prompts = mtpp.evaluate_layout(mtpp.read(path, machine=on, context=100, phase="prefill"), "vllm", "5,3")
    decode = mtpp.evaluate_layout(mtpp.read(path, machine=on, context=100), "vllm", "5,3")
    assert both.document()["first_token"]["latency"] == prompts.document()["latency"]
    assert both.stages == decode.stages
    assert "first token" in both.text()
    both_phases = mtpp.Reading(phase="both")
    assert str(refusal(mtpp.compare_layouts, [path], k=2, reading=both_phases)).startswith("phase: is of plans")
    held = [row["memory_bytes"] for row in both.stages]
    assert all(more > own for more, own in zip(both.document()["first_token"]["memory_bytes"], held, strict=True))
    tight = machine(tmp_path, *((1, f"{size}B") for size in held))
    found = mtpp.evaluate_layout(mtpp.read(path, machine=tight, context=100, phase="both"), "vllm", "5,3")
    assert found.findings == ["prompts of this length do not fit beside weights and caches"]
