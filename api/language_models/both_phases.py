"""Models for plans of both phases: decoding, and the prompts that its stages work on before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtpp.errors import InputError
from mtpp.names import BOTH_PHASES, LATENCY_OBJECTIVE, PREFILL_PHASE

if TYPE_CHECKING:
    from mtpp.api.inputs.model import Model
    from mtpp.api.options.search import Partitioning
    from mtpp.inference.degrees.stage_degrees import DegreeGraph


def is_of_both_phases(model: Model) -> bool:
    """Tell whether a model was read for decoding and for prompts."""
    return model.how is not None and model.how.phase == BOTH_PHASES


def both_phases(model: Model, asked: Partitioning) -> tuple[Model, Model]:
    """Return a model that was read for both phases on listed devices: for decoding, and for prompts of as many tokens.

    Raises
    ------
    InputError
        If the objective is the latency, which each phase has its own of, or the fewest devices.
    """
    from mtpp.api.inputs.model import read_model
    from mtpp.api.inputs.serving import at_load
    from mtpp.api.language_models.listed_devices import on_listed_devices

    if asked.objective == LATENCY_OBJECTIVE:
        raise InputError(
            "does not go with latency as the objective: each phase has its own",
            parameter="phase",
            remedy="limit the first token by ‹max_latency›",
        )
    if asked.max_bottleneck is not None:
        raise InputError("does not go with ‹phase› both", parameter="max_bottleneck", remedy="leave it out")
    assert model.how is not None
    how = at_load(model.how, phase=PREFILL_PHASE, context=model.dims["context"], batch=model.dims["batch"])
    source = model.source_with_data()
    prompts = read_model(source.display, how, lambda text: None, source=source, stages=asked.k)
    return on_listed_devices(model, asked.k), on_listed_devices(prompts, asked.k)


def prompt_graphs(prompts: Model) -> dict[int, DegreeGraph]:
    """Return the graphs of a model for prompts by degree of tensor parallelism, as plans embed them."""
    from mtpp.inference.degrees.stage_degrees import DegreeGraph

    assert prompts.machine is not None
    own = prompts.times or [None] * len(prompts.machine.classes)
    return {1: DegreeGraph(prompts.graph, tuple(own)), **(prompts.degrees or {})}
