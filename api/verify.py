"""Verification of results from scratch: plans, training plans and tables of certificates, proofs included."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from mtpp.api.inputs.model import Model
from mtpp.api.observer import Observer, listener
from mtpp.api.options.machine import OnMachine, System
from mtpp.api.options.reading import Formats
from mtpp.api.options.verifying import Verifying
from mtpp.api.output import ShownResult
from mtpp.api.verification.reporting import read_result, report_on, within_time
from mtpp.api.verification.request import VerifyRequest
from mtpp.checker.report import Check, Report, Tier, Verdict, meets_tier
from mtpp.host.deadline import Deadline

if TYPE_CHECKING:
    from mtpp.checker.table_report import TableReport
    from mtpp.formats.modelled.size_terms import SizeTerms
    from mtpp.inference.graph import CostGraph
    from mtpp.machine.device import Device
    from mtpp.machine.machine import Machine
    from mtpp.training.model import TrainingModel
    from mtpp.views.terminal import Medium

_EXIT_CODES = {Verdict.OK: 0, Verdict.FALSE: 1, Verdict.UNCHECKED: 3}


class CheckedClaim(NamedTuple):
    """One claim of a result and the verdict on it: ``"ok"``, ``"false"`` or ``"unchecked"``; *detail* says why.

    The verdict is None on what is recorded and claims nothing, such as the system that the result is for.
    """

    claim: str
    verdict: Verdict | None
    detail: str


@dataclass(frozen=True, repr=False)
class Verification(ShownResult):
    """Verdicts on all claims of a result.

    Attributes
    ----------
    report
        As the independent verifier makes it, with what is recorded and claims nothing.
    """

    report: Report | TableReport

    @property
    def passed(self) -> bool:
        """Whether every claim was checked and holds: nothing is false, and nothing is unchecked."""
        return self.verdict is Verdict.OK

    @property
    def verdict(self) -> Verdict:
        """``"false"`` if any claim is, else ``"unchecked"`` if any is, else ``"ok"``."""
        return self.report.verdict

    @property
    def exit_code(self) -> int:
        """The exit code of ``mtpp verify``: 0 passed, 1 something is false, 3 something is unchecked."""
        return _EXIT_CODES[self.verdict]

    @property
    def rows(self) -> list[CheckedClaim]:
        """All lines of the report with their verdicts, those of a table row by row and then those of its means."""
        means = [] if (table := self._table) is None else table.means
        named = [(row, check) for row, report in self._reports for check in report.checks]
        named += [("", check) for check in means]
        return [CheckedClaim(row + check.name, check.verdict, check.detail) for row, check in named]

    @property
    def sentence(self) -> str:
        """What is proven, and what is merely claimed, in a sentence."""
        return self.report.sentence()

    def unmet(self, tier: str) -> list[str]:
        """Say of each lower bound why it is trusted less than *tier*, one of exact, enumerated and solver.

        Raises
        ------
        InputError
            If there is no such tier.
        """
        return [f"{row}{why}" for row, report in self._reports if (why := _unmet(report, tier)) is not None]

    def told(self, name_of: Callable[[str], str]) -> Verification:
        """Return the same with the names that another front end has for parameters."""
        if (table := self._table) is None:
            return Verification(_told(self._reports[0][1], name_of))
        told = {id(report): _told(report, name_of) for report in table.reports}  # many rows may share one
        reports = tuple(told[id(report)] for report in table.reports)
        return Verification(replace(table, rows=tuple(table.rows), reports=reports, means=tuple(table.means)))

    def _said(self) -> dict[str, Any]:
        return self.report.to_document()

    def _shown(self, medium: str | Medium) -> str:
        from mtpp.views.verification import verification_text

        return verification_text(self.report, medium)

    @property
    def _table(self) -> TableReport | None:
        from mtpp.checker.table_report import TableReport

        return self.report if isinstance(self.report, TableReport) else None

    @property
    def _reports(self) -> list[tuple[str, Report]]:
        return [("", self.report)] if isinstance(self.report, Report) else self.report.named()


def verify(
    result: object,
    model: str | os.PathLike[str] | Model | CostGraph | TrainingModel | Sequence[Any] | None = None,
    *,
    system: Device | str | os.PathLike[str] | None = None,
    machine: Machine | str | os.PathLike[str] | None = None,
    dims: SizeTerms | str | None = None,
    adapters: Iterable[str | os.PathLike[str]] = (),
    costs: str | os.PathLike[str] | None = None,
    time_unit: str | None = None,
    shallow: bool = False,
    time_limit_s: float | None = None,
    memory_limit: int | str | None = None,
    max_input_size: int | str | None = None,
    observer: Observer | None = None,
) -> Verification:
    """Check a plan, a training plan or a table of certificates, and the proofs in it, from scratch.

    Stages, costs, bounds and ratios are derived again in plain integers and fractions, by code that shares nothing with
    the solvers. The exhaustive search behind a bound of tier enumerated runs again, which takes about as long as the
    first time. Keywords that are not listed are fields of :class:`mtpp.api.options.verifying.Verifying`.

    Parameters
    ----------
    result
        Path of a document, its bytes, the parsed document, or an object whose method ``document()`` or
        ``to_document()`` returns that. Nothing is written to a file.
    model
        The model that the result is about: a path, a :class:`mtpp.api.inputs.model.Model`, or a graph. Not needed for
        plans that embed their graph. For tables also several of them, or folders; models that the rows name are found.
        A graph that comes from no file is taken as the one that the plan is for.
    system, machine, time_unit
        As in :class:`mtpp.api.options.reading.Reading`: what the result has to be for, and the unit of its model's
        times. None: the system of the model where it is as read, else the result's own choice.
    observer
        Listener to what is being done.

    Returns
    -------
    The verdict on every claim: ok, false, or unchecked, such as bounds of tier solver, which nobody can check.

    Raises
    ------
    InputError
        If a parameter is of the wrong type, or the result or a model is malformed; the message says where.
    LimitReached
        If the time limit passed while they were read.
    Interrupted
        If Ctrl-C ended the work.

    Notes
    -----
    A result that is well-formed and wrong raises nothing: look at :attr:`Verification.passed`. Passed means that
    bottleneck, bound and ratio of the model are proven. With a time limit, the signal SIGALRM is used in the main
    thread.

    Examples
    --------
    >>> import mtpp
    >>> model = mtpp.datasets.sample_path("resnet50")
    >>> plan = mtpp.partition(model, 4)
    >>> mtpp.verify(plan, model).passed
    True

    A document with a mistake:

    >>> document = plan.document() | {"bottleneck": plan.bottleneck - 1}
    >>> [row.claim for row in mtpp.verify(document, model).rows if row.verdict == "false"]
    ['bottleneck', 'throughput', 'speed-up']
    """
    asked = Verifying.among(locals())
    request = request_of(result, model, asked, System(system=system), Formats(time_unit=time_unit), machine)
    return verify_document(request, listener(observer)).told(str)


def request_of(
    result: object,
    model: Any,
    asked: Verifying,
    system: System | None = None,
    read_as: Formats | None = None,
    machine: Any = None,
) -> VerifyRequest:
    """Return the request to verify a result at hand; a model as read says what is not asked for otherwise."""
    from mtpp.api.inputs.document_source import document_source
    from mtpp.api.verification.supplied_model import supplied_models

    deadline = Deadline(asked.time_limit_s)
    source, in_memory = document_source(result, "result")
    system = system or System()
    if isinstance(model, Model):
        asked = replace(asked, dims=model.dims) if asked.dims is None else asked
        if model.machine is None:
            system = System(system=model.system) if system.system is None else system
    models = supplied_models(model)
    read_as = read_as or Formats()
    return VerifyRequest(
        source, models, asked, system, read_as, OnMachine(machine=machine), deadline=deadline, in_memory=in_memory
    )


def verify_document(request: VerifyRequest, observer: Observer) -> Verification:
    """Read a result and verify it; details name parameters as ``‹shallow›``.

    Raises
    ------
    InputError
        If the result or a model is malformed.
    LimitReached
        If the time limit passed while they were read.
    Interrupted
        If Ctrl-C ended the work.
    """
    with within_time(request):
        claims, source = read_result(request)
        return Verification(report_on(claims, source, request, observer))


def _told(report: Report, name_of: Callable[[str], str]) -> Report:
    return replace(report, checks=tuple(_named(check, name_of) for check in report.checks))


def _named(check: Check, name_of: Callable[[str], str]) -> Check:
    return replace(check, detail=check.detail.replace("‹shallow›", name_of("shallow")))


def _unmet(report: Report, required: str) -> str | None:
    """Say why a lower bound is trusted less than is *required*; None if it is not."""
    if meets_tier(report, required):
        return None
    if report.tier is Tier.NONE:
        return "the bound is not proven"
    checked = "" if report.bound_rechecked else ", and was not checked"
    return f"the bound is of tier {report.tier}{checked}"
