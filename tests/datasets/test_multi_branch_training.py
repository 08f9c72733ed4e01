"""Multi-branch models to be trained have the branches they promise, and costs that follow from their shapes."""

from __future__ import annotations

import networkx as nx
import pytest

from mtpp.datasets.multi_branch_training import (
    ELEMENT_BYTES,
    FAMILIES,
    MICRO_BATCH_SIZES,
    TENSOR_PARALLEL_BANDWIDTH,
    TOP_LAYERS,
    WIDTH,
    TrainingNetwork,
    candle_uno,
    dlrm,
    multi_branch_model,
    multi_modal_transformer,
)
from mtpp.errors import InputError
from mtpp.machine.presets import load_device
from mtpp.training.model import TrainingModel


def branches_of(model: TrainingModel) -> list[int]:
    """Return how many layers stand in each branch before the join, longest first."""
    graph = nx.DiGraph(list(model.ends))
    graph.add_nodes_from(range(len(model.layers)))
    join = next(v for v, layer in enumerate(model.layers) if layer.name == "concatenation")
    above = graph.subgraph(nx.ancestors(graph, join))
    assert all(degree <= 1 for _, degree in above.in_degree)
    return sorted(map(len, nx.weakly_connected_components(above)), reverse=True)


def test_shapes_of_the_paper() -> None:
    """Without arguments the models are those of GraphPipe's evaluation."""
    assert branches_of(multi_modal_transformer()) == [8] * 4
    assert branches_of(multi_modal_transformer(operators=True)) == [24] * 4
    assert branches_of(dlrm()) == [4] * 7 + [1] * 7
    assert branches_of(candle_uno()) == [4] * 7
    assert branches_of(candle_uno(16, 3)) == [3] * 16
    assert len(candle_uno().layers) == 7 * 4 + 1 + TOP_LAYERS


@pytest.mark.parametrize("family", FAMILIES)
def test_degrees_and_configurations(family: str) -> None:
    """Every layer can be shared by 1, 2, 4, 8 devices, with recomputation and without; sharing and recomputing save."""
    for layer in FAMILIES[family]().layers:
        assert list(layer.configurations) == [1, 2, 4, 8]
        for t, (plain, again) in layer.configurations.items():
            assert (plain.recomputes, again.recomputes) == (False, True)
            assert again.time_per_sample >= plain.time_per_sample
            assert again.memory_a <= plain.memory_a
            assert again.memory_a + again.memory_b == plain.memory_a + plain.memory_b
            assert plain.parameter_bytes * t >= layer.configurations[1][0].parameter_bytes
            sizes = [*plain.forward_sync_bytes.values(), *plain.backward_sync_bytes.values()]
            assert all(size > 0 for size in sizes) if t > 1 else not any(sizes)


