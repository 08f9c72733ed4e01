"""Text of an inspection: totals of a model, and its kinds of ops, its modules or its ops in a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mtpp.formats.modelled.control_notes import UNKNOWN_TRIPS
from mtpp.terminal_safe import terminal_safe
from mtpp.units import format_bytes, format_count, format_picoseconds, format_share
from mtpp.views.html import html_text
from mtpp.views.structure import structure_text
from mtpp.views.tables import csv_text, markdown_figures, markdown_text, markdown_title

_LISTED = 8


def inspection_text(document: Mapping[str, Any], output_format: str) -> str:
    """Return a text in one of four formats: the ops or modules that the document lists, else the kinds of ops."""
    header, rows = _rows(document, raw=output_format == "csv")
    if output_format == "csv":
        return csv_text(header, rows)
    if output_format == "html":
        return html_text(document["model"]["name"], header, rows, _summary(document), left=_left(header))
    summary = [(name, terminal_safe(value)) for name, value in _summary(document)]
    if output_format == "markdown":
        lines = markdown_figures(summary)
        return f"{markdown_title(document['model']['name'])}{lines}\n\n{markdown_text(header, rows)}"
    width = max(len(name) for name, _ in summary)
    lines = "\n".join(f"{name:<{width}}  {value}" for name, value in summary)
    return f"{lines}\n\n{_aligned(header, rows)}"


def _rows(document: Mapping[str, Any], *, raw: bool) -> tuple[list[str], list[list[Any]]]:
    total = document["work"] or 1
    if "ops" in document:
        if raw:
            return ["op", "kind", "work", "param_bytes"], [list(op.values()) for op in document["ops"]]
        return ["op", "kind", "work", "share", "parameters"], [
            [op["name"], op["kind"] or "–", _cost(document, op["work"]), format_share(op["work"], total), _size(op)]
            for op in document["ops"]
        ]
    key = "module" if "modules" in document else "kind"
    if raw:
        return [key, "ops", "work", "param_bytes"], [list(row.values()) for row in document[f"{key}s"]]
    return [key, "ops", "work", "share", "parameters"], [
        [row[key] or "–", row["ops"], _cost(document, row["work"]), format_share(row["work"], total), _size(row)]
        for row in document[f"{key}s"]
    ]


def _left(header: list[str]) -> tuple[int, ...]:
    """Return the columns of text."""
    return tuple(i for i, name in enumerate(header) if name in {"op", "kind", "module"})


def _cost(document: Mapping[str, Any], ticks: int) -> str:
    if document["time_unit"] == "1":
        return f"{ticks / document['ticks_per_unit']:,.6g}"
    return format_picoseconds(ticks)


def _size(row: Mapping[str, Any]) -> str:
    return format_bytes(row["param_bytes"]) if row["param_bytes"] else "–"


def _summary(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    from mtpp.inference.system import System

    model, reader = document["model"], document["reader"]
    largest = document["largest_op"]
    lines = [
        ("model", f"{model['name']}: {model['ops']:,} ops, {model['tensors']:,} tensors"),
        ("work", f"{_cost(document, document['work'])} in all, the largest op {_cost(document, largest['work'])} "
                 f"({largest['name']})"),
    ]  # fmt: skip
    if "macs" in reader:
        lines.append(("arithmetic", f"{format_count(reader['macs'])}MAC, {format_count(reader.get('flops', 0))}FLOP"))
    parameters = format_bytes(reader.get("parameter_bytes", document["param_bytes"]))
    shared = reader.get("shared_parameters", [])
    if shared:
        parameters += f"; counted in full at each op that reads it: {_listing([_shared(entry) for entry in shared])}"
    lines.append(("parameters", parameters))
    lines.append(
        ("tensors", f"{format_bytes(document['tensor_bytes'])} in all, the largest "
                    f"{format_bytes(document['largest_tensor_bytes'])}")
    )  # fmt: skip
    if document["structure"] is not None:
        lines.append(("structure", structure_text(document["structure"])))
    for key in ("inputs", "outputs"):
        if reader.get(key):
            lines.append((key, _listing([_port(port) for port in reader[key]])))
    if reader.get("symbolic_dims") or reader.get("dims"):
        dims, proposed = reader.get("dims") or {}, reader.get("proposed_dims") or ()
        sizes = [f"{name} = {value}{' (proposed)' if name in proposed else ''}" for name, value in dims.items()]
        lines.append(("dimensions", _listing(sizes) or "none set"))
    if reader.get("folded_constants"):
        lines.append(("constants", f"{reader['folded_constants']:,} nodes depend on no input: folded into parameters"))
    if reader.get("control_flow"):
        lines.append(("control flow", _listing([_control(entry) for entry in reader["control_flow"]])))
    if "not_modelled" in reader:
        lines.append(("not modelled", _not_modelled(reader["not_modelled"])))
    assumed = reader.get("assumptions")
    if isinstance(assumed, list) and assumed:
        lines.append(("assumed", "; ".join(map(str, assumed))))
    measured = reader.get("costs")
    if isinstance(measured, Mapping):
        lines.append(("costs", f"measured: {measured.get('source', '')}"))
    lines.append(("system", System.from_document(document["system"]).describe()))
    return lines


def _not_modelled(counts: Mapping[str, int]) -> str:
    """Tell kinds of ops without a cost rule, and loops whose number of trips nobody knows."""
    kinds = [f"{kind} × {count}" for kind, count in counts.items() if not kind.startswith(UNKNOWN_TRIPS)]
    loops = [kind for kind in counts if kind.startswith(UNKNOWN_TRIPS)]
    texts = [f"{_listing(kinds)} (taken as memory-bound)"] if kinds else []
    texts += [f"{_listing(loops)} (one counted)"] if loops else []
    return ", ".join(texts) or "nothing"


def _listing(items: list[str]) -> str:
    more = f", … {len(items) - _LISTED} more" if len(items) > _LISTED else ""
    return ", ".join(items[:_LISTED]) + more


def _shared(entry: Mapping[str, Any]) -> str:
    return f"{entry['name']} ({format_bytes(entry['bytes'])}, {len(entry['ops'])} ops)"


def _port(port: Mapping[str, Any]) -> str:
    shape = "×".join(map(str, port.get("shape") or [])) or "scalar"
    return f"{port['name']} {shape} {port.get('dtype', '')}".rstrip()


def _control(entry: Mapping[str, Any]) -> str:
    trips = entry.get("trip_count")
    detail = entry.get("note") or (f"{trips} trips" if trips is not None else "")
    return f"{entry['op']} ({entry['kind']}{', ' + detail if detail else ''})"


def _aligned(header: list[str], rows: list[list[Any]]) -> str:
    cells = [header, *([terminal_safe(str(cell)) for cell in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    left = _left(header)
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i in left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    )  # fmt: skip
