"""Parts of a model by device, from layouts of all forms."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mtpp
from mtpp.language_models.placed_layout import Holder, placed_layout


def _placed(engine: str, layout: Any, layers: int, mtp: int = 0, **of: Any) -> Any:
    read = mtpp.read_layout(engine, layout, layers=layers, mtp=mtp, **of)
    return placed_layout(read, layers, mtp)


def test_stages_follow_each_other() -> None:
    """The embedding is the first one's, norm, head and MTP layers the last one's."""
    placed = _placed("vllm", "2,3,1", 6, mtp=1)
    assert placed.holders == [
        Holder("0", 0, [0, 1], embedding=True, stages=[0]),
        Holder("1", 1, [2, 3, 4], stages=[1]),
        Holder("2", 2, [5, 6], final_norm=True, head=True, stages=[2]),
    ]
    assert placed.in_order
    assert (placed.missing, placed.doubled, placed.parts_missing) == ([], [], [])


def test_the_tied_embedding_of_vllm_is_looked_up_in_the_first_stage() -> None:
    """The last stage only has the copy that its head reads."""
    assert [holder.embedding for holder in _placed("vllm", "2,2", 4, tied=True).holders] == [True, False]


def test_negative_counts() -> None:
    """Layers that there are not are nobody's."""
    placed = _placed("vllm", "-1,33", 32)
    assert [list(holder.layers) for holder in placed.holders] == [[], list(range(32))]


def test_a_rank_holds_all_of_its_virtual_stages() -> None:
    """Megatron: chunk-major; torchtitan in a V."""
    placed = _placed("megatron", "Et*2|t*3|t|t*2L", 8, stages=2)
    assert [holder.runs() for holder in placed.holders] == [[[0, 2], [5, 6]], [[2, 5], [6, 8]]]
    assert not placed.in_order
    lists = [["tok_embeddings", "layers.0"], ["layers.1"], ["layers.2"], ["layers.3", "norm", "lm_head"]]
    titan = {"module_fqns_per_model_part": lists, "pipeline_parallel_schedule": "ZBVZeroBubble"}
    placed = _placed("torchtitan", titan, 4, stages=2)
    assert [list(holder.layers) for holder in placed.holders] == [[0, 3], [1, 2]]


def test_layers_in_no_stage_and_in_two() -> None:
    """A schedule of single stages runs the first list of each rank alone."""
    lists = [["tok_embeddings", "layers.0", "layers.1"], ["layers.1", "norm", "lm_head"], ["layers.2"], ["layers.3"]]
    placed = _placed("torchtitan", {"module_fqns_per_model_part": lists}, 4, stages=2)
    assert (placed.missing, placed.doubled, placed.parts_missing) == ([2, 3], [1], [])
    placed = _placed("torchtitan", {"module_fqns_per_model_part": [["layers.0"], ["layers.1"]]}, 2)
    assert placed.parts_missing == ["embedding", "final norm", "head"]


def test_named_devices() -> None:
    """llama.cpp keeps the embedding on the CPU; layers of accelerate may be divided."""
    placed = _placed("llama.cpp", "-ngl 3 -ts 1,1", 4)
    assert [(holder.name, holder.place, list(holder.layers)) for holder in placed.holders] == [
        ("0", 0, [2, 3]), ("1", 1, []), ("CPU", None, [0, 1]),
    ]  # fmt: skip
    assert [(holder.embedding, holder.head) for holder in placed.holders] == [
        (False, False),
        (False, True),
        (True, False),
    ]
    given = {"model": 1, "model.layers.1.mlp": 0, "lm_head": "disk"}
    placed = _placed("accelerate", given, 2)
    assert [(holder.name, list(holder.layers)) for holder in placed.holders] == [
        ("0", [1]),
        ("1", [0, 1]),
        ("disk", []),
    ]
    shares = [holder.shares.get(1) for holder in placed.holders[:2]]
    assert all(isinstance(share, Fraction) for share in shares)
    assert sum(filter(None, shares)) == 1
    assert placed.doubled == []


def test_a_server_of_several() -> None:
    """Embedding and head are the client's, other layers those of other servers."""
    placed = _placed("petals", "3:9", 12)
    assert [(holder.name, holder.place) for holder in placed.holders] == [("0", 0), ("client", None)]
    assert (placed.missing, placed.whole) == ([], False)
