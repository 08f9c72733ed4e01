"""Results of a report, read once: what they are, and models that can be read only once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.api.verification.request import VerifyRequest
    from mtpp.formats.io.source import Source

PLAN, PLAN_RANGE, SIMULATION, STAGE_GRAPH = "mtpp-plan", "mtpp-plan-range", "mtpp-simulation", "mtpp-stage-graph"
OVERLAPPING_BOUND, SWEEP = "mtpp-overlapping-bound", "mtpp-training-sweep"
_FORMATS = (
    PLAN,
    PLAN_RANGE,
    "mtpp-certificates",
    "mtpp-training-plan",
    SIMULATION,
    STAGE_GRAPH,
    OVERLAPPING_BOUND,
    SWEEP,
)


def read_result(request: VerifyRequest) -> tuple[Source, dict[str, Any]]:
    """Return the result of a request and its document, whose format is one of those that reports are made of.

    Raises
    ------
    InputError
        If it is something else, or no strict JSON.
    """
    from mtpp.api.verification.reporting import result_source
    from mtpp.formats.io.json_text import parse_json
    from mtpp.formats.results.verifiable import verifiable

    remedy = "give what partition, certify, bound, plan or simulate wrote with -o FILE"
    source = result_source(request)
    if b"{" not in source.data[:64]:
        raise InputError("no result of mtpp: no JSON object", source=source.display, remedy=remedy)
    document = parse_json(source.data, source.display)
    found = document.get("format") if isinstance(document, dict) else None
    if found not in _FORMATS:
        said = f"{found!r} is no result that a report is made of" if isinstance(found, str) else "no result of mtpp"
        raise InputError(said, source=source.display, where="/format", remedy=remedy)
    if found in (SIMULATION, STAGE_GRAPH, SWEEP):
        return source, document
    return source, verifiable(document, source.display)


def with_models_at_hand(request: VerifyRequest) -> VerifyRequest:
    """Return a request whose models can be read several times: functions are called, standard input is read."""
    from mtpp.api.verification.request import built_models
    from mtpp.api.verification.supplied_model import SuppliedModel
    from mtpp.formats.io.source import read_source

    request = built_models(request)
    if "-" not in request.models:
        return request
    source = read_source("-", max_bytes=request.max_model_bytes)
    held = SuppliedModel(sha256=source.sha256, again=source)
    return replace(request, models=tuple(held if one == "-" else one for one in request.models))
