"""Page of a simulation that has just been made, with its chart over time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mtpp.checker.report import Report
    from mtpp.training.pfeife.schedule_run import ScheduleRun
    from mtpp.training.simulation import Simulation
    from mtpp.views.report.page import Page

_SAID = "simulated for this page"


def simulated_page(document: Mapping[str, Any], record: Simulation | ScheduleRun) -> tuple[Page, Report]:
    """Return the page of an iteration, and the report on it, whose figures no file claims.

    Parameters
    ----------
    document
        Its figures.
    """
    from mtpp.api.reporting.drawn_timeline import drawn_timeline
    from mtpp.checker.report import Check, Report, Tier
    from mtpp.views.report.simulation_report import simulation_page

    report = Report((Check("figures", True, _SAID),), Tier.NONE, None, False, _SAID)
    return simulation_page(document, report, drawn_timeline(record), _SAID.capitalize()), report
