"""Transformers to be trained: known sizes, and what more devices and recomputation change."""

from __future__ import annotations

from itertools import pairwise

import pytest

from mtpp.datasets.transformer_training import STATE_BYTES, transformer_training
from mtpp.errors import InputError
from mtpp.machine.presets import load_device
from mtpp.training.model import Configuration, TrainingModel

PEAK, MEMORY, LINK = 312 * 10**12, 2039 * 10**9, 300 * 10**9


def _one(model: TrainingModel, layer: int, t: int, name: str = "vanilla") -> Configuration:
    (found,) = (one for one in model.layers[layer].configurations[t] if one.id == name)
    return found


def test_parameters_are_those_of_gpt() -> None:
    """GPT-3 of 6.7 billion parameters: 32 layers of width 4,096; its layers have 12h² + 13h each."""
    model = transformer_training(32, hidden=4096, heads=32, sequence=2048, vocabulary=50_257)
    elements = [_one(model, i, 1).parameter_bytes // 2 for i in range(len(model.layers))]
    assert elements[1] == 12 * 4096**2 + 13 * 4096
    assert sum(elements[:-1]) == pytest.approx(6.7e9, rel=0.01)


def test_a_layer_costs_what_the_formulas_say() -> None:
    """FLOPs at peak for three passes, activations of 34bsh + 5abs² bytes, state of 18 bytes a parameter."""
    h, a, s, b = 2048, 16, 1024, 2
    model = transformer_training(3, hidden=h, heads=a, sequence=s, micro_batch_size=b)
    one = _one(model, 2, 1)
    flops = 24 * b * s * h * h + 4 * b * s * s * h
    assert one.time_per_sample == 3 * -(-flops * 10**12 // PEAK)
    assert one.memory_a == 34 * b * s * h + 5 * a * b * s * s
    assert one.memory_b == STATE_BYTES * (12 * h * h + 13 * h)
    assert (one.forward_sync_bytes, one.backward_sync_bytes) == ({}, {})
    assert [edge.communication_bytes for edge in model.edges] == [2 * b * s * h] * 4


def test_recomputation_keeps_the_input_alone() -> None:
    """It takes one more forward pass; what is made again is there for one micro-batch."""
    model = transformer_training(2)
    plain, again = _one(model, 1, 1), _one(model, 1, 1, "recompute")
    assert again.recomputes
    assert not plain.recomputes
    assert again.time_per_sample * 3 == plain.time_per_sample * 4
    assert again.memory_a == 2 * 1024 * 2048
    assert again.memory_a + again.memory_b == plain.memory_a + plain.memory_b
    assert [len(choices) for choices in model.layers[0].configurations.values()] == [1, 1, 1, 1]


def test_devices_that_share_a_layer_split_it_and_talk() -> None:
    """Time, parameters and memory shrink with t, but not to one part in t; neighbours are paid for on every device."""
    model = transformer_training(2)
    ones = [_one(model, 1, t) for t in (1, 2, 4, 8)]
    for few, many in pairwise(ones):
        for key in ("time_per_sample", "parameter_bytes", "memory_a", "memory_b"):
            assert getattr(few, key) / 2 < getattr(many, key) < getattr(few, key)
    exchanged = -(-2 * 1024 * 2048 * 2 * 7 * 10**12 // (8 * LINK))
    flops = -(-(24 * 1024 * 2048**2 + 4 * 1024**2 * 2048) // 8)
    traffic = ones[3].parameter_bytes + ones[3].memory_a
    assert (
        ones[3].time_per_sample == 3 * max(-(-flops * 10**12 // PEAK), -(-traffic * 10**12 // MEMORY)) + 4 * exchanged
    )
    assert ones[3].forward_sync_bytes == {"embedding": 2 * 1024 * 2048}
    assert ones[3].backward_sync_bytes == {"layer 1": 2 * 1024 * 2048}


def test_degrees_divide_the_heads() -> None:
    """No device gets a part of a head."""
    assert transformer_training(1, hidden=96, heads=12).degrees == [1, 2, 4]
    assert transformer_training(1, hidden=15, heads=3).degrees == [1]


def test_times_follow_the_system() -> None:
    """A slower machine takes longer; sizes stay."""
    fast, slow = transformer_training(1), transformer_training(1, system=load_device("reference"))
    assert _one(slow, 1, 1).time_per_sample > 10 * _one(fast, 1, 1).time_per_sample
    assert _one(slow, 1, 1).memory_b == _one(fast, 1, 1).memory_b
    assert slow.metadata["system"] == "reference"


@pytest.mark.parametrize(
    ("sizes", "problem"),
    [
        ({"layers": 0}, "0 for layers"),
        ({"layers": 2, "vocabulary": 0}, "0 for vocabulary"),
        ({"layers": 2, "heads": 5}, "5 heads cannot share"),
        ({"layers": 10**6}, "1,000,000 layers are too many"),
    ],
)
def test_sizes_that_cannot_be(sizes: dict[str, int], problem: str) -> None:
    """What no model has is refused."""
    with pytest.raises(InputError, match=problem):
        transformer_training(**sizes)
