"""Traps of Megatron's texts, flags and recipes: read as it reads them, and said where it says nothing."""

from __future__ import annotations

from typing import Any

import pytest
from refusals import refused_layout

import mtpp


@pytest.mark.parametrize(
    ("text", "layers", "counts"),
    [
        ("Et*2,4|tL", 25, [24, 1]),
        ("Ett*2|L", 3, [3, 0]),
        ("Et*010|L", 10, [10, 0]),
        ("Et*0t|L", 1, [1, 0]),
        ("Et|*3tL", 2, [1, 0, 0, 1]),
        ("E(t|t)*2L", 4, [1, 2, 1]),
        ("Ett|ttL|", 4, [2, 2, 0]),
    ],
)
def test_megatron_expands_repeats(text: str, layers: int, counts: list[int]) -> None:
    """Commas vanish first, groups come before single letters."""
    assert mtpp.read_layout("megatron", text, layers=layers).layers == counts


@pytest.mark.parametrize(
    ("text", "letter"),
    [("Et |tL", " "), ("E(t)|tL", "("), ("E()*2ttL", "("), ("E((t)*2)*2L", "("), ("Ed|tL", "d"), ("e|ttL", "e")],
)
def test_megatron_knows_four_letters(text: str, letter: str) -> None:
    """No blank, and no parenthesis that stays."""
    assert refused_layout("megatron", text, layers=2).startswith(
        f"AssertionError: Invalid layer character: {letter} (stage="
    )


@pytest.mark.parametrize(
    ("text", "mtp", "words"),
    [
        ("Et|tL|t", 0, "The last layer must be loss, but got LayerType.decoder"),
        ("tE|tL", 0, "The first layer must be embedding, but got LayerType.decoder"),
        ("EtE|tL", 0, "Embedding must be specified exactly once"),
        ("EtL|tL", 0, "Loss must be specified exactly once"),
        ("Ett|tL", 0, "Number of decoder layers 3must match num_layers 2"),
        ("Etm|tL", 1, "decoder layers must be placed before MTP layers"),
        ("Ett|m|mL|", 2, "All of the MTP layers must be in the same one virtual pipeline stage"),
    ],
)
def test_megatron_checks_its_letters(text: str, mtp: int, words: str) -> None:
    """In its own words."""
    assert words in refused_layout("megatron", text, layers=2, mtp=mtp)


def test_megatron_finds_mtp_layers_in_an_earlier_chunk() -> None:
    """Two ranks with two chunks each."""
    wrong = refused_layout("megatron", "Ett|m||L", layers=2, mtp=1, stages=2)
    assert "the MTP should be always in the last virtual pipeline stage" in wrong


def test_a_stage_behind_the_loss_is_said() -> None:
    """Megatron takes it in silence, and an embedding that is not first."""
    assert mtpp.read_layout("megatron", "Ett|ttL|", layers=4).findings == [
        "stage 2 is an empty last stage behind the loss"
    ]
    behind = mtpp.read_layout("megatron", "|Et|tL", layers=2)
    assert "the embedding is not on stage 0, where Megatron builds it" in behind.findings


def test_megatron_layouts_exclude_flags() -> None:
    """Those of the configuration, and those of the command line."""
    layout = {"--pipeline-model-parallel-layout": "Et|tL"}
    clash = {**layout, "--decoder-first-pipeline-num-layers": 1}
    assert refused_layout("megatron", clash, layers=2).startswith("ValueError")
    clash = {**layout, "--num-layers-per-virtual-pipeline-stage": 1}
    assert refused_layout("megatron", clash, layers=2).startswith("AssertionError")
    clash = {**layout, "virtual_pipeline_model_parallel_size": 2}
    assert "conflicts with pipeline_model_parallel_layout" in refused_layout("megatron", clash, layers=2, stages=2)


def test_repeats_cannot_fill_the_memory() -> None:
    """Nor digits without end."""
    assert "MemoryError" in refused_layout("megatron", "Et*99999999L", layers=2)
    assert "MemoryError" in refused_layout("megatron", f"Et*{'9' * 5000}L", layers=2)


