"""The fork server: what runs there does what it does in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fork_server import ForkServer
from processes import environment, run, run_afresh, server

from mtpp.host.child_process import TalkingProcess, serving

pytestmark = pytest.mark.skipif(not ForkServer.works_here(), reason="all runs have a process of their own here")

PROGRAMS = {
    "streams": "import sys; sys.stdout.write(sys.stdin.read().upper()); print('naïve', file=sys.stderr); sys.exit(3)",
    "surroundings": """
import os, signal, sys, __main__
print(os.getcwd(), sys.argv[1:], sys.path[0], __name__, __spec__.name, sys.modules["__main__"].__spec__.name)
for stream in (sys.stdin, sys.stdout, sys.stderr):
    print(stream.encoding, stream.errors, stream.isatty(), stream.line_buffering, stream.seekable(), stream.fileno())
print([(number, signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)])
print(sorted(variable for variable in os.environ.items() if variable[0] not in ("PYTEST_CURRENT_TEST", "LC_CTYPE")))
descriptors = [os.path.join("/proc/self/fd", number) for number in os.listdir("/proc/self/fd")]
print([os.path.isfile(one) for one in descriptors].count(False), os.getpgrp(), os.getsid(0), os.umask(0))
""",
    "unread": "pass",
    "text": "import sys; sys.exit('said at the end')",
    "nothing": "import sys; sys.exit(None)",
    "many": "import sys; sys.exit(256 + 7)",
    "killed": "import os; print('lost in the buffer'); os.kill(os.getpid(), 9)",
    "terminated": "import os, signal; print('seen', flush=True); os.kill(os.getpid(), signal.SIGTERM)",
    "endings": """
import atexit, threading
atexit.register(print, "and last")
go_on = threading.Event()
threading.Thread(target=lambda: (go_on.wait(), print("a thread"))).start()
threading.Timer(0.01, go_on.set).start()
print("main")
""",
    "children": """
import multiprocessing, subprocess, sys
def work():
    print("from a child", flush=True)
if __name__ == "__main__":
    subprocess.run([sys.executable, "-c", "print(input())"])
    print("back", flush=True)
    child = multiprocessing.get_context("spawn").Process(target=work)
    child.start()
    child.join()
""",
}


def _write(folder: Path, text: str) -> list[str]:
    (folder / "program.py").write_text(text, encoding="utf-8")
    return [sys.executable, "-m", "program"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_run_is_like_a_process(name: str, tmp_path: Path) -> None:
    """Exit code or signal, output and errors are the same, byte for byte, of input that fills pipes."""
    _hold_against_a_process([*_write(tmp_path, PROGRAMS[name]), "a", "ö", "\udcff"], tmp_path)


def test_a_run_is_like_a_process_whatever_ran_before(tmp_path: Path) -> None:
    """The server imports what a run has needed; files that the library keeps open, as this one does, are left out."""
    pytest.importorskip("onnxruntime")
    needs = _write(tmp_path, "import onnxruntime")
    assert server().run(needs, cwd=tmp_path, timeout_s=60).returncode == 0
    _hold_against_a_process(_write(tmp_path, PROGRAMS["surroundings"]), tmp_path)


def _hold_against_a_process(command: list[str], tmp_path: Path) -> None:
    stdin = b"some line\n" * 50_000
    done = server().run(command, stdin=stdin, cwd=tmp_path, timeout_s=60)
    alone = subprocess.run(command, input=stdin, cwd=tmp_path, env=environment(), capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (alone.returncode, alone.stdout, alone.stderr)


def test_an_exception_is_a_traceback(tmp_path: Path) -> None:
    """On standard error, and exit code 1."""
    done = server().run(_write(tmp_path, "print(1)\nraise ValueError('of all things')"), cwd=tmp_path, timeout_s=60)
    assert (done.returncode, done.stdout) == (1, b"1\n")
    assert done.stderr.startswith(b"Traceback (most recent call last):\n")
    assert done.stderr.endswith(b"\nValueError: of all things\n")


def test_what_takes_too_long_is_killed(tmp_path: Path) -> None:
    """And the next run gets its own answer."""
    program = "import os, signal, sys\nprint(os.getpid(), file=open('pid', 'w'), flush=True)\nsignal.pause()"
    with pytest.raises(subprocess.TimeoutExpired):
        server().run(_write(tmp_path, program), cwd=tmp_path, timeout_s=0.5)
    pid = (tmp_path / "pid").read_text()
    assert not Path("/proc", pid.strip()).exists()
    assert server().run(_write(tmp_path, "print('next')"), cwd=tmp_path, timeout_s=60).stdout == b"next\n"


def test_runs_share_nothing(tmp_path: Path) -> None:
    """What one does to its modules, the next does not see."""
    command = _write(tmp_path, "import mtpp.errors as m; print(vars(m).get('mark')); m.mark = 1")
    assert [server().run(command, cwd=tmp_path, timeout_s=60).stdout for _ in range(2)] == [b"None\n"] * 2


def test_a_run_is_as_old_as_its_fork(tmp_path: Path) -> None:
    """Time limits count from there, not from the start of the server, which was earlier."""
    assert server().run(_write(tmp_path, "pass"), cwd=tmp_path, timeout_s=60).returncode == 0
    begin = time.monotonic()
    command = _write(tmp_path, "from mtpp.host.deadline import process_age_s; print(process_age_s())")
    age = float(server().run(command, cwd=tmp_path, timeout_s=60).stdout)
    assert 0 <= age <= time.monotonic() - begin + 1 / os.sysconf("SC_CLK_TCK")


def test_mtpp_says_the_same_in_a_process_of_its_own() -> None:
    """A result, help, a refusal."""
    for arguments in (["inspect", "datasets/samples/resnet50.onnx"], ["--help"], ["partition", "x", "-k", "0"]):
        done, alone = run(*arguments), run_afresh(*arguments)
        assert (done.args, done.returncode, done.stdout) == (alone.args, alone.returncode, alone.stdout)
        assert done.stderr == alone.stderr


def test_another_environment_takes_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may mean something to the interpreter or to a library, when they start."""
    assert run("--version").stderr == ""
    monkeypatch.setenv("PYTHONVERBOSE", "1")
    assert "import 'click'" in run("--version").stderr


def test_what_the_package_starts_is_forked_too() -> None:
    """It is a child of the process that starts it, and ends as one that was started anew."""
    child = TalkingProcess(serving("mtpp.solvers.bounds.mip.highs"), lambda message: None, leads=True)
    process = Path("/proc", str(child.pid))
    assert b"fork_server.py" in (process / "cmdline").read_bytes()
    assert int((process / "stat").read_text().rpartition(")")[2].split()[1]) == os.getpid()
    child.close()
    assert child.exit_code() == -signal.SIGKILL
    assert not process.exists()
