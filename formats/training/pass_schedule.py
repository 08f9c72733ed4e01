"""Schedules of passes: ``mtpp-pass-schedule`` version 1 as JSON, and CSV as PyTorch's pipelining writes it.

JSON has a row of passes for each device, ``[["0F0", "0B0"], …]`` or ``["0F0 0B0", …]``, and pairs of passes of which
the first has to end before the second one begins. CSV has a row for each device and a pass in each cell, ``0F0,0B0``,
halves of backward passes as ``0I0,0W0``. An empty cell is an idle slot. Cells in which PyTorch's runtime communicates
(``0SEND_F1``, ``1RECV_F1``) or gathers and reduces parameters (``0UNSHARD``, ``0RESHARD``, ``0REDUCE_GRAD``) are left
out: they follow from the passes.
"""

from __future__ import annotations

import re
from typing import Any

from mtpp.document_shape import Path, any_array, array, refuse, text
from mtpp.errors import InputError, UnrecognisedInput
from mtpp.formats.graphs.graph_format import Content
from mtpp.formats.io.csv_text import csv_rows
from mtpp.formats.io.json_shape import attributed, headed, pointer, refuse_other_format, shaped
from mtpp.formats.io.source import Source
from mtpp.formats.io.text_lines import decoded
from mtpp.training.pfeife.schedule import Pass, PassSchedule, place_in_json, read_pass
from mtpp.training.stage_graph import MOST_PASSES

FORMAT = "mtpp-pass-schedule"
VERSION = 1

EXPECTED = f"a schedule of passes as {FORMAT}, or as CSV with a row for each device (0F0,0B0)"
"""Files that are read."""


def _row(value: Any, path: Path) -> None:
    if not isinstance(value, str):
        array(text)(value, path)


def _pair(value: Any, path: Path) -> None:
    any_array(value, path)
    if len(value) != 2:
        remedy = "give the pass that has to end first, then the one that waits for it"
        refuse(f"must be a pair of passes, not {len(value)}", path, remedy)
    array(text)(value, path)


_SCHEDULE = headed(FORMAT, VERSION, {"order": array(_row)}, {"name": text, "dependencies": array(_pair)})

_MOST_CELLS = 4 * MOST_PASSES
"""Of a CSV file: slots may be idle, and passes have communication around them."""

_NO_PASS = re.compile(r"[0-9]+(?:(?:SEND|RECV)_[FB][0-9]+|(?:UNSHARD|RESHARD|REDUCE_GRAD)[0-9]*)")
"""Actions of PyTorch's runtime that compute nothing."""

_FIRST_CELL = re.compile(rb"""[\s,"]*\(?[0-9]+(?:[FBIW][0-9]|SEND_|RECV_|UNSHARD|RESHARD|REDUCE_GRAD)""")

_BOM = b"\xef\xbb\xbf"


def looks_like_pass_schedule(content: Content) -> bool:
    """Return whether some content is a schedule of passes, cheap and without complaint."""
    if content.is_json:
        return content.has("format") and content.document["format"] == FORMAT
    return _FIRST_CELL.match(content.source.data.removeprefix(_BOM)) is not None


def pass_schedule_from_source(source: Source) -> PassSchedule:
    """Make a schedule of bytes that were read: JSON if they begin like it, else CSV.

    Raises
    ------
    UnrecognisedInput
        If it is neither.
    InputError
        As :func:`pass_schedule_from_document` and :func:`pass_schedule_from_csv`.
    """
    content = Content(source)
    if content.is_json:
        return pass_schedule_from_document(content.document, source.display, source.stem)
    if not looks_like_pass_schedule(content):
        problem = "not a schedule of passes: neither JSON nor rows of passes"
        raise UnrecognisedInput(problem, source=source.display, remedy=f"give {EXPECTED}")
    return pass_schedule_from_csv(decoded(source.data, source.display), source.display, source.stem)


