"""Summaries of graphs, for a prompt and for a notebook."""

from __future__ import annotations

from graph_strategies import chain

from mtpp.api.inputs.reading import read
from mtpp.datasets import sample_path


def test_a_graph_says_what_it_is_in_a_dozen_lines() -> None:
    """Sizes, kinds of ops, the most expensive ops in descending order; not all of its arrays."""
    lines = repr(read(sample_path("resnet50")).graph).splitlines()
    assert len(lines) <= 20
    assert lines[:2] == ["<CostGraph 'resnet50'>", "  ops: 122 (53 Conv, 49 Relu, 16 Add, 1 MaxPool, …)"]
    assert lines[-5].split() == ["layer4.0.conv2/Conv", "49.70", "µs"]


def test_a_notebook_shows_a_table() -> None:
    """Names are escaped; a model says its assumptions below."""
    html = chain([1, 2], [1], "ms")._repr_html_()
    assert "<table>" in html
    assert "2.000 ms" in html
    model = read(sample_path("resnet50"))._repr_html_()
    assert "system reference: 20 TFLOP/s" in model
