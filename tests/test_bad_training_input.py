"""Bad input of ``mtpp plan``: exit code 2, one line that says where and what, and nothing written."""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from processes import run

from mtpp.cli.main import main

BAD = Path(__file__).resolve().parent / "data" / "bad_training"

FILES = {
    "piper-no-configurations.json": ("/nodes/1/TMPCs", "'b' has no configuration"),
    "piper-empty-configurations.json": ("/nodes/1/TMPCs", "'b' has no configuration"),
    "piper-missing-configurations.json": ("/nodes/1", "missing key 'TMPCs'"),
    "piper-degree-zero.json": ("/nodes/1/TMPCs/0", "at least 1"),
    "piper-degree-negative.json": ("/nodes/1/TMPCs/-1", "at least 1"),
    "piper-degree-word.json": ("/nodes/1/TMPCs/two", "'two' is not a degree of tensor parallelism"),
    "piper-degree-fraction.json": ("/nodes/1/TMPCs/1.5", "'1.5' is not a degree of tensor parallelism"),
    "piper-degree-padded.json": ("/nodes/1/TMPCs/01", "'01' is not a degree of tensor parallelism"),
    "piper-memory-of-zero.json": ("/maxMemoryPerDevice", "above zero"),
    "piper-bandwidth-of-zero.json": ("/bandwidth", "above zero"),
    "piper-cycle.json": ("/edges/0", "a cycle: a -> b -> a"),
    "piper-edge-to-nowhere.json": ("/edges/0/destId", "no node has the id 3"),
    "piper-duplicate-edge.json": ("/edges/1", "duplicate edge", "first at /edges/0"),
    "piper-duplicate-id.json": ("/nodes/1/id", "duplicate id 1", "/nodes/0"),
    "piper-sync-without-edge.json": ("/nodes/1/TMPCs/1/0/syncTimeBw/1", "an edge that does not exist"),
    "piper-sync-with-nobody.json": ("/nodes/1/TMPCs/1/0/syncTimeFw/9", "no node has the id 9"),
    "piper-sync-missing.json": ("/nodes/1/TMPCs/2/0/syncTimeFw", "no cost of synchronisation", "the edge from 1"),
    "piper-no-memory.json": ("/nodes/1/TMPCs/1/0", "missing key 'memoryUsageA'"),
    "piper-negative-time.json": ("/nodes/1/TMPCs/1/0/timePerSample", "negative"),
    "piper-huge-time.json": ("/nodes/1/TMPCs/1/0/timePerSample", "2^62"),
    "piper-text-for-a-time.json": ("/nodes/1/TMPCs/1/0/timePerSample", "must be a number"),
    "piper-not-a-number.json": ("/nodes/1/TMPCs/1/0/timePerSample", "NaN"),
    "native-no-configurations.json": ("/layers/1/configurations", "'b' has no configuration"),
    "native-degree-zero.json": ("/layers/1/configurations/0", "at least 1"),
    "native-degree-word.json": ("/layers/1/configurations/two", "'two' is not a degree of tensor parallelism"),
    "native-memory-of-zero.json": ("/defaults/memory_bytes", "at least 1"),
    "native-cycle.json": ("/edges/0", "a cycle: a -> b -> a"),
    "native-edge-to-nowhere.json": ("/edges/0", "no layer 'c'"),
    "native-duplicate-edge.json": ("/edges/1", "duplicate edge", "first at /edges/0"),
    "native-duplicate-layer.json": ("/layers/1", "duplicate", "'a'"),
    "native-sync-without-edge.json": ("/layers/1/configurations/1/0/sync_out/a", "an edge that does not exist"),
    "native-sync-missing.json": ("/layers/1/configurations/2/0/sync_in", "no cost of synchronisation", "from 'a'"),
    "native-unknown-key.json": ("/layers/1/configurations/1/0", "unknown key 'memory'", "memory_bytes"),
    "native-missing-key.json": ("/layers/1/configurations/1/0", "missing key 'memory_bytes'"),
    "native-wrong-version.json": ("/version", "version 1"),
    "native-abstract-times.json": ("/time_unit", "'1'", "ps, ns, us, ms, s"),
    "native-no-layers.json": ("/layers", "no layers"),
    "native-size-zero.json": ("/layers/0/configurations/1/0/micro_batches/0", "at least 1"),
    "native-size-word.json": ("/layers/0/configurations/1/0/micro_batches/two", "'two' is not a number of samples"),
    "native-size-of-model-zero.json": ("/micro_batch_size", "at least 1"),
    "native-size-of-model-missing.json": ("/layers/0/configurations/1/0/micro_batches", "add micro_batch_size"),
    "native-size-without-forward.json": ("/layers/0/configurations/1/0/micro_batches/2", "missing key 'forward'"),
    "native-size-negative-backward.json": ("/layers/0/configurations/1/0/micro_batches/2/backward", "negative"),
    "native-size-other-time.json": ("/layers/0/configurations/1/0/micro_batches/2", "add up to 3.5", "must be", "3"),
    "a-graph.json": ("/format", "a graph for inference", "mtpp-training-model"),
    "a-plan.json": ("/format", "a training plan", "mtpp-training-model"),
    "a-list.json": ("not a model to be trained", "mtpp-training-model"),
    "truncated.json": ("line 1, column", "not valid JSON"),
}
"""Broken model → what the message has to hold besides the file's name."""

