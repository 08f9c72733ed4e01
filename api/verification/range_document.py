"""Verification of a range of plans: each plan as if it were alone, then the claims that compare them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.api.observer import Observer
    from mtpp.api.verification.request import VerifyRequest
    from mtpp.checker.plan import Report
    from mtpp.checker.tables.plan_range import RangeReport
    from mtpp.formats.io.source import Source


def verify_range_document(document: Any, source: Source, request: VerifyRequest, observer: Observer) -> RangeReport:
    """Verify the plans of the range that *source* was, and what it says of all of them.

    Raises
    ------
    InputError
        If the range or the model is malformed; the message names the place in the range.
    """
    from mtpp.api.verification.last_read import LastRead
    from mtpp.api.verification.plan_document import verify_plan_document
    from mtpp.checker.report import OUT_OF_TIME
    from mtpp.checker.tables.plan_range import check_range, verify_range
    from mtpp.checker.unchecked import unchecked_plan
    from mtpp.host.alarm import TimeIsUp

    try:
        check_range(document, ())
    except InputError as error:
        raise InputError(error.problem, source=source.display, where=error.where, remedy=error.remedy) from None
    reports: list[Report] = []
    last = LastRead()
    try:
        for i, plan in enumerate(document["plans"]):
            observer.note(f"checking k = {plan['k']}")
            try:
                reports.append(verify_plan_document(plan, source, request, observer, last))
            except InputError as error:
                if error.source == source.display and (error.where or "").startswith("/"):
                    error.where = f"/plans/{i}{error.where}"
                raise
            if request.deadline.expired():
                break
    except TimeIsUp:
        pass
    rest = document["plans"][len(reports) :]
    reports += [unchecked_plan(plan, OUT_OF_TIME) for plan in rest]
    return verify_range(document, reports)