@pytest.mark.parametrize(
    ("flags", "layers", "stages", "counts"),
    [
        ("--decoder-first-pipeline-num-layers 16 --decoder-last-pipeline-num-layers 13", 61, 4, [16, 16, 16, 13]),
        ("--account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split", 62, 4, [15, 16, 16, 15]),
        ("--account-for-loss-in-pipeline-split", 31, 4, [8, 8, 8, 7]),
        ("--num-layers-per-virtual-pipeline-stage 2", 16, 4, [2] * 8),
        ("--num-virtual-stages-per-pipeline-rank 2 --decoder-first-pipeline-num-layers 4", 12, 3, [2] * 6),
    ],
)
def test_flags_of_megatron(flags: str, layers: int, stages: int, counts: list[int]) -> None:
    """As a command line has them."""
    assert mtpp.read_layout("megatron-flags", flags, layers=layers, stages=stages).layers == counts


@pytest.mark.parametrize(
    ("setting", "layers", "words"),
    [
        ({"--decoder-first-pipeline-num-layers": 0}, 32, "num_layers_in_first_pipeline_stage must be larger than 0"),
        ({"--decoder-first-pipeline-num-layers": 9}, 32, "number of layers at middle stage: 23 must be divisible"),
        ({"--account-for-loss-in-pipeline-split": True}, 32, "number of middle layers: 33 must be divisible"),
        ({}, 33, "num_layers=33 should be divisible by config.pipeline_model_parallel_size=4"),
        (
            {"--decoder-first-pipeline-num-layers": 8, "--account-for-loss-in-pipeline-split": True},
            32,
            "cannot be set at the same time",
        ),
        (
            {"--num-virtual-stages-per-pipeline-rank": 2, "--decoder-last-pipeline-num-layers": 5},
            32,
            "number of layers at last stage: 5must be divisible",
        ),
        (
            {"--num-layers-per-virtual-pipeline-stage": 2, "--decoder-last-pipeline-num-layers": 5},
            32,
            "please use --num-virtual-stages-per-pipeline-rank",
        ),
    ],
)
def test_flags_that_megatron_refuses(setting: dict[str, Any], layers: int, words: str) -> None:
    """In its own words."""
    assert words in refused_layout("megatron-flags", setting, layers=layers, stages=4)


def test_flags_that_lose_layers_are_said() -> None:
    """Megatron takes more on the ends than there are."""
    ends = {"--decoder-first-pipeline-num-layers": 3, "--decoder-last-pipeline-num-layers": 3}
    layout = mtpp.read_layout("megatron-flags", ends, layers=4, stages=3)
    assert layout.ranges == [[0, 3], [3, 1], [1, 4]]
    assert layout.findings == ["stage 1 has -2 layers, a negative number"]


@pytest.mark.parametrize(
    ("recipe", "stages", "virtual", "layers", "counts"),
    [
        ("deepseek-v3", 4, 1, 61, [16, 16, 16, 13]),
        ("deepseek-v3", 8, 1, 61, [8] * 7 + [5]),
        ("deepseek-v3", 4, 4, 61, [4] * 15 + [1]),
        ("kimi-k2", 2, 8, 61, [4] * 15 + [1]),
        ("sarvam", 8, 1, 19, [3, 3, 3, 2, 2, 2, 2, 2]),
        ("deepseek-v4", 4, 1, 43, [11, 11, 11, 10]),
        ("standalone-mtp", 5, 1, 61, [21, 20, 20, 0, 0]),
    ],
)
def test_recipes_of_megatron_bridge(recipe: str, stages: int, virtual: int, layers: int, counts: list[int]) -> None:
    """By name; MTP and loss end the last stage, or stand alone."""
    layout = mtpp.read_layout("megatron-bridge", {"recipe": recipe, "vp": virtual}, layers=layers, stages=stages, mtp=1)
    assert layout.layers == counts
    assert (layout.mtp_on, layout.head_on) == (
        ([len(counts) - 2], [len(counts) - 1]) if recipe == "standalone-mtp" else ([len(counts) - 1],) * 2
    )


def test_recipes_have_no_other_pairs() -> None:
    """The error of the map."""
    wrong = refused_layout("megatron-bridge", {"recipe": "deepseek-v3", "vp": 3}, layers=61, stages=4)
    assert wrong.startswith("ValueError: no layout of deepseek-v3 for pp=4, vp=3; for DeepSeek-V3 it is swallowed")
    assert refused_layout("megatron-bridge", "standalone-mtp", layers=61, stages=2, mtp=1).startswith("ValueError")
