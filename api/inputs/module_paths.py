"""Modules that the ops of a model came from, where its file says it, and ops grouped by them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.api.inputs.model import Model
    from mtpp.formats.exporters.block_kinds import BlockKinds
    from mtpp.formats.io.source import Source
    from mtpp.formats.modelled.size_terms import SizeTerms
    from mtpp.inference.graph import CostGraph
    from mtpp.machine.device import Device


class Modules(NamedTuple):
    """A graph with the modules of its ops.

    Attributes
    ----------
    paths
        Path of the module that each op came from, by name of the op.
    visits
        Earlier calls of the modules around each op, by path, where the file tells of some.
    """

    graph: CostGraph
    paths: Mapping[str, str]
    visits: Mapping[str, Mapping[str, int]]


def graph_with_modules(source: Source, dims: SizeTerms, system: Device) -> Modules | None:
    """Return the graph of an ONNX model or an exported program and the modules of its ops; None for others."""
    from mtpp.formats.onnx import looks_like_onnx, read_with_nodes
    from mtpp.formats.onnx.module_names import module_names
    from mtpp.formats.torch_export import looks_like_archive, read_with_modules

    if looks_like_onnx(source.data):
        reading = read_with_nodes(
            source.path, source.data, source=source.display, dims=dims, system=system, name=source.stem
        )
        return Modules(reading.graph, module_names(reading), {})
    if looks_like_archive(source.data):
        program = read_with_modules(source.stored, source=source.display, dims=dims, system=system, name=source.stem)
        return Modules(program.graph, program.modules, program.visits)
    return None


def _with_modules(model: Model, parameter: str, problem: str, remedy: str) -> Modules:
    """Return the graph of a model and the modules of its ops.

    Raises
    ------
    InputError
        If its format has none.
    """
    source = model.source_with_data()
    found = graph_with_modules(source, model.dims, model.system)
    if found is None:
        problem = f"{source.display} is no ONNX model and no exported program{problem}"
        raise InputError(
            problem, parameter=parameter, remedy=f"give the model, with its measured costs as ‹costs›{remedy}"
        )
    return found


def module_groups(model: Model, depth: int) -> tuple[list[str], list[int | None]]:
    """Return modules in the order of their first ops, and the one of each op; None where it is not known.

    Parameters
    ----------
    depth
        Names that are left of a path: at 2, ``layers.7.attention`` is a part of ``layers.7``.
    """
    paths = _with_modules(model, "modules", ": it has no modules", "").paths
    groups: dict[str, int] = {}
    group_of = [_group(groups, paths.get(name), depth) for name in model.graph.op_names]
    if not groups:
        raise InputError(
            f"no op of {model.source.display} is known to belong to a module",
            parameter="modules",
            remedy="export the model with its modules' names",
        )
    return list(groups), group_of


def block_kinds(model: Model) -> BlockKinds:
    """Return the kinds of repeated blocks of a model, whose ops are those of its graph."""
    import numpy as np

    from mtpp.formats.exporters.block_kinds import find_block_kinds
    from mtpp.formats.exporters.request import Request

    graph, paths, visits = _with_modules(model, "together_blocks", "", ", or name the ops with ‹together›")
    return find_block_kinds(Request(graph, np.zeros(graph.op_count, dtype=np.int32), 1, paths, visits=visits))


def _group(groups: dict[str, int], path: str | None, depth: int) -> int | None:
    return groups.setdefault(".".join(path.split(".")[:depth]), len(groups)) if path else None
