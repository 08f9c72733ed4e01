"""Models with more repeated layers: each copy costs and reads what the middle layer does."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.piper.lengthened import lengthened
from mtpp.errors import InputError
from mtpp.training.model import Configuration, Edge, Layer, TrainingModel


def chain_model(text_ids: bool = False) -> TrainingModel:
    """Return a mask that three blocks read, and what stands before and after them."""
    ids = ["in", "mask", "b1", "b2", "b3", "out"] if text_ids else list(range(6))
    ends = [(0, 2, 5), (1, 2, 7), (1, 3, 8), (2, 3, 11), (1, 4, 9), (3, 4, 13), (4, 5, 17)]
    layers = []
    for v, name in enumerate(["in", "mask", "Block 2", "Block 3", "Block 4", "out"]):
        forward = {ids[a]: 100 * size for a, b, size in ends if b == v}
        backward = {ids[b]: 1000 * size for a, b, size in ends if a == v}
        layers.append(Layer(ids[v], name, {1: [Configuration("only", 10 + v, v, v, v, forward, backward)]}))
    edges = [Edge(ids[a], ids[b], size) for a, b, size in ends]
    return TrainingModel("chain", "ms", layers, edges, {"devices": 3})


@pytest.mark.parametrize("text_ids", [False, True])
def test_two_copies(text_ids: bool) -> None:
    """Copies stand behind the middle block, read the mask and the block before, and hand on to the next."""
    model = chain_model(text_ids)
    longer = lengthened(model, [2, 3, 4], 5)
    assert len({layer.name for layer in longer.layers}) == 8
    number = longer.index_of
    copies = [layer.id for layer in longer.layers[4:6]]
    first, last = model.layers[2].id, model.layers[4].id
    mask, middle = model.layers[1].id, model.layers[3].id
    sizes = {(edge.source, edge.target): edge.communication_bytes for edge in longer.edges}
    assert len(sizes) == 7 + 4
    assert [sizes[mask, one] for one in (first, middle, *copies, last)] == [7, 8, 8, 8, 9]
    line = [first, middle, *copies, last]
    assert [sizes[line[i], line[i + 1]] for i in range(4)] == [11, 11, 11, 13]
    for i in (1, 2, 3):
        (one,) = longer.layers[number[line[i]]].configurations[1]
        assert one.time_per_sample == 13
        assert one.forward_sync_bytes == {mask: 800, line[i - 1]: 1100}
        assert one.backward_sync_bytes == {line[i + 1]: 13000}
    (behind,) = longer.layers[number[last]].configurations[1]
    assert behind.forward_sync_bytes == {mask: 900, copies[-1]: 1300}
    (shared,) = longer.layers[number[mask]].configurations[1]
    assert shared.backward_sync_bytes == {first: 7000, middle: 8000, last: 9000, copies[0]: 8000, copies[1]: 8000}
    assert longer.defaults == {"devices": 3}


def test_as_many_as_there_are() -> None:
    """Nothing is added where nothing is asked for."""
    model = chain_model()
    assert lengthened(model, [2, 3, 4], 3) is model


@pytest.mark.parametrize(("repeated", "count"), [([2, 3, 4], 2), ([2, 3], 9), ([2, 1, 4], 9), ([2, 4, 5], 9)])
def test_what_cannot_be_repeated(repeated: list[int], count: int) -> None:
    """Fewer layers than there are, too few to have a middle one, or layers that do not follow each other."""
    model = chain_model()
    with pytest.raises(InputError):
        lengthened(model, repeated, count)


def test_bert(shared_data: Path) -> None:
    """BERT-32 becomes BERT-96: every layer reads the mask, and the work grows by that of 64 layers."""
    from mtpp.formats.training.models import read_training_model
    from mtpp.solvers.planners.equal.equi import repeated_layers

    model, _ = read_training_model(str(shared_data / "piper" / "bert32a100.json"), "s")
    found = repeated_layers(model)
    assert found is not None
    longer = lengthened(model, found.layers, 96)
    again = repeated_layers(longer)
    assert again is not None
    assert (len(found.layers), len(again.layers), again.kind) == (32, 96, found.kind)
    assert (len(longer.layers), len(longer.edges)) == (37 + 64, 67 + 2 * 64)
    middle = model.layers[found.layers[16]]

    def work(one: TrainingModel) -> object:
        return sum(layer.configurations[1][0].time_per_sample for layer in one.layers)

    assert work(longer) == work(model) + 64 * middle.configurations[1][0].time_per_sample  # type: ignore[operator]
