"""Models to be trained in the native format, for tests."""

from __future__ import annotations

import json
from typing import Any

from mtpp.formats.io.json_text import parse_json


def configuration(name: str = "plain", time: Any = 1, **more: Any) -> dict[str, Any]:
    """Return one configuration; *more* are further keys, or other values of them."""
    return {
        "id": name,
        "time": time,
        "parameter_bytes": 1000,
        "memory_bytes_per_micro_batch": 30,
        "memory_bytes": 400,
        **more,
    }


def layer(name: str, *configurations: Any, **by_degree: Any) -> dict[str, Any]:
    """Return a layer with configurations for one device, and for t under ``t2=[…]``."""
    one = {} if by_degree and not configurations else {"1": list(configurations) or [configuration()]}
    return {"name": name, "configurations": one | {key[1:]: rows for key, rows in by_degree.items()}}


def edge(source: str, target: str, size: Any = 8) -> dict[str, Any]:
    """Return an edge."""
    return {"source": source, "target": target, "bytes": size}


def document(layers: Any, edges: Any, **more: Any) -> Any:
    """Return a parsed file; *more* are further keys beside the layers, or other values of them."""
    made = {
        "format": "mtpp-training-model",
        "version": 1,
        "name": "m",
        "time_unit": "ms",
        "layers": layers,
        "edges": edges,
    }
    return parse_json(json.dumps({**made, **more}).encode(), "m.json")


def fork() -> Any:
    """Return a parsed file of a layer that two others read; one of them runs on two devices as well, and recomputes."""
    wide = [
        configuration("wide", 0.375, sync_in={"a/b": 64}, recompute=False),
        configuration("wide again", 0.5, sync_in={"a/b": 0}, sync_out={}, recompute=True),
    ]
    layers = [layer("a/b", configuration(time=1e-3)), layer("c", configuration(), t2=wide), layer("d~")]
    more = {"defaults": {"devices": 4, "micro_batches": 16}, "metadata": {"made by": ["hand", 1.5]}}
    return document(layers, [edge("a/b", "c", 64), edge("a/b", "d~", 32)], **more)
