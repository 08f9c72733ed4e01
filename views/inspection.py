"""Table of an inspection: totals of a model, and its kinds of ops, its modules or its ops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mtpp.formats.modelled.control_notes import UNKNOWN_TRIPS
from mtpp.units import format_bytes, format_picoseconds, format_quantity, format_share
from mtpp.views.renderer import view
from mtpp.views.table import Column, Table, table_of_records
from mtpp.views.terminal import Medium
from mtpp.wording import counted

_LISTED = 8

_LISTED_CORES = 3


@view
def inspection_text(document: Mapping[str, Any], medium: Medium) -> Iterable[Table]:
    """Return a table of the ops or modules that the document lists, else of the kinds of ops."""
    key = next(key for key in ("op", "module", "kind") if f"{key}s" in document)
    rows = document[f"{key}s"]
    if medium.form == "csv":
        keys = (key, "kind" if key == "op" else "ops", "work", "param_bytes", "time_unit", "ticks_per_unit")
        unit = (document["time_unit"], document["ticks_per_unit"])
        return [Table(columns=list(map(Column, keys)), rows=[[*row.values(), *unit] for row in rows])]
    total = document["work"] or 1
    columns = [
        Column(key, left=True),
        Column("kind", left=True) if key == "op" else Column("ops"),
        Column("work", lambda ticks: _cost(document, ticks)),
        Column("share", lambda ticks: format_share(ticks, total)),
        Column("parameters", format_bytes),
    ]
    cells = [
        [name or None, what or None, work, work, size or None] for name, what, work, size in map(dict.values, rows)
    ]
    return [Table(document["model"]["name"], columns, cells, _summary(document), layout="above")]


@view
def open_inspection_text(document: Mapping[str, Any], medium: Medium) -> Iterable[Table]:
    """Return a table of the open sizes of a model whose ops have no costs yet."""
    rows = document["open_sizes"]
    if medium.form == "csv":
        return [table_of_records(rows, ("name", "meaning", "proposal"))]
    figures = [("model", f"{document['model']['name']}: {counted(len(document['inputs']), 'input')}, no costs yet")]
    if document["inputs"]:
        figures.append(("inputs", _listing([_port(port) for port in document["inputs"]])))
    figures.append(("no costs", _obstacle(document)))
    columns = [Column("open size", left=True), Column("meaning", left=True), Column("proposal")] if rows else []
    return [Table(document["model"]["name"], columns, [list(row.values()) for row in rows], figures, layout="above")]


def _obstacle(document: Mapping[str, Any]) -> str:
    rows, why = document["open_sizes"], document["obstacle"]
    if not rows:
        return f"{why}; give its axes as sizes, TENSOR:AXIS"
    if all(row["proposal"] is not None for row in rows):
        return f"with the proposed sizes, {why}; give its axes as sizes too, TENSOR:AXIS"
    return f"no sizes were found with which every op's operands fit ({why}); give sizes that do"


def _states(states: Sequence[Mapping[str, Any]]) -> str:
    total = format_bytes(sum(state["bytes"] for state in states))
    listed = [f"{state['input']} → {state['output']} {format_bytes(state['bytes'])}" for state in states]
    return f"{total} for each sequence: {_listing(listed)}"


def _cost(document: Mapping[str, Any], ticks: int) -> str:
    if document["time_unit"] == "1":
        return f"{ticks / document['ticks_per_unit']:,.6g}"
    return format_picoseconds(ticks)


def _summary(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    from mtpp.machine.device import Device

    model, reader = document["model"], document["reader"]
    largest = document["largest_op"]
    lines = [
        ("model", f"{model['name']}: {model['ops']:,} ops, {model['tensors']:,} tensors"),
        ("work", f"{_cost(document, document['work'])} in all, the largest op {_cost(document, largest['work'])} "
                 f"({largest['name']})"),
    ]  # fmt: skip
    if "macs" in reader:
        macs, flops = format_quantity(reader["macs"], "MAC"), format_quantity(reader.get("flops", 0), "FLOP")
        lines.append(("arithmetic", f"{macs}, {flops}"))
    parameters = format_bytes(reader.get("parameter_bytes", document["param_bytes"]))
    shared = reader.get("shared_parameters", [])
    if shared:
        parameters += f"; read by several ops: {_listing([_shared(entry) for entry in shared])}"
    lines.append(("parameters", parameters))
    if document.get("states"):
        lines.append(("states", _states(document["states"])))
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
    if document.get("open_sizes"):
        meanings = [f"{row['name']} ({row['meaning']})" for row in document["open_sizes"]]
        lines.append(("open sizes", f"{_listing(meanings)}: not given, taken as proposed"))
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
    modelled = "macs" in reader and not isinstance(measured, Mapping)
    lines.append(("system", Device.from_document(document["system"]).describe(computing=modelled)))
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


def structure_text(structure: Mapping[str, Any]) -> str:
    """Return the composition of a graph as one line."""
    blocks, widest, cores = structure["blocks"], structure["widest"], structure["cores"]
    shape = ""
    if blocks:
        nested = f", {structure['depth']} deep" if structure["depth"] > 1 else ""
        shape = f"{blocks:,} block{'s' if blocks > 1 else ''}{nested}, at most {widest:,} branches"
    if not cores:
        return f"series-parallel: {shape}" if shape else "a chain"
    *others, smallest = [f"{core['ops']:,}" for core in cores[:_LISTED_CORES]]
    if len(cores) > _LISTED_CORES:
        listed = ", ".join([*others, smallest, "…"])
    else:
        listed = f"{', '.join(others)} and {smallest}" if others else smallest
    ends = f"{cores[0]['after'] or 'the inputs'} … {cores[0]['before'] or 'the outputs'}"
    which = "; the largest" if len(cores) > 1 else ""
    around = f"{len(cores):,} core{'s' if len(cores) > 1 else ''} ({listed} ops{which}: {ends})"
    return f"series-parallel around {around}" + (f"; {shape}" if shape else "")
