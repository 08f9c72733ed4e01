"""Training of a plan's stages in a loop of one's own, a process for each device.

python examples/train_stages.py FOLDER MODEL

FOLDER is what `mtpp plan MODEL --planner pfeife --emit torch-pipelining -o FOLDER` wrote. MODEL is an exported program
that takes ids of tokens, 4 sentences of 16, and returns logits for 50 of them. The last process prints the loss of
every tenth step.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn

import mtpp

SENTENCES, TOKENS, VOCABULARY = 4, 16, 50
"""Sizes of a micro-batch, as the program was exported."""

STEPS = 50


def loss_of(logits: Tensor, target: Tensor) -> Tensor:
    """Return the cross entropy of the next tokens."""
    return nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())


def batch_of(step: int, micro_batches: int) -> tuple[Tensor, Tensor]:
    """Return sentences that count upwards, and what follows each token; the same in every process."""
    torch.manual_seed(step)
    first = torch.randint(0, VOCABULARY, (SENTENCES * micro_batches, 1))
    ids = (first + torch.arange(TOKENS + 1)) % VOCABULARY
    return ids[:, :-1], ids[:, 1:]


def train(rank: int, folder: Path, model: Path, meeting: str) -> None:
    """Train the stages of one device."""
    plan = json.loads((folder / "plan.json").read_text())
    devices, micro_batches = plan["system"]["devices"], plan["micro_batches"]
    torch.set_num_threads(1)  # a core for each process: more threads wait for each other
    torch.distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=devices)
    modules = mtpp.stage_modules(folder, model, rank=rank)
    schedule = mtpp.pipeline_schedule(folder, modules, loss_of)
    optimiser = torch.optim.Adam([p for module in modules for p in module.parameters()], lr=1e-2)
    for step in range(STEPS):
        ids, target = batch_of(step, micro_batches)
        losses: list[Tensor] = []
        schedule.step(*((ids,) if rank == 0 else ()), target=target, losses=losses)
        optimiser.step()
        optimiser.zero_grad()
        if losses and step % 10 == 0:
            print(f"step {step}: loss {torch.stack(losses).mean():.2f}", flush=True)
    torch.distributed.destroy_process_group()


def main() -> None:
    """Start a process for each device and wait for all of them."""
    folder, model = Path(sys.argv[1]), Path(sys.argv[2])
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    devices = json.loads((folder / "plan.json").read_text())["system"]["devices"]
    with tempfile.TemporaryDirectory() as scratch:
        torch.multiprocessing.spawn(train, (folder, model, f"{scratch}/meeting"), nprocs=devices)


if __name__ == "__main__":
    main()
