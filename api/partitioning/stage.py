"""Stage of a plan: its ops, and its figures in ticks, seconds and bytes."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Stage:
    """One stage of a plan.

    Attributes
    ----------
    index
        Place in the pipeline, from 0.
    ops
        Names of the ops that it runs, in the order of the model.
    cost, work, input, output, overflow
        Ticks of the stage, and of what it is made of: computing, receiving, sending, streaming parameters that do not
        fit into the fast memory.
    param_bytes, state_bytes, peak_bytes
        Bytes of parameters, of states of all sequences, and of activations.
    ticks_per_s
        Ticks in a second; None where the graph's costs have no unit of time.
    devices
        Names of the devices that it stands on, where the plan lists them.
    tensor_parallel
        GPUs of its device that share it: costs and bytes are of one of them.
    """

    index: int
    ops: tuple[str, ...] = field(repr=False)
    cost: int
    work: int
    input: int
    output: int
    overflow: int
    param_bytes: int
    peak_bytes: int
    ticks_per_s: int | None
    state_bytes: int = 0
    devices: tuple[str, ...] = ()
    tensor_parallel: int = 1

    @property
    def memory_bytes(self) -> int:
        """Bytes of parameters, states and activations together."""
        return self.param_bytes + self.state_bytes + self.peak_bytes

    @property
    def cost_s(self) -> float | None:
        """Seconds of the stage; None without a unit of time, as for the parts below."""
        return self._seconds(self.cost)

    @property
    def work_s(self) -> float | None:
        """Seconds of computing."""
        return self._seconds(self.work)

    @property
    def input_s(self) -> float | None:
        """Seconds of receiving what earlier stages make."""
        return self._seconds(self.input)

    @property
    def output_s(self) -> float | None:
        """Seconds of sending what later stages read."""
        return self._seconds(self.output)

    @property
    def overflow_s(self) -> float | None:
        """Seconds of streaming parameters."""
        return self._seconds(self.overflow)

    def _seconds(self, ticks: int) -> float | None:
        return None if self.ticks_per_s is None else ticks / self.ticks_per_s
