"""Figures of a model: what it is made of, what its ops cost, and what the cost model does not know."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError
from mtpp.units import PICOSECONDS

if TYPE_CHECKING:
    from mtpp.api.inputs.model import Model
    from mtpp.api.observer import Observer

_METADATA_KEYS = (
    "dims", "proposed_dims", "symbolic_dims", "inputs", "outputs", "macs", "flops", "parameter_bytes",
    "folded_constants", "shared_parameters", "control_flow", "not_modelled", "assumptions", "costs",
)  # fmt: skip


class Inspection:
    """Totals of a model, its kinds of ops by cost, and the reader's notes; it shows itself as a table."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document

    def document(self) -> dict[str, Any]:
        """Return the ``mtpp-inspection`` document, as a copy that may be changed.

        Work is in ticks (picoseconds for graphs with a time unit), sizes are in bytes.
        """
        return copy.deepcopy(dict(self._document))

    @property
    def name(self) -> str:
        """Name of the graph."""
        return str(self._document["model"]["name"])

    @property
    def op_count(self) -> int:
        """Number of ops."""
        return int(self._document["model"]["ops"])

    @property
    def tensor_count(self) -> int:
        """Number of tensors."""
        return int(self._document["model"]["tensors"])

    @property
    def work_s(self) -> float | None:
        """Seconds of all ops together; None where the graph's costs have no unit of time."""
        return None if self._document["time_unit"] == "1" else self._document["work"] / PICOSECONDS["s"]

    @property
    def param_bytes(self) -> int:
        """Bytes of parameters."""
        return int(self._document["param_bytes"])

    @property
    def kinds(self) -> list[dict[str, Any]]:
        """Kinds of ops, the most expensive first: ``kind``, ``ops``, ``work`` and ``param_bytes``."""
        return copy.deepcopy(self._document["kinds"])

    @property
    def modules(self) -> list[dict[str, Any]]:
        """Modules in the order of their first ops: ``module``, ``ops``, ``work`` and ``param_bytes``; if asked for.

        The module of the last one is None if there are ops whose module is not known.
        """
        return copy.deepcopy(self._document.get("modules", []))

    def __repr__(self) -> str:
        from mtpp.views.inspection import inspection_text

        return inspection_text(self._document, "table").removesuffix("\n")

    def _repr_html_(self) -> str:
        from mtpp.views.inspection import inspection_text

        return inspection_text(self._document, "html")


def inspection_document(model: Model, *, ops: bool, modules: int | None = None) -> dict[str, Any]:
    """Return the ``mtpp-inspection`` document: totals, kinds of ops by cost, and what the reader put down.

    Work is in ticks (picoseconds for graphs with a time unit), sizes are in bytes. With *ops*, every op is listed; with
    *modules*, modules down to that depth.

    Raises
    ------
    InputError
        As :func:`mtpp.api.inputs.module_paths.module_groups`.
    """
    from mtpp.views.structure import structure_document

    graph = model.graph
    instance = model.instance(1)
    work = instance.work.tolist()
    params = graph.param_bytes.tolist()
    sizes = instance.tensor_bytes.tolist()
    heaviest = max(range(graph.op_count), key=work.__getitem__)
    document: dict[str, Any] = {
        "format": "mtpp-inspection",
        "version": 1,
        "model": {"name": graph.name, "sha256": model.source.sha256, "ops": graph.op_count, "tensors": len(sizes)},
        "system": model.system.to_document(),
        "time_unit": graph.time_unit,
        "ticks_per_unit": instance.ticks_per_unit,
        "work": sum(work),
        "largest_op": {"name": graph.op_names[heaviest], "work": work[heaviest]},
        "param_bytes": sum(params),
        "tensor_bytes": sum(sizes),
        "largest_tensor_bytes": max(sizes, default=0),
        "structure": structure_document(graph),
        "kinds": _kinds(graph.op_kinds, work, params),
        "reader": {key: graph.metadata[key] for key in _METADATA_KEYS if key in graph.metadata},
    }
    if ops:
        document["ops"] = [
            {"name": name, "kind": kind, "work": ticks, "param_bytes": size}
            for name, kind, ticks, size in zip(graph.op_names, graph.op_kinds, work, params, strict=True)
        ]
    if modules is not None:
        from mtpp.api.inputs.module_paths import module_groups

        names, group_of = module_groups(model, modules)
        listed = [*names, None]
        rows = _totals("module", [listed[-1 if group is None else group] for group in group_of], work, params)
        document["modules"] = sorted(rows, key=lambda row: row["module"] is None)
    return document


def _kinds(kinds: tuple[str, ...], work: list[int], params: list[int]) -> list[dict[str, Any]]:
    return sorted(_totals("kind", kinds, work, params), key=lambda row: (-row["work"], row["kind"]))


def _totals(key: str, values: Sequence[str | None], work: list[int], params: list[int]) -> list[dict[str, Any]]:
    """Return the ops, work and parameters of each value that ops have, in the order of their first ops."""
    rows: dict[str | None, dict[str, Any]] = {}
    for value, ticks, size in zip(values, work, params, strict=True):
        row = rows.setdefault(value, {key: value, "ops": 0, "work": 0, "param_bytes": 0})
        row["ops"] += 1
        row["work"] += ticks
        row["param_bytes"] += size
    return list(rows.values())


def inspect(
    model: Any, *, ops: bool = False, modules: int | None = None, observer: Observer | None = None
) -> Inspection:
    """Say what a model is made of, what its ops cost, and what the cost model does not know.

    Parameters
    ----------
    model
        A model of :func:`mtpp.read`, or anything that it reads.
    ops
        Whether every op is listed, in place of the kinds of ops.
    modules
        List modules in their place, with the ops, work and parameters of each: names of a module's path down to which
        they are told apart, 2 for ``layers.7``. For ONNX models and exported programs.
    observer
        Is warned of what was assumed, see :class:`mtpp.Observer`.

    Raises
    ------
    InputError
        If the model cannot be read, a parameter is wrong, or nothing is known of the model's modules.

    Examples
    --------
    >>> import mtpp
    >>> found = mtpp.inspect(mtpp.datasets.sample_path("resnet50"))
    >>> found.op_count, found.kinds[0]["kind"]
    (122, 'Conv')
    """
    from mtpp.api.inputs.reading import as_model
    from mtpp.api.parameters import flag, whole
    from mtpp.ranges import MOST_DEPTH

    listed = flag(ops, "ops")
    if listed and modules is not None:
        raise InputError("ops and modules cannot both be listed", parameter="modules", remedy="choose one of them")
    depth = None if modules is None else whole(modules, "modules", most=MOST_DEPTH)
    return Inspection(inspection_document(as_model(model, observer), ops=listed, modules=depth))
