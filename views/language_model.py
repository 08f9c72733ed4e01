"""Table of a language model: its layers by kind, and the parts around them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mtpp.units import format_bytes, format_count, format_picoseconds, format_quantity
from mtpp.views.renderer import view
from mtpp.views.table import NONE, Column, Table
from mtpp.views.terminal import Medium
from mtpp.wording import counted

_KEYS = (
    "name", "part", "kind", "parameters", "bytes", "cache_bytes_per_token", "window", "state_bytes_per_sequence",
)  # fmt: skip
_STEP_KEYS = ("flops", "weight_bytes", "cache_bytes_read", "cache_bytes_written")
_LISTED = 3
_DEGREES = 8


@view
def language_model_text(document: Mapping[str, Any], medium: Medium) -> Iterable[Table]:
    """Return a row for layers that are alike, and one for each other part; CSV has a row a layer."""
    if medium.form == "csv":
        return [_records(document)]
    columns = [
        Column("part", left=True),
        Column("layers", left=True),
        Column("kind", left=True, spare=4),
        Column("parameters", format_count, spare=3),
        Column("bytes", format_bytes),
        Column("cache/token", lambda size: f"{size:,} B"),
        Column("window", lambda tokens: f"{tokens:,}", spare=2),
        Column("state", format_bytes, spare=2),
    ]
    phases = list(document.get("steps", ()))
    for phase in phases:
        columns += [Column(f"{phase} FLOPs", format_count), Column(f"{phase} bytes", format_bytes, spare=1)]
        columns += [Column(f"{phase} on {one['name']}", format_picoseconds) for one in document.get("devices", ())]
    kinds = len(document.get("devices", ()))
    embedding, head, other = (_around(name, document[name], phases, kinds) for name in ("embedding", "head", "other"))
    decoder, mtp = (_alike(document[name], phases, kinds) for name in ("layers", "mtp"))
    rows = [embedding, *decoder, head, other, *mtp]
    return [Table(document["name"], columns, rows, _summary(document), layout="above")]


def _records(document: Mapping[str, Any]) -> Table:
    """Return a row for each layer and for each other part, figures as they are."""
    phases, devices = list(document.get("steps", ())), [one["name"] for one in document.get("devices", ())]
    steps = [(phase, key) for phase in phases for key in _STEP_KEYS]
    parts = {name: {"name": name, "part": name, **document[name]} for name in ("embedding", "head", "other")}
    rows = [
        [
            *map(part.get, _KEYS),
            *((part.get("steps", {}).get(phase) or {}).get(key) for phase, key in steps),
            *_times(part, phases, len(devices)),
        ]
        for part in (parts["embedding"], *document["layers"], parts["head"], parts["other"], *document["mtp"])
    ]
    names = [*_KEYS, *map("_".join, steps), *(f"{phase}_ps_on_{name}" for phase in phases for name in devices)]
    return Table(columns=list(map(Column, names)), rows=rows)


def _times(part: Mapping[str, Any], phases: Sequence[str], devices: int) -> list[int | None]:
    """Return the times of a part on kinds of devices at each phase."""
    steps = [part.get("steps", {}).get(phase) or {} for phase in phases]
    return [time for step in steps for time in step.get("time_ps", [None] * devices)]


def _around(name: str, part: Mapping[str, Any], phases: Sequence[str], devices: int) -> list[Any]:
    figures = [part["parameters"] or None, part["bytes"] or None, None, None, None]
    return [name, None, None, *figures, *_of_steps(part, phases, devices)]


def _of_steps(part: Mapping[str, Any], phases: Sequence[str], devices: int) -> list[int | None]:
    """Return FLOPs and bytes of a part at each phase, and its times on so many kinds of devices."""
    figures: list[int | None] = []
    for phase in phases:
        step = part.get("steps", {}).get(phase)
        if step is None:
            figures += [None] * (2 + devices)
        else:
            figures += [step["flops"] or None, _moved(step) or None, *step.get("time_ps", [])]
    return figures


def _moved(step: Mapping[str, int]) -> int:
    return step["weight_bytes"] + step["cache_bytes_read"] + step["cache_bytes_written"]


def _alike(layers: Sequence[Mapping[str, Any]], phases: Sequence[str], devices: int) -> list[list[Any]]:
    """Return rows of layers that differ in nothing but their names."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    counts: dict[str, int] = {}
    for layer in layers:
        number = counts.get(layer["part"], 0)
        counts[layer["part"]] = number + 1
        groups.setdefault((*(layer[key] for key in _KEYS[1:]), *_of_steps(layer, phases, devices)), []).append(number)
    rows = []
    for (part, kind, parameters, size, cache, window, state, *steps), numbers in groups.items():
        rows.append([part, _numbers(numbers), kind, parameters, size, cache or None, window, state or None, *steps])
    return rows


