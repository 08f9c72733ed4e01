"""Divisions are equal, follow the edges, and go around repeated layers as the paper says."""

from __future__ import annotations

import pytest
from training_models import random_model

from mtpp.solvers.planners.equal.equal_division import divisions, kind_of, repeated_layers
from mtpp.training.model import Configuration, Edge, Layer, TrainingModel


def model_of(names: list[str], ends: list[tuple[int, int]]) -> TrainingModel:
    """Return a model of layers with these names."""
    run = {1: [Configuration("only", 1, 0, 0, 0)]}
    return TrainingModel(
        "model", "ps", [Layer(v, name, run) for v, name in enumerate(names)], [Edge(u, v, 0) for u, v in ends]
    )


def transformer() -> TrainingModel:
    """Return an embedding of tokens, a mask that every block reads, five blocks, and a pooler."""
    names = ["tokens", "Embedding", "mask", *(f"Block #{i}" for i in range(3, 8)), "Pooler"]
    return model_of(names, [(0, 1), (1, 3), *((2, v) for v in range(3, 8)), *((v, v + 1) for v in range(3, 7)), (7, 8)])


def all_divisions(model: TrainingModel, most: int = 100) -> set[tuple[int, ...]]:
    """Return the stage of each layer in every division."""
    return {tuple(division.stage_of.tolist()) for division in divisions(model, most)}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ParallelTransformerLayer #12", "ParallelTransformerLayer"),
        ("ParallelTransformerLayer", "ParallelTransformerLayer"),
        ("encoder.layer.3.attention", "encoder.layer.#.attention"),
        ("node17", "node"),
        ("17", ""),
    ],
)
def test_kinds(name: str, kind: str) -> None:
    """Numbers do not tell layers apart."""
    assert kind_of(name) == kind


def test_what_is_around_repeated_layers() -> None:
    """Those before go with the first group and those after with the last, or apart, the mask either way."""
    found = repeated_layers(transformer())
    assert found is not None
    assert (found.kind, found.layers, found.feeds) == ("Block", [3, 4, 5, 6, 7], [2])
    assert all_divisions(transformer(), 4) == {
        (0,) * 9,
        (0, 0, 0, 0, 0, 1, 1, 1, 1),
        (0, 0, 0, 0, 1, 1, 2, 2, 2),
        (0, 0, 0, 0, 1, 2, 3, 3, 3),
        (0, 0, 0, 1, 1, 1, 1, 1, 2),
        (0, 0, 1, 1, 1, 1, 1, 1, 2),
        (0, 0, 0, 1, 1, 2, 2, 2, 3),
        (0, 0, 1, 1, 1, 2, 2, 2, 3),
    }


def test_layers_between_repeated_ones() -> None:
    """A layer between two repeated ones goes with the one before it."""
    names = ["Attention 0", "Linear A", "Attention 1", "Linear B", "Attention 2"]
    model = model_of(names, [(0, 1), (1, 2), (2, 3), (3, 4)])
    found = repeated_layers(model)
    assert found is not None
    assert found.layers == [0, 2, 4]
    assert all_divisions(model) == {(0, 0, 0, 0, 0), (0, 0, 1, 1, 1), (0, 0, 1, 1, 2)}


def test_no_repeated_layers() -> None:
    """Layers side by side are no repetition, whatever their names; nor are two, or fewer than there are of others."""
    fork = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (4, 5)]
    assert repeated_layers(model_of([*(f"node{v}" for v in range(4)), "node4", "end"], fork)) is None
    wide = [(v, 4) for v in range(4)] + [(4, 5), (5, 6)]
    assert repeated_layers(model_of([*(f"node{v}" for v in range(4)), "top1", "top2", "top3"], wide)) is None
    assert repeated_layers(model_of(["node1", "node2", "node3", "node4"], [(0, 1), (0, 2), (1, 3), (2, 3)])) is None
    assert repeated_layers(model_of(["node1", "node2", "end"], [(0, 1), (1, 2)])) is None


@pytest.mark.parametrize("seed", range(20))
def test_equal_groups_along_orders(seed: int) -> None:
    """Groups differ by one layer at most, larger ones come last, edges lead on, and none comes twice."""
    model = random_model(seed, 4 + seed % 9)
    found = [(d.stages, d.stage_of.tolist()) for d in divisions(model, 6)]
    assert len({tuple(stage_of) for _, stage_of in found}) == len(found)
    assert {stages for stages, _ in found} == set(range(1, min(6, len(model.layers)) + 1))
    for stages, stage_of in found:
        sizes = [stage_of.count(i) for i in range(stages)]
        assert sizes == sorted(sizes)
        assert sum(sizes) == len(model.layers)
        assert sizes[-1] - sizes[0] <= 1
        assert all(stage_of[u] <= stage_of[v] for u, v in model.ends)
