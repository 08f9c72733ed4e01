"""Times of an exported program's ops over many runs, and of the whole program between them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError
from mtpp.runtime.pytorch.library import first_line, pytorch
from mtpp.runtime.pytorch.profiling.clocks import Clock
from mtpp.runtime.pytorch.profiling.steps import FlatProgram, Step, Value
from mtpp.runtime.pytorch.profiling.tape import Span, Tape

if TYPE_CHECKING:
    import torch

_CALLS = 100
"""Backward passes of next to nothing, whose median is what a call takes."""


@dataclass
class ProgramTimes:
    """Microseconds of the runs that count.

    Attributes
    ----------
    forward, backward
        Of each op, by run. An op without a backward pass has none; what the call of a backward pass takes by itself is
        subtracted.
    walls, backward_walls
        Of the whole program run by PyTorch, without anything between its nodes.
    stepped_walls
        Of the forward pass step by step, with what is between the steps.
    call_us
        That was subtracted.
    outputs
        Of the last run that was measured op by op.
    """

    forward: list[list[Fraction]]
    backward: list[list[Fraction]]
    walls: list[Fraction] = field(default_factory=list)
    backward_walls: list[Fraction] = field(default_factory=list)
    stepped_walls: list[Fraction] = field(default_factory=list)
    call_us: Fraction = Fraction(0)
    outputs: Sequence[Any] = ()


def time_program(
    program: FlatProgram,
    inputs: Sequence[Any],
    clock: Clock,
    order: Sequence[int],
    *,
    warm_up: int,
    repeats: int,
    threads: int,
    seed: int,
    backward: bool,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> ProgramTimes:
    """Run a program over and over: in turns as a whole, and with the time of each op taken.

    Parameters
    ----------
    order
        Ops, each after those that it reads from.
    warm_up, repeats
        Runs of either kind before those that count, and those.
    threads
        Of one kernel.
    backward
        Whether the backward pass runs too.

    Notes
    -----
    Every run starts from the same inputs, buffers and random numbers.
    """
    torch = pytorch()
    times = ProgramTimes([[] for _ in order], [[] for _ in order])
    gradient_of = _Gradients(seed) if backward else None
    fresh = _Fresh(program.stored, inputs, seed)
    with _threads(threads), torch.random.fork_rng(devices=[clock.device] if clock.device.type == "cuda" else []):
        if backward:
            times.call_us = _call_us(clock)
        for done in range(warm_up + repeats):
            wall = _whole_run(program, fresh.inputs(), clock, gradient_of)
            run = measured_run(program, fresh.inputs(), clock, order, gradient_of=gradient_of)
            if done >= warm_up:
                times.walls.append(wall[0])
                times.backward_walls.append(wall[1])
                _enter(times, run)
            del run  # with its gradients: the next whole run has the memory to itself
            progress(done + 1, warm_up + repeats)
    return times


def _enter(times: ProgramTimes, run: RunTimes) -> None:
    times.stepped_walls.append(run.wall)
    times.outputs = run.outputs
    for op, forward in enumerate(times.forward):
        forward.append(run.forward.get(op, Fraction(0)))
    for op, us in run.backward.items():
        times.backward[op].append(max(Fraction(0), us - times.call_us))


def _whole_run(
    program: FlatProgram, inputs: Sequence[Any], clock: Clock, gradient_of: _Gradients | None
) -> tuple[Fraction, Fraction]:
    """Return the microseconds of a whole run forward, and backward: those of its tensors that gradients come to."""
    torch = pytorch()
    clock.wait()
    with torch.set_grad_enabled(gradient_of is not None), as_input_error("run it"):
        start = clock.mark()
        outputs = program.whole(*inputs)
        middle = clock.mark()
        clock.wait()
    forward = clock.between_us(start, middle)
    if gradient_of is None:
        return forward, Fraction(0)
    listed = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
    due = [(one, gradient_of(place, one)) for place, one in enumerate(listed) if differentiable(one)]
    if not due:
        raise InputError("nothing in the program has gradients", remedy="profile it without ‹backward›")
    clock.wait()
    with as_input_error("run its backward pass", trained=True):
        begin = clock.mark()
        torch.autograd.backward([one for one, _ in due], [gradient for _, gradient in due])
        end = clock.mark()
        clock.wait()
    for one in program.stored.values():
        if one.requires_grad:
            one.grad = None
    return forward, clock.between_us(begin, end)


class _Fresh:
    """What every run starts from: inputs, buffers and random numbers, whatever the one before wrote."""

    def __init__(self, stored: Mapping[str, torch.Tensor], inputs: Sequence[Any], seed: int) -> None:
        tensor = pytorch().Tensor
        self._inputs, self._seed = inputs, seed
        self._kept = [
            (one, one.clone(), [one._version])
            for one in stored.values()
            if isinstance(one, tensor) and not one.requires_grad
        ]

    def inputs(self) -> list[Any]:
        """Return copies of the inputs; buffers that were written are as they were before."""
        torch = pytorch()
        with torch.no_grad():
            for one, content, version in self._kept:
                if one._version != version[0]:
                    one.detach_().copy_(content)
                    version[0] = one._version
        torch.manual_seed(self._seed)
        return [one.clone() if isinstance(one, torch.Tensor) else one for one in self._inputs]


class _Gradients:
    """Random gradients of what a program returns: normal ones, the same in each run."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._made: dict[int, torch.Tensor] = {}

    def __call__(self, place: int, output: torch.Tensor) -> torch.Tensor:
        """Return that of an output."""
        torch = pytorch()
        if place not in self._made or self._made[place].shape != output.shape:
            torch.manual_seed(self._seed + place)
            self._made[place] = torch.randn_like(output, memory_format=torch.contiguous_format)
        return self._made[place].clone()


