"""Measured time of each op of an ONNX model or an exported PyTorch program on this machine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from mtpp.api.inputs.model import MAX_INPUT_BYTES, Model
from mtpp.api.observer import Observer, listener
from mtpp.api.output import SavedResult
from mtpp.errors import InputError, Interrupted

if TYPE_CHECKING:
    from mtpp.array_types import Array
    from mtpp.formats.io.source import Source
    from mtpp.formats.modelled.size_terms import SizeTerms
    from mtpp.inference.graph import CostGraph
    from mtpp.inference.system import System
    from mtpp.runtime.profiling.profiled_graph import MeasuredProfile
    from mtpp.views.terminal import Medium

MOST_REPEATS = 10_000
MOST_THREADS = 1024
MOST_BESIDE = 1024


@dataclass(frozen=True)
class ProfileModelRequest:
    """Terms of a profile.

    Attributes
    ----------
    model
        Path of an ONNX model or an exported program, ``-`` for standard input, or its content.
    system
        Models the costs that measured ones are compared with: one, the name of a preset, or a TOML file; None for the
        preset ``reference``.
    warmup, repeats
        Runs before those that count, and those.
    threads
        Of one kernel; kernels run one after the other.
    optimise
        Whether ONNX Runtime may fuse and rearrange ops.
    beside
        How many others run the model at the same time.
    backward
        Whether the backward pass of each op is measured too.
    inputs
        Contents of inputs by name, or the path of an ``.npz`` file with them; random where there are none.
    dims
        Sizes of symbolic dimensions.
    seed
        Of all that is made up.
    memory_bytes
        That may be taken; None for what is free.
    max_input_bytes
        A larger file is refused.
    """

    model: str | Source
    system: System | str | None = None
    warmup: int = 3
    repeats: int = 20
    threads: int = 1
    optimise: bool = False
    beside: int = 0
    backward: bool = False
    inputs: str | Mapping[str, Array] | None = None
    dims: SizeTerms = field(default_factory=dict)
    seed: int = 0
    memory_bytes: int | None = None
    max_input_bytes: int = MAX_INPUT_BYTES


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
    model: str | os.PathLike[str] | Model,
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
    system: System | str | os.PathLike[str] | None = None,
    memory_limit: int | str | None = None,
    max_input_size: int | str | None = None,
    observer: Observer | None = None,
) -> Profile:
    """Measure on this machine what each op of a model takes.

    An ONNX model runs in ONNX Runtime (``mtpp[run]``): an op costs the mean of the middle half of its times, and op
    times are scaled to sum to an unprofiled run. An exported program (``.pt2``) runs in PyTorch (``mtpp[torch]``), on a
    GPU if there is one: an op costs the median of its times as they are.

    Parameters
    ----------
    model
        Path of an ONNX model or an exported program, or one as read. Weights that are absent are random.
    warmup, repeats
        Runs before those that count, and those: at most 10,000.
    threads
        Of one kernel, at most 1024; kernels run one after the other.
    optimise
        Whether ONNX Runtime may fuse and rearrange ops; a fused kernel's time is shared out.
    beside
        Number of others that run an ONNX model at the same time, as stages have others beside them.
    backward
        Whether to measure the backward pass of each op of an exported program too, as training runs it.
    inputs
        Contents of inputs by name, or a ``.npz`` file with them. None: random.
    dims
        Sizes of symbolic dimensions; those that a model was read for hold unless they are set here.
    seed
        Of all that is made up.
    system
        System that models the costs to compare with: one, the name of a preset, or a TOML file.
    memory_limit
        Bytes that may be taken, such as ``"8GiB"``; an ONNX model is run in chunks if need be. None: what is free.
    max_input_size
        Bytes beyond which the file is refused. None: 2 GiB.
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
    from mtpp.api.inputs.given_arrays import checked_inputs
    from mtpp.api.inputs.model_path import model_file
    from mtpp.api.inputs.model_terms import bytes_or_none, sizes
    from mtpp.api.options.reading import Machine
    from mtpp.api.parameters import flag, whole
    from mtpp.ranges import MOST_SEED

    file, read_for = model_file(model)
    request = ProfileModelRequest(
        file,
        model.system if system is None and isinstance(model, Model) else Machine(system=system).machine,
        warmup=whole(warmup, "warmup", least=0),
        repeats=whole(repeats, "repeats", most=MOST_REPEATS),
        threads=whole(threads, "threads", most=MOST_THREADS),
        optimise=flag(optimise, "optimise"),
        beside=whole(beside, "beside", least=0, most=MOST_BESIDE),
        backward=flag(backward, "backward"),
        inputs=checked_inputs(inputs),
        dims=read_for | sizes(dims),
        seed=whole(seed, "seed", least=0, most=MOST_SEED),
        memory_bytes=bytes_or_none(memory_limit, "memory_limit"),
        max_input_bytes=bytes_or_none(max_input_size, "max_input_size") or MAX_INPUT_BYTES,
    )
    return profile_model_file(request, listener(observer))


def profile_model_file(request: ProfileModelRequest, observer: Observer) -> Profile:
    """Measure a model.

    Raises
    ------
    InputError
        If it is no model that can be run or broken, takes more memory than there is, or an option means nothing to it.
    Interrupted
        If Ctrl-C ended the work.
    """
    from mtpp.api.inputs.given_arrays import given_arrays
    from mtpp.api.inputs.model_path import read_measurable
    from mtpp.host.free_memory import free_bytes
    from mtpp.runtime.profiling.profile_request import ProfileRequest
    from mtpp.runtime.profiling.timing import ProfileChoices

    arrays = given_arrays(request.inputs)
    terms = ProfileRequest(
        ProfileChoices(request.warmup, request.repeats, request.threads, request.optimise, request.beside),
        _system(request.system),
        dims=request.dims,
        arrays=arrays,
        seed=request.seed,
        memory_bytes=free_bytes() if request.memory_bytes is None else request.memory_bytes,
        backward=request.backward,
    )
    try:
        source, exported = read_measurable(request.model, request.max_input_bytes)
        _refuse_idle(request, source.display, exported=exported)
        if exported:
            from mtpp.runtime.pytorch.profiling.profile_program import profile_program as measure
        else:
            from mtpp.runtime.profiling.profile_model import profile_guarded as measure
        with observer.steps() as steps:
            steps.show("measuring")
            return Profile(measure(source, terms, lambda done, total: steps.show("measuring", done, total)))
    except KeyboardInterrupt:
        raise Interrupted("the measurement was interrupted") from None


def _refuse_idle(request: ProfileModelRequest, display: str, *, exported: bool) -> None:
    """Raise InputError if an option was given that means nothing to the model."""
    if not exported and request.backward:
        raise InputError(
            f"ONNX Runtime does not train: {display} has no backward pass",
            parameter="backward",
            remedy="export the module with torch.export.save, and profile the .pt2",
        )
    for name in ("optimise", "beside") if exported else ():
        if getattr(request, name):
            problem = "has no effect: PyTorch runs the nodes of an exported program as they are, one after the other"
            raise InputError(problem, parameter=name, remedy="leave it out")


def _system(system: System | str | None) -> System:
    from mtpp.inference.system import DEFAULT_PRESET, load_system

    return load_system(system or DEFAULT_PRESET) if system is None or isinstance(system, str) else system
