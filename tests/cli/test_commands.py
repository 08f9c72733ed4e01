"""``evaluate``, ``verify``, ``inspect``, ``convert``, ``warmup`` and the group itself, as processes."""

from __future__ import annotations

import json
import signal
import sys
import threading
from pathlib import Path

import pytest
from processes import printed, refused, run

from mtpp.cli.main import COMMANDS, main
from mtpp.formats.graphs.native import read_native
from mtpp.host.deadline import Deadline
from mtpp.host.ending import EndedEarly, abandoned, run_in_time


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_help(name: str) -> None:
    """Each command's module exists and explains itself."""
    assert printed(name, "--help").startswith(f"Usage: mtpp {name} ")


def test_the_group_lists_the_commands() -> None:
    """The table of commands is what ``--help`` shows."""
    text = " ".join(run("--help").stdout.split())
    for name, line in COMMANDS.items():
        assert f"{name} {line}" in text


def test_version_and_no_arguments() -> None:
    """``--version`` prints one line; no arguments print the help and exit 2."""
    assert run("--version").stdout.startswith("mtpp ")
    bare = run()
    assert bare.returncode == 2
    assert "Commands:" in bare.stderr


def test_evaluate_scores_cuts_and_assignments(chain_file: Path, tmp_path: Path) -> None:
    """Cuts by name, a JSON object and a plan give the same scored partition, which verifies."""
    by_hand = tmp_path / "assignment.json"
    by_hand.write_text(json.dumps({"op0": 0, "op1": 0, "op2": 1, "op3": 2}))
    output = tmp_path / "plan.json"
    cuts = run("evaluate", chain_file, "--cuts", "op1,op2", "--format", "json")
    given = run("evaluate", chain_file, "--assignment", by_hand, "--format", "json", "-o", output)
    again = run("evaluate", chain_file, "--assignment", output, "--format", "json")
    plans = [json.loads(done.stdout) for done in (cuts, given, again)]
    for plan in plans:
        plan.pop("elapsed_s")
    assert plans[0] == plans[1] == plans[2]
    assert plans[0]["bottleneck"] == 41 * 10**9
    assert [stage["cost"] for stage in plans[0]["stages"]] == [31 * 10**9, 32 * 10**9, 41 * 10**9]
    assert run("verify", output, "--model", chain_file).returncode == 0


def test_evaluate_refuses_cycles(chain_file: Path, tmp_path: Path) -> None:
    """Stages that wait for each other are an invalid partition: exit code 1, one line."""
    by_hand = tmp_path / "assignment.json"
    by_hand.write_text(json.dumps({"op0": 0, "op1": 1, "op2": 0, "op3": 1}))
    done = run("evaluate", chain_file, "--assignment", by_hand)
    assert done.returncode == 1
    assert done.stderr == "error: blocks wait for each other: 0 -> 1 -> 0; their quotient graph is cyclic\n"


def test_evaluate_with_the_peak_of_the_order(tmp_path: Path) -> None:
    """With ``--peak order`` the working memory of each stage counts against the fast memory, and it verifies."""
    model = tmp_path / "model.json"
    ops = [{"name": name, "work": 1, "param_bytes": 10} for name in "abc"]
    tensors = [
        {"name": "t", "producer": "a", "consumers": ["b"], "bytes": 100},
        {"name": "u", "producer": "b", "consumers": ["c"], "bytes": 50},
    ]
    graph = {"format": "mtpp-graph", "version": 1, "name": "g", "time_unit": "us", "ops": ops, "tensors": tensors}
    model.write_text(json.dumps(graph))
    output = tmp_path / "plan.json"
    arguments = ("evaluate", model, "--cuts", "b", "--fast-memory", "120B", "--peak", "order", "-o", output)
    shown = printed(*arguments)
    assert "speed-up           1.50× over one stage" in shown  # 3 µs of work, 60 bytes too many at 40 ps each
    assert "memory             at most 170 B per stage (stage 0)" in shown
    plan = json.loads(output.read_text())
    assert [stage["peak_bytes"] for stage in plan["stages"]] == [150, 50]
    assert [stage["overflow"] for stage in plan["stages"]] == [50 * 40, 0]
    assert run("verify", output, "--model", model).returncode == 0


