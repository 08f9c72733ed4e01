"""Cases of :mod:`irregular_models` as options of ``mtpp plan``."""

from __future__ import annotations

from typing import Any

Document = dict[str, Any]


def graph_options(asked: Document) -> list[str]:
    """Return the options of a case of stage graphs."""
    options = ["--planner", "graphpipe", "--batch-size", str(asked["mini_batch"]), "--latency", f"{asked['latency']}ps"]
    options += [*_machine(asked), "--kfkb", _listed(asked["intervals"])]
    options += ["--in-flight", "least"] if asked["least"] else []
    options += ["--sequential"] if asked["sequential"] else []
    options += ["--per-stage-micro-batch"] if asked["per_stage"] else []
    options += ["--micro-batch-sizes", _listed(asked["sizes"])] if asked["sizes"] else []
    return [*options, *_without(asked, "data_parallel", "recompute")]


def line_options(asked: Document) -> list[str]:
    """Return the options of a case of pipelines by degrees."""
    options = [
        *_machine(asked),
        "--max-micro-batches",
        str(asked["micro_batches"]),
        "--convention",
        asked["convention"],
    ]
    options += ["--exact-micro-batches"] if asked["exact"] else []
    return [*options, *_without(asked, "data_parallel", "tensor_parallel", "recompute")]


def split_options(given: Document) -> list[str]:
    """Return the options for what :func:`mtpp.plan_training` is *given* with the planner of split points."""
    options = ["--planner", "pfeife", "--latency", f"{given['latency']}ps", "--loops", _listed(given["loops"])]
    for key in ("devices", "micro_batches", "order", "transport", "buffers", "backward_ratio", "loop_batch", "state"):
        options += [f"--{key.replace('_', '-')}", str(given[key])] if key in given else []
    options += ["--bandwidth", f"{given['bandwidth']}B/s"] if "bandwidth" in given else []
    options += ["--memory", ",".join(f"{size}B" for size in given["memory"])] if given["memory"] else []
    for key in ("speed", "prefetch"):
        options += [f"--{key}", _listed(given[key])] if given.get(key) else []
    return [*options, *(["--schedule", given["schedule"]] if given.get("schedule") else [])]


def _machine(asked: Document) -> list[str]:
    memory, bandwidth = f"{asked['memory_bytes']}B", f"{asked['bandwidth']}B/s"
    return ["--devices", str(asked["devices"]), "--memory", memory, "--bandwidth", bandwidth]


def _without(asked: Document, *names: str) -> list[str]:
    return [f"--no-{name.replace('_', '-')}" for name in names if not asked[name]]


def _listed(values: Any) -> str:
    return ",".join(map(str, values))
