"""Verification of a bound for overlapping ranges: its layers are the ops of the model, where one is given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.api.verification.request import VerifyRequest
    from mtpp.checker.report import Report
    from mtpp.formats.io.source import Source


def verify_overlapping_document(document: Any, source: Source, request: VerifyRequest) -> Report:
    """Verify the bound that *source* was.

    Raises
    ------
    InputError
        If the bound or the model is malformed.
    """
    from mtpp.api.verification.plan_document import graph_of
    from mtpp.checker.overlapping import check_overlapping, verify_overlapping

    model = next(iter(request.models), None)
    try:
        check_overlapping(document, ())
        graph, digest = None, None
        if model is not None:
            system = request.system.device.to_document()
            read = graph_of(model, {**document["model"], "dims": {}}, system, request, None)
            graph, digest = read.document, read.sha256
        return verify_overlapping(document, graph, graph_sha256=digest, machine_due=request.machine_due)
    except InputError as error:
        raise InputError(
            error.problem, source=error.source or source.display, where=error.where, remedy=error.remedy
        ) from None
