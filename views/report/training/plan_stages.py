"""Stages of a training plan: drawn with their devices, layers and flows, and as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from mtpp.views.report.memory_section import text_of_ops
from mtpp.views.report.page import Block, Cell, Prose, Section, TableBlock
from mtpp.views.report.training.scales import SizeScale, TimeScale
from mtpp.views.report.training.stage_diagram import MOST_STAGES, DrawnStage, stage_diagram
from mtpp.views.report.training.stage_flows import StageFlow, flows_table
from mtpp.views.table import Column, Table
from mtpp.wording import counted

_LONGEST, _LONGEST_CELL = 25, 44
"""Characters of a line of a box, and of a cell with names of layers, at most."""

_MOST_LISTED = 30
_BATCH = "micro_batch"


def drawn_section(document: Mapping[str, Any], flows: Sequence[StageFlow] | None) -> Section:
    """Return the section with the drawing of the stages.

    Parameters
    ----------
    flows
        Between the stages; None where they are not known.
    """
    stages = document["stages"]
    pairs = [(one.source, one.target) for one in flows or ()]
    in_line = all(v == u + 1 for u, v in pairs) or document["planner"] != "graphpipe"
    title = "Line of stages" if in_line else "Stage graph"
    if len(stages) > MOST_STAGES:
        text = (
            f"Not drawn: {len(stages):,} stages are more than the {MOST_STAGES} that can be read. The table lists them."
        )
        return Section("stage-graph", title, [Prose(text)])
    if flows is None:
        flows = _stated_flows(document)
    limits = _limits(document)
    sizes = plan_sizes(document)
    drawn = [
        DrawnStage(s, list(_lines(row, document, sizes, limits[s])), _told(s, row)) for s, row in enumerate(stages)
    ]
    return Section("stage-graph", title, [stage_diagram(drawn, flows, _caption(document, flows))])


def plan_sizes(document: Mapping[str, Any]) -> SizeScale:
    """Return the unit of memory of a page: that of the largest use of a device."""
    held = [row.get("memory_bytes") for row in document["stages"]]
    held += [row["peak_bytes"] for row in document.get("devices", ())]
    return SizeScale.of(max((size for size in held if size is not None), default=0))


def _stated_flows(document: Mapping[str, Any]) -> list[StageFlow]:
    """Return the flows that a plan states itself, without bytes."""
    if "transfers" in document:
        return [
            StageFlow(one["source"], one["target"], None, None, one["forward_ticks"], one["backward_ticks"])
            for one in document["transfers"]
        ]
    return [StageFlow(s, s + 1, None, None) for s in range(len(document["stages"]) - 1)]


def _caption(document: Mapping[str, Any], flows: Sequence[StageFlow]) -> str:
    count = counted(len(document["stages"]), "stage")
    text = f"{count} with layers and devices; arrows are tensors that go to other stages"
    if any(one.forward_bytes is not None for one in flows):
        text += ", with their bytes for each micro-batch"
    if any(one.forward_bytes == 0 for one in flows):
        text += "; along a dashed arrow nothing goes, the one stage waits for the other"
    return text


def _limits(document: Mapping[str, Any]) -> list[int | None]:
    """Return the memory limit of each stage's device."""
    limit, stages = document["system"]["memory_bytes"], document["stages"]
    if isinstance(limit, list | tuple):
        return [limit[row["device"]] if "device" in row else None for row in stages]
    return [limit] * len(stages)


def _lines(row: Mapping[str, Any], document: Mapping[str, Any], sizes: SizeScale, limit: int | None) -> Iterator[str]:
    """Yield what the box of a stage says."""
    name = f"stage {row['index']}"
    if "device" in row:
        yield f"{name} on device {row['device']}"
    else:
        yield f"{name} on {counted(row['devices'], 'device')}"
    names = [str(layer) for layer in row["layers"]]
    yield from _names(names, "op" if document["model"].get("kind") == "graph" else "layer")
    ways = Counter(row.get("configurations", {}).values())
    if ways and (len(ways) > 1 or next(iter(ways)) != "vanilla"):
        yield _middle(", ".join(f"{count:,} {way}" for way, count in ways.most_common()), _LONGEST)
    if degrees := _degrees(row):
        yield degrees
    batch = []
    if row.get(_BATCH) is not None:
        batch.append(counted(row[_BATCH], "sample"))
    if row.get("in_flight") is not None:
        batch.append(f"{row['in_flight']:,} in flight")
    if batch:
        yield ", ".join(batch)
    if row.get("memory_bytes") is not None:
        held = row["memory_bytes"]
        yield sizes.text(held) if limit is None else sizes.pair(held, limit)