def _numbers(numbers: Sequence[int]) -> str:
    """Write numbers of layers: how many, and runs of them."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    texts = [f"{first}" if first == last else f"{first}–{last}" for first, last in runs]
    listed = ", ".join(texts[:_LISTED]) + (", …" if len(texts) > _LISTED else "")
    return f"{len(numbers)}: {listed}"


def _summary(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    types = ", ".join(f"{name} {format_bytes(size)}" for name, size in document["bytes_by_type"].items())
    source = f"{document['source']}, {document['files']} files" if document["files"] > 1 else document["source"]
    return [
        ("model", f"{document['model_type']}: {document['parameters']:,} parameters ({source})"),
        ("weights", f"{document['bytes']:,} B: {types}{', head tied' if document['tied'] else ''}"),
        *_caches(document),
        ("degrees", _degrees(document["tensor_parallel"])),
        *(("device", _device(one)) for one in document.get("devices", ())),
        *_steps(document),
        *(("note", note) for note in document["notes"]),
    ]


def _degrees(degrees: Sequence[int]) -> str:
    """Write the numbers of GPUs over which engines divide the model."""
    listed = ", ".join(map(str, degrees[:_DEGREES])) + (f", …, {degrees[-1]}" if len(degrees) > _DEGREES else "")
    return f"{listed} GPUs a stage (tensor parallelism)" if len(degrees) > 1 else "one GPU a stage"


def _device(device: Mapping[str, Any]) -> str:
    """Write devices of a kind, and the memory that a stage may need there."""
    size = device["memory_bytes"]
    limit = "no limit on memory" if size is None else f"at most {format_bytes(size)} per stage"
    return f"{device['count']} × {device['name']}: {limit}; times are of one GPU"


def _caches(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return lines on the caches of a token and of all sequences."""
    short, long = document["cache_bytes_per_token"], document["cache_bytes_per_token_beyond_window"]
    held = f"{counted(document['sequences'], 'sequence')} of {document['context']:,} tokens"
    if short is None:
        return [("cache", NONE), ("held", f"{NONE} for {held}")]
    beyond = f", {long:,} B beyond the window" if long != short else ""
    per_source = document.get("cache_bytes_per_source_token")
    of_source = f", {per_source:,} B a token of the source" if per_source else ""
    held += " and a source as long" if per_source else ""
    return [
        ("cache", f"{short:,} B a token{beyond}{of_source} ({document['kv_dtype']})"),
        ("held", f"{format_bytes(document['cache_bytes'])} of caches and states for {held}"),
    ]


def _steps(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return a line for each phase: its step, and the work of all parts together."""
    lines = []
    for phase, step in document.get("steps", {}).items():
        batch, context = counted(document["batch"], "sequence"), f"{document['context']:,}"
        tokens = f"token {context} of {batch}" if phase == "decode" else f"{batch} of {context} tokens"
        work = (
            "not known" if step is None else f"{format_quantity(step['flops'], 'FLOP')}, {format_bytes(_moved(step))}"
        )
        lines.append((phase, f"{tokens}: {work}"))
    return lines
