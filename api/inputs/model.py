"""A model as read: its graph, the machine that it runs on, and where both come from."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtpp.api.inputs.file_contents import holds_weights, refuse_inputs
from mtpp.errors import InputError
from mtpp.names import FROM_TRANSFORMERS
from mtpp.ranges import MOST_UNEQUAL

if TYPE_CHECKING:
    from mtpp.api.options.reading import ModelReading
    from mtpp.formats.io.source import Source as Source
    from mtpp.formats.measured.measured_costs import MeasuredCosts
    from mtpp.inference.degrees.stage_degrees import DegreeGraph
    from mtpp.inference.graph import CostGraph
    from mtpp.inference.instance import Instance
    from mtpp.machine.device import Device as Device
    from mtpp.machine.machine import Machine
    from mtpp.units import Exact

MAX_INPUT_BYTES = 2 * 2**30
"""Size beyond which a file is refused unless told otherwise."""


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """A model as read: its file without the bytes (what is in no single file with them), its graph, and the machine.

    Attributes
    ----------
    dims
        Sizes of symbolic dimensions that it took.
    proposed_dims
        Names of those that nobody gave.
    keep_state
        Inputs that were named as states, each with the result that it comes out as.
    costs
        The file that its costs were measured in, if they do not come from its own.
    read_as_told
        Whether the caller decided what its file leaves open, so that reading the file alone gives another graph.
    max_input_bytes
        A larger file is refused where it is read again.
    machine
        Devices in order, of which *system* is the envelope; None where all are equal.
    times
        For each class of devices the times of its ops, None where they are the graph's own at the class's speed.
    times_sha256
        For each class the SHA-256 of the file that these were measured in, if they were.
    adapters
        Paths of adapters of a language model.
    degrees
        Shares of a language model at degrees of tensor parallelism above 1; None where no device has any.
    how
        Of a language model: how it is read, with its load; None of others.
    modelled
        Whether costs of ops come from the figures of devices; False of graphs that bring their own.
    """

    source: Source
    graph: CostGraph
    system: Device
    dims: dict[str, int]
    read_as_told: bool = False
    costs: MeasuredCosts | None = None
    max_input_bytes: int = MAX_INPUT_BYTES
    proposed_dims: tuple[str, ...] = ()
    machine: Machine | None = None
    times: Sequence[Sequence[Exact] | None] = ()
    times_sha256: Sequence[str | None] = ()
    keep_state: Mapping[str, str] = field(default_factory=dict)
    adapters: Sequence[str] = ()
    how: ModelReading | None = None
    degrees: Mapping[int, DegreeGraph] | None = None
    modelled: bool = True

    def __repr__(self) -> str:
        graph = self.graph
        return f"<Model {graph.name!r}: {graph.op_count:,} ops, {graph.tensor_count:,} tensors, {self.system.name}>"

    def _repr_html_(self) -> str:
        """Return the system and the graph as a table, for notebooks."""
        from html import escape

        from mtpp.terminal_safe import terminal_safe

        told = "; ".join(self.assumptions())
        return f"{self.graph._repr_html_()}<p>{escape(terminal_safe(told))}</p>"

    @property
    def costs_sha256(self) -> str | None:
        """SHA-256 of the file with measured times, if there is one."""
        return None if self.costs is None else self.costs.sha256

    @property
    def own_costs(self) -> bool:
        """Whether its file brings the costs of its ops."""
        return not self.modelled and self.costs is None

    @property
    def recorded(self) -> dict[str, Any]:
        """What documents say of its files: SHA-256 and path, of its measured costs too, and paths of adapters.

        There are no paths where reading the file alone gives another graph.
        """
        from mtpp.formats.io.recorded_paths import recorded_path

        identity: dict[str, Any] = self.source.identity
        if self.read_as_told:
            identity.pop("path", None)
        elif "path" in identity and self.adapters:
            identity["adapters"] = [path for one in self.adapters if (path := recorded_path(one)) is not None]
        if self.costs is not None:
            identity["costs_sha256"] = self.costs.sha256
            if "path" in identity and (costs := recorded_path(self.costs.display)) is not None:
                identity["costs_path"] = costs
        return identity

    def instance(self, k: int | None) -> Instance:
        """Return the instance for k stages; errors name the model's file.

        Parameters
        ----------
        k
            None: as many as there are devices. On devices that differ there is a stage for each, of which so many may
            have ops.
        """
        from mtpp.formats.io.json_shape import attributed
        from mtpp.inference.instance import Instance
        from mtpp.machine.machine import Machine

        if self.degrees is not None:
            raise InputError(
                "devices have tensor_parallel, whose degrees `mtpp partition` alone searches",
                parameter="machine",
                remedy="leave it out, or use `mtpp partition`",
            )
        one_by_one = self.machine is not None and (
            len(self.machine.classes) > 1 or self.machine.neighbours or bool(self.machine.classes[0].stage_times_ps)
        )
        if one_by_one:
            built = self.whole_instance(k)
        else:
            machine = Machine.uniform(k or 1, self.system) if self.machine is None else self._first_devices(k)
            with attributed(self.source.display):
                built = Instance.build(self.graph, machine, self.times or None)
        with attributed(self.source.display):
            _ = built.cost.state_code  # refused at the door: all searches but those of intervals take it
        return built

    def machine_document(self, *, alone: bool = False) -> dict[str, Any]:
        """Return the machine as documents have it, with measured times; all times where the graph stands beside."""
        from mtpp.formats.io.json_text import plain_number

        assert self.machine is not None
        times = [
            [plain_number(time) for time in row] if row is not None and (alone or digest) else None
            for row, digest in zip(self.times, self.times_sha256, strict=True)
        ]
        return self.machine.to_document(times, self.times_sha256)

    def whole_instance(self, k: int | None) -> Instance:
        """Return the instance with a stage for each device of the machine, at most k of which have ops."""
        from mtpp.formats.io.json_shape import attributed
        from mtpp.inference.instance import Instance

        assert self.machine is not None
        self._refuse_too_many(k)
        if self.machine.count > MOST_UNEQUAL and len(self.machine.classes) > 1:
            raise InputError(
                f"{self.machine.count:,} devices that differ are more than {MOST_UNEQUAL:,}",
                parameter="machine",
                remedy="leave some out: of equal ones no more than the model has ops can be of use",
            )
        with attributed(self.source.display):
            return Instance.build(self.graph, self.machine, self.times or None, most_used=k)

    def _first_devices(self, k: int | None) -> Machine:
        assert self.machine is not None
        self._refuse_too_many(k)
        return self.machine.on(range(self.machine.count if k is None else k))

    def _refuse_too_many(self, k: int | None) -> None:
        count = 0 if self.machine is None else self.machine.count
        if k is not None and k > count:
            raise InputError(f"{k} stages are more than the machine has devices, {count}", parameter="k")

    def source_with_data(self) -> Source:
        """Return the source with its bytes, read again where they were not kept.

        Raises
        ------
        InputError
            If the file is gone, or its content is another one by now.
        """
        from mtpp.api.inputs.model_source import model_source

        if self.source.path is None or self.source.data:
            return self.source
        source = model_source(self.source.display, self.max_input_bytes, adapters=self.adapters)
        if source.sha256 != self.source.sha256:
            raise InputError("has changed since it was read", source=source.display, remedy="read it again")
        return source

    def assumptions(self) -> list[str]:
        """Return what the figures rest on, for people."""
        from mtpp.inference.model_file import told_sizes

        computing = self.modelled and self.costs is None
        texts = [f"system {self.system.describe(computing=computing)}"]
        if self.machine is not None:
            texts = [f"machine {self.machine.describe(computing=computing)}"]
        if self.costs is not None:
            texts.append(f"costs measured: {self.costs.display}")
        texts += told_sizes(self.dims, self.proposed_dims)
        if self.degrees is not None and self.machine is not None and any(one.tensor for one in self.machine.classes):
            texts.append("figures of a stage are of one of its GPUs; sums over them in a ring, without latency")
        inputs = self.graph.metadata.get("inputs")
        if isinstance(inputs, list) and inputs:
            shapes = [
                f"{i['name']} {'×'.join(map(str, i.get('shape', []))) or 'scalar'}"
                for i in inputs[:4]
                if isinstance(i, dict)
            ]
            texts.append("inputs " + ", ".join(shapes) + (" …" if len(inputs) > 4 else ""))
        assumed = self.graph.metadata.get("assumptions")
        if isinstance(assumed, list):
            texts += map(str, assumed)
        return texts


def read_model(
    path: str,
    how: ModelReading,
    warn: Callable[[str], None],
    *,
    source: Source | None = None,
    spare_dims: bool = False,
    assignment: Any = None,
    stages: int | None = None,
) -> Model:
    """Read the model at *path*, ``-`` for standard input; of the format ``torch``, what a function builds.

    Parameters
    ----------
    source
        The content of *path*, if it is at hand.
    spare_dims
        Whether *how* may name dimensions that this model, one of several, has not; it takes those it has.
    assignment
        A plan for it, or its path, whose sizes it takes where it leaves some open.
    stages
        Number of stages, which share the sequences of a language model; by default the devices of the machine.

    Raises
    ------
    InputError
        If it is no graph, broken, or does not fit its measured costs.
    """
    from mtpp.api.inputs.python_models import source_at
    from mtpp.api.inputs.serving import held, in_order, load_sizes, refuse_serving
    from mtpp.formats.graphs.language_model import looks_like_description
    from mtpp.formats.graphs.recognise import read_graph, takes_sizes
    from mtpp.formats.modelled.open_sizes import OpenSizes
    from mtpp.inference.frozen import frozen

    values: dict[str, Any] = how.values()
    largest, given = values["max_input_size"], values["dims"] or {}
    source = source or source_at(path, how.from_format, largest, how)
    system, machine, serves = how.device, how.placed, looks_like_description(source.data)
    if serves:
        given = {**load_sizes(how, stages or (None if machine is None else machine.count)), **given}
        system = held(in_order(system, how.peak), how)
        if machine is not None:
            machine = in_order(machine.altered(lambda device: held(device, how)), how.peak)
    elif not spare_dims and how.from_format != FROM_TRANSFORMERS:
        refuse_serving(how)
    read = partial(
        read_graph,
        source,
        spare_dims=spare_dims,
        warn=warn,
        from_format=how.from_format,
        time_unit=how.time_unit,
        backward=how.backward,
        loading_time=how.loading_time,
    )
    device = system
    if None in device.rates:  # of a machine: refused below, by the device's name, where they are needed
        device = replace(device, peak_flops_per_s=1, memory_bandwidth_bytes_per_s=1)
    on_system = partial(read, system=replace(device, speed=1))
    try:
        graph = on_system(dims=given)
    except OpenSizes:
        planned = {} if assignment is None else planned_sizes(assignment)
        if not planned:
            raise
        graph = on_system(dims={**planned, **given})
    kept = values["keep_state"] or {}
    if kept:
        from mtpp.api.inputs.kept_states import keep_states

        graph = keep_states(graph, kept, spare=spare_dims)
        kept = {name: end for name, end in kept.items() if name in graph.states.inputs}
    # Converted graphs remember the sizes that were set before: only what has sizes itself is asked.
    said = graph.metadata if graph.metadata.get("dims") and takes_sizes(source) else {}
    costs = None
    if how.costs is not None:
        from mtpp.formats.measured.measured_costs import caveats

        costs, graph = measured(graph, str(how.costs), largest, path)
        for text in caveats(graph.metadata["costs"]):
            warn(f"{how.costs}: {text}")
    streams = how.device.fast_memory_bytes is not None
    timed = bool(graph.transfer) and all(cost is not None for cost in graph.transfer)
    if how.bandwidth is not None and not streams and timed:
        warn(f"‹bandwidth› has no effect: the tensors of {source.display} carry their transfer times")
    for name in () if machine is None else _useless_devices(machine, graph):
        warn(f"device {name} can hold no op: its memory is too small for any, and no stage stands there")
    times, digests = ((), ()) if machine is None else _times_on(machine, graph, source, read, how, path)
    degrees = None
    if machine is not None and serves:
        from mtpp.api.inputs.shared_graphs import shared_graphs

        degrees = shared_graphs(machine, source, graph.metadata.get("dims", {}), how.given_machine, warn)
    if degrees is not None and costs is not None:
        raise InputError("are of one GPU, and devices have tensor_parallel", parameter="costs", remedy="leave them out")
    again = source if source.is_stdin or serves else replace(source, data=b"")  # a file can be read again
    told = how.time_unit is not None or how.backward or how.loading_time
    return Model(
        again,
        graph,
        system,
        frozen(said.get("dims", {})),
        read_as_told=told,
        costs=costs,
        max_input_bytes=largest,
        proposed_dims=tuple(said.get("proposed_dims", ())),
        machine=machine,
        times=times,
        times_sha256=digests,
        keep_state=frozen(kept),
        adapters=how.adapters,
        how=how if serves else None,
        degrees=degrees,
        modelled=serves or takes_sizes(source),
    )


def for_stages(model: Model, stages: int | None) -> Model:
    """Return a model for so many stages: of a language model, which share the sequences where nobody says otherwise."""
    from mtpp.api.inputs.serving import batch_is_open

    if model.how is None or stages is None or not batch_is_open(model.how):
        return model
    return read_model(model.source.display, model.how, lambda text: None, stages=stages)


def _useless_devices(machine: Machine, graph: CostGraph) -> list[str]:
    """Return the names of devices whose memory is too small for the least op."""
    own, weights = graph.param_bytes, graph.weights
    least = int((own + weights.read_by(graph.op_count)).min()) if weights.names else int(own.min())
    return [
        name
        for name, device in dict(zip(machine.names, machine.devices, strict=True)).items()
        if device.memory_bytes is not None
        and not device.tensor  # at another degree an op is smaller
        and least + (device.activation_reserve_bytes if device.peak == "reserve" else 0) > device.memory_bytes
    ]


def _times_on(
    machine: Machine, graph: CostGraph, source: Source, read: Callable[..., CostGraph], how: ModelReading, path: str
) -> tuple[tuple[Sequence[Exact] | None, ...], tuple[str | None, ...]]:
    """Return the times of ops on each class of devices, and the digests of files that they were measured in.

    Parameters
    ----------
    read
        Reads the model's file for a system and sizes.
    """
    from mtpp.api.inputs.device_costs import at_device, named_by, refuse_other_than_chain, refuse_shared_stages
    from mtpp.formats.graphs.language_model import looks_like_description
    from mtpp.formats.graphs.recognise import takes_sizes
    from mtpp.formats.language_models.graph import layers_of
    from mtpp.machine.boards import RATES

    refuse_other_than_chain(graph, machine, how.given_machine)
    serves = looks_like_description(source.data)
    if not serves:
        refuse_shared_stages(graph, machine, how.given_machine)
    modelled = takes_sizes(source) and how.costs is None
    sizes = dict(graph.metadata.get("dims", {}))
    layers = layers_of(source, sizes) if serves and len(machine.classes) > 1 else None
    times: list[Sequence[Exact] | None] = []
    digests: list[str | None] = []
    for device in machine.classes:
        measurement, found = None, graph
        own: Sequence[Exact] | None = None
        if device.costs:
            with named_by(machine, device.costs, how.given_machine):
                measurement, found = measured(graph, device.costs, int(how.max_input_size), path)
        elif modelled and not device.stage_times_ps and None in device.rates:
            name = machine.names[machine.class_of.index(len(times))]
            missing = [key for key, rate in zip(RATES, device.rates, strict=False) if rate is None]
            problem = f"its system has no {' and no '.join(missing)}, which the work of ops is modelled by"
            problem = f"device {name}: {problem}"
            raise at_device(machine, name, "system", how.given_machine, problem, "fill it in")
        elif modelled and not device.stage_times_ps and (device.speed != 1 or device.rates != how.device.rates):
            own = read(dims=sizes, system=device).work if layers is None else layers.times_ps(device)
        times.append(found.work if found is not graph else own)
        digests.append(None if measurement is None else measurement.sha256)
    return (tuple(times), tuple(digests)) if any(times) else ((), ())


def measured(graph: CostGraph, path: str, max_input_bytes: int, model_path: str) -> tuple[MeasuredCosts, CostGraph]:
    """Return the measured times in the file at *path*, without the file's content, and the graph with them."""
    from mtpp.formats.io.source import read_source
    from mtpp.formats.measured.measured_costs import read_costs, with_costs

    if path == model_path == "-":
        raise InputError("model and costs cannot both be standard input", parameter="costs", remedy="give a file")
    costs = read_costs(read_source(path, max_bytes=max_input_bytes))
    return costs, with_costs(graph, costs)