def test_costs_of_a_feed_forward_layer() -> None:
    """The second layer of a branch: FLOPs at peak, a ring between devices, inputs and results kept, two versions."""
    rows, system = 256, load_device()
    layer = candle_uno(micro_batch=rows).layers[1]
    flops, tensor = 2 * rows * WIDTH**2, rows * WIDTH * ELEMENT_BYTES
    one, shared = layer.configurations[1][0], layer.configurations[4][0]
    traffic = 2 * tensor + WIDTH**2 * ELEMENT_BYTES
    assert one.time_per_sample == system.modelled_work_ps(3 * flops, 3 * traffic)
    ring = -(-2 * 2 * 3 * tensor * 10**12 // (4 * TENSOR_PARALLEL_BANDWIDTH))
    assert shared.time_per_sample == system.modelled_work_ps(-(-3 * flops // 4), -(-3 * traffic // 4)) + ring
    assert one.parameter_bytes == WIDTH**2 * ELEMENT_BYTES == 4 * shared.parameter_bytes
    assert (one.memory_a, one.memory_b) == (2 * tensor, 2 * one.parameter_bytes)
    assert dict(shared.forward_sync_bytes) == {0: tensor}
    assert dict(shared.backward_sync_bytes) == {2: tensor}


def test_parameters_of_a_transformer() -> None:
    """A Transformer layer has 12 · hidden² parameters, whole or in parts; DLRM's tables have theirs."""
    whole, parts = multi_modal_transformer(1, 2), multi_modal_transformer(1, 2, operators=True)
    sizes = [sum(layer.configurations[1][0].parameter_bytes for layer in model.layers) for model in (whole, parts)]
    assert sizes == [2 * 12 * 1024**2 * ELEMENT_BYTES] * 2
    tables = [layer for layer in dlrm().layers if "embedding" in layer.name]
    assert [layer.configurations[1][0].parameter_bytes for layer in tables] == [64 * 10**6 * ELEMENT_BYTES] * 7


@pytest.mark.parametrize("family", FAMILIES)
def test_seeds_make_branches_differ(family: str) -> None:
    """Without a seed all branches are alike; a seed fixes their sizes, which differ; names tell models apart."""

    def outputs(seed: int | None) -> tuple[str, set[int]]:
        model = FAMILIES[family](3, seed=seed)
        return model.name, {
            edge.communication_bytes for edge in model.edges if "concatenation" in model.layers[int(edge.target)].name
        }

    same, first, other = outputs(None), outputs(1), outputs(2)
    assert outputs(1) == first
    assert len({same[0], first[0], other[0]}) == 3
    assert len(same[1]) < len(first[1])
    assert first[1] != other[1]


@pytest.mark.parametrize(
    ("family", "arguments", "words"),
    [
        ("mmt", {"branches": 0}, "0 branches"),
        ("candle-uno", {"layers": 0}, "0 layers in a branch"),
        ("candle-uno", {"top": -1}, "-1 layers behind"),
        ("dlrm", {"sparse": -1}, "-1 branches of embeddings"),
        ("mmt", {"branches": 10**6, "layers": 10**6}, "too large"),
    ],
)
def test_what_cannot_be_made(family: str, arguments: dict[str, int], words: str) -> None:
    """Impossible sizes are refused."""
    with pytest.raises(InputError, match=words):
        FAMILIES[family](**arguments)


@pytest.mark.parametrize("family", FAMILIES)
def test_costs_by_micro_batch_size(family: str) -> None:
    """Passes and memory of each size are a roofline of that size, edges and times those of the least one."""
    machine = load_device("v100")
    sizes = MICRO_BATCH_SIZES[family]
    model = multi_branch_model(family)
    assert model.micro_batch_size == sizes[0]
    for size in sizes:
        alone = FAMILIES[family](micro_batch=size, network=TrainingNetwork(machine, micro_batch_size=size))
        for layer, same in zip(model.layers, alone.layers, strict=True):
            (one,), (other,) = layer.configurations[1], same.configurations[1]
            costs = one.micro_batches[size]
            assert costs.forward + costs.backward == other.time_per_sample
            assert costs.memory_bytes == other.memory_a
            assert one.parameter_bytes == other.parameter_bytes
            assert list(one.micro_batches) == list(sizes)
    assert [edge.communication_bytes for edge in model.edges] == [
        edge.communication_bytes
        for edge in FAMILIES[family](
            micro_batch=sizes[0], network=TrainingNetwork(machine, micro_batch_size=sizes[0])
        ).edges
    ]


def test_a_transformer_layer_of_four_samples_is_more_efficient() -> None:
    """On a V100, 1.2 times as efficient as one of two: a small one reads all its parameters for little work."""
    (one,) = multi_branch_model("mmt").layers[1].configurations[1]
    two, four = (one.micro_batches[size] for size in (2, 4))
    assert (two.forward + two.backward) * 2 / (four.forward + four.backward) == pytest.approx(1.215, abs=0.001)


def test_bad_sizes_of_micro_batches() -> None:
    """None, or below 1."""
    for sizes in ((), (0, 2)):
        with pytest.raises(InputError, match="micro_batch_sizes"):
            multi_branch_model("mmt", micro_batch_sizes=sizes)
