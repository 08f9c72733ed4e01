"""Figures of a language model: its layers with weights and caches, and the parts around them."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mtpp.api.options.graphs import Inspecting
from mtpp.api.options.language_models import Serving
from mtpp.api.options.option import options_of
from mtpp.api.output import ShownResult
from mtpp.errors import InputError
from mtpp.names import PHASES
from mtpp.wording import counted

if TYPE_CHECKING:
    from mtpp.api.options.reading import ModelReading
    from mtpp.machine.machine import Machine
    from mtpp.views.terminal import Medium


class LanguageModelInspection(ShownResult):
    """Layers of a language model with weights and caches, and the parts around them; it shows itself as a table."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document

    @property
    def name(self) -> str:
        """Name of the folder or of the file."""
        return str(self._document["name"])

    @property
    def parameters(self) -> int:
        """Number of parameters, tied ones once, without layers for further tokens."""
        return int(self._document["parameters"])

    @property
    def bytes(self) -> int:
        """Bytes of weights as stored."""
        return int(self._document["bytes"])

    @property
    def cache_bytes_per_token(self) -> int | None:
        """Bytes that all layers keep of a token, below their windows; None where caches are not known."""
        size: int | None = self._document["cache_bytes_per_token"]
        return size

    @property
    def layers(self) -> list[dict[str, Any]]:
        """Layers in order, those of an encoder first."""
        return copy.deepcopy(self._document["layers"])

    @property
    def notes(self) -> list[str]:
        """Disagreements between files and configuration, and assumptions."""
        return list(self._document["notes"])

    def _said(self) -> Mapping[str, Any]:
        return self._document

    def _shown(self, medium: str | Medium) -> str:
        from mtpp.views.language_model import language_model_text

        return language_model_text(self._document, medium)


def language_model_inspection(
    path: Any,
    asked: Inspecting,
    serving: Serving,
    sequences: int | None = None,
    *,
    k: int | None = None,
    machine: Machine | None = None,
) -> LanguageModelInspection:
    """Return the figures of a language model at a path.

    Parameters
    ----------
    sequences
        Those held; by default as many as a step works on, which is one.
    k
        Stages that sequences are shared out among; by default as many as the machine has devices, or one.
    machine
        Devices that layers have times on, at decode where no phase is given.
    """
    from mtpp.api.inputs.language_models import language_model
    from mtpp.formats.results.language_model import language_model_document
    from mtpp.formats.results.language_model_steps import add_steps, add_times
    from mtpp.language_models.layer_graph import with_further_layers

    if asked.ops or asked.modules is not None:
        name = "ops" if asked.ops else "modules"
        raise InputError("has no effect on a language model's files", parameter=name, remedy="leave it out")
    phase = serving.phase or (None if machine is None else PHASES[0])
    for name, value in (("batch", serving.batch), ("k", k)):
        if value is not None and phase is None:
            raise InputError("has no effect without a phase", parameter=name, remedy="give ‹phase› decode")
    stages = k or (1 if machine is None else machine.count)
    batch = serving.batch or -(-(sequences or 1) // stages)
    if sequences is not None and batch > sequences:
        problem = f"{batch:,} are more than the {counted(sequences, 'sequence')} held"
        raise InputError(problem, parameter="batch", remedy="raise ‹sequences›")
    found = with_further_layers(language_model(path, serving.adapters), serving.mtp)
    context = 4096 if serving.context is None else int(serving.context)
    document = language_model_document(found, serving.kv_dtype or "bf16", context, sequences or batch)
    if phase is not None:
        phases = ("decode", "prefill") if phase == "both" else (phase,)
        add_steps(document, found, phases, batch)
        if machine is not None:
            add_times(document, found, machine)
    return LanguageModelInspection(document)


def refuse_stages(k: int | None, machine: Any) -> None:
    """Refuse stages and devices where there is no language model."""
    for name, value in (("k", k), ("machine", machine)):
        if value is not None:
            raise InputError("is of language models here", parameter=name, remedy="leave it out")


def refuse_reading(reading: ModelReading) -> None:
    """Refuse options of graphs where there is a language model."""
    own = {"sequences", "machine", "max_input_size", *options_of(Serving)}
    for name, one in options_of(type(reading)).items():
        if name not in own and (getattr(reading, name) or None) != (one.default or None):
            raise InputError("has no effect on a language model's files", parameter=name, remedy="leave it out")
