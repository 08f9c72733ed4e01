"""The process that trains the model that was not split: what the pipeline has to come to."""

from __future__ import annotations

import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from mtpp.errors import InputError
from mtpp.runtime.pipeline.worker_process import Job
from mtpp.runtime.pytorch.flat_program import called
from mtpp.runtime.pytorch.library import first_line, pytorch
from mtpp.runtime.pytorch.pipelining import loss_of
from mtpp.runtime.pytorch.randomness import random_steps
from mtpp.runtime.training.results import GRADIENT, FirstStep, TrainedStages, TrainingTerms
from mtpp.runtime.training.trained_model import TrainedModel, micro_batches
from mtpp.runtime.training.trained_tensors import answer, descend, digests, forget_gradients, names_of, tensors_of


@dataclass(frozen=True)
class UnsplitJob(Job):
    """A model to be trained whole, in one process."""

    model: TrainedModel
    terms: TrainingTerms

    def run(self, parent: Connection) -> None:
        """Do it: say ``first`` with digests after the first step, answer questions, and say ``done`` at the end."""
        torch = pytorch()
        torch.set_num_threads(self.terms.threads)
        loaded = self.model.load()
        random = next(random_steps(loaded.flat), None)
        if random is not None:
            raise InputError(
                f"it draws random numbers, in {random!r} first: stages and whole cannot be compared",
                source=str(self.model.path),
                remedy="export it without dropout",
            )
        split = loaded.split()
        batches = micro_batches(split.inputs, self.terms.micro_batches, self.model.seed)
        module = loaded.flat.module
        names = [one.name for one in split.inputs]
        before = digests((key, None if key[0] == GRADIENT else one) for key, one in tensors_of(module))
        losses, begun, ended = [], [], []
        for step in range(self.terms.steps):
            forget_gradients(module)
            begun.append(time.monotonic())
            losses.append(
                [self._trained(module, dict(zip(names, tensors, strict=True)), split.positions) for tensors in batches]
            )
            ended.append(time.monotonic())
            if step == 0:
                found = dict(tensors_of(module))
                after = digests(found.items())
                changed = [keys for keys in names_of(module) if after[keys[0]] != before[keys[0]]]
                parent.send(("first", FirstStep(after, changed=changed)))
                answer(parent, found)
            descend(module.parameters(), self.terms.learning_rate)
        parent.send(("done", TrainedStages(losses, begun, ended)))

    def _trained(self, module: Any, tensors: dict[str, Any], positions: Any) -> float:
        """Run a micro-batch forward and back; return its loss."""
        try:
            made = called(module, {name: one.clone() for name, one in tensors.items()})
            loss = loss_of(tuple(made[place] for place in positions))
            if not loss.requires_grad:
                raise InputError("no gradient comes to a parameter of it", remedy="leave a parameter free to change")
            loss.backward()
        except InputError as error:
            raise InputError(error.problem, source=str(self.model.path), remedy=error.remedy) from None
        except Exception as error:  # whatever its ops raise
            raise InputError(f"PyTorch cannot train it: {first_line(error)}", source=str(self.model.path)) from None
        return float(loss.detach())