OPTIONS = [
    (("--devices", "0"), ("--devices", "0")),
    (("--devices", "two"), ("--devices", "'two'")),
    (("--memory", "0GB"), ("--memory", "above zero")),
    (("--memory", "8"), ("--memory", "no unit", "24MiB")),
    (("--bandwidth", "0GB/s"), ("--bandwidth", "above zero")),
    (("--bandwidth", "25GiB/h"), ("--bandwidth", "unknown unit 'GiB/h'")),
    (("--max-micro-batches", "0"), ("--max-micro-batches", "0")),
    (("--time-unit", "h"), ("--time-unit", "'h'", "ps, ns, us, ms, s")),
    (("--time-unit", "ms"), ("--time-unit", "no effect", "good.json")),
]

LAYER = (
    '{"name": "a", "configurations": {"1": [{"id": "plain", "time": 1, "parameter_bytes": 2, '
    '"memory_bytes_per_micro_batch": 3, "memory_bytes": 4}]}}'
)

ASKED = {"--devices": "2", "--memory": "1GB", "--bandwidth": "1GB/s", "--max-micro-batches": "4"}


Refused = Callable[[tuple[str, ...], Path, Mapping[str, str]], None]


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refused:
    """Return a check that planning for a model fails as it has to, and says so in one line with some words."""
    monkeypatch.setattr(signal, "signal", lambda *arguments: None)  # the command's own doings to its process
    monkeypatch.setattr(gc, "set_threshold", lambda *arguments: None)
    monkeypatch.setattr("mtpp.cli.main.abandoned", lambda: False)  # what other tests gave up would end this process
    target = tmp_path / "plan.json"

    def check(words: tuple[str, ...], path: Path, options: Mapping[str, str]) -> None:
        asked = [word for option in options.items() for word in option]
        monkeypatch.setattr(sys, "argv", ["mtpp", "plan", str(path), *asked, "-o", str(target)])
        with pytest.raises(SystemExit) as caught:
            main()
        said = capsys.readouterr()
        assert (caught.value.code, said.out) == (2, "")
        assert said.err.startswith("error: ")
        assert said.err.count("\n") == 1
        for word in words:
            assert word in said.err
        assert not target.exists()

    return check


def test_every_broken_file_is_listed() -> None:
    """The folder and the table above agree."""
    assert {path.name for path in BAD.iterdir()} == set(FILES)


@pytest.mark.parametrize("name", sorted(FILES))
def test_broken_files(name: str, refused: Refused) -> None:
    """The message names the file, the place in it and the fault."""
    options = ASKED if name.startswith("native") else {**ASKED, "--time-unit": "s"}
    refused((f"bad_training/{name}: ", *FILES[name]), BAD / name, options)


@pytest.mark.parametrize(("changes", "words"), OPTIONS, ids=[" ".join(changes) for changes, _ in OPTIONS])
def test_broken_options(changes: tuple[str, str], words: tuple[str, ...], tmp_path: Path, refused: Refused) -> None:
    """The message names the option and what it takes."""
    good = tmp_path / "good.json"
    good.write_text((BAD / "native-no-layers.json").read_text().replace('"layers": []', f'"layers": [{LAYER}]'))
    refused(words, good, {**ASKED, **dict([changes])})


def test_a_piper_file_needs_a_unit_of_time(refused: Refused) -> None:
    """It is asked for before anything that depends on it is judged."""
    words = ("piper-huge-time.json: /nodes: ", "what unit its times are in", "--time-unit s, ms, us or ns")
    refused(words, BAD / "piper-huge-time.json", ASKED)


def test_broken_standard_input() -> None:
    """As a process: the message calls it so."""
    asked = [word for option in ASKED.items() for word in option]
    done = run("plan", "-", *asked, stdin=(BAD / "native-cycle.json").read_bytes())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: <stdin>: /edges/0: the layers make a cycle: a -> b -> a; ")
