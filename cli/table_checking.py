"""What ``verify`` reads and shows around the independent verifier, for a table of certificates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtpp.cli.checking import MARKS, costs_for, model_document, refuse_missing_costs
from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.cli.console import Console
    from mtpp.formats.measured_costs import MeasuredCosts
    from mtpp.formats.source import Source
    from mtpp.verify import Check, Report


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
    def passed(self) -> bool:
        """Whether nothing that was checked is wrong."""
        return all(report.passed for report in self.reports) and all(check.passed for check in self.means)

    def to_document(self) -> dict[str, Any]:
        """Return the JSON object of this report."""
        rows = []
        for row, report in zip(self.rows, self.reports, strict=True):
            document = report.to_document()
            rows.append(
                {"model": row["model"], "path": row["path"], "k": row["k"]}
                | {key: document[key] for key in ("valid", "tier", "ratio", "checks")}
            )
        means = [{"name": check.name, "passed": check.passed, "detail": check.detail} for check in self.means]
        return {"format": "mtpp-verification", "version": 1, "valid": self.passed, "rows": rows, "summary": means}


def check_table_document(
    table: Any,
    source: Source,
    model_paths: Sequence[str],
    limit: int,
    reading: Mapping[str, Any],
    console: Console,
    *,
    deep: bool,
    costs_path: str | None = None,
) -> TableReport:
    """Find the models of a table that *source* was, and verify it row by row.

    Parameters
    ----------
    model_paths
        Files, and folders that are searched for models.
    limit
        On the bytes of a model.
    reading
        How to read models; see :func:`mtpp.cli.options.reading_of`.
    deep
        Whether the exhaustive searches behind bounds run again, in rows that are true otherwise.
    costs_path
        File with the measured costs that rows were made with.
    """
    from mtpp.verify_certificates import check_table
    from mtpp.verify_means import verify_summary

    try:
        check_table(table, ())
        spare = {**reading, "spare_dims": any(reading.values())}
        models = _Models(model_paths, source.path, limit, spare, costs_for(costs_path, limit))
        reports = []
        for i, row in enumerate(table["rows"]):
            console.note(f"checking {row['path']}, k = {row['k']}")
            reports.append(_check_row(row, i, models, console if deep else None))
        return TableReport(table["rows"], reports, verify_summary(table["rows"], table["summary"]))
    except InputError as error:
        where = error.source or source.display
        raise InputError(error.problem, source=where, where=error.where, remedy=error.remedy) from None


def _check_row(row: dict[str, Any], index: int, models: _Models, deep: Console | None) -> Report:
    from mtpp.verify_certificates import missing_model, row_claim, verify_row

    path = models.find(row)
    if path is None:
        return missing_model(row)
    graph, sha256 = models.read(path, row)
    try:
        report = verify_row(row, index, graph, sha256, models.costs_sha256)
        if deep is not None and report.passed and report.tier == "enumerated":
            from mtpp.cli.deep_check import recheck

            return recheck(report, row_claim(row, index, graph), row["lower_method"], deep)
        return report
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
            from mtpp.formats.source import file_sha256

            self._by_digest.setdefault(file_sha256(path), path)
        if wanted in self._by_digest:
            return self._by_digest[wanted]
        named = [str(folder / row["path"]) for folder in self._folders]
        there = [path for path in named if self._digest(path) is not None]
        return next((path for path in there if self._digest(path) == wanted), there[0] if there else None)

    def read(self, path: str, row: dict[str, Any]) -> tuple[dict[str, Any], str]:
        """Return a model as a graph document, and its SHA-256; the one read last is kept for the next row."""
        from mtpp.formats.source import read_source

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
            from mtpp.formats.source import file_sha256

            try:
                self._digests[path] = file_sha256(path)
            except InputError:
                self._digests[path] = None
        return self._digests[path]

    @staticmethod
    def _files(given: Sequence[str]) -> Iterator[str]:
        from mtpp.formats.folder import files_of, may_be_graph

        for path in given:
            if Path(path).is_dir():
                yield from (str(file) for file in files_of(Path(path)) if may_be_graph(file))
            else:
                yield path


def table_text(report: TableReport, output_format: str) -> str:
    """Return the report on a table as ``table``, a line for each row, or ``json``."""
    if output_format == "json":
        from mtpp.formats.json_text import dump_json

        return dump_json(report.to_document())
    cells = [
        ("ok" if found.passed else "FAILED", row["path"], f"k = {row['k']}", found.tier, _outcome(row, found))
        for row, found in zip(report.rows, report.reports, strict=True)
    ]
    widths = [max((len(cell[i]) for cell in cells), default=0) for i in range(4)]
    lines = ["  ".join([*map(str.ljust, cell, widths), cell[4]]) for cell in cells]
    lines += [
        f"{'ok' if check.passed else MARKS[check.passed]:<6}  {check.name}: {check.detail}" for check in report.means
    ]
    return "\n".join([*lines, "", _verdict(report)])


def _outcome(row: dict[str, Any], report: Report) -> str:
    """Say what is wrong, or how much of the row was checked."""
    from mtpp.verify_report import BOUND_CHECK

    wrong = next((check for check in report.checks if check.passed is False), None)
    if wrong is not None:
        return f"{wrong.name}: {wrong.detail}"
    bound = next(check.detail for check in report.checks if check.name == BOUND_CHECK)
    return f"{'partition and ratio' if 'upper' in row else 'bound alone'}; {bound}"


def _verdict(report: TableReport) -> str:
    from mtpp.certificate import TIERS
    from mtpp.verify_report import NO_TIER

    rows = sum(not found.passed for found in report.reports)
    means = sum(check.passed is False for check in report.means)
    if not report.passed:
        parts = [(rows, len(report.rows), "rows"), (means, len(report.means), "means")]
        return "INVALID: " + ", ".join(f"{wrong} of {every} {what}" for wrong, every, what in parts if wrong)
    ranks = (*TIERS, NO_TIER)
    tiers = Counter((found.bound_rechecked, found.tier) for found in report.reports)
    counts = [
        f"{count} of tier {tier}{'' if rechecked else ' taken on trust'}"
        for (rechecked, tier), count in sorted(
            tiers.items(), key=lambda item: (not item[0][0], ranks.index(item[0][1]))
        )
    ]
    bounds = f"; lower bounds: {', '.join(counts)}" if counts else ""
    return f"valid: {len(report.rows)} rows{bounds}"
