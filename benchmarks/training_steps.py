"""Predicted against measured steps of training: ``python -m benchmarks.training_steps [--rounds N] [MODEL.pt2 …]``.

Each program goes the whole way on two processes of one thread each: ``mtpp profile --backward``, ``plan --planner
pfeife --costs``, and ``run --engine torch``. "passes" is what the measured passes and hand-overs predict of a step,
"planned" what the profile predicts, each a median of the rounds, which take turns between the programs. Without
programs: a transformer, a U-Net and two towers, whose passes take tens of milliseconds. It needs ``mtpp[torch]``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.report import print_report

COLUMNS = ("program", "loops", "step", "passes", "step / passes", "planned", "step / planned", "unsplit", "speed-up")


class UNet(nn.Module):
    """Convolutions down and up again, with skips, on 2 × 3 × 96 × 96."""

    def __init__(self) -> None:
        super().__init__()
        widths = (32, 64, 128)
        self.first = nn.Conv2d(3, widths[0], 3, padding=1)
        self.down = nn.ModuleList(nn.Conv2d(a, 2 * a, 3, 2, 1) for a in widths)
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * a, a, 2, 2) for a in reversed(widths))
        self.join = nn.ModuleList(nn.Conv2d(2 * a, a, 3, padding=1) for a in reversed(widths))

    def forward(self, x: Tensor) -> Tensor:
        """Return an image of the same size."""
        x, kept = torch.relu(self.first(x)), []
        for layer in self.down:
            kept.append(x)
            x = torch.relu(layer(x))
        for up, join in zip(self.up, self.join, strict=True):
            x = torch.relu(join(torch.cat([up(x), kept.pop()], 1)))
        return x


class Towers(nn.Module):
    """Two transformers whose last tokens are multiplied."""

    def __init__(self) -> None:
        super().__init__()
        layer = {"dim_feedforward": 1024, "dropout": 0.0, "batch_first": True}
        self.towers = nn.ModuleList(
            nn.Sequential(*(nn.TransformerEncoderLayer(256, 4, **layer) for _ in range(3)))  # type: ignore[arg-type]
            for _ in range(2)
        )

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Return one number for each pair."""
        first, second = (tower(one)[:, -1] for tower, one in zip(self.towers, (x, y), strict=True))
        return first @ second.T


def own_programs(folder: Path) -> list[Path]:
    """Export three modules."""
    torch.manual_seed(0)
    layers = (nn.TransformerEncoderLayer(384, 6, 1536, dropout=0.0, batch_first=True) for _ in range(6))
    modules: dict[str, tuple[nn.Module, tuple[Tensor, ...]]] = {
        "transformer": (nn.Sequential(*layers), (torch.randn(2, 128, 384),)),
        "unet": (UNet(), (torch.randn(2, 3, 96, 96),)),
        "towers": (Towers(), (torch.randn(2, 128, 256), torch.randn(2, 128, 256))),
    }
    for name, (module, inputs) in modules.items():
        torch.export.save(torch.export.export(module, inputs), folder / f"{name}.pt2")
    return [folder / f"{name}.pt2" for name in modules]


def mtpp(*arguments: str | Path) -> str:
    """Run a command of mtpp and return what it prints."""
    command = [sys.executable, "-m", "mtpp", *map(str, arguments), "-q"]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def planned(model: Path, loops: int, folder: Path) -> Path:
    """Profile a program and plan it for two devices; return the plan's folder."""
    costs, plan = folder / f"{model.stem}.json", folder / f"{model.stem}-{loops}"
    if not costs.exists():
        mtpp("profile", model, "--backward", "-o", costs)
    sizes = ("--devices", "2", "--micro-batches", "4", "--loops", str(loops), "--costs", costs)
    mtpp("plan", model, "--planner", "pfeife", *sizes, "--emit", "torch-pipelining", "-o", plan)
    return plan


def row(name: str, loops: int, runs: list[dict[str, Any]]) -> list[str]:
    """Return the medians of some runs."""
    step, passes, plan, unsplit = (
        statistics.median(run[key] for run in runs) for key in ("step_s", "predicted_s", "planned_s", "unsplit_s")
    )
    times = [f"{seconds * 1e3:.1f} ms" for seconds in (step, passes, plan, unsplit)]
    ratio = statistics.median(run["step_s"] / run["predicted_s"] for run in runs)
    return [
        name, str(loops), times[0], times[1], f"{ratio:.2f}", times[2], f"{step / plan:.2f}", times[3],
        f"{unsplit / step:.2f}",
    ]  # fmt: skip


def main(arguments: list[str]) -> None:
    """Measure every program."""
    parser = argparse.ArgumentParser(prog="benchmarks.training_steps")
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        models = given.models or own_programs(folder)
        plans = {(model, loops): planned(model, loops, folder) for model in models for loops in (1, 2)}
        runs: dict[tuple[Path, int], list[dict[str, Any]]] = {key: [] for key in plans}
        for _ in range(given.rounds):
            for (model, loops), plan in plans.items():
                terms = ("--engine", "torch", "--model", model, "--steps", "8", "--format", "json")
                runs[model, loops].append(json.loads(mtpp("run", plan, *terms)))
    rows = [row(model.stem, loops, found) for (model, loops), found in runs.items()]
    print_report("Predicted against measured steps of training", COLUMNS, rows)


if __name__ == "__main__":
    main(sys.argv[1:])
