"""Events as ONNX Runtime's profiler writes them."""

from __future__ import annotations

from typing import Any


def kernel(
    name: str, ts: int, dur: Any, kind: str = "Relu", index: int = 0, tid: int = 1, **args: Any
) -> dict[str, Any]:
    """Return the event of a kernel."""
    described = {"op_name": kind, "node_index": str(index), "provider": "CPUExecutionProvider"}
    return {
        "cat": "Node", "pid": 1, "tid": tid, "dur": dur, "ts": ts, "ph": "X", "name": f"{name}_kernel_time",
        "args": {**described, "output_type_shape": [{"float": [2, 3]}], **args},
    }  # fmt: skip


def run(ts: int, dur: int, tid: int = 1) -> dict[str, Any]:
    """Return the event of a whole run."""
    return {"cat": "Session", "pid": 1, "tid": tid, "dur": dur, "ts": ts, "ph": "X", "name": "model_run", "args": {}}
