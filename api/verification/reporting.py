"""The parts of a verification: read a result, and report on it within the time there is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError, Interrupted, LimitReached
from mtpp.host.alarm import TimeIsUp, alarm

if TYPE_CHECKING:
    from mtpp.api.observer import Observer
    from mtpp.api.verification.request import VerifyRequest
    from mtpp.checker.report import Report
    from mtpp.checker.table_report import TableReport
    from mtpp.formats.io.source import Source


@contextmanager
def within_time(request: VerifyRequest) -> Iterator[None]:
    """End what runs in the block with the time that the request leaves."""
    try:
        with alarm(request.deadline):
            yield
    except TimeIsUp:
        problem = f"the time limit of {request.deadline.limit_s:g} s passed while reading"
        raise LimitReached(problem, source=request.display, remedy="raise ‹time_limit_s›") from None
    except KeyboardInterrupt:
        raise Interrupted("the verification was interrupted") from None


def read_result(request: VerifyRequest) -> tuple[dict[str, Any], Source]:
    """Return the document that a request is about, which says that it can be verified, and its bytes.

    Raises
    ------
    InputError
        If it cannot be read, or is none.
    """
    from mtpp.formats.results.verifiable import read_verifiable

    source = result_source(request)
    return read_verifiable(source.data, source.display), source


def result_source(request: VerifyRequest) -> Source:
    """Return the bytes of the result that a request is about."""
    from mtpp.formats.io.source import read_source
    from mtpp.formats.results.verifiable import refuse_bloated

    source = request.result
    if isinstance(source, str):
        source = read_source(source, max_bytes=request.max_result_bytes, expected="a result of mtpp in JSON")
    if not request.trusted_size:
        refuse_bloated(source.data, source.display)
    return source


def with_recorded_model(claims: Mapping[str, Any], source: Source, request: VerifyRequest) -> VerifyRequest:
    """Return a request with the model that a plan records, where none was given and a file has its SHA-256.

    A file that has changed since leaves it unchecked that a plan with a graph of its own is about that file.
    """
    from mtpp.api.inputs.recorded_model import NamedFiles, plan_of, recorded_model

    plan = plan_of(claims)
    stated = plan.get("model")
    if request.models or request.unfound is not None or not isinstance(stated, Mapping) or "path" not in stated:
        return request
    asked = request.asked
    found = recorded_model(stated, source.path, NamedFiles(request.max_model_bytes), asked.adapters)
    if found.path is not None:
        asked = replace(asked, costs=asked.costs or found.costs, adapters=found.adapters)
        return replace(request, models=(found.path,), asked=asked)
    if "graph" in plan and found.changed:
        return replace(request, unfound=found.why)
    return replace(request, missing=found.why)


def report_on(
    claims: dict[str, Any], source: Source, request: VerifyRequest, observer: Observer
) -> Report | TableReport:
    """Verify a document that was read from *source*; details have the units of the document."""
    from mtpp.api.verification.in_units import in_units

    return in_units(_report_in_ticks(claims, source, request, observer), claims)


def _report_in_ticks(
    claims: dict[str, Any], source: Source, request: VerifyRequest, observer: Observer
) -> Report | TableReport:
    from mtpp.api.verification.overlapping_document import verify_overlapping_document
    from mtpp.api.verification.plan_document import verify_plan_document
    from mtpp.api.verification.range_document import verify_range_document
    from mtpp.api.verification.request import built_models
    from mtpp.api.verification.table_document import verify_table_document
    from mtpp.api.verification.training_document import verify_training_document
    from mtpp.formats.results.verifiable import OVERLAPPING, is_range, is_table, is_training_plan

    table = is_table(claims)
    if not table and len(request.models) > 1:
        raise InputError("a plan is for one model", parameter="model", remedy="give one")
    given = request.models
    request = built_models(with_recorded_model(claims, source, request))
    if table:
        return verify_table_document(claims, source, request, observer)
    if claims["format"] == OVERLAPPING:
        return verify_overlapping_document(claims, source, request)
    if is_range(claims):
        return verify_range_document(claims, source, request, observer)
    check = verify_training_document if is_training_plan(claims) else verify_plan_document
    found = check(claims, source, request, observer)
    return found if given or not request.models else _naming(found, str(request.models[0]))


def _naming(report: Report, path: str) -> Report:
    """Return a report whose row on the model says which file was found for it."""
    checks = (
        replace(check, detail=f"{check.detail}, found at {path}") if check.name == "model file" else check
        for check in report.checks
    )
    return replace(report, checks=tuple(checks))
