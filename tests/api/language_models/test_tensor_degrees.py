"""Degrees of stages against plans by formulas: the right one is found where links, memories or FLOPs decide."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from checkpoint_files import write_model
from language_models import LLAMA, llama_tensors
from tensor_nodes import Llama, Load, Node, plans

import mtpp
from mtpp.errors import Infeasible, InputError

SMALL = Llama(h=64, f=192, layers=3, q=8, kv=2, vocabulary=1003)
LOAD = Load(context=500, sequences=6, batch=2)

FAST = Node(10**12, 10**10, 10**9, 10**9, 10**10, (1, 2, 4, 8))
NODES: dict[str, list[Node]] = {
    "a fast link": [FAST],
    "a slow link": [Node(10**12, 10**10, 10**9, 10**9, 10**6, (1, 2, 4, 8))],
    "a link between": [Node(10**12, 10**10, 10**9, 10**9, 10**8, (1, 2, 4, 8))],
    "little memory": [Node(10**12, 10**10, 10**9, 600_000, 10**7, (1, 2, 4))],
    "few FLOPs": [Node(10**8, 10**10, 10**9, 10**9, 10**8, (1, 2, 4, 8))],
    "two nodes": [Node(10**12, 10**10, 10**8, 10**9, 3 * 10**8, (1, 2)), FAST],
    "two small nodes": [
        Node(10**12, 10**10, 10**9, 450_000, 10**7, (1, 2, 4)),
        Node(10**12, 10**9, 10**9, 300_000, 10**8, (2, 8)),
    ],
    "three nodes": [
        Node(10**12, 10**10, 10**8, 400_000, 10**8, (1, 4)),
        Node(10**11, 10**9, 10**9, 350_000, 10**9, (2,)),
        Node(10**12, 3 * 10**9, 10**9, 10**6, 10**7, (1, 8)),
    ],
}


def read(folder: Path, nodes: list[Node], *, free: bool, **options: object) -> mtpp.Model:
    """Read the model on a machine of the nodes."""
    (folder / "config.json").write_text(json.dumps(SMALL.configuration()))
    tables = [node.table(f"n{i}") for i, node in enumerate(nodes)]
    (folder / "nodes.toml").write_text("\n".join([f'order = "{"free" if free else "fixed"}"', *tables]))
    return mtpp.read(
        folder / "config.json", machine=folder / "nodes.toml", context=LOAD.context, sequences=LOAD.sequences,
        batch=LOAD.batch, **options,
    )  # fmt: skip


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("name", NODES)
def test_the_best_plan_is_that_of_the_formulas(name: str, free: bool, tmp_path: Path) -> None:
    """Bottleneck over all cuts, nodes and degrees; its stages are of such a plan; latency as well."""
    found = list(plans(SMALL, LOAD, NODES[name], free=free))
    model = read(tmp_path, NODES[name], free=free)
    plan = mtpp.partition(model)
    assert plan.optimal
    assert plan.bottleneck == min(one.bottleneck for one in found)
    rows = [row for row in plan.document()["stages"] if row["ops"]]
    stages = tuple((row["device"]["index"], row["tensor_parallel"], row["ops"]) for row in rows)
    assert stages in [one.stages for one in found if one.bottleneck == plan.bottleneck]
    assert mtpp.verify(plan.document(), tmp_path / "config.json").passed
    least = mtpp.partition(model, objective="latency")
    assert least.record is not None
    assert least.record.latency == min(one.latency for one in found)


def test_degrees_follow_the_link(tmp_path: Path) -> None:
    """One GPU where the link is slow, eight where it is fast, and some number between."""
    chosen = []
    for name in ("a slow link", "a link between", "a fast link"):
        plan = mtpp.partition(read(tmp_path, NODES[name], free=False))
        chosen.append(plan.stages[0].tensor_parallel)
    assert chosen[0] == 1
    assert chosen == sorted(chosen)
    assert chosen[-1] == 8


def test_memory_forces_a_degree(tmp_path: Path) -> None:
    """A node whose GPU is too small for the model shares it; one that may not has no plan, proven."""
    small = NODES["little memory"][0]
    assert mtpp.partition(read(tmp_path, [small], free=False)).stages[0].tensor_parallel > 1
    alone = Node(small.peak, small.memory_rate, small.bandwidth, small.memory, small.link, (1,))
    assert not list(plans(SMALL, LOAD, [alone], free=False))
    with pytest.raises(Infeasible):
        mtpp.partition(read(tmp_path, [alone], free=False))


def test_a_degree_that_does_not_divide_is_left_out_or_refused(tmp_path: Path) -> None:
    """Of a list with a warning, alone in one line that names its place and the degrees that would do."""
    observer = _Heard()
    node = Node(10**12, 10**10, 10**9, 10**9, 10**10, (1, 3, 4))
    model = read(tmp_path, [node], free=False, observer=observer)
    assert observer.warnings == [
        "degree 3 is left out: 3 GPUs do not divide the 8 attention heads of model.layers.0; engines refuse that"
    ]
    assert mtpp.partition(model).document()["degrees"] == [1, 4]
    with pytest.raises(InputError) as caught:
        read(tmp_path, [Node(10**12, 10**10, 10**9, 10**9, 10**10, (3,))], free=False)
    assert str(caught.value).endswith("; use one of 1, 2, 4, 8")
    assert "/device/0/tensor_parallel: device n0: 3 GPUs do not divide the 8 attention heads" in str(caught.value)


def test_matrices_of_unknown_names_are_said(tmp_path: Path) -> None:
    """They are whole on each GPU, which costs memory."""
    config = LLAMA | {"num_key_value_heads": 4}
    tensors = {name.replace("gate_proj", "gating"): kind for name, kind in llama_tensors().items()}
    tensors |= {name: ("BF16", (8, 8)) for name in tensors if "k_proj" in name or "v_proj" in name}
    folder, heard = write_model(tmp_path, config, tensors), _Heard()
    (tmp_path / "nodes.toml").write_text(FAST.table("n0"))
    mtpp.read(folder, machine=tmp_path / "nodes.toml", observer=heard)
    assert heard.warnings == [
        "2 matrices of unknown names, model.layers.0.mlp.gating.weight the first, not divided: whole on each GPU of a "
        "stage",
        "degree 8 is left out: 8 GPUs do not divide the 4 attention heads of model.layers.0; engines refuse that",
    ]


def test_states_of_any_size_are_held_by_intervals(tmp_path: Path) -> None:
    """Windows and full caches whose sizes have no large divisor, beside a fast memory."""
    config = {
        "model_type": "gpt_oss", "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 4,
        "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 1, "num_local_experts": 2,
        "num_experts_per_tok": 1, "sliding_window": 127, "vocab_size": 10**9, "torch_dtype": "bfloat16",
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    table = '[[device]]\nsystem = "h100"\nmemory = "80TB"\ntensor_parallel = [1, 2]\ntensor_link = "1GB/s"\n'
    (tmp_path / "nodes.toml").write_text(table)
    model = mtpp.read(tmp_path / "config.json", machine=tmp_path / "nodes.toml", context=10**9 + 7, sequences=3)
    with pytest.raises(InputError, match="too large to be told apart"):
        _ = model.whole_instance(None).cost.state_code  # as all other searches need it
    plan = mtpp.partition(model)
    assert plan.optimal
    assert mtpp.verify(plan.document(), tmp_path / "config.json").passed


class _Heard(mtpp.Observer):
    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warn(self, text: str) -> None:
        self.warnings.append(text)
