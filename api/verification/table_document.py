"""Verification of a table of certificates, row by row: the models of its rows are found and read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtpp.api.inputs.recorded_model import NamedFiles, places_of
from mtpp.errors import InputError
from mtpp.formats.modelled.size_terms import OTHERS, named_sizes

if TYPE_CHECKING:
    from mtpp.api.observer import Observer
    from mtpp.api.verification.plan_document import Graph
    from mtpp.api.verification.request import VerifyRequest
    from mtpp.api.verification.supplied_model import SuppliedModel
    from mtpp.checker.plan import Check, Report
    from mtpp.checker.table_report import TableReport
    from mtpp.checker.tables.row_claims import MachineDue
    from mtpp.formats.io.source import Source
    from mtpp.formats.measured.measured_costs import MeasuredCosts


def verify_table_document(table: Any, source: Source, request: VerifyRequest, observer: Observer) -> TableReport:
    """Find the models of the table that *source* was, and verify it row by row."""
    from mtpp.api.verification.plan_document import costs_for
    from mtpp.checker.report import OUT_OF_TIME
    from mtpp.checker.table import check_table
    from mtpp.checker.table_report import TableReport
    from mtpp.checker.tables.means import unchecked_summary, verify_summary, verify_unfinished
    from mtpp.checker.tables.single_bounds import on_singles, on_the_rest
    from mtpp.host.alarm import TimeIsUp

    rows: list[dict[str, Any]] = []
    reports: list[Report] = []
    means: list[Check] | None = None
    try:
        check_table(table, ())
        rows = table["rows"]
        _refuse_unknown_dims(rows, request)
        models = TableModels(request, source.path, costs_for(request))
        try:
            for i, row in enumerate(rows):
                observer.note(f"checking {row['path']}, k = {row['k']}")
                reports.append(_verify_row(row, i, models, request, observer))
                if request.deadline.expired():
                    break
            if len(reports) == len(rows):
                rest, singles = map(on_the_rest, reports), map(on_singles, reports)
                means = verify_summary(rows, table["summary"], list(rest), list(singles))
                means += verify_unfinished(rows, table.get("unfinished"))
        except TimeIsUp:
            pass
        reports += _unseen(rows[len(reports) :], request)
        return TableReport(rows, reports, unchecked_summary(table["summary"], OUT_OF_TIME) if means is None else means)
    except InputError as error:
        where = error.source or source.display
        raise InputError(error.problem, source=where, where=error.where, remedy=error.remedy) from None


def _refuse_unknown_dims(rows: Sequence[dict[str, Any]], request: VerifyRequest) -> None:
    """Raise InputError if rows are to be held to a dimension that none of them has: it would hold none to anything."""
    named = named_sizes(request.dims_due)
    unknown = next((name for name in named if not any(name in row["dims"] for row in rows)), None)
    if unknown is not None:
        raise InputError(f"no row has a dimension {unknown!r}", parameter="dims", remedy="leave it out, or correct it")


def _unseen(rows: Sequence[dict[str, Any]], request: VerifyRequest) -> list[Report]:
    """Return the reports on rows that the time limit came before: next to no time is left for them."""
    from mtpp.checker.report import OUT_OF_TIME
    from mtpp.checker.table import kind_of_row, unseen_report

    shared: dict[Any, Report] = {}
    reports = []
    for row in rows:
        due = request.system_due_for(row["dims"])
        kind = kind_of_row(row, due)
        if kind not in shared:
            shared[kind] = unseen_report(row, OUT_OF_TIME, due)
        reports.append(shared[kind])
    return reports


def _verify_row(
    row: dict[str, Any], index: int, models: TableModels, request: VerifyRequest, observer: Observer
) -> Report:
    from mtpp.api.verification.request import due_sizes
    from mtpp.api.verification.searches import downset_search
    from mtpp.checker.table import unchecked_row, verify_row
    from mtpp.host.alarm import TimeIsUp

    model = models.find(row)
    own = {name: size for name, size in request.dims_due.items() if name == OTHERS or name in row["dims"]}
    dims_due = due_sizes(own, row["dims"], model, row["system"], request)
    if model is None:
        why = "no model with its SHA-256, nor a file where it says"
        return unchecked_row(row, why, system_due=request.system_due_for(row["dims"]), dims_due=dims_due)
    found = models.read(model, row)
    assert found.sha256 is not None  # it was found by that
    try:
        return verify_row(
            row,
            index,
            found.document,
            found.sha256,
            found.costs_sha256,
            own_costs=found.own_costs,
            search=None if request.asked.shallow else downset_search(observer, request.memory_bytes, request.deadline),
            system_due=request.system_due_for(row["dims"]),
            dims_due=dims_due,
            machine_due=models.machine_due(model, row),
            ended_by=(TimeIsUp,),
        )
    except InputError as error:
        path = model if isinstance(model, str) else "‹model›"
        where = path if error.source == "model" else error.source
        raise InputError(error.problem, source=where, where=error.where, remedy=error.remedy) from None


class TableModels:
    """Models given, those in folders given, and those that the rows of a table name.

    Parameters
    ----------
    table
        Path of the table; None for a table that is in no file.
    costs
        Measured costs that were given along, if any.
    """

    def __init__(self, request: VerifyRequest, table: Path | None, costs: MeasuredCosts | None) -> None:
        self._request = request
        self._costs = costs
        self._unseen = self._files([model for model in request.models if isinstance(model, str)])
        self._by_digest: dict[str, str | SuppliedModel] = {
            model.sha256: model for model in request.models if not isinstance(model, str) and model.sha256 is not None
        }
        self._files_named = NamedFiles(request.max_model_bytes)
        self._table = table
        self._read: tuple[tuple[str | SuppliedModel, Any, Any, Any, Any], Graph] | None = None
        self._times: tuple[Any, MachineDue] | None = None

    def find(self, row: dict[str, Any]) -> str | SuppliedModel | None:
        """Return the model with a row's SHA-256, or any file that is where the row says, or None."""
        wanted = row["sha256"]
        while wanted not in self._by_digest and (path := next(self._unseen, None)) is not None:
            from mtpp.api.inputs.model_source import model_sha256

            self._by_digest.setdefault(model_sha256(path, self._request.asked.adapters), path)
        if wanted in self._by_digest:
            return self._by_digest[wanted]
        places = places_of(row["path"], self._table)
        digests = {place: self._files_named.digest(place, self._request.asked.adapters) for place in places}
        there = [place for place in places if digests[place] is not None]
        return next((place for place in there if digests[place] == wanted), there[0] if there else None)

    def read(self, model: str | SuppliedModel, row: dict[str, Any]) -> Graph:
        """Return a model as a graph document with its digests; the one read last is kept for the next row."""
        from mtpp.api.verification.plan_document import graph_of

        names = (row.get("assignment") or {}).keys()
        key = (model, row["dims"], row["system"], row.get("keep_state"), names)
        if self._read is None or self._read[0] != key:
            # Dimensions that a file has not are passed over only where other options say how to read it.
            spare_dims = any(self._request.read_as.values().values())
            graph = graph_of(model, row, row["system"], self._request, self._costs, names=names, spare_dims=spare_dims)
            self._read = (key, graph)
        return self._read[1]

    def machine_due(self, model: str | SuppliedModel, row: dict[str, Any]) -> MachineDue:
        """Return the machine that a row is held to, and times of the model's ops on the row's devices."""
        from mtpp.api.verification.plan_document import measured_times, times_of
        from mtpp.checker.tables.row_claims import MachineDue

        if "machine" not in row:
            return MachineDue(self._request.machine_due_for(row["dims"]))
        as_plan = {"machine": row["machine"], "model": {"dims": row["dims"]}}
        key = (model, row["sha256"], row["dims"], row["machine"])
        if self._times is None or self._times[0] != key:
            times = times_of(model, as_plan, self._request, self._costs)
            due = self._request.machine_due_for(row["dims"])
            self._times = (key, MachineDue(due, times, measured_times(model, as_plan, self._request)))
        return self._times[1]

    @staticmethod
    def _files(given: list[str]) -> Iterator[str]:
        from mtpp.api.inputs.language_models import names_language_model
        from mtpp.formats.io.folder import files_of, may_be_graph

        for path in given:
            if Path(path).is_dir() and not names_language_model(path):
                yield from (str(file) for file in files_of(Path(path)) if may_be_graph(file))
            else:
                yield path
