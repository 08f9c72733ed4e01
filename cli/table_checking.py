"""What ``verify`` reads and shows around the independent verifier, for a table of certificates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtpp.cli.checking import MARKS, costs_for, model_document, refuse_missing_costs
from mtpp.errors import InputError
from mtpp.terminal_safe import visible

if TYPE_CHECKING:
    from mtpp.checker.plan import Check, Report
    from mtpp.cli.options.verify_terms import Terms
    from mtpp.formats.io.source import Source
    from mtpp.formats.measured.measured_costs import MeasuredCosts


@dataclass(frozen=True)
class TableReport:
    """What a verification found of each row and of the means.

    Attributes
    ----------
    rows
        As they stand in the table.
    reports
        One for each of them.
    """

    rows: Sequence[dict[str, Any]]
    reports: Sequence[Report]
    means: Sequence[Check]

    @property
    def verdict(self) -> str:
        """The verdict on all claims together."""
        from mtpp.checker.report import worst

        return worst([*(found.verdict for found in self.reports), *(check.verdict for check in self.means)])

    def named(self) -> list[tuple[str, Report]]:
        """Return the reports with what to call their rows."""
        return [(f"{row['path']}, k = {row['k']}: ", found) for row, found in zip(self.rows, self.reports, strict=True)]

    def sentence(self) -> str:
        """Say how much of the table is proven, and how much is merely claimed."""
        return _sentence(self)

    def to_document(self) -> dict[str, Any]:
        """Return the JSON object of this report."""
        from mtpp.checker.report import FORMAT, VALID, VERSION

        rows = []
        for row, report in zip(self.rows, self.reports, strict=True):
            document = report.to_document()
            rows.append(
                {"model": row["model"], "path": row["path"], "k": row["k"]}
                | {key: document[key] for key in ("valid", "verdict", "sentence", "tier", "ratio", "checks")}
            )
        return {
            "format": FORMAT,
            "version": VERSION,
            "valid": VALID[self.verdict],
            "verdict": self.verdict,
            "sentence": self.sentence(),
            "rows": rows,
            "summary": [check.to_document() for check in self.means],
        }


def check_table_document(table: Any, source: Source, model_paths: Sequence[str], terms: Terms) -> TableReport:
    """Find the models of a table that *source* was, and verify it row by row.

    Parameters
    ----------
    model_paths
        Files, and folders that are searched for models.
    """
    from mtpp.checker.means import unchecked_summary, verify_summary
    from mtpp.checker.report import OUT_OF_TIME
    from mtpp.checker.table import check_table
    from mtpp.host.alarm import TimeIsUp

    rows: list[dict[str, Any]] = []
    reports: list[Report] = []
    means: list[Check] | None = None
    try:
        check_table(table, ())
        rows = table["rows"]
        _refuse_unknown_dims(rows, terms)
        reading = {**terms.reading, "spare_dims": any(terms.reading.values())}
        costs = costs_for(terms.costs_path, terms.limit)
        models = _Models(model_paths, source.path, terms.limit, reading, costs)
        try:
            for i, row in enumerate(rows):
                terms.console.note(f"checking {row['path']}, k = {row['k']}")
                reports.append(_check_row(row, i, models, terms))
                if terms.deadline.expired():
                    break
            if len(reports) == len(rows):
                means = verify_summary(rows, table["summary"], [report.verdict for report in reports])
        except TimeIsUp:
            pass
        reports += _unseen(rows[len(reports) :], terms)
        return TableReport(rows, reports, unchecked_summary(table["summary"], OUT_OF_TIME) if means is None else means)
    except InputError as error:
        where = error.source or source.display
        raise InputError(error.problem, source=where, where=error.where, remedy=error.remedy) from None


def _refuse_unknown_dims(rows: Sequence[dict[str, Any]], terms: Terms) -> None:
    """Raise InputError if rows are to be held to a dimension that none of them has: it would hold none to anything."""
    unknown = next((name for name in terms.dims_due if not any(name in row["dims"] for row in rows)), None)
    if unknown is not None:
        raise InputError(f"no row has a dimension {unknown!r}", source="--dim", remedy="leave it out, or correct it")


def _unseen(rows: Sequence[dict[str, Any]], terms: Terms) -> list[Report]:
    """Return the reports on rows that the time limit came before: next to no time is left for them."""
    from mtpp.checker.report import OUT_OF_TIME
    from mtpp.checker.table import kind_of_row, unseen_report

    shared: dict[Any, Report] = {}
    reports = []
    for row in rows:
        kind = kind_of_row(row, terms.system_due)
        if kind not in shared:
            shared[kind] = unseen_report(row, OUT_OF_TIME, terms.system_due)
        reports.append(shared[kind])
    return reports


def _check_row(row: dict[str, Any], index: int, models: _Models, terms: Terms) -> Report:
    from mtpp.checker.table import unchecked_row, verify_row
    from mtpp.cli.deep_check import downset_search
    from mtpp.host.alarm import TimeIsUp

    dims_due = {name: size for name, size in terms.dims_due.items() if name in row["dims"]}
    path = models.find(row)
    if path is None:
        why = "no model with its SHA-256, nor a file where it says"
        return unchecked_row(row, why, system_due=terms.system_due, dims_due=dims_due)
    graph, sha256 = models.read(path, row)
    try:
        return verify_row(
            row,
            index,
            graph,
            sha256,
            models.costs_sha256,
            search=None if terms.shallow else downset_search(terms.console),
            system_due=terms.system_due,
            dims_due=dims_due,
            ended_by=(TimeIsUp,),
        )
    except InputError as error:
        where = path if error.source == "model" else error.source
        raise InputError(error.problem, source=where, where=error.where, remedy=error.remedy) from None


class _Models:
    """The models that a table may be about: files given, those of folders given, and what its rows name."""

    def __init__(
        self,
        given: Sequence[str],
        table: Path | None,
        limit: int,
        reading: Mapping[str, Any],
        costs: MeasuredCosts | None = None,
    ) -> None:
        self._costs = costs
        self.costs_sha256 = None if costs is None else costs.sha256
        self._unseen = self._files(given)
        self._by_digest: dict[str, str] = {}
        self._digests: dict[str, str | None] = {}
        self._folders = [Path()] if table is None else [table.parent, Path()]
        self._limit = limit
        self._reading = reading
        self._read: tuple[tuple[str, Any, Any], tuple[dict[str, Any], str]] | None = None

    def find(self, row: dict[str, Any]) -> str | None:
        """Return the file with a row's SHA-256, or any that is where the row says, or None."""
        wanted = row["sha256"]
        while wanted not in self._by_digest and (path := next(self._unseen, None)) is not None:
            from mtpp.formats.io.source import file_sha256

            self._by_digest.setdefault(file_sha256(path), path)
        if wanted in self._by_digest:
            return self._by_digest[wanted]
        named = [str(folder / row["path"]) for folder in self._folders]
        there = [path for path in named if self._digest(path) is not None]
        return next((path for path in there if self._digest(path) == wanted), there[0] if there else None)

    def read(self, path: str, row: dict[str, Any]) -> tuple[dict[str, Any], str]:
        """Return a model as a graph document, and its SHA-256; the one read last is kept for the next row."""
        from mtpp.formats.io.source import read_source

        key = (path, row["dims"], row["system"])
        if self._read is None or self._read[0] != key:
            refuse_missing_costs(row, self._costs)
            source = read_source(path, max_bytes=self._limit)
            document = model_document(source, row["dims"], row["system"], self._reading, self._costs)
            self._read = (key, (document, source.sha256))
        return self._read[1]

    def _digest(self, path: str) -> str | None:
        """Return the SHA-256 of a file, None if there is no such file."""
        if path not in self._digests:
            from mtpp.formats.io.source import file_sha256

            self._digests[path] = None
            with suppress(InputError, OSError, ValueError):
                file = Path(path)  # named by the table: a device or a pipe may never come to an end
                if file.is_file() and file.stat().st_size <= self._limit:
                    self._digests[path] = file_sha256(path)
        return self._digests[path]

    @staticmethod
    def _files(given: Sequence[str]) -> Iterator[str]:
        from mtpp.formats.io.folder import files_of, may_be_graph

        for path in given:
            if Path(path).is_dir():
                yield from (str(file) for file in files_of(Path(path)) if may_be_graph(file))
            else:
                yield path


