"""Layouts: the decoder layers, embedding, final norm, head and MTP layers of each stage or device."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import Any

Range = list[int]
"""Layers from the first to before the second; empty for a stage of some engines without layers."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """A layout as an engine reads it; None where an engine has no such thing, lists and names as JSON has them.

    Attributes
    ----------
    engine
        Whose layout it is.
    ranges
        Decoder layers of each stage, half-open, stages counted from 0. Engines with virtual stages list all of them,
        in the order in which a request passes through. Where devices rather than stages are named: of each entry of
        ``devices``.
    layers
        Number of decoder layers of each stage; of each device by its name where devices are named.
    stage_layers
        Decoder layers of each stage one by one, where they may not be contiguous.
    embedding_on, final_norm_on, head_on, mtp_on
        Stages, or the device, that hold these parts.
    embedding_copy_on
        Stages with a second copy of the embedding for MTP layers.
    mtp_standalone
        The MTP layers are on another rank than the head.
    vpp
        Virtual stages of a rank.
    layers_per_rank
        Number of decoder layers of each rank, over all its virtual stages.
    stages_of_ranks
        Virtual stages of each rank.
    stages_not_run
        Stages that are built and that no pass goes through.
    stage_order
        Rule that places virtual stages on ranks.
    bounds, items, sums
        First items of stages and the end, numbers of items, and sums of their weights, where a list of items is cut.
    module_fqns_per_model_part
        Names of modules of each stage.
    devices
        Names of devices, in order.
    devices_of_layers
        Device of each decoder layer.
    divided_layers
        Bytes of weights by device of each layer that several devices hold parts of.
    cpu_layers
        Number of decoder layers that no GPU holds.
    output_on, token_embedding_on
        Device of the final norm and the head, and of the embedding.
    device_map
        Device of each module.
    max_memory
        Limits in bytes by device that a rule fills up to.
    offloaded_bytes
        Bytes of weights by slow device (``cpu``, ``disk``) that are moved to a GPU in each step.
    overrides
        Patterns of tensor names, and the buffers that they are sent to.
    start, end
        Layers of one server.
    findings
        Faults that the engine takes in silence or with a warning.
    notes
        Facts that no number above says and that are no faults.
    """

    engine: str
    ranges: list[Range] | None = None
    layers: list[int] | dict[str, int] | None = None
    stage_layers: list[list[int]] | None = None
    embedding_on: list[int] | str | None = None
    final_norm_on: list[int] | str | None = None
    head_on: list[int] | str | None = None
    mtp_on: list[int] | str | None = None
    embedding_copy_on: list[int] | None = None
    mtp_standalone: bool | None = None
    vpp: int | None = None
    layers_per_rank: list[int] | None = None
    stages_of_ranks: list[list[int]] | None = None
    stages_not_run: list[int] | None = None
    stage_order: str | None = None
    bounds: list[int] | None = None
    items: list[int] | None = None
    sums: list[int] | None = None
    module_fqns_per_model_part: list[list[str]] | None = None
    devices: list[str] | None = None
    devices_of_layers: list[int | str] | None = None
    divided_layers: dict[int, dict[str, int]] | None = None
    cpu_layers: int | None = None
    output_on: str | None = None
    token_embedding_on: str | None = None
    device_map: dict[str, str] | None = None
    max_memory: dict[str, int] | None = None
    offloaded_bytes: dict[str, int] | None = None
    overrides: list[list[str]] | None = None
    start: int | None = None
    end: int | None = None
    findings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """All that is known of the layout, for JSON."""
        return {f.name: value for f in fields(self) if (value := getattr(self, f.name)) is not None}


def ranges_of_counts(counts: list[int]) -> list[Range]:
    """Ranges of consecutive stages with so many layers each.

    Examples
    --------
    >>> ranges_of_counts([2, 0, 3])
    [[0, 2], [2, 2], [2, 5]]
    """
    ends = [0]
    for count in counts:
        ends.append(ends[-1] + count)
    return [list(pair) for pair in pairwise(ends)]
