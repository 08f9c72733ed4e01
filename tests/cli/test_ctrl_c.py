"""Ctrl-C at any moment: a last line and exit code 130, or a run that was done already."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from graph_strategies import random_graph
from processes import MTPP, ROOT, environment, run

from mtpp.formats.graphs.native import write_native

POSIX = pytest.mark.skipif(os.name != "posix", reason="signals")
SAMPLE = ROOT / "datasets" / "samples" / "resnet50.onnx"

_DELAYED = """
import os, signal, sys, threading, time
sys.argv[0], sys.path[0] = "mtpp", {root!r}
sys.setswitchinterval(1e-4)
import mtpp
me, number, delay = os.getpid(), int(sys.argv.pop(1)), float(sys.argv.pop(1))
threading.Thread(target=lambda: (time.sleep(delay), os.kill(me, number)), daemon=True).start()
from mtpp.__main__ import main
main()
"""
"""The command ``mtpp``, which gets a signal so many seconds after the first line of the package began to run."""


def _interrupted(arguments: list[str], delay_s: float, number: signal.Signals = signal.SIGINT) -> tuple[int, str, str]:
    """Run ``mtpp ARGUMENTS``, which is sent a signal after so many seconds; return its exit code and what it said."""
    command = [sys.executable, "-c", _DELAYED.format(root=str(ROOT)), str(int(number)), str(delay_s), *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


def _check(code: int, err: str) -> None:
    if code == 0:
        assert "Traceback" not in err
        return
    *before, last = err.splitlines()
    assert (code, [line for line in before if not line.startswith("warning: ")]) == (130, []), err
    assert last == "error: interrupted" or any(line.startswith("warning: interrupted ") for line in (*before, last))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a graph, a plan, a model to be trained, and stages to be run."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "graph.json").write_text(write_native(random_graph(11, 120)))
    commands = (
        ("partition", folder / "graph.json", "-k", "4", "-q", "-o", folder / "plan.json"),
        ("partition", SAMPLE, "-k", "2", "-q", "-o", folder / "onnx.json"),
        ("split", SAMPLE, folder / "onnx.json", "-q", "-o", folder / "stages"),
        ("generate", "transformer-training", "--layers", "4", "-q", "-o", folder / "training.json"),
    )
    for command in commands:
        assert run(*command).returncode == 0
    return folder


COMMANDS: dict[str, Callable[[Path], list[str]]] = {
    "help": lambda files: ["--help"],
    "partition": lambda files: ["partition", f"{files}/graph.json", "-k", "4", "-o", f"{files}/o.json"],
    "certify": lambda files: ["certify", f"{files}/graph.json", "-k", "2,4", "-j", "2", "--time-limit", "10"],
    "compare": lambda files: ["compare", f"{files}/graph.json", "-k", "2", "--algorithms", "slice,random-100,anneal"],
    "bound": lambda files: ["bound", f"{files}/graph.json", "-k", "4", "--time-limit", "10"],
    "verify": lambda files: ["verify", f"{files}/plan.json", "--model", f"{files}/graph.json"],
    "plan": lambda files: [
        *("plan", f"{files}/training.json", "--devices", "4", "--memory", "80GiB", "--bandwidth", "25GB/s"),
        *("--max-micro-batches", "8"),
    ],
    "run": lambda files: ["run", f"{files}/stages", "--batches", "5", "--warmup", "0"],
    "split": lambda files: ["split", str(SAMPLE), f"{files}/onnx.json", "--check"],
    "convert": lambda files: ["convert", str(SAMPLE), f"{files}/c.json"],
}


@POSIX
@pytest.mark.parametrize("delay_s", [0.0, 0.01, 0.05, 0.15])
def test_while_python_imports(delay_s: float, files: Path) -> None:
    """From the first line on, there is one line and exit code 130."""
    code, out, err = _interrupted(COMMANDS["partition"](files), delay_s)
    if delay_s < 0.1:  # nothing is done by then
        assert (code, out, err) == (130, "", "error: interrupted\n")
    _check(code, err)


@POSIX
@pytest.mark.slow
@pytest.mark.parametrize("name", list(COMMANDS))
def test_at_any_moment(name: str, files: Path) -> None:
    """In every command, from its first moment to beyond its last, by either signal; nothing is left behind."""
    for step in range(12):
        number = (signal.SIGINT, signal.SIGTERM)[step % 2]
        code, _, err = _interrupted(COMMANDS[name](files), 0.004 * 1.8**step, number)
        _check(code, err)
        assert not [path.name for path in files.iterdir() if path.name.endswith((".tmp", ".old"))]


@POSIX
def test_the_interpreters_way_of_starting(files: Path) -> None:
    """``python -m mtpp`` is ready for a signal as soon as it can be: when anything of ours is known to run."""
    command = [*MTPP, *COMMANDS["partition"](files), "-v", "--time-limit", "60"]
    for _ in range(2):
        process = subprocess.Popen(command, cwd=ROOT, env=environment(), stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        process.stderr.readline()  # what it says first
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        assert process.wait(60) in (0, 130)
        assert "Traceback" not in rest


@POSIX
def test_a_result_that_is_being_written_is_finished(tmp_path: Path) -> None:
    """A signal in the midst of it waits; the file is whole, nothing lies beside it, and the exit code says so."""
    code = f"""
