"""Page of a table of best times per sample, whose figures nothing checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.api.verification.request import VerifyRequest
    from mtpp.api.verify import Verification
    from mtpp.formats.io.source import Source
    from mtpp.views.report.page import Page


def sweep_report_page(
    document: dict[str, Any], source: Source, request: VerifyRequest, named: Callable[[str], str]
) -> tuple[Page, Verification]:
    """Return the page of a table of best times, and its report: figures that are merely claimed.

    Parameters
    ----------
    named
        Names of parameters as the caller's front end has them.
    """
    from mtpp.api.verify import Verification
    from mtpp.checker.report import Check, Report, Tier
    from mtpp.formats.io.json_shape import attributed
    from mtpp.formats.results.training_sweep import check_sweep
    from mtpp.views.report.training.sweep_report import sweep_page

    if request.models:
        raise InputError("has no effect on best times, which hold no plans", parameter="model", remedy="leave it out")
    with attributed(source.display):
        check_sweep(document, ())
    why = f"the file holds no plans; one that is made without {named('sweep')} can be checked"
    report = Report((Check("figures", None, why),), Tier.NONE, None, False, "")
    return sweep_page(document, report), Verification(report)
