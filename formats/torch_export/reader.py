"""An exported program as a cost graph: the steps in order, merging of what is written in place, and the metadata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mtpp.errors import InputError
from mtpp.formats.io.large_file import Stored
from mtpp.formats.modelled.assembly import graph_of, shared_weights, summary_of, tensors_of
from mtpp.formats.modelled.kept_together import ALIASES, REGIONS, SIZES_OF_DATA, kept_together, told_merged
from mtpp.formats.modelled.naming import common_module
from mtpp.formats.modelled.node_names import NODE_NAMES
from mtpp.formats.modelled.op_record import GraphRecord, OpRecord, OpTraining
from mtpp.formats.modelled.size_terms import SizeTerms
from mtpp.formats.modelled.states import Found, pairs_of, states_of, told_states
from mtpp.formats.torch_export.archive import program_text
from mtpp.formats.torch_export.gradients import set_training
from mtpp.formats.torch_export.in_place import InPlace, merged
from mtpp.formats.torch_export.op_names import op_names
from mtpp.formats.torch_export.program import Program, read_nodes
from mtpp.formats.torch_export.result_keys import result_keys
from mtpp.formats.torch_export.signature import USER
from mtpp.formats.torch_export.walk import Walk
from mtpp.inference.graph import CostGraph, Tensor
from mtpp.inference.states import State
from mtpp.machine.device import Device


@dataclass(frozen=True)
class ProgramReading:
    """A graph, and what of the program its ops are.

    Attributes
    ----------
    graph
        What :func:`read_program` returns.
    nodes
        Names of the nodes of each op, in the order of the program; more than one where something is written in place.
    modules
        Path of the module that each op came from, where the file says it; ``""`` is the whole model.
    symbols
        Sizes that were given, by the names that the program has for them.
    visits
        Earlier calls of the modules around an op, by their paths, of those that have some; -1 where its nodes are of
        several calls.
    """

    graph: CostGraph
    nodes: tuple[tuple[str, ...], ...]
    modules: Mapping[str, str]
    symbols: Mapping[str, int]
    visits: Mapping[str, Mapping[str, int]]


def read_program(
    stored: Stored,
    *,
    source: str,
    dims: SizeTerms | None = None,
    system: Device,
    name: str,
    spare_dims: bool = False,
) -> CostGraph:
    """Read an exported program (``.pt2``) as a graph with modelled costs.

    Parameters
    ----------
    stored
        What ``torch.export.save`` of PyTorch 2.13 wrote. Weights are not looked at, and nothing is unpickled.
    source
        What error messages call it.
    dims
        Values of symbolic sizes by symbol (``s77``), or by input and axis (``x:0``); under ``*`` the size of all
        others, or ``auto`` for those that the program was exported with.
    system
        Models the work of each op: max(FLOPs / peak, bytes / memory bandwidth).
    name
        Of the graph.
    spare_dims
        Whether *dims* may name sizes that the program has not.

    Returns
    -------
    A graph in picoseconds. What depends on no input is folded into the ops that read it: what is stored for it is their
    ``param_bytes``, or weights where several ops read it. A condition or a loop is one op, and so is what has to run
    together because something is written in place.

    Raises
    ------
    InputError
        If the file is broken or of another layout, a size is open, or nothing in the program depends on an input.

    Notes
    -----
    O(size of the program) time and memory.
    """
    return read_with_modules(stored, source=source, dims=dims, system=system, name=name, spare_dims=spare_dims).graph


def read_with_modules(
    stored: Stored,
    *,
    source: str,
    dims: SizeTerms | None = None,
    system: Device,
    name: str,
    spare_dims: bool = False,
) -> ProgramReading:
    """Read a program as :func:`read_program` does, and keep which nodes and modules its ops are."""
    text = program_text(stored, source)
    program = read_nodes(text, dims or {}, source, spare=spare_dims)
    walk = Walk(program, system)
    walk.run()
    if not walk.record.ops:
        raise InputError(
            "nothing in the program depends on an input: every node folds into a constant",
            source=source,
            remedy="there is nothing to partition",
        )
    set_training(program, walk)
    groups = _groups(walk.record.ops, walk.in_place)
    joined = [_joined([walk.record.ops[v] for v in group]) for group in groups]
    record = GraphRecord(joined, walk.record.folded)
    names, node_names = op_names([walk.calls[group[0]] for group in groups])
    weights = shared_weights(record.ops, names)
    tensors = [*tensors_of(record.ops, names), *_order(walk, groups, record.ops, names)]
    metadata = {
        "format": "torch-export",
        "producer": " ".join(part for part in ("PyTorch", program.torch_version) if part),
        "inputs": [_described(program, one.name) for one in program.inputs if one.kind == USER],
        "outputs": [_described(program, one) for one in program.outputs if one in program.types],
        "dims": dict(program.sizes.given),
        "symbolic_dims": list(program.sizes.symbols),
        **({"proposed_dims": list(program.sizes.proposed)} if program.sizes.proposed else {}),
        **summary_of(record, names, weights),
        **kept_together({SIZES_OF_DATA: _around_sizes_of_data(walk, program, record.ops, names)}),
        "parameter_bytes": _stored_bytes(program, walk),
        **_node_names(names, node_names),
        "in_place": {
            op_name: [walk.calls[v].name for v in group]
            for op_name, group in zip(names, groups, strict=True)
            if len(group) > 1
        },
    }
    keys = result_keys(text.program)
    found = pairs_of(metadata["inputs"], [{"key": keys.get(one["name"]), **one} for one in metadata["outputs"]])
    states = _states(program, walk, found, record.ops, names)
    if told := [*_told_merged(walk, groups), *told_states(states), *found.told]:
        metadata["assumptions"] = [*metadata.get("assumptions", ()), *told]
    graph = graph_of(record.ops, names, weights, tensors, states, metadata, name=name, source=source)
    nodes = tuple(tuple(walk.calls[v].name for v in group) for group in groups)
    modules = {
        op_name: path
        for op_name, group in zip(names, groups, strict=True)
        if (path := common_module([walk.calls[v].module for v in group])) is not None
    }
    visits = {
        op_name: own
        for op_name, group in zip(names, groups, strict=True)
        if (own := _common_visits([walk.calls[v].visits for v in group]))
    }
    return ProgramReading(graph, nodes, modules, dict(program.sizes.values), visits)


def _common_visits(visits: Sequence[Mapping[str, int]]) -> Mapping[str, int]:
    """Return the earlier calls of modules around all of several nodes; -1 where they are of different calls."""
    if all(one == visits[0] for one in visits[1:]):
        return visits[0]
    paths = dict.fromkeys(path for one in visits for path in one)
    found = {path: {one.get(path, 0) for one in visits} for path in paths}
    return {path: counts.pop() if len(counts) == 1 else -1 for path, counts in found.items()}


def _node_names(names: Sequence[str], nodes: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the entry of a graph's metadata for ops that are not called as their nodes are."""
    differing = {name: node for name, node in zip(names, nodes, strict=True) if name != node}
    return {NODE_NAMES: differing} if differing else {}


