"""Refusals of wrong command lines: one line that names the option, exit code 2, before anything is run or written."""

from __future__ import annotations

from pathlib import Path

import pytest
from graph_strategies import chain
from processes import run

from mtpp.formats.graphs.native import write_native

EVOLVE = "anneal has no population; it goes with brkga, mla, mla-weighted"
BAD: dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "bound": [
        ((), ("-k",)),
        (("-k", "2,x"), ("-k", "'x'")),
        (("-k", "2", "--bounds", "simple,magic"), ("--bounds", "magic")),
        (("-k", "2", "--time-limit", "inf"), ("--time-limit",)),
        (("-k", "2", "--export", "m.mps"), ("--export", "one bound")),
        (("-k", "2", "--bounds", "simple", "--export", "m.txt"), ("--export", ".mps")),
        (("-k", "2", "--bounds", "simple", "--export", "nowhere/m.mps"), ("nowhere",)),
        (("-k", "2", "--bounds", "simple", "--position", "1"), ("--position", "--export")),
        (("-k", "2", "--bounds", "exact-mip", "--export", "m.mps", "--position", "1"), ("--position", "exact-mip")),
        (("-k", "2", "--bounds", "exact-mip", "--export", "m.mps", "-o", "t.json"), ("--output", "--export")),
        (("-k", "2,4", "--bounds", "simple", "--export", "m.mps"), ("--export", "one number of stages")),
        (("-k", "2", "--cutoff", "0"), ("--cutoff",)),
        (("-k", "2", "--cutoff", "1.5ms"), ("--cutoff",)),
        (("-k", "2", "--cutoff", str(2**62)), ("--cutoff",)),
        (("-k", "2", "--proof-limit", "many"), ("--proof-limit",)),
        (("-k", "2", "--proof-limit", "8"), ("--proof-limit",)),
        (("-k", "2", "--proof-limit", "-1MB"), ("--proof-limit",)),
        (("-k", "2", "--proof-limit", "1.5B"), ("--proof-limit",)),
    ],
    "certify": [
        (("-k", "0"), ("-k",)),
        ((), ("-k",)),
        (("-k", "2", "--bounds", "guess"), ("--bounds", "guess", "simple")),
        (("-k", "2", "--bounds", " , "), ("--bounds", "no bound")),
        (("-k", "2", "--algorithm", "magic"), ("--algorithm", "magic")),
        (("-k", "2", "--target-ratio", "0.5"), ("--target-ratio",)),
        (("-k", "2", "--target-ratio", "nan"), ("--target-ratio",)),
        (("-k", "2", "--target-ratio", "x"), ("--target-ratio", "'x' is not a valid number")),
        (("-k", "2", "--require-ratio", "0"), ("--require-ratio",)),
        (("-k", "2", "--time-limit", "0"), ("--time-limit",)),
        (("-k", "2", "--total-time-limit", "-1"), ("--total-time-limit",)),
        (("-k", "2", "--jobs", "0"), ("--jobs",)),
        (("-k", "2", "--memory-limit", "5"), ("--memory-limit",)),
        (("-k", "2", "--as", "percent"), ("--as",)),
        (("-k", "2", "--store", "nowhere/s.db"), ("nowhere/s.db",)),
        (("-k", "2", "--store", "."), ("directory",)),
        (("-k", "2", "-o", "nowhere/o.json"), ("nowhere/o.json",)),
        (("-k", "2", "--store", "t.json", "-o", "./t.json"), ("--store", "t.json is the file of --output too")),
        (("-k", "2", "--plot", "p.png", "-o", "p.csv"), ("--plot", "p.csv is the file of --output too")),
        (("-k", "2", "--scheduler", "tcp://127.0.0.1:1", "--jobs", "2"), ("--jobs",)),
        (("-k", "2", "--dim", "batch=2"), ("--dim",)),
    ],
    "compare": [
        ((), ("-k",)),
        (("-k", "2,,4"), ("-k", "missing", "2,4,8")),
        (("-k", ""), ("-k", "missing")),
        (("-k", "2-8"), ("-k", "'2-8'", "one by one")),
        (("-k", "2,x"), ("-k", "'x'")),
        (("-k", "0,2"), ("-k", "0 is not in the range")),
        (("-k", "2,1000001"), ("-k", "1000001 is not in the range")),
        (("-k", "9" * 5000), ("-k", "number of stages")),
        (("-k", "2", "--algorithms", "auto,magic"), ("--algorithms", "'magic'", "auto, downset, anneal, brkga")),
        (("-k", "2", "--algorithms", "slice-3"), ("--algorithms", "slice takes no number")),
        (("-k", "2", "--algorithms", ","), ("--algorithms", "names no algorithm")),
        (("-k", "2", "--time-limit", "0"), ("--time-limit",)),
        (("-k", "2", "--fast-memory", "1MiB"), ("b.json", "/time_unit")),
        (("-k", "2", "-o", "/no/such/folder/x.json"), ("no directory",)),
    ],
    "partition": [
        ((), ("-k",)),
        (("--stage", "3"), ("--stage",)),
        (
            ("-k", "5", "--algorithm", "anneal", "--population", "5"),
            ("--population: anneal has no population; it goes with brkga, mla, mla-weighted",),
        ),
        (
            ("-k", "5", "--algorithm", "anneal", "--generations", "5"),
            ("--generations: anneal has no population; it goes with brkga, mla, mla-weighted",),
        ),
    ],
}
"""Options of each command, and words of the line."""


@pytest.mark.parametrize(
    ("command", "options", "words"),
    [(command, *row) for command, rows in BAD.items() for row in rows],
    ids=lambda value: value if isinstance(value, str) else " ".join(value)[:60],
)
def test_wrong_options_are_one_line(
    command: str, options: tuple[str, ...], words: tuple[str, ...], chain_file: Path, tmp_path: Path
) -> None:
    """Nothing is on standard output, and no file is written."""
    abstract = tmp_path / "b.json"
    abstract.write_text(write_native(chain([10, 20], [5])))
    done = run(command, abstract if command == "compare" else chain_file, *options, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    for word in words:
        assert word in line
    assert {path.name for path in tmp_path.iterdir()} == {"b.json", "chain.json"}