def table_text(report: TableReport, output_format: str) -> str:
    """Return the report on a table as ``table``, a line for each row, or ``json``."""
    if output_format == "json":
        from mtpp.formats.io.json_text import dump_json

        return dump_json(report.to_document())
    outcomes: dict[int, tuple[str, str]] = {}  # rows that the time limit came before share a report
    cells = []
    for row, found in zip(report.rows, report.reports, strict=True):
        if id(found) not in outcomes:
            outcomes[id(found)] = (MARKS[found.verdict], _outcome(row, found))
        mark, outcome = outcomes[id(found)]
        cells.append((mark, visible(row["path"]), f"k = {row['k']}", found.tier, outcome))
    widths = [max((len(cell[i]) for cell in cells), default=0) for i in range(4)]
    lines = ["  ".join([*map(str.ljust, cell, widths), cell[4]]) for cell in cells]
    lines += [f"{MARKS[check.verdict]:<{widths[0]}}  {check.name}: {check.detail}" for check in report.means]
    lines += [f"{MARKS[None]:<{widths[0]}}  {setting}" for setting in _settings(report)]
    return "\n".join(map(visible, [*lines, "", report.sentence()]))  # no name makes a row of its own


def _settings(report: TableReport) -> list[str]:
    """Return what rows are about, as they chose it: one line for each combination."""
    names = ("system", "bandwidth", "memory", "dims", "groups")
    found: dict[tuple[str, ...], int] = {}
    for reported in report.reports:
        told = tuple(f"{check.name} {check.detail}" for check in reported.checks if check.name in names)
        if told:
            found[told] = found.get(told, 0) + 1
    return [f"{_rows(count)}: {'; '.join(told)}" for told, count in found.items()]


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"


