"""Branches of a model's control flow that cannot run with the sizes that it was read for."""

from __future__ import annotations

from mtpp.formats.modelled.control_notes import LEFT_OUT
from mtpp.formats.onnx.reader import Reading


def only_branches(reading: Reading) -> dict[str, str]:
    """Return the only branch that can run of each If of the main graph with one that cannot, by its first output."""
    place = dict(zip(reading.graph.op_names, reading.positions, strict=True))
    nodes = reading.model.graph.node
    found = {}
    for entry in reading.graph.metadata.get("control_flow", ()):
        if entry["kind"] == "If" and LEFT_OUT in entry["note"] and entry["op"] in place:
            branch = entry["note"].rpartition(": ")[2].partition(" ")[0]
            found[nodes[place[entry["op"]]].output[0]] = branch
    return found
