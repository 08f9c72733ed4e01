"""Faults of layouts: findings beside those of the engine's reader, their consequences, and notes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mtpp.language_models.layer_graph import MTP_LAYERS
from mtpp.units import format_bytes
from mtpp.wording import counted

if TYPE_CHECKING:
    from mtpp.language_models.audit_records import AuditedStage, LayoutAudit
    from mtpp.language_models.layer_names import LayerNames

_SAYS_LAYERS = ("torchtitan",)
"""Engines whose readers name each layer and part that is in no stage or in two."""


def findings(audit: LayoutAudit, names: LayerNames) -> list[str]:
    """Faults that the engine takes in silence, layers in no stage or in several, and memories that are too small."""
    placed, engine = audit.placed, audit.layout.engine
    found = list(audit.layout.findings)
    if engine not in _SAYS_LAYERS:
        if placed.missing:
            found.append(f"{named_layers(placed.missing)} in no stage")
        if placed.doubled:
            found.append(f"{named_layers(placed.doubled)} in more than one stage")
        found += [f"{part} in no stage" for part in placed.parts_missing]
    found += [
        f"{reason}: {named_layers(numbers)} in several stages, where one has to have them"
        for reason, numbers in ((reason, _numbers(ops, names)) for reason, ops in audit.apart.items())
        if reason != MTP_LAYERS
    ]
    return [*found, *(_too_small(i, stage) for i, stage in enumerate(audit.stages) if not stage.fits)]


def _numbers(ops: Sequence[str], names: LayerNames) -> list[int]:
    place = {name: i for i, name in enumerate(names.decoder)}
    return sorted({place[op] for op in ops if op in place})


def _too_small(number: int, stage: AuditedStage) -> str:
    cost, limit = stage.cost, stage.limit_bytes or 0
    return (
        f"stage {number} needs {cost.held_bytes:,} bytes on device {stage.device_name}, "
        f"{format_bytes(cost.held_bytes - limit)} more than its {format_bytes(limit)}"
    )


def consequences(audit: LayoutAudit) -> list[str]:
    """Effects of faults in the engine, which says nothing of them."""
    placed, engine = audit.placed, audit.layout.engine
    found = []
    if placed.missing:
        run = placed.layers - len(placed.missing)
        found.append(f"{engine} runs {run} of {placed.layers} layers: weights of the others are never used")
    if placed.doubled:
        twice = named_layers(placed.doubled)
        found.append(f"{engine} runs {twice} more than once, each time with weights and a cache of their own")
    found += [_without(part, engine) for part in placed.parts_missing]
    found += _negative_counts(audit)
    if placed.missing or placed.doubled or placed.parts_missing or _out_of_order(audit):
        found.append("results are those of another model")
    if _out_of_order(audit):
        found.insert(0, f"{engine} runs layers in another order than the model has them")
    if audit.apart.keys() - {MTP_LAYERS}:
        found.append(f"{engine} finds nothing on a later stage of the layers that others read: it fails, or is wrong")
    idle = [stage for stage in audit.stages if stage.device is not None and not stage.is_busy]
    if idle:
        listed = ", ".join(stage.device_name for stage in idle)
        found.append(f"{counted(len(idle), 'device')} without anything to do: {listed}")
    if not audit.fits:
        found.append(f"{engine} looks at memory only when weights are loaded or caches are reserved, and stops there")
    return found


def _without(part: str, engine: str) -> str:
    return f"{engine} passes hidden states by the missing {part}"


def _negative_counts(audit: LayoutAudit) -> list[str]:
    """Effects of ranges that begin before layer 0."""
    pairs = audit.layout.ranges or []
    return [
        f"{audit.layout.engine} builds stage {stage} from layer {pair[0]} to layer {pair[1] - 1}: "
        f"{counted(pair[1] - pair[0], 'layer')} for {pair[1]} in the model"
        for stage, pair in enumerate(pairs)
        if pair and pair[0] < 0 < pair[1]
    ]


def _out_of_order(audit: LayoutAudit) -> bool:
    """Tell whether a request passes through layers in another order than the model's."""
    layout = audit.layout
    if layout.devices_of_layers is not None or layout.ranges is None:
        return False
    idle = set(layout.stages_not_run or ())
    run = [pair for stage, pair in enumerate(layout.ranges) if pair and pair[0] < pair[1] and stage not in idle]
    return [pair[0] for pair in run] != sorted(pair[0] for pair in run)


def notes(audit: LayoutAudit, names: LayerNames) -> list[str]:
    """Facts that are no faults."""
    layout, placed = audit.layout, audit.placed
    found = list(layout.notes)
    if placed.lacks_further:
        count = f"{counted(placed.mtp, 'layer')} for further tokens"
        found.append(f"{count}: {layout.engine} runs none by this layout, and they are not counted")
    if names.encoder and layout.device_map is None:
        found.append("the layout is of decoder layers: those of the encoder are counted where the embedding is")
    for stage in (stage for stage in audit.untimed if not stage.moved_bytes or stage.layers or stage.holder.head):
        held = f"{format_bytes(stage.cost.param_bytes)} of weights"
        if audit.streams:
            sent = f"{held} on {stage.device_name} are sent to a device in each step"
            found.append(f"{sent}; the time for that is not modelled")
        else:
            found.append(f"{held} are on {stage.device_name}; the time of its work with them is not modelled")
    found += [
        f"{format_bytes(stage.moved_bytes)} of weights are moved to {stage.device_name}: "
        "their time is counted on the devices of their layers"
        for stage in audit.stages
        if stage.moved_bytes
    ]
    divided = sorted({layer for holder in placed.holders for layer in holder.shares})
    if divided:
        found.append(f"{named_layers(divided)} on several devices: work and caches by their parts of the bytes")
    several = [holder for holder in placed.holders if len(holder.stages) > 1]
    if several:
        found.append("a device is charged for all of its virtual stages together")
    if not placed.whole:
        found.append("one server of several: other layers are not looked at")
    return found


def named_layers(numbers: list[int]) -> str:
    """Layers in words.

    Examples
    --------
    >>> named_layers([3]), named_layers([3, 4, 5])
    ('layer 3', 'layers 3 to 5')
    >>> named_layers([0, 1, 2, 9])
    '4 layers (0 to 2, 9)'
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] + 1 == number:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    texts = [str(first) if first == last else f"{first} to {last}" for first, last in runs]
    if len(texts) == 1:
        return f"layer{'s' if runs[0][0] < runs[0][1] else ''} {texts[0]}"
    return f"{counted(len(numbers), 'layer')} ({', '.join(texts)})"
