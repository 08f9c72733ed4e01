"""Table of a layout of an engine: stages with their layers, time and memory, faults, and the better layout."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mtpp.formats.results.layouts.evaluation import flat_rows, ranges_text
from mtpp.inference.cost_columns import CostColumns
from mtpp.units import InTicks, format_bytes, format_share
from mtpp.views.renderer import view
from mtpp.views.table import Column, Figure, Table, table_of_records
from mtpp.views.terminal import Medium
from mtpp.wording import counted

_TIMES = ("work", "input", "output", "overflow")


@dataclass(frozen=True)
class _Ticks(InTicks):
    time_unit: str
    ticks_per_unit: int


@view
def layout_evaluation_text(document: Mapping[str, Any], medium: Medium) -> Iterable[Table]:
    """Return a row for each stage, and figures below; CSV has the stages."""
    rows = document["stages"]
    if medium.form == "csv":
        return [table_of_records(flat_rows(rows))]
    ticks = _Ticks(document["time_unit"], document["ticks_per_unit"])
    costs = CostColumns.of(ticks, document["bottleneck"])
    shown = [part for part in _TIMES if part != "overflow" or any(row["overflow"] for row in rows)]
    columns = [
        Column("stage"),
        Column("device", left=True),
        Column("layers"),
        Column("held", left=True),
        *(Column("in" if part == "input" else "out" if part == "output" else part, costs.text) for part in shown),
        Column("cost", costs.text),
        Column("share", lambda cost: format_share(cost, document["bottleneck"])),
        Column("weights", format_bytes, spare=1),
        Column("cache", format_bytes, spare=1),
        Column("activations", format_bytes, spare=2),
        Column("memory", format_bytes),
        Column("limit", format_bytes),
    ]
    cells = [
        [
            row["index"],
            row["device"]["name"],
            row["layers"] + row["encoder_layers"] + row["mtp_layers"],
            _held(row),
            *(row[part] for part in shown),
            *(row["cost"], row["cost"]),
            *(row["weight_bytes"], row["cache_bytes"], row["activation_bytes"], row["memory_bytes"]),
            row["limit_bytes"],
        ]
        for row in rows
    ]
    styles: dict[Any, str] = {i: "bold red" for i, row in enumerate(rows) if _breaks_limit(row)}
    if document["slowest"] is not None:
        styles.setdefault(document["slowest"], "bold")
    unit = f" (times in {costs.unit})" if costs.unit else ""
    degree = document.get("tensor_parallel", 1)
    each = f" of {degree} GPUs" if degree > 1 else ""
    title = f"{document['model']['name']}: {document['engine']}, {_stages(rows)}{each}{unit}"
    return [Table(title, columns, cells, _figures(document, ticks), styles=styles)]


def _stages(rows: list[Mapping[str, Any]]) -> str:
    return counted(sum(row["device"]["index"] is not None for row in rows), "stage")


def _breaks_limit(row: Mapping[str, Any]) -> bool:
    return row["limit_bytes"] is not None and row["memory_bytes"] > row["limit_bytes"]


def _held(row: Mapping[str, Any]) -> str:
    """Write the parts of a stage: ``embedding, 0–8``."""
    ends = [(row["embedding"], "embedding"), (bool(row["encoder_layers"]), "encoder")]
    parts = [name for there, name in ends if there]
    parts += [ranges_text(row["ranges"])] if row["ranges"] else []
    further = f"{row['mtp_layers']} MTP" if row["mtp_layers"] else ""
    parts += ["norm"] if row["final_norm"] and not row["head"] else []
    return ", ".join(parts + [name for name in (further, "head" if row["head"] else "") if name])


def _rate(per_second: float) -> str:
    return f"{per_second:,.0f}" if per_second >= 100 else f"{per_second:.3g}"


def _figures(document: Mapping[str, Any], ticks: InTicks) -> list[Figure]:
    slowest = document["slowest"]
    on = "" if slowest is None else f" (stage {slowest})"
    without = "" if document["comparable"] else ", of the parts whose time is modelled"
    figures: list[Figure] = [("bottleneck", f"{ticks.describe(document['bottleneck'])}{on}{without}")]
    if document["tokens_per_s"] is not None and document["comparable"]:
        figures.append(("throughput", f"{_rate(document['tokens_per_s'])} tokens/s"))
    figures.append(("latency", f"{ticks.describe(document['latency'])} on an idle pipeline"))
    if "first_token" in document:
        first = document["first_token"]
        room = "" if first["fits"] else "; a prompt's activations do not fit"
        figures.append(("first token", f"{ticks.describe(first['latency'])} of prompts on an idle pipeline{room}"))
    figures.append(("ratio", _ratio(document, ticks)))
    if document["capacity"] is not None:
        figures.append(("capacity", _capacity(document["capacity"])))
    if document["streamed_bytes"]:
        figures.append(("streamed", f"{format_bytes(document['streamed_bytes'])} of weights in each step, not timed"))
    figures += [("finding", text) for text in document["findings"]]
    figures += [("in effect", text) for text in document["consequences"]]
    figures += [("note", text) for text in document["notes"]]
    figures += _better(document["better"], ticks)
    return [*figures, ("assumptions", "; ".join(document["assumptions"]))]


def _ratio(document: Mapping[str, Any], ticks: InTicks) -> str:
    best = document["best"]
    if best is None:
        return f"none: {document['no_best']}"
    lower = ticks.describe(best["lower_bound"]["value"])
    of = "the best plan" if best["optimal"] else f"a plan of {ticks.describe(best['bottleneck'])}"
    proven = f"{of}: {ticks.describe(best['bottleneck'])}, proven" if best["optimal"] else f"{of}, no less than {lower}"
    ratio = document["ratio"]
    return f"{'none' if ratio is None else f'{ratio:.4f}'} against {proven}"


def _capacity(capacity: Mapping[str, Any]) -> str:
    value, deciding = capacity["value"], capacity["deciding_stage"]
    if value is None:
        return "no limit"
    sequences = counted(capacity["sequences"], "sequence")
    return f"{value:,} tokens of context for {sequences} (stage {deciding})"


def _better(better: Mapping[str, Any] | None, ticks: InTicks) -> list[Figure]:
    if better is None:
        return []
    if better["text"] is None:
        return [("better", better["reason"])]
    ratio = "" if better["ratio"] is None else f", ratio {better['ratio']:.4f}"
    lines = [line for line in better["text"].splitlines() if line]
    figures: list[Figure] = [("better", f"{ticks.describe(better['bottleneck'])}{ratio}: {'; '.join(lines)}")]
    return figures + [("better", note) for note in better["notes"]]
