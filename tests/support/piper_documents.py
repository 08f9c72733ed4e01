"""Workloads of the Piper planner, as its files have them, for tests."""

from __future__ import annotations

import json
from typing import Any

from mtpp.formats.io.json_text import parse_json


def configuration(name: str = "vanilla", time: Any = 0.5, parameters: Any = 10**9, **more: Any) -> dict[str, Any]:
    """Return one TMPC; *more* are further keys, or other values of them."""
    return {
        "id": name,
        "timePerSample": time,
        "parameterSize": parameters,
        "memoryUsageA": 3.0,
        "memoryUsageB": 4.0,
        "syncTimeFw": {},
        "syncTimeBw": {},
        **more,
    }


def layer(identity: int, *configurations: Any, name: str = "layer", degree: str = "1") -> dict[str, Any]:
    """Return a node that runs on one number of devices."""
    return {"id": identity, "name": name, "TMPCs": {degree: list(configurations) or [configuration()]}}


def edge(source: int, target: int, size: Any = 8.0) -> dict[str, Any]:
    """Return an edge."""
    return {"sourceId": source, "destId": target, "communicationCost": size}


def document(nodes: list[Any], edges: list[Any], **more: Any) -> Any:
    """Return a parsed file; *more* are further keys beside the nodes, or other values of them."""
    made = {"maxDevices": 10, "maxMemoryPerDevice": 8e10, "bandwidth": 2.5e10, "nodes": nodes, "edges": edges}
    return parse_json(json.dumps({**made, **more}).encode(), "p.json")


def pipeline(forward: str = "syncTimeFw", backward: str = "syncTimeBw") -> Any:
    """Return a parsed file of two layers in a row; the arguments say under which keys costs of synchronisation are.

    Layer 7 leads to layer 3; each has a plain configuration and one that recomputes, for one device and for two.
    """

    def one(name: str, identity: int, degree: int) -> dict[str, Any]:
        sync = {forward: {"7": 16 * degree}} if identity == 3 else {backward: {"3": 32 * degree}}
        time = 0.0625 * identity / degree * (1.5 if name != "vanilla" else 1)
        return configuration(name, time, 10**9 / degree, **(sync if degree > 1 else {}))

    nodes = [
        {
            "id": identity,
            "name": f"layer {identity}",
            "TMPCs": {str(t): [one(name, identity, t) for name in ("vanilla", "activation recomp")] for t in (1, 2)},
        }
        for identity in (3, 7)
    ]
    return document(nodes, [edge(7, 3, 64.0)], mbsInBatch=12)