def planned_sizes(assignment: Any) -> dict[str, int]:
    """Return the sizes of dimensions that a plan says, none of them where an assignment is no plan.

    Parameters
    ----------
    assignment
        What :func:`mtpp.api.inputs.user_assignment.stage_labels` takes. What is wrong with it is said there.
    """
    model = assignment_mapping(assignment).get("model")
    dims = model.get("dims") if isinstance(model, Mapping) else None
    if not isinstance(dims, Mapping):
        return {}
    return {name: size for name, size in dims.items() if isinstance(name, str) and type(size) is int and size > 0}


def assignment_mapping(assignment: Any) -> Mapping[Any, Any]:
    """Return what an assignment says as a document, empty where it is none."""
    from mtpp.api.inputs.user_assignment import assignment_document
    from mtpp.api.output import SavedResult
    from mtpp.formats.io.source import read_source

    document = assignment
    if isinstance(assignment, SavedResult):
        document = assignment.document()
    elif isinstance(assignment, str | os.PathLike) and os.fspath(assignment) != "-":
        try:
            document = assignment_document(read_source(str(os.fspath(assignment))))
        except InputError:
            return {}
    return document if isinstance(document, Mapping) else {}


def devices_given(model: Model, assignment: Any) -> list[int] | None:
    """Return the device of each stage that a plan says, where the devices of a model's machine may stand anywhere.

    Parameters
    ----------
    assignment
        As :func:`mtpp.api.inputs.user_assignment.stage_labels` takes it; only a plan for a machine says devices.
    """
    if model.machine is None or not model.machine.free:
        return None
    stages = assignment_mapping(assignment).get("stages")
    if not isinstance(stages, list) or not all(isinstance(row, Mapping) and "device" in row for row in stages):
        return None
    found: list[Any] = [row["device"].get("index") if isinstance(row["device"], Mapping) else None for row in stages]
    if sorted(map(str, found)) != sorted(map(str, range(model.machine.count))):
        problem = "its devices are not those of the machine, each once"
        raise InputError(problem, parameter="assignment", where="/stages")
    return found


def refuse_own_file(target: str, model: Model) -> None:
    """Raise InputError if *target* is a file that a model or its costs were read from, by whatever name."""
    inputs = {"the model": model.source.path, "its costs": None if model.costs is None else Path(model.costs.display)}
    refuse_inputs(target, inputs)
    if model.source.path is not None and holds_weights(target, str(model.source.path)):
        raise InputError(
            f"{target} is a file of weights of the model too", parameter="path", remedy="name another file"
        )
