"""Model of a training plan, read with the unit of time that the plan names."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mtpp.formats.io.source import Source
    from mtpp.training.model import TrainingModel


def model_of_plan(file: Source, plan_unit: str, given_unit: str | None = None) -> TrainingModel:
    """Read the model of a training plan; where neither the caller nor the file says what unit times are in, it does.

    Raises
    ------
    InputError
        If the model is malformed, or none.
    """
    from mtpp.formats.graphs.graph_format import Content
    from mtpp.formats.training import native as training_native
    from mtpp.formats.training.models import training_model_from_source

    content = Content(file)
    document = content.document if content.is_json else None
    names_unit = isinstance(document, dict) and document.get("format") == training_native.FORMAT
    return training_model_from_source(file, plan_unit if given_unit is None and not names_unit else given_unit)
