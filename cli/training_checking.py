"""What ``verify`` reads around the independent verifier, for a training plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.checker.plan import Report
    from mtpp.cli.options.verify_terms import Terms
    from mtpp.formats.io.source import Source
    from mtpp.training.model import TrainingModel

_BANDWIDTH = "bandwidth_bytes_per_s"


def check_training_document(plan: Any, source: Source, model_path: str | None, terms: Terms) -> Report:
    """Read the model, and verify the training plan that *source* was.

    Where neither the command line nor the model's file says what unit times are in, the plan does.
    """
    from mtpp.checker.training.document import check_training_plan
    from mtpp.checker.training.plan import verify_training_plan
    from mtpp.cli.training_deep_check import training_searches
    from mtpp.formats.io.source import read_source
    from mtpp.formats.training.models import EXPECTED
    from mtpp.host.alarm import TimeIsUp

    try:
        check_training_plan(plan, ())
        _refuse_idle_options(terms)
        if model_path is None:
            raise InputError("a training plan embeds no model", remedy="give the model with --model")
        file = read_source(model_path, max_bytes=terms.limit, expected=EXPECTED)
        model = _read(file, plan["time_unit"], terms.reading)
        return verify_training_plan(
            plan,
            model,
            file.sha256,
            searches=None if terms.shallow else training_searches(terms.console),
            system_due=terms.system_due,
            ended_by=(TimeIsUp,),
        )
    except InputError as error:
        where = model_path if error.source == "model" else error.source or source.display
        raise InputError(error.problem, source=where, where=error.where, remedy=error.remedy) from None


def _refuse_idle_options(terms: Terms) -> None:
    """Raise InputError if the user holds a training plan to something that it does not have."""
    idle = {
        "--costs": terms.costs_path is not None,
        "--dim": bool(terms.dims_due),
        "--system and its overrides but --bandwidth": set(terms.system_due) - {_BANDWIDTH} != set(),
    }
    for option, given in idle.items():
        if given:
            raise InputError("has no effect on a training plan", source=option, remedy="leave it out")


def _read(file: Source, plan_unit: str, reading: Mapping[str, Any]) -> TrainingModel:
    from mtpp.formats.graphs.graph_format import Content
    from mtpp.formats.training import native as training_native
    from mtpp.formats.training.models import training_model_from_source

    given = reading["time_unit"]
    content = Content(file)
    document = content.document if content.is_json else None
    names_unit = isinstance(document, dict) and document.get("format") == training_native.FORMAT
    return training_model_from_source(file, plan_unit if given is None and not names_unit else given)
