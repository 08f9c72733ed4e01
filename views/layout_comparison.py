"""Table of rules of engines: ratios of their layouts to the best plans, by machine; as CSV a line a layout."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mtpp.views.renderer import view
from mtpp.views.table import NONE, Column, Figure, Table, table_of_records
from mtpp.views.terminal import Medium
from mtpp.wording import counted

_OF = "/"


@view
def layout_comparison_text(document: Mapping[str, Any], medium: Medium) -> Iterable[Table]:
    """Return a row for each engine and a column for each machine, the best of each column marked."""
    rows = document["rows"]
    if medium.form == "csv":
        return [table_of_records(_flat(row) for row in rows)]
    machines = list(dict.fromkeys((row["machine"], row["devices"]) for row in rows))
    cells = {(one["engine"], (one["machine"], one["devices"])): one for one in document["summary"]}
    models = len({row["source"] for row in rows})
    table = [[engine, *(_mean(cells[engine, machine]) for machine in machines)] for engine in document["engines"]]
    styles: dict[tuple[int, int], str] = {}
    for j, machine in enumerate(machines, 1):
        found = [cells[engine, machine]["geomean_ratio"] for engine in document["engines"]]
        least = min((ratio for ratio in found if ratio is not None), default=None)
        styles |= {(i, j): "bold green" for i, ratio in enumerate(found) if ratio is not None and ratio == least}
    columns = [Column("engine", left=True), *(Column(_machine(*machine)) for machine in machines)]
    of = rows[0]["model"] if models == 1 else f"geometric means over {counted(models, 'model')}"
    title = f"Bottleneck of engines' own layouts / proven lower bound: {of}"
    return [Table(title, columns, table, _figures(document), styles=styles, in_blocks=True)]


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    layers = None if row["layers"] is None else " ".join(map(str, row["layers"]))
    return {**row, "layers": layers, "findings": "; ".join(row["findings"])}


def _machine(name: str | None, devices: int) -> str:
    return f"k = {devices}" if name is None else name


def _mean(cell: Mapping[str, Any]) -> str:
    """Write a mean, with the number of its models where others have no ratio."""
    if cell["geomean_ratio"] is None:
        return NONE
    over = "" if cell["compared"] == cell["models"] else f" ({cell['compared']}{_OF}{cell['models']})"
    return f"{cell['geomean_ratio']:.3f}{over}"


def _figures(document: Mapping[str, Any]) -> list[Figure]:
    figures: list[Figure] = [("ratio", "1 is optimal, lower is better")]
    summary = document["summary"]
    if any(cell["compared"] < cell["models"] for cell in summary):
        figures.append(
            (
                f"(n{_OF}m)",
                "so many models have a ratio: others do not fit, or do not run all layers on devices",
            )
        )
    for key, text in (
        ("too_large", "do not fit into the memory of a device"),
        ("untimed", "leave MTP layers out, or layers to a CPU or a disk, whose time is not modelled"),
        ("refused", "engines refuse, or need modules for that are not known"),
    ):
        by_engine = {
            engine: sum(one[key] for one in summary if one["engine"] == engine) for engine in document["engines"]
        }
        listed = ", ".join(f"{engine} {count}" for engine, count in by_engine.items() if count)
        if listed:
            figures.append((key.replace("_", " "), f"layouts that {text}: {listed}"))
    worst = max(
        (row for row in document["rows"] if row["ratio"] is not None), key=lambda row: row["ratio"], default=None
    )
    if worst is not None:
        where = _machine(worst["machine"], worst["devices"])
        figures.append(("largest", f"{worst['ratio']:.3f}: {worst['engine']}, {worst['model']} on {where}"))
    if any(row["optimal"] is False for row in document["rows"]):
        figures.append(("bounds", "not all best plans are proven optimal: true ratios may be smaller"))
    return figures