def _groups(ops: Sequence[OpRecord], in_place: InPlace) -> list[list[int]]:
    """Return the ops that are one op each, in the order of their first ones."""
    makers = {name: v for v, op in enumerate(ops) for name, _ in op.outputs}
    edges = [(makers[name], v) for v, op in enumerate(ops) for name in op.inputs if name in makers]
    groups: dict[int, list[int]] = {}
    for v, group in enumerate(merged(len(ops), [*edges, *in_place.before], in_place.together)):
        groups.setdefault(group, []).append(v)
    return list(groups.values())


def _told_merged(walk: Walk, groups: Sequence[Sequence[int]]) -> list[str]:
    """Return, for people, how many ops are one because they share memory that is written, or a hidden axis."""
    sizes: dict[str, list[int]] = {ALIASES: [], REGIONS: []}
    for group in groups:
        if len(group) > 1:
            sizes[REGIONS if any(map(walk.is_in_region, group)) else ALIASES].append(len(group))
    return told_merged(sizes)


def _joined(ops: Sequence[OpRecord]) -> OpRecord:
    """Return several ops as one, which is called like the first of them."""
    if len(ops) == 1:
        return ops[0]
    whole = OpRecord(index=ops[0].index, label=ops[0].label, kind=ops[0].kind)
    inner = {name for op in ops for name, _ in op.outputs}
    for op in ops:
        if op.training is not None:
            whole.training = whole.training or OpTraining()
            whole.training.inputs |= op.training.inputs - inner
            whole.training.weights |= op.training.weights
            whole.training.trained |= op.training.trained
        whole.work_ps += op.work_ps
        whole.flops += op.flops
        whole.macs += op.macs
        whole.parameters |= op.parameters
        whole.states |= op.states
        whole.not_modelled += op.not_modelled
        whole.notes += op.notes
        whole.inputs |= {name: level for name, level in op.inputs.items() if name not in inner}
        whole.outputs += op.outputs
    return whole


def _order(walk: Walk, groups: Sequence[Sequence[int]], ops: Sequence[OpRecord], names: Sequence[str]) -> list[Tensor]:
    """Return tensors without bytes from ops that read something to those that write it afterwards."""
    group_of = {v: g for g, group in enumerate(groups) for v in group}
    made = {name: g for g, op in enumerate(ops) for name, _ in op.outputs}
    known = {(made[name], g) for g, op in enumerate(ops) for name in op.inputs if name in made}
    pairs = dict.fromkeys((group_of[a], group_of[b]) for a, b in walk.in_place.before)
    return [
        Tensor(f"{names[a]} before {names[b]}", names[a], (names[b],), 0)
        for a, b in pairs
        if a != b and (a, b) not in known
    ]


def _around_sizes_of_data(
    walk: Walk, program: Program, ops: Sequence[OpRecord], names: Sequence[str]
) -> list[list[str]]:
    """Return the makers and readers of tensors and numbers whose sizes or values only a run tells."""
    maker = {name: own for op, own in zip(ops, names, strict=True) for name, _ in op.outputs}
    found = []
    for op, own in zip(ops, names, strict=True):
        for name in op.inputs:
            if name in maker and (name in program.sized_by_data or name in walk.numbers_of_data):
                found.append([maker[name], own])
    return found


def _states(program: Program, walk: Walk, found: Found, ops: Sequence[OpRecord], names: Sequence[str]) -> list[State]:
    """Return what the program writes and keeps, and inputs that come out again."""
    called = {name: walk.constants[name].name if name in walk.constants else name for name in walk.kept}
    pairs = {called[name]: called.get(value, value) for name, value in walk.kept.items()}
    sizes = {called.get(name, name): kind.bytes for name, kind in program.types.items()}
    return states_of({**dict(found.pairs), **pairs}.items(), sizes, ops, names)


def _stored_bytes(program: Program, walk: Walk) -> int:
    """Return the bytes of all parameters, buffers and constants that are not written, tied ones once."""
    sizes = {
        program.stored_as.get(one.target, one.target): program.types[name].bytes
        for name, one in program.stored.items()
        if name not in walk.kept
    }
    return sum(sizes.values())


def _described(program: Program, name: str) -> dict[str, Any]:
    kind = program.types[name]
    return {"name": name, "shape": list(kind.shape), "dtype": kind.name, "bytes": kind.bytes}
