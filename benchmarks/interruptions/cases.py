"""Commands to be interrupted, and the large inputs that they need, which are written where they are not there yet."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.limits.graphs import write_graph, write_training_model

LINE = ("--devices", "64", "--memory", "2TiB", "--bandwidth", "25GB/s", "--max-micro-batches", "128")
GRAPH = ("--devices", "64", "--memory", "2TiB", "--bandwidth", "25GB/s", "--batch-size", "256")
SPLIT = ("--devices", "64", "--memory", "2TiB", "--bandwidth", "25GB/s", "--micro-batches", "128")
NESTED = ("--topology", "{topology}", "--memory", "2TiB", "--max-micro-batches", "128")
SMALL = ("--devices", "16", *LINE[2:])
SHORT = ("--time-limit", "5", "-q", "-o")

OPS = 1_500
"""Of the ONNX model: layers of a matrix product, a bias and an activation."""

PLANNING: Mapping[str, tuple[str, ...]] = {
    **{
        f"plan {planner} {shape}": ("plan", f"{{{shape}}}", "--planner", planner, *arguments)
        for planner, arguments in {
            "piper": LINE,
            "equi": LINE,
            "pipedream-2bw": LINE,
            "graphpipe": (*GRAPH, "--micro-batch-size", "1"),
            "pfeife": SPLIT,
        }.items()
        for shape in ("layers", "star")
    },
    "plan nested layers": ("plan", "{layers}", *NESTED),
    "plan nested star": ("plan", "{star}", *NESTED),
    "plan pfeife searched order": ("plan", "{layered}", "--planner", "pfeife", *SPLIT, "--order", "search"),
    "plan pfeife beam": ("plan", "{layers}", "--planner", "pfeife", *SPLIT, "--search", "beam"),
    "plan pfeife onnx": ("plan", "{onnx}", "--planner", "pfeife", *SPLIT),
    "plan sweep": ("plan", "{layers}", *SMALL, "--sweep"),
}

PARTITIONING: Mapping[str, tuple[str, ...]] = {
    **{
        f"{command} {shape}": (command, f"{{{shape}}}", "-k", "16")
        for command in ("partition", "bound", "certify")
        for shape in ("chain", "layered", "wide", "onnx")
    },
    **{
        f"partition {algorithm}": ("partition", "{layered}", "-k", "16", "--algorithm", algorithm)
        for algorithm in ("downset", "slice", "brkga", "random", "series-parallel")
    },
    "partition dense": ("partition", "{dense}", "-k", "16"),
    "compare": ("compare", "{layered}", "-k", "16"),
}

RESULTS: Mapping[str, tuple[str, ...]] = {
    "verify": ("verify", "{plan}", "--model", "{layered}"),
    "verify deep": ("verify", "{enumerated}", "--model", "{small}", "--deep"),
    "verify table": ("verify", "{table}", "--deep"),
    "verify plan": ("verify", "{training_plan}"),
    "verify piper": ("verify", "{line_plan}", "--model", "{layers}", "--deep"),
    "verify graphpipe": ("verify", "{graph_plan}", "--model", "{layers}", "--deep"),
    "report": ("report", "{plan}", "--model", "{layered}", "-o", "{scratch}.html"),
    "report table": ("report", "{table}", "-o", "{scratch}-table.html"),
    "report plan": ("report", "{training_plan}", "-o", "{scratch}-plan.html"),
    "simulate": ("simulate", "{training_plan}"),
    "simulate drawn": ("simulate", "{training_plan}", "--gantt", "{scratch}.svg"),
    "simulate page": ("simulate", "{training_plan}", "--gantt", "{scratch}-gantt.html"),
    "simulate traced": ("simulate", "{training_plan}", "--trace", "{scratch}-trace.json"),
    "evaluate": ("evaluate", "{layered}", "--assignment", "{plan}"),
    "evaluate against": ("evaluate", "{layered}", "--assignment", "{plan}", "--against", "auto"),
}

MODELS: Mapping[str, tuple[str, ...]] = {
    "inspect": ("inspect", "{layered}"),
    "inspect chain": ("inspect", "{chain}", "--ops"),
    "inspect onnx": ("inspect", "{onnx}"),
    "inspect program": ("inspect", "{program}"),
    "convert": ("convert", "{chain}", "{scratch}.graphml"),
    "convert dot": ("convert", "{chain}", "{scratch}.dot"),
    "convert onnx": ("convert", "{onnx}", "{scratch}-onnx.json"),
    "generate": ("generate", "chain", "-n", "300000", "-o", "{scratch}-chain.json"),
    "generate layered": ("generate", "layered", "-n", "100000", "-o", "{scratch}-layered.json"),
    "completion": ("completion", "bash"),
    "warmup": ("warmup",),
}
"""``warmup`` finds no compiled code: its kernels are kept in a folder of its own."""

RUNNING: Mapping[str, tuple[str, ...]] = {
    "profile": ("profile", "{onnx}", "--repeats", "2000"),
    "profile heavy": ("profile", "{heavy}"),
    "profile beside": ("profile", "{onnx}", "--repeats", "2000", "--beside", "1"),
    "profile program": ("profile", "{program}", "--repeats", "2000", "--backward"),
    "split": ("split", "{onnx}", "{onnx_plan}", "-o", "{scratch}-stages", "--force"),
    "split checked": ("split", "{onnx}", "{onnx_plan}", "-o", "{scratch}-checked", "--force", "--check"),
    "split heavy": ("split", "{heavy}", "{heavy_plan}", "-o", "{scratch}-heavy", "--force", "--check"),
    "split program": ("split", "{program}", "{program_plan}", "-o", "{scratch}-program", "--force", "--check"),
    "run": ("run", "{stages}", "--model", "{onnx}", "--batches", "1000000"),
    "run program": ("run", "{program_stages}", "--batches", "1000000"),
    "run torch": ("run", "{trained}", "--engine", "torch", "--model", "{program}", "--steps", "100000"),
}
"""These need the extras ``run`` and ``torch``."""

GROUPS = {
    "planning": PLANNING,
    "partitioning": PARTITIONING,
    "results": RESULTS,
    "models": MODELS,
    "running": RUNNING,
}
CASES: Mapping[str, tuple[str, ...]] = {name: command for group in GROUPS.values() for name, command in group.items()}

COMPILED_ANEW = ("warmup",)

PRODUCTS: Mapping[str, tuple[str, ...]] = {
    "plan": ("partition", "{layered}", "-k", "16", *SHORT, "{plan}"),
    "enumerated": ("partition", "{small}", "-k", "8", *SHORT, "{enumerated}"),
    "table": ("certify", "{small}", "-k", "2,4,8,16", *SHORT, "{table}"),
    "training_plan": ("plan", "{layers}", "--planner", "pfeife", *SPLIT, *SHORT, "{training_plan}"),
    "line_plan": ("plan", "{layers}", *LINE, *SHORT, "{line_plan}"),
    "graph_plan": ("plan", "{layers}", *PLANNING["plan graphpipe layers"][2:], *SHORT, "{graph_plan}"),
    "onnx_plan": ("partition", "{onnx}", "-k", "4", *SHORT, "{onnx_plan}"),
    "heavy_plan": ("partition", "{heavy}", "-k", "2", *SHORT, "{heavy_plan}"),
    "program_plan": ("partition", "{program}", "-k", "4", *SHORT, "{program_plan}"),
    "stages": ("split", "{onnx}", "{onnx_plan}", "-q", "--force", "-o", "{stages}"),
    "program_stages": ("split", "{program}", "{program_plan}", "-q", "--force", "-o", "{program_stages}"),
    "trained": (
        *("plan", "{program}", "--planner", "pfeife", "--devices", "2", "--micro-batches", "4", "--loops", "1"),
        *("--emit", "torch-pipelining", "--force", *SHORT, "{trained}"),
    ),
}
"""Inputs that commands make of others, one after the other."""


def needed(command: tuple[str, ...]) -> set[str]:
    """Return the inputs that a command names, and those that these are made of."""
    found = {part[1:-1] for part in command if part.startswith("{") and part.endswith("}")}
    return found.union(*(needed(PRODUCTS[name][:-1]) for name in found if name in PRODUCTS))


def inputs(folder: Path, wanted: set[str]) -> dict[str, str]:
    """Write the wanted inputs that are not there yet; return the paths of all by name."""
    paths = {name: str(folder / f"{name}.json") for name in (*_MADE, *PRODUCTS)}
    paths |= {name: str(folder / name) for name in ("scratch", "stages", "program_stages", "trained")}
    paths |= {name: str(folder / f"{name}.onnx") for name in ("onnx", "heavy")}
    paths |= {"program": str(folder / "program.pt2"), "topology": str(folder / "topology.toml")}
    for name, make in _MADE.items():
        if name in wanted and not Path(paths[name]).exists():
            make(Path(paths[name]))
    for name, command in PRODUCTS.items():
        if name in wanted and not Path(paths[name]).exists():
            filled = [part.format(**paths) for part in command]
            subprocess.run([sys.executable, "-m", "mtpp", *filled], check=True, stdout=subprocess.DEVNULL)
    return paths


def write_star(path: Path) -> None:
    """Write a model to be trained: 2,000 layers that all read from one and feed one."""
    from mtpp.formats.training.native import write_training_model as written
    from mtpp.training.model import Configuration, Edge, Layer, TrainingModel

    layers = 2_000
    random_ = random.Random(0)
    made = [
        Layer(v, f"l{v}", {1: [Configuration("one", random_.randrange(10**6, 10**8), 10**6, 10**6, 10**7)]})
        for v in range(layers)
    ]
    middle = range(1, layers - 1)
    edges = [Edge(0, v, 10**6) for v in middle] + [Edge(v, layers - 1, 10**6) for v in middle]
    path.write_text(written(TrainingModel("star", "ps", made, edges)), encoding="utf-8")


def write_products(path: Path, *, rows: int, width: int, layers: int) -> None:
    """Write an ONNX model of so many products with a matrix, each with a bias and an activation behind it."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper, save

    matrix = np.random.default_rng(0).standard_normal((width, width), dtype=np.float32) / width
    constants = [numpy_helper.from_array(matrix, "w"), numpy_helper.from_array(matrix[0], "b")]
    nodes, last = [], "x"
    for i in range(layers):
        nodes.append(helper.make_node("MatMul", [last, "w"], [f"p{i}"], f"product{i}"))
        nodes.append(helper.make_node("Add", [f"p{i}", "b"], [f"s{i}"], f"sum{i}"))
        nodes.append(helper.make_node("Relu", [f"s{i}"], [f"a{i}"], f"activation{i}"))
        last = f"a{i}"
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [rows, width]) for name in ("x", last)]
    graph = helper.make_graph(nodes, "products", ends[:1], ends[1:], constants)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))


