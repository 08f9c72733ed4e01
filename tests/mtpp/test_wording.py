"""Names that mistyped ones stand for."""

from __future__ import annotations

from mtpp.wording import did_you_mean, nearest

OPS = ["conv1/Conv", "conv2/Conv", "layer.10/Relu", "layer.1/Relu"]


def test_near_names_come_first() -> None:
    """Case alone before letters, letters before parts of names, and no more than three."""
    assert nearest("CONV1/CONV", OPS) == ["conv1/Conv"]
    assert nearest("conv1/Cnv", OPS)[0] == "conv1/Conv"
    assert nearest("relu", ["layer.1/attention/Relu", "layer.1/attention/Add"]) == ["layer.1/attention/Relu"]
    assert nearest("nothing like it", OPS) == []
    assert len(nearest("opp1", [f"op{i}" for i in range(100)])) == 3


def test_remedies() -> None:
    """The nearest names, or else the remedy that was given; values that are no texts are near to none."""
    assert did_you_mean("jsn", ("table", "json"), "use one of them") == "did you mean 'json'?"
    assert did_you_mean("xml", ("table", "json"), "use one of them") == "use one of them"
    assert did_you_mean(3, ("table", "json"), "use one of them") == "use one of them"


def test_graphs_of_a_million_ops() -> None:
    """Only the first names are compared by letters; the exact one in other case is found everywhere."""
    names = [f"op{i}" for i in range(10**5)]
    assert nearest("OP99999", names) == ["op99999"]
