"""Figures of a model or a language model: its parts, their costs, and things that the cost model does not know."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
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
    from mtpp.api.options.reading import Reading
    from mtpp.formats.modelled.open_sizes import OpenSize
    from mtpp.formats.modelled.size_terms import SizeTerms
    from mtpp.machine.machine import Machine
    from mtpp.views.terminal import Medium


class _Document(ShownResult):
    """Document on a model, which has a name."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document

    @property
    def name(self) -> str:
        """Name of the graph; of the model's file where there is no graph with costs."""
        return str(self._document["model"]["name"])

    def _said(self) -> Mapping[str, Any]:
        return self._document


class Inspection(_Document):
    """Totals of a model, its kinds of ops by cost, and the reader's notes; it shows itself as a table."""

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

    def _shown(self, medium: str | Medium) -> str:
        from mtpp.views.inspection import inspection_text

        return inspection_text(self._document, medium)


class OpenInspection(_Document):
    """Inputs and open sizes of a model whose ops have no costs yet: no proposed sizes fit, or a shape is unknown."""

    @property
    def inputs(self) -> list[dict[str, Any]]:
        """Inputs as the file declares them: ``name``, ``shape`` with names of open sizes, and ``dtype``."""
        return copy.deepcopy(self._document["inputs"])

    @property
    def open_sizes(self) -> list[dict[str, Any]]:
        """Open sizes: ``name``, ``meaning`` and ``proposal``, None where there is none."""
        return copy.deepcopy(self._document["open_sizes"])

    @property
    def obstacle(self) -> str:
        """Sentence on why no costs are known."""
        return str(self._document["obstacle"])

    def _shown(self, medium: str | Medium) -> str:
        from mtpp.views.inspection import open_inspection_text

        return open_inspection_text(self._document, medium)


def inspected_file(path: str, how: Reading, asked: Inspecting, observer: Observer) -> Inspection | OpenInspection:
    """Return the figures of the model at *path*, ``-`` for standard input; open sizes are taken as proposed."""
    from mtpp.api.inputs.model import read_model
    from mtpp.api.inputs.python_models import source_at
    from mtpp.api.options.reading import Reading

    source = source_at(path, how.from_format, int(how.max_input_size), how)

    def read(dims: SizeTerms) -> Model:
        return read_model(
            path, Reading.of(**{**how.values(), "dims": dims}) if dims else how, observer.warn, source=source
        )

    given: Any = how.values()["dims"] or {}
    return _inspected(read, given, asked, source.stem, observer)


def _inspected(
    read: Callable[[SizeTerms], Model], given: SizeTerms, asked: Inspecting, name: str, observer: Observer
) -> Inspection | OpenInspection:
    """Return the figures of a model that *read* reads, with proposed sizes where some are open.

    Parameters
    ----------
    read
        Reads it with sizes; with none, as its caller asked.
    given
        Sizes that the caller asked for.
    """
    from mtpp.formats.modelled.open_sizes import OpenSizes, UnknownSize
    from mtpp.formats.modelled.size_terms import AUTO, OTHERS
    from mtpp.formats.results.inspection import open_inspection_document

    try:
        return inspection(read({}), asked)
    except UnknownSize as error:
        if error.misfit:
            raise
        told = error
    sizes = told.sizes if isinstance(told, OpenSizes) else ()
    obstacle = told.obstacle if isinstance(told, OpenSizes) else told.problem
    if sizes and not obstacle:
        try:
            model = read({**given, OTHERS: AUTO})
        except InputError as error:
            obstacle = error.problem
        else:
            taken = ", ".join(f"{one.key} = {model.dims[one.key]}" for one in sizes if one.key in model.dims)
            count = "1 size is" if len(sizes) == 1 else f"{len(sizes)} sizes are"
            observer.warn(f"{count} open; the figures are with the proposed {taken}: set others with ‹dims›")
            return inspection(model, asked, sizes)
    return OpenInspection(open_inspection_document(name, told.inputs, sizes, obstacle))


def inspection(model: Model, asked: Inspecting, open_sizes: Sequence[OpenSize] = ()) -> Inspection:
    """Return the figures of a model, with the lists asked for.

    Parameters
    ----------
    open_sizes
        Sizes that were taken as proposed without being asked for.
    """
    from mtpp.formats.results.inspection import inspection_document
    from mtpp.solvers.series_parallel.decomposition import structure

    groups = None
    if asked.modules is not None:
        from mtpp.api.inputs.module_paths import module_groups

        groups = module_groups(model, asked.modules)
    graph, sha256 = model.graph, model.source.sha256
    of_graph = graph, model.instance(1), sha256, structure(graph)
    return Inspection(inspection_document(*of_graph, ops=asked.ops, modules=groups, open_sizes=open_sizes))


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
) -> Inspection | OpenInspection | LanguageModelInspection:
    """Say what a model is made of, what its ops cost, and what the cost model does not know.

    Sizes that the model leaves open are taken as proposed, and said; where none fit, only inputs and open sizes are.

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
    from mtpp.api.inputs.reading import as_model, read
    from mtpp.api.inputs.serving import refuse_serving
    from mtpp.api.language_models.inspection import language_model_inspection, refuse_stages
    from mtpp.api.observer import listener
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
    heard = listener(observer)
    if isinstance(model, str) and model == "-":  # which can be read once
        return inspected_file(model, Reading(), asked, heard)
    name = Path(model).stem if isinstance(model, str | os.PathLike) else f"<{type(model).__name__}>"
    return _inspected(
        lambda dims: read(model, dims=dims, observer=observer) if dims else as_model(model, observer),
        {},
        asked,
        name,
        heard,
    )