def test_evaluate_refuses_stages_above_the_stage_memory(tmp_path: Path) -> None:
    """A stage that needs more than ``--stage-memory`` makes the partition invalid: exit code 1 and its figures."""
    model = tmp_path / "model.json"
    ops = [{"name": name, "work": 1, "param_bytes": 600} for name in "abc"]
    tensors = [{"name": "t", "producer": "a", "consumers": ["c"], "bytes": 700, "transfer": 1}]
    graph = {"format": "mtpp-graph", "version": 1, "name": "g", "time_unit": "1", "ops": ops, "tensors": tensors}
    model.write_text(json.dumps(graph))
    arguments = ("evaluate", model, "--cuts", "b", "--peak", "order", "--stage-memory")
    assert run(*arguments, "1900B").returncode == 0
    done = run(*arguments, "1899B")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "error: --stage-memory: stage 0 needs 1,900 bytes (1,200 for parameters, 700 for activations), more than the "
        "1,899 (1.854 KiB) allowed\n"
    )


def test_verify_finds_what_is_wrong(chain_file: Path, tmp_path: Path) -> None:
    """A plan with a false figure exits 1 and names it; another model is noticed by its digest."""
    output = tmp_path / "plan.json"
    run("partition", chain_file, "-k", "2", "--algorithm", "slice", "-q", "-o", output)
    plan = json.loads(output.read_text())
    plan["bottleneck"] -= 1
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps(plan))
    shown = printed("verify", wrong, "--model", chain_file, code=1)
    assert any(line.startswith("false") and "bottleneck" in line for line in shown.splitlines())
    other = tmp_path / "other.json"
    other.write_text(chain_file.read_text() + "\n")
    assert run("verify", output, "--model", other).returncode == 1
    assert json.loads(run("verify", output, "--model", chain_file, "--format", "json").stdout)["valid"] is True
    assert run("verify", output, "--model", chain_file, "--require-tier", "exact").returncode == 0


def test_inspect_in_every_format(chain_file: Path) -> None:
    """Totals and kinds as table, JSON, CSV and markdown."""
    document = json.loads(run("inspect", chain_file, "--format", "json").stdout)
    assert document["work"] == 10**11
    assert document["largest_op"] == {"name": "op3", "work": 4 * 10**10}
    assert "100.0 ms in all, the largest op 40.00 ms (op3)" in run("inspect", chain_file).stdout
    header, first = run("inspect", chain_file, "--ops", "--format", "csv").stdout.splitlines()[:2]
    assert header == "op,kind,work,param_bytes,time_unit,ticks_per_unit"
    assert first == "op0,,10000000000,0,ms,1000000000"
    assert "| kind | ops | work |" in run("inspect", chain_file, "--format", "markdown").stdout


def test_convert_round_trips_through_files(random_file: Path, tmp_path: Path) -> None:
    """Native → gz → node-link → native is the same file."""
    packed, linked, back = tmp_path / "a.json.gz", tmp_path / "b.nodelink", tmp_path / "c.json"
    for source, target in ((random_file, packed), (packed, linked), (linked, back)):
        done = run("convert", source, target)
        assert (done.returncode, done.stdout) == (0, "")
    assert packed.read_bytes()[:2] == b"\x1f\x8b"
    first = read_native(random_file.read_bytes(), "first")
    last = read_native(back.read_bytes(), "last")
    assert (first.work, first.transfer, first.op_names) == (last.work, last.transfer, last.op_names)


def test_warmup_for_some_commands() -> None:
    """Only their kernels are compiled; names that there are none of are refused with the choices."""
    assert printed("warmup", "--for", "simulate").startswith("ready: simulate, in ")
    said = refused("warmup", "--for", "simulate,convert")
    assert said == (
        "error: --for: 'convert' is no command that compiles anything; "
        "use some of partition, certify, bound, evaluate, compare, simulate, verify, report, run, plan\n"
    )


def test_a_program_that_calls_the_command_line_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work that was given up in its process, by whatever it called before, does not end it."""
    release = threading.Event()
    with pytest.raises(EndedEarly):
        run_in_time(release.wait, Deadline(-100.0), lambda: "time-limit")
    try:
        assert abandoned()
        handler = signal.getsignal(signal.SIGTERM)
        monkeypatch.setattr(sys, "argv", ["mtpp", "partition", "nothing.onnx", "-k", "2"])
        with pytest.raises(SystemExit, match="2"):
            main()
        signal.signal(signal.SIGTERM, handler)
    finally:
        release.set()


def test_graphs_of_any_format_are_handed_over(chain_file: Path, tmp_path: Path) -> None:
    """Their ops are those of the file, so TFLite's partitioner can take their numbers; they say nothing of modules."""
    plan = tmp_path / "plan.json"
    assert run("partition", chain_file, "-k", "2", "-o", plan).returncode == 0
    assert json.loads(printed("split", chain_file, plan, "--emit", "tflite-segments"))["num_ops"] == "3,1"
