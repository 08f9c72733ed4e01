"""What ``verify`` reads around the independent verifier, for a training plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.cli.console import Console
    from mtpp.formats.source import Source
    from mtpp.training_model import TrainingModel
    from mtpp.verify import Report


def check_training_document(
    plan: Any,
    source: Source,
    model_path: str | None,
    limit: int,
    reading: Mapping[str, Any],
    deep: Console | None = None,
    costs_path: str | None = None,
) -> Report:
    """Read the model, and verify the training plan that *source* was.

    Parameters
    ----------
    limit
        On the bytes of the model.
    reading
        How to read it; see :func:`mtpp.cli.options.reading_of`. Where neither it nor the file says what unit times are
        in, the plan does.
    deep
        With it, the exhaustive search behind the plan runs again if all else is true; what it does is said there.
    """
    from mtpp.formats.source import read_source
    from mtpp.formats.training_models import EXPECTED
    from mtpp.verify_training import verify_training_plan
    from mtpp.verify_training_document import check_training_plan

    try:
        check_training_plan(plan, ())
        if costs_path is not None:
            raise InputError("has no effect on a training plan", source="--costs", remedy="leave it out")
        if model_path is None:
            raise InputError("a training plan embeds no model", remedy="give the model with --model")
        file = read_source(model_path, max_bytes=limit, expected=EXPECTED)
        model = _read(file, plan["time_unit"], reading)
        report = verify_training_plan(plan, model, file.sha256)
        if deep is not None and report.passed and (report.tier == "enumerated" or not plan["feasible"]):
            from mtpp.cli.training_deep_check import recheck_plan

            return recheck_plan(report, plan, model, deep)
        return report
    except InputError as error:
        where = model_path if error.source == "model" else error.source or source.display
        raise InputError(error.problem, source=where, where=error.where, remedy=error.remedy) from None


def _read(file: Source, plan_unit: str, reading: Mapping[str, Any]) -> TrainingModel:
    from mtpp.formats import training_native
    from mtpp.formats.graph_format import Content
    from mtpp.formats.training_models import training_model_from_source

    given = reading["time_unit"]
    content = Content(file)
    document = content.document if content.is_json else None
    names_unit = isinstance(document, dict) and document.get("format") == training_native.FORMAT
    return training_model_from_source(file, plan_unit if given is None and not names_unit else given)
