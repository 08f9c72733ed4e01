"""Figures of a model or a language model: its parts, their costs, and things that the cost model does not know."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from mtpp.api.options.graphs import Inspecting
from mtpp.api.options.kinds import Whole
from mtpp.api.options.language_models import Serving, Stages
from mtpp.api.output import ShownResult
from mtpp.errors import InputError
from mtpp.ranges import MOST_SEQUENCES
from mtpp.units import PICOSECONDS

if TYPE_CHECKING:
    from mtpp.api.inputs.model import Model
    from mtpp.api.language_models.inspection import LanguageModelInspection
    from mtpp.api.observer import Observer
    from mtpp.machine.machine import Machine
    from mtpp.views.terminal import Medium


class Inspection(ShownResult):
    """Totals of a model, its kinds of ops by cost, and the reader's notes; it shows itself as a table."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document

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

    def _said(self) -> Mapping[str, Any]:
        return self._document

    def _shown(self, medium: str | Medium) -> str:
        from mtpp.views.inspection import inspection_text

        return inspection_text(self._document, medium)


def inspection(model: Model, asked: Inspecting) -> Inspection:
    """Return the figures of a model, with the lists asked for."""
    from mtpp.formats.results.inspection import inspection_document
    from mtpp.solvers.series_parallel.decomposition import structure

    groups = None
    if asked.modules is not None:
        from mtpp.api.inputs.module_paths import module_groups

        groups = module_groups(model, asked.modules)
    graph, sha256 = model.graph, model.source.sha256
    of_graph = graph, model.instance(1), sha256, structure(graph)
    return Inspection(inspection_document(*of_graph, ops=asked.ops, modules=groups))


def inspect(
    model: Any,
    *,
    ops: bool = False,
    modules: int | None = None,
    kv_dtype: str | None = None,
    context: int | str | None = None,
    sequences: int | None = None,
    phase: str | None = None,
    batch: int | None = None,
    mtp: int | None = None,
    adapters: Iterable[str | os.PathLike[str]] = (),
    k: int | None = None,
    machine: str | os.PathLike[str] | Machine | None = None,
    observer: Observer | None = None,
) -> Inspection | LanguageModelInspection:
    """Say what a model is made of, what its ops cost, and what the cost model does not know.

    Keywords that are not listed are fields of :class:`mtpp.api.options.graphs.Inspecting` and
    :class:`mtpp.api.options.language_models.Serving`.

    Parameters
    ----------
    model
        A model of :func:`mtpp.read`, or anything that it reads; or the path of a language model: its folder, its
        ``config.json``, a ``.gguf``, a ``.safetensors`` or an index of such.
    sequences
        Of a language model: sequences whose caches are held.
    k
        Of a language model: stages that share the sequences out, where *batch* is not given.
    machine
        Of a language model: devices that layers have times on; a file, or a :class:`mtpp.Machine`.
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
    from mtpp.api.inputs.language_models import names_language_model
    from mtpp.api.inputs.reading import as_model
    from mtpp.api.inputs.serving import refuse_serving
    from mtpp.api.language_models.inspection import language_model_inspection, refuse_stages
    from mtpp.api.options.reading import Reading

    asked = Inspecting(ops=ops, modules=modules)  # refused before the model is read
    serving = Serving.of(kv_dtype=kv_dtype, context=context, phase=phase, batch=batch, mtp=mtp, adapters=adapters)
    if names_language_model(model):
        held = None if sequences is None else Whole(1, MOST_SEQUENCES).read(sequences, "sequences")
        stages, placed = Stages.of(k=k).k, Reading.of(machine=machine, sequences=held).placed
        return language_model_inspection(model, asked, serving, held, k=stages, machine=placed)
    refuse_stages(k, machine)
    refuse_serving(serving)
    if sequences is not None:
        raise InputError("is of language models", parameter="sequences", remedy="give it to mtpp.read")
    return inspection(as_model(model, observer), asked)
