"""Reports: one HTML page per result, to be opened offline, with what is verified of it said first."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mtpp.api.observer import Observer, listener
from mtpp.api.options.machine import System
from mtpp.api.options.reading import Formats
from mtpp.api.options.verifying import Titled, Verifying
from mtpp.api.parameters import flag, path_text
from mtpp.api.reporting.made import IN_PYTHON, made_by
from mtpp.checker.report import Verdict
from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.api.inputs.model import Model
    from mtpp.api.verification.request import VerifyRequest
    from mtpp.api.verify import Verification
    from mtpp.formats.io.source import Source
    from mtpp.formats.modelled.size_terms import SizeTerms
    from mtpp.inference.graph import CostGraph
    from mtpp.machine.device import Device
    from mtpp.training.model import TrainingModel
    from mtpp.views.report.page import Page

_BEGINNING = b'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta name="generator" content="mtpp '
"""Of every report, by which it is known where another is to be written over it."""


@dataclass(frozen=True, repr=False)
class ResultPage:
    """A report.

    Attributes
    ----------
    html
        Text of the page, which needs no other file.
    verification
        Verdicts on what the result claims.
    """

    html: str
    verification: Verification

    @property
    def passed(self) -> bool:
        """Whether every claim was checked and holds."""
        return self.verification.passed

    @property
    def false(self) -> bool:
        """Whether something that the result claims is false."""
        return self.verification.verdict is Verdict.FALSE

    @property
    def said(self) -> str:
        """What is proven, and what is merely claimed, in a sentence; why nothing could be checked, if that is so."""
        claims = [row for row in self.verification.rows if row.verdict is not None]
        if len(claims) == 1 and claims[0].verdict == Verdict.UNCHECKED:
            return f"{self.verification.sentence}: {claims[0].detail}"
        return self.verification.sentence

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file, whole or not at all; a name that ends in ``.gz`` is compressed.

        Raises
        ------
        InputError
            If it cannot be written, or another file than an earlier report is there.
        """
        from mtpp.api.output import write_text_atomically

        target = path_text(path, "path")
        check_report(target)
        write_text_atomically(target, self.html)

    def __repr__(self) -> str:
        return f"<ResultPage of {len(self.html):,} characters: {self.said}>"


def check_report(path: str | None, parameter: str = "path") -> None:
    """Check that a report can be made, and written to *path* if that is a file.

    Raises
    ------
    InputError
        If the libraries of the extra ``report`` are missing, *path* is in no folder that can be written to, or another
        file than an earlier report is there.
    """
    from mtpp.api.output import check_output
    from mtpp.views.report.page import require_libraries

    require_libraries()
    if path is None:
        return
    check_output(path)
    if os.path.isfile(path) and os.path.getsize(path) and not _is_report(path):
        raise InputError(f"{path} is there, and no report of mtpp", parameter=parameter, remedy="name another file")


def _is_report(path: str) -> bool:
    from mtpp.formats.io.source import read_head

    return read_head(path, len(_BEGINNING)).startswith(_BEGINNING)


def report(
    result: object,
    path: str | os.PathLike[str] | None = None,
    model: str | os.PathLike[str] | Model | CostGraph | TrainingModel | Sequence[Any] | None = None,
    *,
    system: Device | str | os.PathLike[str] | None = None,
    dims: SizeTerms | str | None = None,
    adapters: Iterable[str | os.PathLike[str]] = (),
    costs: str | os.PathLike[str] | None = None,
    time_unit: str | None = None,
    shallow: bool = False,
    time_limit_s: float | None = None,
    memory_limit: int | str | None = None,
    max_input_size: int | str | None = None,
    title: str | None = None,
    open_page: bool = False,
    observer: Observer | None = None,
) -> ResultPage:
    """Make a page of a plan or several, a table, a bound for overlapping ranges, a training plan or a simulation.

    Keywords that are not listed are those of :func:`mtpp.verify`.

    Parameters
    ----------
    result
        As :func:`mtpp.verify` takes it; a simulation and a stage graph as well.
    path
        File to write, whole or not at all, over nothing but an earlier report. None: none is written.
    model
        That the result is about, as :func:`mtpp.verify` takes it. A plan that embeds its graph needs none; of a
        simulation the pipeline, and the model that it is for, if that is a training plan.
    title
        Of the page; by default the name of the model or file.
    open_page
        Whether the file is shown in a browser, where there is one.
    observer
        Listener to what is being done.

    Returns
    -------
    The page, which says first what holds: a result that is wrong has a page as well.

    Raises
    ------
    InputError
        If a library of the extra ``report`` is missing, a parameter is of the wrong type, the result or a model is
        malformed, a plan's graph is missing, or the file cannot be written.
    LimitReached
        If the time limit passed while they were read.
    Interrupted
        If Ctrl-C ended the work.

    Examples
    --------
    >>> import mtpp
    >>> model = mtpp.datasets.sample_path("resnet50")
    >>> page = mtpp.report(mtpp.partition(model, 4), model=model)
    >>> page.passed, "Proven optimal" in page.html
    (True, True)
    """
    from mtpp.api.reporting.browser import open_in_browser
    from mtpp.api.verify import request_of

    target = None if path is None else path_text(path, "path")
    if flag(open_page, "open_page") and target is None:
        raise InputError("shows a page in a file", parameter="open_page", remedy="give ‹path› too")
    check_report(target)
    asked, titled = Verifying.among(locals()), Titled.among(locals())
    request = request_of(result, model, asked, System(system=system), Formats(time_unit=time_unit))
    made = result_page(request, listener(observer), named=str, title=titled.title)
    if target is not None:
        _refuse_inputs(target, request)
        made.save(target)
        if open_page:
            open_in_browser(target, listener(observer))
    return made