def _call_us(clock: Clock) -> Fraction:
    """Return what a backward pass takes that does nothing: one of a view."""
    torch = pytorch()
    tensor = torch.zeros(1, device=clock.device, requires_grad=True)
    spans = []
    for _ in range(_CALLS):
        tape = Tape(clock)
        result = tape.read(0, ("x", None), tensor * 1, 1).view(1)
        tape.make(0, ("y", None), result)
        tape.seed(("y", None), torch.ones(1, device=clock.device))
        spans.append(tape.backward(0))
    clock.wait()
    return sorted(clock.between_us(*span) for span in spans if span is not None)[_CALLS // 2]


@contextmanager
def _threads(count: int) -> Iterator[None]:
    torch = pytorch()
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclass(frozen=True)
class RunTimes:
    """Microseconds of one run.

    Attributes
    ----------
    forward, backward
        By op; ops without a step or without a backward pass have none.
    wall
        Of all steps forward, with what is between them.
    outputs
        What the program returned, constants included.
    parameter_gradients
        Parameters with a gradient of theirs, once for each op that reads one.
    """

    forward: Mapping[int, Fraction]
    backward: Mapping[int, Fraction]
    wall: Fraction
    outputs: Sequence[Any]
    parameter_gradients: Sequence[tuple[torch.Tensor, torch.Tensor]]


def measured_run(
    program: FlatProgram,
    inputs: Sequence[Any],
    clock: Clock,
    order: Iterable[int],
    *,
    gradient_of: Callable[[int, torch.Tensor], torch.Tensor] | None = None,
) -> RunTimes:
    """Run a program once.

    Parameters
    ----------
    inputs
        Of this run alone: the program may write them.
    order
        Ops, each after those that it reads from.
    gradient_of
        Makes the gradient of each tensor that the program returns, by its place; None: no backward passes.
    """
    torch = pytorch()
    run = _Run(program, clock, None if gradient_of is None else Tape(clock))
    run.values.update(zip(program.inputs, inputs, strict=True))
    start = clock.mark()
    with torch.set_grad_enabled(gradient_of is not None):
        for step in program.steps:
            run.step(step)
    middle = clock.mark()
    outputs = [run.values[one.name] if isinstance(one, Value) else one for one in program.outputs]
    run.values.clear()
    backward = {} if gradient_of is None else run.backward(program.outputs, outputs, gradient_of, order)
    clock.wait()
    forward: dict[int, Fraction] = defaultdict(Fraction)
    for op, span in run.spans:
        forward[op] += clock.between_us(*span)
    outputs = [one.detach() if isinstance(one, torch.Tensor) else one for one in outputs]
    backward_us = {op: clock.between_us(*span) for op, span in backward.items()}
    gradients = [] if run.tape is None else run.tape.parameter_gradients
    return RunTimes(forward, backward_us, clock.between_us(start, middle), outputs, gradients)


def differentiable(output: Any) -> bool:
    """Say whether an output is a tensor that gradients can come to."""
    return isinstance(output, pytorch().Tensor) and output.requires_grad


@contextmanager
def as_input_error(what: str, where: str | None = None, *, trained: bool = False) -> Iterator[None]:
    """Have whatever PyTorch raises come as an InputError that says *what* it cannot do.

    Parameters
    ----------
    trained
        Whether it is a backward pass that runs.
    """
    try:
        yield
    except Exception as error:  # operators raise whatever they like
        remedy = "give real inputs with ‹inputs› FILE.npz, or export the program again"
        if trained:
            remedy = "change the module so that PyTorch can train it, or leave ‹backward› out"
        raise InputError(f"PyTorch cannot {what}: {first_line(error)}", where=where, remedy=remedy) from None


class _Run:
    """A run as it goes on.

    Attributes
    ----------
    values
        That a later step reads.
    spans
        Of timed steps, with their ops.
    """

    def __init__(self, program: FlatProgram, clock: Clock, tape: Tape | None) -> None:
        self.values: dict[str, Any] = dict(program.stored)
        self.spans: list[tuple[int, Span]] = []
        self.tape = tape
        self._clock = clock
        self._tensor = pytorch().Tensor
        self._maker: dict[str, int | None] = {}

    def step(self, step: Step) -> None:
        """Run a step."""
        clock = self._clock
        args, kwargs = self._operands(step.args, step.op), self._operands(step.kwargs, step.op)
        with ExitStack() as stack:
            for mode in step.modes:
                stack.enter_context(mode(self.tape is not None))
            stack.enter_context(as_input_error("run it", f"node {step.name!r}"))
            if step.timed:
                clock.head_start()
            start = clock.mark()
            result = step.call(*args, **kwargs)
            end = clock.mark()
        self.values[step.name] = result
        self._maker[step.name] = step.op
        if step.op is not None:
            if step.timed:
                self.spans.append((step.op, (start, end)))
            self._record(step.op, step.name, result)
        for name in step.last_used:
            del self.values[name]

    def backward(
        self,
        names: Sequence[Any],
        outputs: Sequence[Any],
        gradient_of: Callable[[int, torch.Tensor], torch.Tensor],
        order: Iterable[int],
    ) -> dict[int, Span]:
        """Run the backward passes of all ops, the last one first; *names* are those of the outputs."""
        assert self.tape is not None
        for place, (one, output) in enumerate(zip(names, outputs, strict=True)):
            if differentiable(output):
                self.tape.seed((one.name, None), gradient_of(place, output))
        spans = {}
        for op in reversed(list(order)):
            with as_input_error("run its backward pass", trained=True):
                span = self.tape.backward(op)
            if span is not None:
                spans[op] = span
        return spans

    def _record(self, op: int, name: str, result: Any) -> None:
        if self.tape is None:
            return
        if isinstance(result, self._tensor):
            self.tape.make(op, (name, None), result)
        elif isinstance(result, list | tuple):
            for place, one in enumerate(result):
                if isinstance(one, self._tensor):
                    self.tape.make(op, (name, place), one)

    def _operands(self, operands: Any, op: int | None) -> Any:
        """Return operands with the values that they refer to."""
        if isinstance(operands, Value):
            return self._read(operands.name, op)
        if isinstance(operands, list | tuple):
            bound = [self._operands(one, op) for one in operands]
            return tuple(bound) if isinstance(operands, tuple) else bound
        if isinstance(operands, Mapping):
            return {key: self._operands(one, op) for key, one in operands.items()}
        if isinstance(operands, slice):
            return slice(*(self._operands(one, op) for one in (operands.start, operands.stop, operands.step)))
        return operands

    def _read(self, name: str, op: int | None) -> Any:
        value = self.values[name]
        maker = self._maker.get(name)
        if self.tape is None or op is None or maker == op:
            return value
        if isinstance(value, self._tensor):
            return self.tape.read(op, (name, None), value, maker)
        if isinstance(value, list | tuple):
            return type(value)(
                self.tape.read(op, (name, place), one, maker) if isinstance(one, self._tensor) else one
                for place, one in enumerate(value)
            )
        return value
