"""Orders of passes: kFkB as it is defined, and orders that are written out."""

from __future__ import annotations

import pytest
from pipeline_events import order_of

from mtpp.errors import InputError
from mtpp.training.stage_graph import interleaved_order, order_of_text


def test_interleaved_orders_are_those_of_the_definition() -> None:
    """Every number of micro-batches, in flight and in turn, up to 12."""
    for count in range(1, 13):
        for in_flight in range(1, 14):
            for k in range(1, 14):
                stage = {"micro_batch": 1, "in_flight": in_flight, "k": k}
                expected = [j if kind == "F" else -j for kind, j in order_of(stage, count)]
                assert interleaved_order(count, in_flight, k).tolist() == expected


def test_orders_are_read() -> None:
    """Two in flight, 1F1B."""
    order = order_of_text("F1 F2 B1 F3 B2 F4 B3 F5 B4 B5", 5)
    assert order.tolist() == interleaved_order(5, 2, 1).tolist()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("F1 F2 B1 B1", "pass B1 is there twice"),
        ("F1 F2 B1", "pass B2 is missing"),
        ("F1 F2 B1 B2 F3 B3", "there is no micro-batch 3"),
        ("F1 F2 B1 X2", "'X2' is no pass"),
        ("F0 F1 B0 B1", "'F0' is no pass"),
        ("", "pass F1 is missing"),
    ],
)
def test_orders_that_are_none(text: str, said: str) -> None:
    """The message names the pass."""
    with pytest.raises(InputError, match=said):
        order_of_text(text, 2)
