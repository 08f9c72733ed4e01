"""Records of audits of layouts: stages on their devices, and a layout with its faults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mtpp.language_models.layer_graph import DECODER_EMBEDDING, EMBEDDING, HEAD, MTP_LAYERS
from mtpp.language_models.layout import Layout
from mtpp.language_models.placed_layout import Holder, PlacedLayout
from mtpp.language_models.set_cost import SetCost

MovedBytes = Mapping[str, Mapping[str, int]]
"""Bytes of weights of each op that are in another buffer than the op is, by the name of the buffer."""


LLAMA_CPP, CPU = "llama.cpp", "CPU"
STREAMING = ("accelerate", "transformers")
"""Engines that send weights on a CPU or a disk to a GPU in each step."""


@dataclass(frozen=True)
class AuditedStage:
    """A stage, or another place, of a layout.

    Attributes
    ----------
    device
        Number of the machine's device; None for a place that is none: a CPU, a disk, a client.
    device_name
        Name of the device in the machine, or of the place.
    cost
        Parts of time and memory; times are 0 where :attr:`timed` is False.
    limit_bytes
        Memory of the device; None: no limit.
    timed
        Whether the time is modelled.
    ops
        Names of the ops that are held, each once.
    moved_bytes
        Of weights that patterns move here from layers elsewhere.
    """

    holder: Holder
    device: int | None
    device_name: str
    cost: SetCost
    limit_bytes: int | None = None
    timed: bool = True
    ops: Sequence[str] = ()
    moved_bytes: int = 0

    @property
    def layers(self) -> list[str]:
        """Names of decoder, encoder and MTP layers that are held."""
        return [name for name in self.ops if name not in (EMBEDDING, DECODER_EMBEDDING, HEAD)]

    @property
    def fits(self) -> bool:
        """Whether the device holds what is put on it."""
        return self.limit_bytes is None or self.cost.held_bytes <= self.limit_bytes

    @property
    def is_busy(self) -> bool:
        """Whether it holds anything."""
        return bool(self.layers) or self.holder.embedding or self.holder.head


@dataclass(frozen=True)
class LayoutAudit:
    """A layout on a machine.

    Attributes
    ----------
    stages
        In the order of the engine.
    findings
        Faults that the engine takes in silence or with a warning, and memories that are too small.
    consequences
        Effects of these faults in the engine.
    notes
        Facts that are no faults.
    apart
        Ops that one stage has to hold and several do, by the reason.
    """

    layout: Layout
    placed: PlacedLayout
    stages: Sequence[AuditedStage]
    findings: Sequence[str]
    consequences: Sequence[str]
    notes: Sequence[str] = field(default=())
    apart: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def bottleneck(self) -> int:
        """Time of the slowest device, in ticks."""
        return max((stage.cost.cost for stage in self.stages if stage.timed), default=0)

    @property
    def slowest(self) -> int | None:
        """Number of the slowest stage in the list; None where no time is modelled."""
        timed = [(stage.cost.cost, -i) for i, stage in enumerate(self.stages) if stage.timed]
        return -max(timed)[1] if timed else None

    @property
    def latency(self) -> int:
        """Sum of the times of all devices, in ticks."""
        return sum(stage.cost.cost for stage in self.stages if stage.timed)

    @property
    def untimed(self) -> list[AuditedStage]:
        """Places whose work takes time that is not modelled: layers or a head on a CPU or a disk."""
        return [
            stage
            for stage in self.stages
            if not stage.timed and (stage.layers or stage.holder.head or stage.moved_bytes or self._sends(stage))
        ]

    def _sends(self, stage: AuditedStage) -> bool:
        return self.streams and stage.holder.embedding

    @property
    def streams(self) -> bool:
        """Whether weights on a CPU or a disk are sent to a device in each step, not worked with where they are."""
        return self.layout.engine in STREAMING

    @property
    def comparable(self) -> bool:
        """Whether the bottleneck is that of the whole model."""
        placed = self.placed
        lacking = placed.missing or placed.parts_missing or placed.lacks_further
        return placed.whole and not lacking and not self.untimed and not self.apart.keys() - {MTP_LAYERS}

    @property
    def fits(self) -> bool:
        """Whether every device holds what is put on it."""
        return all(stage.fits for stage in self.stages)