def _names(names: Sequence[str], noun: str) -> Iterator[str]:
    """Yield the layers of a stage in at most two lines."""
    if not names:
        yield f"no {noun}s"
        return
    listed = text_of_ops(names)
    if len(listed) <= _LONGEST and "…" not in listed:
        yield listed
        if len(names) > 1:
            yield counted(len(names), noun)
        return
    yield _middle(names[0], _LONGEST)
    yield f"… {_middle(names[-1], _LONGEST - 2)}"
    yield counted(len(names), noun)


def _degrees(row: Mapping[str, Any]) -> str:
    """Write how a stage shares its devices; nothing where it has one."""
    replicas = row.get("replicas", row.get("data_parallel", 1))
    each = row.get("tensor_parallel", 1)
    if replicas > 1 and each > 1:
        return f"{replicas:,} replicas of {counted(each, 'device')}"
    if replicas > 1:
        return f"{replicas:,} replicas"
    return f"tensors over {each:,} devices" if each > 1 else ""


def _told(index: int, row: Mapping[str, Any]) -> str:
    names = [str(layer) for layer in row["layers"]]
    more = f" and {len(names) - _MOST_LISTED:,} more" if len(names) > _MOST_LISTED else ""
    return f"stage {index}: {', '.join(names[:_MOST_LISTED])}{more}"


def _middle(name: str, longest: int) -> str:
    """Leave out the middle of a name that is too long."""
    half = longest // 2
    return name if len(name) <= longest else f"{name[:half]}…{name[len(name) - (longest - half - 1) :]}"


_COLUMNS: Mapping[str, tuple[str, str]] = {
    "device": ("device", "count"),
    "replicas": ("replicas", "degree"),
    "data_parallel": ("replicas", "degree"),
    "devices": ("devices", "degree"),
    "micro_batch": ("samples", "count"),
    "forwards_backwards": ("kFkB", "degree"),
    "in_flight": ("in flight", "count"),
    "forward_ticks": ("forward", "ticks"),
    "backward_ticks": ("backward", "ticks"),
    "handover_ticks": ("hand-over", "ticks"),
    "synchronisation_ticks": ("synchronising", "ticks"),
    "compute": ("compute", "units"),
    "communication": ("communication", "units"),
    "time_ticks": ("time", "fraction"),
    "memory_bytes": ("memory", "bytes"),
}
"""Keys of a stage, what its columns are called, and what they hold; a degree is left out where all are 1."""


def stage_table(document: Mapping[str, Any], times: TimeScale) -> TableBlock:
    """Return the stages as a table."""
    stages = document["stages"]
    scale = document["ticks_per_unit"]
    keys = [key for key in _COLUMNS if any(row.get(key) is not None for row in stages)]
    if "replicas" in keys:
        keys.remove("data_parallel")
    keys = [key for key in keys if _COLUMNS[key][1] != "degree" or any(row.get(key) != 1 for row in stages)]
    keys = [key for key in keys if key != "synchronisation_ticks" or any(row[key] for row in stages)]
    sizes = plan_sizes(document)
    noun = "op" if document["model"].get("kind") == "graph" else "layer"
    columns = [Column("stage"), Column(f"{noun}s", "{:,}".format), Column("first … last", left=True)]
    for key in keys:
        name, kind = _COLUMNS[key]
        if kind == "bytes":
            columns.append(Column(sizes.headed(name), sizes.number))
        elif kind in ("count", "degree"):
            columns.append(Column(name, "{:,}".format))
        else:
            columns.append(Column(times.headed(name), times.number))
    rows = []
    for s, row in enumerate(stages):
        layers = [str(one) for one in row["layers"]]
        rows.append([s, len(layers), _ends(layers), *(_value(row.get(key), _COLUMNS[key][1], scale) for key in keys)])
    caption = "Stages, as the plan says; samples and times are of one micro-batch, memory of a device"
    marks = [{"stage": str(s)} for s in range(len(stages))]
    return TableBlock("stage-table", Table(caption, columns, rows), marks, sortable=True)


def _ends(layers: Sequence[str]) -> Cell:
    """Return a cell with the first and the last layer, sorted by their whole names."""
    if not layers:
        return Cell("–")
    ends = list(dict.fromkeys((layers[0], layers[-1])))
    whole = " … ".join(ends)
    if len(whole) <= _LONGEST_CELL:
        return Cell(whole, whole)
    return Cell(" … ".join(_middle(one, _LONGEST_CELL // len(ends) - 2) for one in ends), whole)


def _value(value: Any, kind: str, ticks_per_unit: int) -> Any:
    """Return the value of a column: of times the ticks."""
    if value is None or kind in ("count", "degree", "bytes", "ticks"):
        return value
    return float(Fraction(*value) if kind == "fraction" else Fraction(value) * ticks_per_unit)


def figures_blocks(document: Mapping[str, Any], flows: Sequence[StageFlow] | None, times: TimeScale) -> list[Block]:
    """Return the tables of stages and of what flows between them."""
    blocks: list[Block] = [stage_table(document, times)]
    if flows:
        blocks.append(flows_table(flows, times))
    return blocks
