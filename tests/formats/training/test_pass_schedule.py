"""Schedules of passes as files: JSON and CSV, as PyTorch writes and reads it, and files that are refused."""

from __future__ import annotations

import csv
import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch_schedules import rows_of_runtime, torch_runtime

from mtpp.errors import InputError, UnrecognisedInput
from mtpp.formats.graphs.graph_format import Content
from mtpp.formats.io.source import Source, read_source, source_of_bytes
from mtpp.formats.training import pass_schedule as module
from mtpp.formats.training.pass_schedule import (
    looks_like_pass_schedule,
    pass_schedule_from_source,
    write_schedule_csv,
)
from mtpp.names import SCHEDULES
from mtpp.training.pfeife.named import named_schedule
from mtpp.training.pfeife.schedule import PassSchedule, read_pass

GOOD = {
    "format": "mtpp-pass-schedule",
    "version": 1,
    "name": "two",
    "order": [["0F0", "0F1", "0B0", "0B1"], "1F0 1I0, 1F1,1W0 1B1"],
    "dependencies": [["1I0", "0F1"]],
}

GOOD_CSV = "0F0,0F1,,0B0,0B1\r\n,1F0,1I0,1F1,1W0,1B1\r\n"


def source(text: str | bytes) -> Source:
    """Return text as a file."""
    return source_of_bytes(text if isinstance(text, bytes) else text.encode(), "x")


def read(text: str | bytes) -> PassSchedule:
    """Return the schedule in a file."""
    return pass_schedule_from_source(source(text))


def names(schedule: PassSchedule) -> list[list[str]]:
    """Return the passes of each device as they are written."""
    return [[one.name for one in row] for row in schedule.rows]


def test_schedules_are_read() -> None:
    """From JSON and CSV alike; dependencies from JSON alone, the name of a CSV file is the file's."""
    expected = [["0F0", "0F1", "0B0", "0B1"], ["1F0", "1I0", "1F1", "1W0", "1B1"]]
    schedule = read(json.dumps(GOOD))
    assert (schedule.name, names(schedule), schedule.halves) == ("two", expected, True)
    assert (schedule.devices, schedule.stages, schedule.micro_batches) == (2, 2, 2)
    assert [(before.name, after.name) for before, after in schedule.dependencies] == [("1I0", "0F1")]
    assert read(json.dumps({key: GOOD[key] for key in ("format", "version", "order")})).name == "x"
    for text in (GOOD_CSV, GOOD_CSV.replace("\r", ""), "\ufeff" + GOOD_CSV, GOOD_CSV + "\n\n", GOOD_CSV.strip()):
        assert (read(text).name, names(read(text))) == ("x", expected)
    assert names(read(GOOD_CSV.replace("1F1", " 1F1 ").replace("0F1", '"0F1"'))) == expected
    assert names(read(gzip.compress(GOOD_CSV.encode()))) == expected


def test_the_name_of_a_file_is_that_of_its_schedule(tmp_path: Path) -> None:
    """Without suffixes."""
    (tmp_path / "mine.csv").write_text(GOOD_CSV)
    assert pass_schedule_from_source(read_source(str(tmp_path / "mine.csv"))).name == "mine"


def test_other_actions_of_torch_are_left_out() -> None:
    """Communication, parameters and sums of gradients."""
    lines = [
        "0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD,0RESHARD",
        "1UNSHARD,1RECV_F0,1F0,1B0,1SEND_B0,1REDUCE_GRAD,1RESHARD",
    ]
    assert names(read("\n".join(lines))) == [["0F0", "0B0"], ["1F0", "1B0"]]


def test_files_are_recognised() -> None:
    """By what they begin with."""
    for text in (json.dumps(GOOD), GOOD_CSV, ",,\n1F0", '"0F0"', "0UNSHARD,0F0", "\ufeff0F0"):
        assert looks_like_pass_schedule(Content(source(text)))
    for text in ('{"format": "mtpp-graph"}', "[]", "{}", "op,stage\na,0", "0,1", "F0", "\x08\x01", "1e5,3"):
        assert not looks_like_pass_schedule(Content(source(text)))


