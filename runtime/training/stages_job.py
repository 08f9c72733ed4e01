"""A process of a training run: the stages of one device under PyTorch's pipelining."""

from __future__ import annotations

import hashlib
import os
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError
from mtpp.runtime.pipeline.tokens import PeerGone
from mtpp.runtime.pipeline.worker_process import Job
from mtpp.runtime.pytorch.backward_halves import halve_backward
from mtpp.runtime.pytorch.library import first_line, pytorch
from mtpp.runtime.pytorch.neighbour_stages import neighbour_stages, ties
from mtpp.runtime.pytorch.pipelining import loss_of, runtime_of
from mtpp.runtime.pytorch.tensors import as_array
from mtpp.runtime.training.results import BUFFER, GRADIENT, FirstStep, Key, TrainedStages, TrainingTerms
from mtpp.runtime.training.trained_model import TrainedModel, micro_batches

if TYPE_CHECKING:
    import torch

_PEER_GONE = ("closed by peer", "reset by peer", "broken pipe", "connection refused", "timed out")
_EXCHANGES = 5


@dataclass(frozen=True)
class StagesJob(Job):
    """The stages of one device.

    Attributes
    ----------
    rank
        Number of the device.
    meeting
        File that the processes find each other by.
    passes
        File with the passes of each device.
    halves
        Whether backward passes come in halves.
    """

    model: TrainedModel
    terms: TrainingTerms
    rank: int
    meeting: Path
    passes: Path
    halves: bool

    def run(self, parent: Connection) -> None:
        """Do it: say ``ready``, and when told so train.

        Say ``first`` with digests after the first step, answer questions, go on when told so, and say ``done`` with
        a :class:`TrainedStages` at the end.
        """
        torch = pytorch()
        torch.set_num_threads(self.terms.threads)
        split = self.model.load().split()
        stages = dict(enumerate(neighbour_stages(split)))
        if self.halves:
            halve_backward(stages)
        batches = micro_batches(split.inputs, self.terms.micro_batches, self.model.seed)
        own = {index: one for index, one in stages.items() if index % self.terms.devices == self.rank}
        parent.send(("ready", None))
        parent.recv()
        with self._connected():
            shared = list(_shared(stages, self.terms.devices))
            runtime = runtime_of(list(own.values()), len(stages), self.terms.micro_batches, self.passes, loss_of)
            run = _Training(self.terms, runtime, own, batches, shared)
            torch.manual_seed(self.terms.seed * self.terms.devices + self.rank)
            run.step()
            found = {key: one for stage in own.values() for key, one in tensors_of(stage.stage)}
            copied = frozenset(name for places in ties(stages) for _, name in places)
            parent.send(("first", FirstStep(digests(found.items()), copied)))
            answer(parent, found)
            parent.recv()
            for _ in range(self.terms.steps - 1):
                run.step()
            handovers = _handovers(stages, self.rank, self.terms.devices)
            torch.distributed.barrier()
        parent.send(("done", TrainedStages(run.losses, run.begun, run.ended, dict(run.passes), handovers)))

    @contextmanager
    def _connected(self) -> Iterator[None]:
        """Meet the other processes on this machine, and part from them."""
        torch = pytorch()
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        try:
            torch.distributed.init_process_group(
                "gloo", init_method=f"file://{self.meeting}", rank=self.rank, world_size=self.terms.devices
            )
            yield
            torch.distributed.destroy_process_group()
        except RuntimeError as error:
            if any(words in str(error).lower() for words in _PEER_GONE):
                raise PeerGone from None
            raise InputError(f"PyTorch cannot train it: {first_line(error)}", source=str(self.model.path)) from error


def _shared(stages: dict[int, Any], devices: int) -> Iterator[tuple[Any, list[tuple[int, str]]]]:
    """Yield the processes that hold copies of a parameter, as a group, and where the copies are."""
    torch = pytorch()
    for places in ties(stages):
        ranks = sorted({stage % devices for stage, _ in places})
        if len(ranks) > 1:
            yield torch.distributed.new_group(ranks), places