def result_page(
    request: VerifyRequest,
    observer: Observer,
    *,
    named: Any,
    title: str | None = None,
    command: str = IN_PYTHON,
) -> ResultPage:
    """Read a result, verify it and make its page.

    Parameters
    ----------
    named
        Names of parameters as the caller's front end has them, see :meth:`Verification.told`.
    title
        Of the page; None: the name of the model or file.
    command
        Command that makes the page, which says it.

    Raises
    ------
    InputError, LimitReached, Interrupted
        As :func:`report`.
    """
    from mtpp.views.report.page import page_html

    page, verification = _page(request, observer, named)
    return ResultPage(page_html(page if title is None else replace(page, title=title), made_by(command)), verification)


def _page(request: VerifyRequest, observer: Observer, named: Any) -> tuple[Page, Verification]:
    from mtpp.api.reporting.plan_page import (
        plan_report_page,
        refuse_missing_graph,
        refuse_missing_graphs,
        training_report_page,
    )
    from mtpp.api.reporting.reading import (
        OVERLAPPING_BOUND,
        PLAN,
        PLAN_RANGE,
        SIMULATION,
        STAGE_GRAPH,
        SWEEP,
        read_result,
        with_models_at_hand,
    )
    from mtpp.api.reporting.simulation_page import simulation_report_page
    from mtpp.api.reporting.sweep_page import sweep_report_page
    from mtpp.api.verification.reporting import report_on, with_recorded_model, within_time
    from mtpp.api.verify import Verification
    from mtpp.checker.table_report import TableReport
    from mtpp.formats.results.verifiable import is_training_plan
    from mtpp.views.report.overlapping_report import overlapping_page
    from mtpp.views.report.range_report import range_page
    from mtpp.views.report.table_report import table_page

    source, document = read_result(request)
    request = with_models_at_hand(replace(request, result=source))
    if document["format"] in (SIMULATION, STAGE_GRAPH):
        return simulation_report_page(document, source, request, observer, named)
    if document["format"] == SWEEP:
        return sweep_report_page(document, source, request, named)
    with within_time(request):
        request = with_recorded_model(document, source, request)
    if document["format"] == PLAN:
        refuse_missing_graph(document, request)
    if document["format"] == PLAN_RANGE:
        refuse_missing_graphs(document, request)
    observer.note("verifying the result")
    with within_time(request):
        verification = Verification(report_on(document, source, request, observer)).told(named)
    found = verification.report
    observer.note("drawing the page")
    if document["format"] == PLAN_RANGE and isinstance(found, TableReport):
        return range_page(document, found), verification
    if isinstance(found, TableReport):
        return table_page(document, found, _name_of(source)), verification
    if document["format"] == OVERLAPPING_BOUND:
        return overlapping_page(document, found), verification
    if is_training_plan(document):
        return training_report_page(document, found, request, observer), verification
    return plan_report_page(document, found, request), verification


def _name_of(source: Source) -> str:
    """Return what a table is called, which has no name of its own."""
    return "Table of certificates" if source.path is None else source.path.name


def _refuse_inputs(target: str, request: VerifyRequest) -> None:
    """Raise InputError if the file is one that the result or its models were read from."""
    from pathlib import Path

    from mtpp.api.inputs.file_contents import refuse_inputs

    given: list[tuple[str, str | Source | None]] = [("the result", request.result), ("the costs", request.asked.costs)]
    given += [("a model", one) for one in request.models if isinstance(one, str)]
    refuse_inputs(target, {noun: Path(one) for noun, one in given if isinstance(one, str)})