BROKEN_JSON: list[tuple[dict[str, Any], str, str]] = [
    ({"version": 2}, "/version", "version 2 is not supported"),
    ({"passes": []}, "/", "unknown key 'passes'"),
    ({"name": 3}, "/name", "must be a string"),
    ({"order": {}}, "/order", "must be an array, not an object"),
    ({"order": []}, "/order", "the schedule has no devices"),
    ({"order": [["0F0", "0B0"], []]}, "/order/1", "device 1 has no passes"),
    ({"order": [["0F0", "0B0"], ", "]}, "/order/1", "device 1 has no passes"),
    ({"order": [["0F0", "0B0"], None]}, "/order/1", "must be an array, not null"),
    ({"order": [["0F0", None]]}, "/order/0/1", "must be a string, not null"),
    ({"order": [["0F0", "0F0 0B0"]]}, "/order/0/1", "'0F0 0B0' is no pass"),
    ({"order": [["0F0", "0SEND_F0", "0B0"]]}, "/order/0/1", "'0SEND_F0' is no pass"),
    ({"order": [["0F0", "B0"]]}, "/order/0/1", "'B0' is no pass; write 2F0 for"),
    ({"order": ["0F0 B0"]}, "/order/0, pass 2", "'B0' is no pass; write 2F0 for"),
    ({"order": [["0F0", "\x1b[2J"]]}, "/order/0/1", r"'\x1b[2J' is no pass"),
    ({"order": [["0F0"]]}, "/order/0", "pass 0B0 is missing"),
    ({"order": [["0F0", "0B0"], ["1F0"]]}, "/order/1", "pass 1B0 is missing"),
    ({"order": [["0F0", "0B0", "0F9999999", "0B9999999"]]}, "/order/0", "pass 0F1 is missing"),
    ({"order": [["9999999F0", "9999999B0"]]}, "/order/0", "pass 0F0 is missing"),
    ({"order": [["0F0", "0I0"]]}, "/order/0", "pass 0W0 is missing"),
    ({"order": [["0F0", "0W0"]]}, "/order/0", "pass 0I0 is missing"),
    ({"order": [["0F0", "0B0", "0I0", "0W0"]]}, "/order/0/2", "0I0 is half of 0B0, which is there as well"),
    ({"order": ["0F0 0B0 0W0"]}, "/order/0, pass 3", "0W0 is half of 0B0, which is there as well"),
    ({"order": [["0F0", "0B0", "0F0"]]}, "/order/0/2", "pass 0F0 is there twice, first at /order/0/0"),
    ({"order": ["0F0 0B0", "1F0 0F0"]}, "/order/1, pass 2", "pass 0F0 is there twice, first at /order/0, pass 1"),
    ({"order": [["0F0", "0B0"], ["1F0", "1B0", "0F1"]]}, "/order/1/2", "stage 0 of 2 devices is on device 1"),
    ({"dependencies": {}}, "/dependencies", "must be an array"),
    ({"dependencies": [["0F0"]]}, "/dependencies/0", "must be a pair of passes, not 1"),
    ({"dependencies": ["0F0 1F0"]}, "/dependencies/0", "must be an array"),
    ({"dependencies": [["0F0", "1F0"], ["0F0", "0G0"]]}, "/dependencies/1/1", "'0G0' is no pass"),
    ({"dependencies": [["0F0", "1F2"]]}, "/dependencies/0/1", "there is no pass 1F2"),
    ({"dependencies": [["1F1", "1F1"]]}, "/dependencies/0", "pass 1F1 waits for itself"),
]


@pytest.mark.parametrize(("changed", "where", "said"), BROKEN_JSON)
def test_broken_json(changed: dict[str, Any], where: str, said: str) -> None:
    """The message names the file, the place and the fault."""
    document = {**GOOD, **changed}
    if "order" in changed:
        document["dependencies"] = []
    with pytest.raises(InputError) as caught:
        read(json.dumps(document))
    assert (caught.value.source, caught.value.where, caught.value.exit_code) == ("x", where, 2)
    assert said in str(caught.value)


BROKEN_CSV = [
    ("0F0,0B0,0X0", "line 1, column 3", "'0X0' is no pass; write 2F0"),
    ("0F0,0B0\n1F0,,x\x1b,1B0", "line 2, column 3", r"'x\x1b' is no pass"),
    ("0F0,0B0\n1F0,(1F1;1B0)OVERLAP_F_B", "line 2, column 2", "'(1F1;1B0)OVERLAP_F_B' is no pass"),
    ("0F0 0B0", "line 1, column 1", "'0F0 0B0' is no pass"),
    ("0F0,0SEND_F,0B0", "line 1, column 2", "'0SEND_F' is no pass"),
    ("0F0,0B0\n\n2F0,2B0", "line 2", "device 1 has no passes; leave idle devices out"),
    ("0F0,0B0\n,,\n", "line 2", "device 1 has no passes"),
    ("0F0,0B0\n1UNSHARD,1SEND_F0", "line 2", "device 1 has no passes"),
    ("0F0,0B0\n1F0", "line 2", "pass 1B0 is missing"),
    ("0F0,,0F0,0B0", "line 1, column 3", "pass 0F0 is there twice, first at line 1, column 1"),
    (
        "0F0,,0B0\n1F0,1B0,,0F1",
        "line 2, column 4",
        "stage 0 of 2 devices is on device 1; stage s runs on device s mod 2",
    ),
    ("0F0,,0B0,0SEND_F0,0W0", "line 1, column 5", "0W0 is half of 0B0"),
    ('0F0,0B0\n1F0,"1B0', "line 2", "not comma-separated values"),
]


