"""Recordings of command lines: what is masked in them, and which differences are found."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from benchmarks.recorder import RECORD, Recorded, blocks, compare, masked

RUN = Recorded("mtpp partition a.json -k 2", 0, "ratio 1, optimal\n", "", {"plan.json": "ab"})


def test_every_block_has_commands_and_every_command_once() -> None:
    """A line is found by its block and its text."""
    found = blocks()
    assert all(found.values())
    assert all(len(set(lines)) == len(lines) for lines in found.values())
    assert sum(line.lstrip("~ ").startswith("mtpp") for lines in found.values() for line in lines) > 200


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("found in 0.41 s by slice", "found in … s by slice"),
        ("bottleneck 559.4 µs, 12 ms", "bottleneck 559.4 µs, 12 ms"),
        ('{"bottleneck": 5, "elapsed_s": 0.41}', '{"bottleneck": 5, "elapsed_s": …}'),
        ("model,seconds,k\na,0.2,4\n", "model,…,k\na,…,4\n"),
        ("bound  seconds  solved\nnode     0.041  yes\n\nk  3", "bound  seconds  solved\nnode …  yes\n\nk  3"),
        ("compiling (once) partition …\nratio 1", "ratio 1"),
    ],
)
def test_times_of_a_run_are_masked(text: str, expected: str) -> None:
    """What a run took is no result; what a model takes is one."""
    assert masked(text) == expected


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (RUN, "all commands are equal"),
        (replace(RUN, exit=1), "exit code 0, then 1"),
        (replace(RUN, stdout="ratio 1.1\n"), "+ratio 1.1"),
        (replace(RUN, files={"plan.json": "cd"}), "plan.json: another file"),
        (replace(RUN, files={}), "plan.json: another file"),
        (replace(RUN, line="mtpp inspect a.json"), "not recorded again"),
    ],
)
def test_differences_are_found(after: Recorded, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code, streams and files of a command are held against those before."""
    for name, run in (("before", RUN), ("after", after)):
        (tmp_path / name / "block").mkdir(parents=True)
        (tmp_path / name / "block" / RECORD).write_text(json.dumps([asdict(run)]))
    assert (compare(tmp_path / "before", tmp_path / "after") > 0) == (after != RUN)
    assert said in capsys.readouterr().out
