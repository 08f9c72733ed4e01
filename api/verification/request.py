"""Request for a verification: the result, the models it is about, and what it is held to, sizes among that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mtpp.api.inputs.model import MAX_INPUT_BYTES
from mtpp.api.inputs.serving import in_order, is_load
from mtpp.api.options.machine import OnMachine, System
from mtpp.api.options.reading import Formats
from mtpp.api.options.verifying import Verifying
from mtpp.errors import InputError
from mtpp.formats.modelled.size_terms import OTHERS, SizeTerms, are_proposed, named_sizes, size_of_others
from mtpp.host.deadline import Deadline
from mtpp.host.memory_limit import memory_left

if TYPE_CHECKING:
    from mtpp.api.verification.supplied_model import SuppliedModel
    from mtpp.formats.io.source import Source
    from mtpp.machine.machine import Machine

MAX_RESULT_BYTES = 256 * 2**20
"""Size beyond which a result is refused unless told otherwise: it has many more objects than a model of that size."""


@dataclass(frozen=True)
class VerifyRequest:
    """Terms of a verification.

    Attributes
    ----------
    result
        Path of a document, ``-`` for standard input, or its content.
    models
        Paths of models and, for tables, of folders of them; models that are at hand.
    asked
        What is checked, and for how long.
    system, read_as
        The system that the result has to be for, and things that the formats of the models leave open.
    machine
        That it has to be for.
    deadline
        When work has to end; what is not checked by then is unchecked.
    in_memory
        Whether the result was parsed already: then it may take any amount of memory.
    unfound
        Why there is no model although one was looked for: the claim to be about it is unchecked then. None otherwise.
    missing
        Why the model that the result records is not where it says; None where it is, or the result records none.
    """

    result: str | Source
    models: tuple[str | SuppliedModel, ...] = ()
    asked: Verifying = field(default_factory=Verifying)
    system: System = field(default_factory=System)
    read_as: Formats = field(default_factory=Formats)
    machine: OnMachine = field(default_factory=OnMachine)
    deadline: Deadline = field(default_factory=Deadline)
    in_memory: bool = False
    unfound: str | None = None
    missing: str | None = None

    def refuse_missing(self, source: str | None = None) -> None:
        """Raise InputError if the model that the result records is missing, where nothing can be said without it."""
        if self.missing is not None:
            remedy = "give the model with ‹model›"
            raise InputError(self.missing, source=source, where="/model/path", remedy=remedy)

    @property
    def system_due(self) -> dict[str, Any]:
        """Values that the result's system has to have, by their names in documents."""
        return self.system.due if self.machine.machine is None else {}

    def system_due_for(self, sizes: Mapping[str, int]) -> dict[str, Any]:
        """Return the same for a model with such sizes: stages of a language model run their layers in order."""
        due = self.system_due
        return {**due, "peak": in_order(self.system.device, self.system.peak).peak} if is_load(sizes) and due else due

    @cached_property
    def machine_due(self) -> dict[str, Any] | None:
        """Machine that the result has to be for, as documents have it; None: its own choice."""
        machine = self.machine.placed_for(self.system)
        return None if machine is None else self._documented(machine)

    def machine_due_for(self, sizes: Mapping[str, int]) -> dict[str, Any] | None:
        """Return the same for a model with such sizes: stages of a language model run their layers in order."""
        machine = self.machine.placed_for(self.system) if is_load(sizes) else None
        return self.machine_due if machine is None else self._documented(in_order(machine, self.system.peak))

    def _documented(self, machine: Machine) -> dict[str, Any]:
        from mtpp.api.inputs.device_costs import named_by
        from mtpp.formats.io.source import read_source

        digests: list[str | None] = []
        for device in machine.classes:
            with named_by(machine, device.costs, self.machine.machine):
                path = device.costs
                digests.append(read_source(path, max_bytes=self.max_model_bytes).sha256 if path else None)
        return machine.to_document(times_sha256=digests)

    @property
    def dims_due(self) -> SizeTerms:
        """Sizes that its dimensions have to have; ``*`` is all that are not named, ``auto`` what is proposed."""
        return self.asked.dims or {}

    @property
    def memory_bytes(self) -> int | None:
        """Bytes that a search may take; None: its own limit, as where the whole process has one."""
        return None if memory_left() is not None else self.asked.memory_limit

    @property
    def max_model_bytes(self) -> int:
        """Size beyond which a model is refused."""
        return self.asked.max_input_size or MAX_INPUT_BYTES

    @property
    def max_result_bytes(self) -> int:
        """Size beyond which a result is refused."""
        return self.asked.max_input_size or MAX_RESULT_BYTES

    @property
    def trusted_size(self) -> bool:
        """Whether the result may take any amount of memory once it is read."""
        return self.in_memory or self.asked.max_input_size is not None

    @property
    def display(self) -> str:
        """The name of the result in messages."""
        return self.result if isinstance(self.result, str) else self.result.display


def built_models(request: VerifyRequest) -> VerifyRequest:
    """Return a request whose models are the programs that its functions build, where they are said to be functions."""
    from mtpp.api.inputs.python_models import TORCH, source_at
    from mtpp.api.verification.supplied_model import SuppliedModel

    if request.read_as.from_format != TORCH:
        return request
    models: list[str | SuppliedModel] = []
    for model in request.models:
        if isinstance(model, str):
            source = source_at(model, TORCH, request.max_model_bytes)
            models.append(SuppliedModel(sha256=source.sha256, again=source))
        else:
            models.append(model)
    return replace(request, models=tuple(models), read_as=replace(request.read_as, from_format=None))


def due_sizes(
    due: SizeTerms,
    stated: Mapping[str, int],
    model: str | SuppliedModel | None,
    system: Mapping[str, Any],
    request: VerifyRequest,
) -> dict[str, int]:
    """Return the size that each dimension of a document has to have.

    Parameters
    ----------
    due
        What the caller asks for.
    stated
        What the document says.
    model
        The model that it is about, if it is at hand: proposals are made for it anew.
    system
        The document's.
    """
    sizes = named_sizes(due)
    others = size_of_others(due)
    if others is not None:
        return {**dict.fromkeys(stated, others), **sizes}
    return {**_proposed(sizes, model, system, request), **sizes} if are_proposed(due) else sizes


def _proposed(
    sizes: Mapping[str, int], model: str | SuppliedModel | None, system: Mapping[str, Any], request: VerifyRequest
) -> dict[str, int]:
    from mtpp.api.inputs.model_source import model_source
    from mtpp.formats.graphs.recognise import read_graph
    from mtpp.machine.device import Device

    again = model if model is None or isinstance(model, str) else model.again
    if again is None:
        raise InputError("are proposed for a file", parameter="auto_dims", remedy="give the model with ‹model›")
    adapters = request.asked.adapters
    source = model_source(again, request.max_model_bytes, adapters=adapters) if isinstance(again, str) else again
    graph = read_graph(
        source,
        dims={**sizes, OTHERS: "auto"},
        system=Device.from_document(dict(system)),
        spare_dims=True,
        **request.read_as.values(),
    )
    return dict(graph.metadata.get("dims", {}))