@pytest.mark.parametrize(("text", "where", "said"), BROKEN_CSV)
def test_broken_csv(text: str, where: str, said: str) -> None:
    """The message names the file, line and column, and the fault."""
    with pytest.raises(InputError) as caught:
        read(text)
    assert (caught.value.source, caught.value.where, caught.value.exit_code) == ("x", where, 2)
    assert said in str(caught.value)


@pytest.mark.parametrize("text", ["op,stage\na,0", "X0F0,0B0", '{"format": "mtpp-graph", "version": 1}'])
def test_other_files_are_not_recognised(text: str) -> None:
    """The message says what a schedule is."""
    with pytest.raises(UnrecognisedInput, match=r"x.*give a schedule of passes as mtpp-pass-schedule, or as CSV"):
        read(text)


def test_other_bytes_are_refused() -> None:
    """No text, no object, no format."""
    with pytest.raises(InputError, match="not UTF-8 text"):
        read(b"0F0,\xff")
    with pytest.raises(InputError, match="must be an object"):
        read("[]")
    with pytest.raises(InputError, match="missing key 'format'"):
        read("{}")


def test_too_large_schedules_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before their passes are looked at."""
    monkeypatch.setattr(module, "MOST_PASSES", 3)
    with pytest.raises(InputError, match="x: /order/1: the schedule has more than 3 passes"):
        read(json.dumps({**GOOD, "order": [[], "? ? ? ?"]}))
    monkeypatch.setattr(module, "_MOST_CELLS", 3)
    with pytest.raises(InputError, match="x: the schedule has more than 3 slots"):
        read("0F0,,,,")
    monkeypatch.undo()
    monkeypatch.setattr("mtpp.training.pfeife.schedule.MOST_PASSES", 3)
    with pytest.raises(InputError, match="x: line 2: the schedule has more than 3 passes"):
        read("0F0,0B0\n1F0,1B0")


@st.composite
def schedules(draw: st.DrawFn) -> PassSchedule:
    """Draw a schedule: each device's passes in any order, backward passes whole or in halves."""
    devices, micro_batches = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    stages = draw(st.integers(devices, 3 * devices))
    rng = random.Random(draw(st.integers(0, 2**32)))
    rows: list[list[str]] = [[] for _ in range(devices)]
    for s in range(stages):
        for m in range(micro_batches):
            for letter in ("F", *(("B",) if rng.random() < 0.5 else ("I", "W"))):
                rows[s % devices].append(f"{s}{letter}{m}")
    for row in rows:
        rng.shuffle(row)
    every = [name for row in rows for name in row]
    pairs = [rng.sample(every, 2) for _ in range(rng.randrange(3))]
    dependencies = [(read_pass(before), read_pass(after)) for before, after in pairs]
    return PassSchedule.build([list(map(read_pass, row)) for row in rows], dependencies, name=draw(st.text()))


@given(schedules())
def test_schedules_come_back_from_files(schedule: PassSchedule) -> None:
    """Written and read; CSV is refused a schedule with dependencies."""
    pairs = [[before.name, after.name] for before, after in schedule.dependencies]
    back = read(json.dumps(GOOD | {"name": schedule.name or "x", "order": names(schedule), "dependencies": pairs}))
    assert (back.rows, back.dependencies, back.name) == (schedule.rows, schedule.dependencies, schedule.name or "x")
    if schedule.dependencies:
        with pytest.raises(InputError, match="/dependencies: dependencies have no place in CSV; write JSON"):
            write_schedule_csv(schedule)
    else:
        text = write_schedule_csv(schedule)
        assert read(text).rows == schedule.rows
        assert write_schedule_csv(read(text)) == text


def test_files_have_a_device_a_line() -> None:
    """As text."""
    schedule = named_schedule("gpipe", 2, 1, 1)
    assert write_schedule_csv(schedule) == "0F0,0B0\n1F0,1B0\n"


@pytest.mark.parametrize("name", SCHEDULES)
def test_torch_reads_and_writes_schedules(name: str, tmp_path: Path) -> None:
    """PyTorch's runtime reads the CSV; what it writes, with communication or without, is read as the same schedule."""
    for devices, micro_batches, loops in ((1, 2, 1), (2, 4, 1), (4, 8, 1), (2, 4, 2), (4, 8, 3), (3, 2, 2)):
        if loops > 1 and name in ("gpipe", "1f1b"):
            continue
        schedule = named_schedule(name, devices, micro_batches, loops)
        (tmp_path / "a.csv").write_text(write_schedule_csv(schedule), newline="")
        runtime = torch_runtime(devices, micro_batches, loops, tmp_path / "a.csv")
        assert rows_of_runtime(runtime) == names(schedule)
        for kind in ("compute_only", "compute_comms"):
            runtime._dump_csv(str(tmp_path / "b.csv"), format=kind)
            text = (tmp_path / "b.csv").read_bytes()
            assert pass_schedule_from_source(source(text)).rows == schedule.rows
            cells = {cell for row in csv.reader(text.decode().splitlines()) for cell in row}
            assert any("SEND" in cell for cell in cells) == (kind == "compute_comms" and devices > 1)