import os, signal, sys
sys.path.insert(0, {str(ROOT)!r})
from mtpp.host import interrupts
interrupts.install()
from mtpp.formats.io import sink
replace = os.replace
def interrupted(*paths):
    os.kill(os.getpid(), signal.SIGINT)
    replace(*paths)
os.replace = interrupted
sink.write_text_atomically({str(tmp_path / "out.json")!r}, "whole")
print("not reached")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "error: interrupted\n")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("out.json", "whole")]


@POSIX
@pytest.mark.parametrize(
    ("body", "code", "err"),
    [
        ("with interrupts.unwinding():\n  try: kill()\n  finally: print('cleaned')", -2, ""),
        ("class Lost:\n  def __del__(self): kill()\nwith interrupts.unwinding():\n  Lost()\n  print('on')", 130, None),
        ("with interrupts.unwinding():\n  try: kill()\n  except BaseException: pass\nprint('on')", 130, None),
        ("interrupts.keep()\nkill()\nwith interrupts.held(): print('written', flush=True)\nprint('on')", 130, None),
        ("interrupts.keep()\nkill()\nkill()\ntime.sleep(0.3)\nkill()\nprint('on')", 130, None),
        ("interrupts.finish(3)\nkill()\nprint('on')", 3, ""),
        ("import atexit\natexit.register(kill)\ninterrupts.finish(0)\nsys.exit(0)", 0, ""),
        ("kill()\nprint('on')", 130, None),
    ],
)
def test_what_a_signal_does_where(body: str, code: int, err: str | None) -> None:
    """Unwound where something has to be cleaned up, kept back while a result is at hand, and never lost."""
    script = f"""
import os, signal, sys, time
sys.path.insert(0, {str(ROOT)!r})
from mtpp.host import interrupts
interrupts.install()
def kill(): os.kill(os.getpid(), signal.SIGINT)
{body}
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (code, "error: interrupted\n" if err is None else err)
    assert "on" not in done.stdout.split()
    assert ("cleaned" in done.stdout) == ("cleaned" in body)
    assert ("written" in done.stdout) == ("written" in body)


def test_programs_that_import_the_package_keep_their_handlers() -> None:
    """Only the program itself takes signals into its own hands."""
    code = (
        f"import signal, sys; sys.path.insert(0, {str(ROOT)!r}); import mtpp, mtpp.cli.main, mtpp.host.interrupts; "
        "print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "True\n"


@POSIX
@pytest.mark.parametrize("shell", ["trap '' INT; exec {}", "trap '' INT TERM; exec {}"])
def test_signals_that_are_ignored_from_the_start_are_heard(shell: str, tmp_path: Path) -> None:
    """A command that a script runs in the background, where shells ignore Ctrl-C, ends on it with its best so far."""
    (tmp_path / "graph.json").write_text(write_native(random_graph(11, 300)))
    command = [*MTPP, "partition", str(tmp_path / "graph.json"), "-k", "8", "--time-limit", "120", "-v"]
    process = subprocess.Popen(
        ["sh", "-c", shell.format(shlex.join([*command, "-o", str(tmp_path / "plan.json")]))],
        cwd=ROOT, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("search: anneal"):
            break
    process.send_signal(signal.SIGTERM if "TERM" in shell else signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert '"stopped": "interrupted"' in (tmp_path / "plan.json").read_text()