class _Training:
    """Steps of a process, with what they took."""

    def __init__(self, terms: TrainingTerms, runtime: Any, own: dict[int, Any], batches: Any, shared: Any) -> None:
        self._terms, self._runtime, self._own = terms, runtime, own
        self._batches, self._shared = batches, shared
        self.losses: list[list[float]] = []
        self.begun: list[float] = []
        self.ended: list[float] = []
        self.passes: dict[tuple[int, str], list[float]] = defaultdict(list)
        for one in runtime._stages:
            self._time(one, "forward_one_chunk", lambda arguments: "F")
            self._time(
                one, "backward_one_chunk", lambda arguments: "B" if arguments.get("full_backward", True) else "I"
            )
            self._time(one, "backward_weight_one_chunk", lambda arguments: "W")

    def _time(self, stage: Any, method: str, kind: Callable[[dict[str, Any]], str]) -> None:
        """Have a method of a stage note down what each call takes."""
        original = getattr(stage, method)

        def timed(*positional: Any, **named: Any) -> Any:
            start = time.monotonic()
            result = original(*positional, **named)
            self.passes[stage.stage_index, kind(named)].append(time.monotonic() - start)
            return result

        setattr(stage, method, timed)

    def step(self) -> None:
        """Go down the gradients of the iteration before, and run one."""
        torch, count = pytorch(), self._terms.micro_batches
        if self.begun:
            descend((one for stage in self._own.values() for one in stage.parameters()), self._terms.learning_rate)
        if len(self.begun) == 1:
            self.passes.clear()  # the first iteration warms up
        for stage in self._own.values():
            forget_gradients(stage)
        for one in self._runtime._stages:
            one.has_backward = True
            one.clear_runtime_states()
        first = 0 in self._own
        arguments = [tuple(one.clone() for one in batch) if first else () for batch in self._batches]
        losses: list[Any] = []
        torch.distributed.barrier()
        self.begun.append(time.monotonic())
        targets = [torch.zeros(()) for _ in range(count)]
        self._runtime._step_microbatches(arguments, [{}] * count, targets, losses, return_outputs=False)
        self._add_up()
        self.ended.append(time.monotonic())
        self.losses.append([float(one.detach()) for one in losses])

    def _add_up(self) -> None:
        """Add the gradients of the copies of a parameter."""
        torch = pytorch()
        for group, places in self._shared:
            here = [(stage, name) for stage, name in places if stage in self._own]
            if not here:
                continue
            stage, name = here[0]  # copies in one process are one tensor
            one = self._own[stage].stage.get_parameter(name)
            if one.grad is None:
                one.grad = torch.zeros_like(one)
            torch.distributed.all_reduce(one.grad, group=group)


def _handovers(stages: dict[int, Any], rank: int, devices: int) -> dict[int, float]:
    """Return the seconds that what each stage hands on takes to the next one, to and fro and halved."""
    torch = pytorch()
    found = {}
    for stage, one in list(stages.items())[:-1]:
        ends = stage % devices, (stage + 1) % devices
        torch.distributed.barrier()
        if rank not in ends or ends[0] == ends[1]:
            continue
        tensors = [torch.zeros(kind.shape, dtype=kind.dtype) for kind in one.example_outputs]
        seconds = []
        for _ in range(_EXCHANGES):
            start = time.monotonic()
            for tensor in tensors:
                _exchange(tensor, ends[1] if rank == ends[0] else ends[0], sends=rank == ends[0])
            for tensor in tensors:
                _exchange(tensor, ends[1] if rank == ends[0] else ends[0], sends=rank != ends[0])
            seconds.append((time.monotonic() - start) / 2)
        if rank == ends[0]:
            found[stage] = statistics.median(seconds)
    return found


def _exchange(tensor: Any, peer: int, *, sends: bool) -> None:
    torch = pytorch()
    (torch.distributed.send if sends else torch.distributed.recv)(tensor, peer)


def descend(parameters: Iterable[torch.nn.Parameter], rate: float) -> None:
    """Take *rate* times the gradient from each parameter, once from those that come several times.

    A gradient of a norm above 1 is scaled down to 1, so that no loss leaves the finite numbers in a few steps.
    """
    with pytorch().no_grad():
        for one in {id(one): one for one in parameters}.values():
            if one.grad is not None:
                norm = float(one.grad.norm())
                one -= rate / max(1.0, norm) * one.grad


def forget_gradients(module: Any) -> None:
    """Have the parameters of a module start without gradients."""
    for one in module.parameters():
        one.grad = None


def tensors_of(module: Any) -> Iterator[tuple[Key, torch.Tensor | None]]:
    """Yield gradients and buffers by kind and name; a tied parameter under each of its names."""
    for name, one in module.named_parameters(remove_duplicate=False):
        if one.requires_grad:
            yield (GRADIENT, name), one.grad
    for name, one in module.named_buffers(remove_duplicate=False):
        yield (BUFFER, name), one


def names_of(module: Any) -> Iterator[list[Key]]:
    """Yield all keys of each tensor of :func:`tensors_of`: a tied parameter has several."""
    found: dict[tuple[str, int], list[Key]] = {}
    for name, one in module.named_parameters(remove_duplicate=False):
        if one.requires_grad:
            found.setdefault((GRADIENT, id(one)), []).append((GRADIENT, name))
    for name, one in module.named_buffers(remove_duplicate=False):
        found.setdefault((BUFFER, id(one)), []).append((BUFFER, name))
    yield from found.values()


def answer(parent: Connection, tensors: Mapping[Key, Any]) -> None:
    """Send ``arrays``, the contents of the tensors asked for as far as they are here, until None is."""
    while (asked := parent.recv()) is not None:
        found = {key: tensors[key] for key in asked if key in tensors}
        parent.send(("arrays", {key: None if one is None else as_array(one) for key, one in found.items()}))


NONE = "none"
"""Of a parameter without gradient."""


def digests(tensors: Iterable[tuple[Key, torch.Tensor | None]]) -> dict[Key, str]:
    """Return the SHA-256 of the contents of each tensor by its kind and name."""
    return {name: NONE if one is None else _digest(one) for name, one in tensors}


def _digest(tensor: torch.Tensor) -> str:
    return hashlib.sha256(as_array(tensor.contiguous()).tobytes()).hexdigest()