def _outcome(row: dict[str, Any], report: Report) -> str:
    """Say what is wrong, or what is unchecked, or how much of the row was checked."""
    from mtpp.checker.report import BOUND_CHECK, FALSE, UNCHECKED, listed

    wrong = next((check for check in report.checks if check.verdict == FALSE), None)
    if wrong is not None:
        return f"{wrong.name}: {wrong.detail}"
    bound = next(check.detail for check in report.checks if check.name == BOUND_CHECK)
    if report.verdict == UNCHECKED:
        return f"{listed(report.named(UNCHECKED))} unchecked; {bound}"
    return f"{'partition and ratio' if 'upper' in row else 'bound alone'}; {bound}"


def _sentence(report: TableReport) -> str:
    from mtpp.checker.report import FALSE, OK, UNCHECKED, listed

    counts = {
        verdict: [
            f"{count} of {len(every)} {what}"
            for every, what in ((report.reports, "rows"), (report.means, "means"))
            if (count := sum(one.verdict == verdict for one in every))
        ]
        for verdict in (OK, FALSE, UNCHECKED)
    }
    if report.verdict == FALSE:
        unchecked = f"; {listed(counts[UNCHECKED])} not checked in full" if counts[UNCHECKED] else ""
        return f"INVALID: {listed(counts[FALSE])} have something false in them{unchecked}"
    if report.verdict == UNCHECKED:
        proven = f"; {listed(counts[OK])} are proven" if counts[OK] else ""
        return f"NOT PROVEN: {listed(counts[UNCHECKED])} merely claim a part of what they say{proven}"
    if len(report.rows) == 1:
        return "valid: the row holds, its bound checked again"
    return f"valid: all {len(report.rows)} rows hold, every bound checked again" if report.rows else "valid: 0 rows"
