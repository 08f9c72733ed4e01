"""States that the caller names: an input of a model and the result that it comes out as."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError
from mtpp.wording import did_you_mean

if TYPE_CHECKING:
    from mtpp.inference.graph import CostGraph

_PARAMETER = "keep_state"


def keep_states(graph: CostGraph, pairs: Mapping[str, str], *, spare: bool = False) -> CostGraph:
    """Return a graph with the given states in place of those that its reader found for the same inputs and outputs.

    Parameters
    ----------
    pairs
        Names of inputs, each with that of a result, or with its own where it is written in place.
    spare
        Whether *pairs* may name inputs that the graph has not.

    Raises
    ------
    InputError
        If the graph has no such input or result, no op reads the input, their types differ, or two inputs come out as
        the same result; *where* is the pair.
    """
    from mtpp.inference.states import State, States

    sizes = dict(zip(graph.inputs.names, graph.inputs.bytes.tolist(), strict=True))
    chosen = {source: target for source, target in pairs.items() if not spare or source in sizes}
    if not chosen:
        return graph
    readers = {row.name: row.readers for row in graph.inputs.rows(graph.op_names)}
    made = dict(zip(graph.tensor_names, graph.tensor_bytes.tolist(), strict=True))
    rows = [
        row
        for row in graph.states.rows(graph.op_names)
        if row.input not in chosen and row.output not in chosen.values()
    ]
    known = _described(graph)
    for i, (source, target) in enumerate(chosen.items()):
        where = f"{source}={target}"
        if source not in sizes:
            said = "no op reads the input" if source in known else "the model has no input"
            raise InputError(
                f"{said} {source!r}",
                parameter=_PARAMETER,
                where=where,
                remedy=did_you_mean(source, sizes, _listed(sizes)),
            )
        results = [*(graph.result_names or made), *known]
        if target not in results and target != source:
            remedy = did_you_mean(target, results, "") or None
            raise InputError(f"the model has no result {target!r}", parameter=_PARAMETER, where=where, remedy=remedy)
        if target in list(chosen.values())[:i]:
            raise InputError(f"two states come out as {target!r}", parameter=_PARAMETER, where=where)
        _refuse_other_type(known.get(source), known.get(target), where)
        rows.append(State(source, source, target, max(sizes[source], made.get(target, 0)), readers[source]))
    return replace(graph, states=States.build(_renamed(rows), graph.op_names))


def _renamed(rows: list[Any]) -> list[Any]:
    """Return states with names that no other one has: those of a file may be called like inputs."""
    seen: set[str] = set()
    found = []
    for row in rows:
        name = row.name
        while name in seen:
            name += "'"
        seen.add(name)
        found.append(row._replace(name=name))
    return found


def _described(graph: CostGraph) -> dict[str, Mapping[str, Any]]:
    """Return inputs and outputs by name, as a reader of models describes them; none for a graph that is no model."""
    ends = [graph.metadata.get(key) for key in ("outputs", "inputs")]
    rows = [row for end in ends if isinstance(end, list | tuple) for row in end]
    return {row["name"]: row for row in rows if isinstance(row, Mapping) and isinstance(row.get("name"), str)}


def _refuse_other_type(entering: Mapping[str, Any] | None, leaving: Mapping[str, Any] | None, where: str) -> None:
    if entering is None or leaving is None:
        return
    for key, size in (("dtype", str), ("shape", len)):
        one, other = entering.get(key), leaving.get(key)
        if one is not None and other is not None and size(one) != size(other):
            what = f"types {one} and {other}" if key == "dtype" else f"{len(one)} and {len(other)} axes"
            raise InputError(f"input and result have {what}", parameter=_PARAMETER, where=where)


def _listed(names: Mapping[str, Any]) -> str:
    shown = ", ".join(list(names)[:8])
    return f"name one of {shown}{', …' if len(names) > 8 else ''}" if names else "name an input that an op reads"