def pass_schedule_from_document(document: Any, source: str, name: str = "") -> PassSchedule:
    """Make a schedule of a parsed ``mtpp-pass-schedule`` document; *source* is what messages call it.

    Parameters
    ----------
    name
        Of a schedule that brings none.

    Raises
    ------
    InputError
        On an unknown or missing key, a value of the wrong type, a word that is no pass, and whatever
        :meth:`PassSchedule.build` refuses; it names the place.

    Notes
    -----
    Passes may still wait for each other.
    """
    with attributed(source):
        refuse_other_format(document, FORMAT, EXPECTED)
        shaped(_SCHEDULE, document)
        order = document["order"]

        def place_of(device: int, index: int | None) -> str:
            if index is not None and isinstance(order[device], str):
                return f"/order/{device}, pass {index + 1}"
            return place_in_json(device, index)

        rows: list[list[Pass]] = []
        passes = 0
        for d, row in enumerate(order):
            words = row.replace(",", " ").split() if isinstance(row, str) else row
            passes += len(words)
            if passes > MOST_PASSES:
                raise InputError(f"the schedule has more than {MOST_PASSES:,} passes", where=pointer("order", d))
            rows.append([_pass(word, place_of(d, i)) for i, word in enumerate(words)])
        dependencies = [
            (_pass(before, f"/dependencies/{i}/0"), _pass(after, f"/dependencies/{i}/1"))
            for i, (before, after) in enumerate(document.get("dependencies", []))
        ]
        return PassSchedule.build(rows, dependencies, name=document.get("name", name), place_of=place_of)


def pass_schedule_from_csv(text: str, source: str, name: str = "") -> PassSchedule:
    """Make a schedule of comma-separated values; *source* is what messages call them.

    Parameters
    ----------
    name
        Of the schedule.

    Raises
    ------
    InputError
        On a cell that is neither empty, nor a pass, nor another action of PyTorch's runtime, and whatever
        :meth:`PassSchedule.build` refuses; it names line and column.

    Notes
    -----
    Empty lines at the end are left out. Passes may still wait for each other.
    """
    with attributed(source):
        if sum(map(text.count, ",\n\r")) > _MOST_CELLS:
            raise InputError(f"the schedule has more than {_MOST_CELLS:,} slots")
        rows: list[list[Pass]] = []
        columns: list[list[int]] = []
        for number, cells in enumerate(_csv_lines(text), start=1):
            row, places = [], []
            for column, cell in enumerate(cells, start=1):
                word = cell.strip()
                if word and not _NO_PASS.fullmatch(word):
                    row.append(_pass(word, _place_in_csv(number, column)))
                    places.append(column)
            rows.append(row)
            columns.append(places)

        def place_of(device: int, index: int | None) -> str:
            return _place_in_csv(device + 1, None if index is None else columns[device][index])

        return PassSchedule.build(rows, name=name, place_of=place_of)


def write_schedule_csv(schedule: PassSchedule) -> str:
    """Return the text of a CSV file with the passes of a schedule, a device a line.

    PyTorch reads it with ``_PipelineScheduleRuntime._load_csv(FILE, format="compute_only")``.
    """
    if schedule.dependencies:
        raise InputError(
            "dependencies have no place in CSV", where="/dependencies", remedy="write JSON, or leave them out"
        )
    return "".join([",".join([one.name for one in row]) + "\n" for row in schedule.rows])


def _pass(word: str, where: str) -> Pass:
    try:
        return read_pass(word)
    except InputError as error:
        error.where = error.where or where
        raise


def _place_in_csv(line: int, column: int | None) -> str:
    return f"line {line}" if column is None else f"line {line}, column {column}"


def _csv_lines(text: str) -> list[list[str]]:
    """Return the cells of each line, without the empty lines at the end."""
    rows: list[list[str]] = []
    try:
        for row in csv_rows(text):
            rows.append(row)
    except ValueError as error:
        where = _place_in_csv(len(rows) + 1, None)
        raise InputError(f"not comma-separated values: {error}", where=where) from None
    while rows and not rows[-1]:
        rows.pop()
    return rows