def write_program(path: Path) -> None:
    """Write an exported program of a perceptron of 200 layers, which ends in a loss."""
    import torch

    class Deep(torch.nn.Module):
        """Layers one after the other."""

        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.ModuleList(torch.nn.Linear(256, 256) for _ in range(200))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            """Return the mean of what the layers make of the rows."""
            for layer in self.layers:
                x = torch.relu(layer(x))
            return x.mean()

    torch.export.save(torch.export.export(Deep(), (torch.randn(64, 256),)), str(path))


def _write_topology(path: Path) -> None:
    levels = "".join(f'[[levels]]\ndevices = 8\nbandwidth = "{rate}GB/s"\n\n' for rate in (100, 10))
    path.write_text(levels, encoding="utf-8")


_MADE: Mapping[str, Callable[[Path], None]] = {
    "chain": lambda path: write_graph("chain", 100_000, path),
    "layered": lambda path: write_graph("layered", 20_000, path),
    "wide": lambda path: write_graph("wide", 20_000, path),
    "dense": lambda path: write_graph("dense", 2_500, path),
    "small": lambda path: write_graph("layered", 500, path),
    "layers": lambda path: write_training_model(3_000, path),
    "star": write_star,
    "topology": _write_topology,
    "onnx": lambda path: write_products(path, rows=64, width=128, layers=OPS // 3),
    "heavy": lambda path: write_products(path, rows=8_192, width=6_144, layers=4),
    "program": write_program,
}
