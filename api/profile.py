"""Measured time of each op of an ONNX model or an exported PyTorch program on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from mtpp.api.inputs.model import Model
from mtpp.api.observer import Observer, listener
from mtpp.api.options.machine import System
from mtpp.api.options.profiling import Profiling
from mtpp.api.output import SavedResult
from mtpp.errors import InputError, Interrupted

if TYPE_CHECKING:
    from mtpp.array_types import Array
    from mtpp.formats.io.source import Source
    from mtpp.formats.modelled.size_terms import SizeTerms
    from mtpp.inference.graph import CostGraph
    from mtpp.machine.device import Device
    from mtpp.runtime.profiling.profiled_graph import MeasuredProfile
    from mtpp.views.terminal import Medium


@dataclass(frozen=True, repr=False)
class Profile(SavedResult):
    """A model measured.

    Attributes
    ----------
    measured
        Its graph with measured and with modelled costs, and the figures behind them.
    """

    measured: MeasuredProfile
    _is_graph: ClassVar[bool] = True

    @property
    def graph(self) -> CostGraph:
        """The model's graph with measured costs, in microseconds; it can be partitioned."""
        return self.measured.graph

    def document(self) -> dict[str, Any]:
        """Return the JSON object that :meth:`save` writes; numbers that are not whole are exact."""
        from mtpp.formats.graphs.native import to_document

        return to_document(self.graph)

    def _said(self) -> dict[str, Any]:
        return self.document()

    def _shown(self, medium: str | Medium) -> str:
        from mtpp.views.profile import profile_text

        return profile_text(self.measured, medium)


def profile(
    model: Any,
    *,
    warmup: int = 3,
    repeats: int = 20,
    threads: int = 1,
    optimise: bool = False,
    beside: int = 0,
    backward: bool = False,
    inputs: Mapping[str, Array] | str | os.PathLike[str] | None = None,
    dims: SizeTerms | str | None = None,
    seed: int = 0,
    imports: Iterable[str] = (),
    from_format: str | None = None,
    system: Device | str | os.PathLike[str] | None = None,
    memory_limit: int | str | None = None,
    max_input_size: int | str = "2GiB",
    observer: Observer | None = None,
) -> Profile:
    """Measure on this machine what each op of a model takes.

    Keywords that are not listed are fields of :class:`mtpp.api.options.profiling.Profiling`.

    An ONNX model runs in ONNX Runtime (``mtpp[run]``): an op costs the mean of the middle half of its times, and op
    times are scaled to sum to an unprofiled run. An exported program (``.pt2``) runs in PyTorch (``mtpp[torch]``), on a
    GPU if there is one: an op costs the median of its times as they are.

    Parameters
    ----------
    model
        Path of an ONNX model or an exported program, or one as read; an exported program in memory; with *from_format*
        ``"torch"`` a function ``"package.module:function"``. Weights that are absent are random.
    observer
        Listener to what is being done.

    Returns
    -------
    The graph with measured costs, with the figures behind them.

    Raises
    ------
    InputError
        If a parameter is of the wrong type or means nothing for the model, the model is no such one or broken, takes
        more memory than there is, or cannot be run, or what runs it is not installed.
    Interrupted
        If Ctrl-C ended the work.

    Examples
    --------
    >>> import mtpp
    >>> measured = mtpp.profile(mtpp.datasets.sample_path("resnet50"), warmup=0, repeats=1)
    >>> measured.graph.op_count, measured.graph.time_unit
    (122, 'us')
    """
    from mtpp.api.inputs.model_path import model_file
    from mtpp.api.inputs.python_models import runnable_model

    read_on = model.system if system is None and isinstance(model, Model) else system
    terms = Profiling.among(locals(), system=read_on)
    with runnable_model(model, terms.from_format, int(terms.max_input_size)) as found:
        file, read_for = model_file(found)
        return profile_model_file(file, terms, listener(observer), read_for)


def profile_model_file(
    file: str | Source, asked: Profiling, observer: Observer, read_for: SizeTerms | None = None
) -> Profile:
    """Measure a model, with the sizes that it was *read_for* where others are not set."""
    from mtpp.api.inputs.model_path import read_measurable
    from mtpp.api.parameters import given_arrays
    from mtpp.host.capacity import free_bytes
    from mtpp.runtime.profiling.timing import ProfileChoices, ProfileRequest

    values: dict[str, Any] = asked.values()
    terms = ProfileRequest(
        ProfileChoices(*(values[name] for name in ("warmup", "repeats", "threads", "optimise", "beside"))),
        System(system=asked.system).device,
        dims={**(read_for or {}), **(values["dims"] or {})},
        arrays=given_arrays(values["inputs"]),
        seed=asked.seed,
        memory_bytes=free_bytes() if asked.memory_limit is None else values["memory_limit"],
        backward=asked.backward,
    )
    try:
        source, exported = read_measurable(file, values["max_input_size"])
        _refuse_idle(asked, source.display, exported=exported)
        if exported:
            from mtpp.runtime.pytorch.importing import import_registering
            from mtpp.runtime.pytorch.profiling.profile_program import profile_program as measure

            import_registering(asked.imports)
        else:
            from mtpp.runtime.profiling.profile_model import profile_guarded as measure
        with observer.steps() as steps:
            steps.show("measuring")
            return Profile(measure(source, terms, lambda done, total: steps.show("measuring", done, total)))
    except KeyboardInterrupt:
        raise Interrupted("the measurement was interrupted") from None


def _refuse_idle(asked: Profiling, display: str, *, exported: bool) -> None:
    """Raise InputError if an option was given that means nothing to the model."""
    if not exported and asked.imports:
        from mtpp.runtime.pytorch.importing import nothing_to_register

        raise nothing_to_register(display)
    if not exported and asked.backward:
        raise InputError(
            f"ONNX Runtime does not train: {display} has no backward pass",
            parameter="backward",
            remedy="export the module with torch.export.save, and profile the .pt2",
        )
    for name in ("optimise", "beside") if exported else ():
        if getattr(asked, name):
            problem = "has no effect: PyTorch runs the nodes of an exported program as they are, one after the other"
            raise InputError(problem, parameter=name, remedy="leave it out")
