"""Largest context, or most sequences, that devices hold of a language model, and the model at that load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mtpp.errors import Infeasible, InputError
from mtpp.names import CONTEXT_OBJECTIVE
from mtpp.wording import counted

if TYPE_CHECKING:
    from mtpp.api.inputs.model import Model
    from mtpp.api.options.reading import ModelReading
    from mtpp.api.options.search import Partitioning
    from mtpp.formats.io.source import Source
    from mtpp.language_models.capacity_proof import CapacityProof
    from mtpp.language_models.language_model import LanguageModel
    from mtpp.solvers.serving.capacity import CapacityProblem, Holding, LargestFit, Load


@dataclass(frozen=True)
class AtCapacity:
    """A language model at the largest load that devices hold, and the proof that it is."""

    model: Model
    proof: CapacityProof


def at_capacity(model: Model, asked: Partitioning, together: Sequence[Sequence[str]]) -> AtCapacity:
    """Return a language model with the largest context, or the most sequences, that devices hold.

    Parameters
    ----------
    together
        Groups of op names that one stage has to hold.

    Raises
    ------
    InputError
        If there is no language model, its load says the objective already, or no device has a limit on its memory.
    Infeasible
        Proven: not even one token or sequence fits.
    """
    from mtpp.api.language_models.listed_devices import on_listed_devices
    from mtpp.formats.language_models.description import model_in

    how = model.how
    if how is None:
        raise InputError(
            f"{asked.objective} is of language models", parameter="objective", remedy="give a folder or a configuration"
        )
    _refuse_given(how, asked.objective)
    model = on_listed_devices(model, asked.k)
    source = model.source_with_data()
    language_model = model_in(source)
    problem = _problem(model, language_model, asked, together)
    found = problem.largest_fit()
    if found is None:
        of = counted(problem.load.sequences, "sequence")
        least = f"one token of {of}" if asked.objective == CONTEXT_OBJECTIVE else "one sequence"
        limit = "‹machine›" if how.given_machine is not None else "‹stage_memory›"
        raise Infeasible(f"proven infeasible: no stages of layers fit with {least}", source=limit)
    positions = language_model.sizes.get("max_position_embeddings")
    proof = problem.proof(found, positions if isinstance(positions, int) and positions > 0 else None)
    return AtCapacity(_read_again(how, source, problem.load, found), proof)


def _refuse_given(how: ModelReading, objective: str) -> None:
    dims = how.values()["dims"] or {}
    for name, sizes in (("context", ("context", "prompt")), ("sequences", ())):
        if name == objective and getattr(how, name) is not None and (name == CONTEXT_OBJECTIVE or how.batch is None):
            raise InputError("is the objective", parameter=name, remedy="leave it out")
        if name == objective and any(size in dims for size in sizes):
            raise InputError(f"has the {name}, which is the objective", parameter="dims", remedy="leave it out")


def _problem(
    model: Model, language_model: LanguageModel, asked: Partitioning, together: Sequence[Sequence[str]]
) -> CapacityProblem:
    from mtpp.solvers.layer_chains.devices import ChainDevices
    from mtpp.solvers.serving.capacity import CapacityProblem

    machine = model.machine
    assert machine is not None
    if all(device.memory_bytes is None for device in machine.classes):
        problem = "needs a limit on the memory of devices"
        raise InputError(f"{asked.objective} {problem}", parameter="objective", remedy="give ‹stage_memory›")
    number = {name: i for i, name in enumerate(model.graph.op_names)}
    return CapacityProblem(
        _holdings(model, language_model),
        ChainDevices.of(machine.class_of, free=machine.free, most_used=asked.k),
        [[number[name] for name in group if name in number] for group in together],
        _load(model, asked),
        asked.layers_only,
    )


def _load(model: Model, asked: Partitioning) -> Load:
    from mtpp.language_models.serving_load import BATCH, ServingLoad
    from mtpp.solvers.serving.capacity import Load

    assert model.machine is not None
    assert model.how is not None
    load = ServingLoad.of_sizes(model.dims)
    sequences = model.machine.classes[0].sequences
    given = model.how.batch is not None or BATCH in (model.how.values()["dims"] or {})
    stages = asked.k or model.machine.count
    return Load(asked.objective, load.context, sequences, load.batch if given else None, stages)


def _holdings(model: Model, language_model: LanguageModel) -> list[Holding]:
    """Return all ways in which devices hold stages."""
    from mtpp.api.inputs.degrees import degrees_of_classes
    from mtpp.api.language_models.both_phases import is_of_both_phases
    from mtpp.language_models.layer_memory import LayerMemory, layer_memory
    from mtpp.language_models.serving_load import PREFILL, ServingLoad
    from mtpp.solvers.layer_chains.tables import Alternative
    from mtpp.solvers.serving.capacity import Holding

    assert model.machine is not None
    load = ServingLoad.of_sizes(model.dims)
    memories: dict[int, tuple[LayerMemory, ...]] = {}
    holdings = []
    for c, degrees in enumerate(degrees_of_classes(model)):
        device = model.machine.classes[c]
        reserve = device.activation_reserve_bytes if device.peak == "reserve" else None
        for degree in degrees:
            if degree not in memories:
                own = [replace(load, degree=degree)]
                if is_of_both_phases(model):
                    own.append(replace(load, degree=degree, phase=PREFILL))
                memories[degree] = tuple(layer_memory(language_model, one) for one in own)
            holdings.append(Holding(Alternative(c, degree), device.memory_bytes, reserve, memories[degree]))
    return holdings


def _read_again(how: ModelReading, source: Source, load: Load, found: LargestFit) -> Model:
    """Return the model at the largest value."""
    from mtpp.api.inputs.model import read_model
    from mtpp.api.inputs.serving import at_load
    from mtpp.api.language_models.listed_devices import on_listed_devices

    context, sequences, batch = load.at(found.value)
    again = at_load(how, context=context, sequences=sequences, batch=batch)
    read = read_model(source.display, again, _unheard, source=source, stages=load.stages)
    return on_listed_devices(read, load.stages)


def _unheard(text: str) -> None:
    """Take a warning that was heard before."""
