"""Child processes: what they are told and say, how they end, and that none outlives its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
from processes import ROOT, environment, gone, until

from mtpp.host.child_process import ChildProcess, TalkingProcess, serving, start_detached

ECHO = serving("talking_child")
SLEEP = "import time; time.sleep(600)"


@pytest.mark.parametrize("leads", [False, True])
def test_a_child_answers_in_pickles(leads: bool) -> None:
    """What its libraries print is no message, and the end is heard as None."""
    heard: SimpleQueue[Any] = SimpleQueue()
    child = TalkingProcess(ECHO, heard.put, leads=leads)
    for message in ("one", {"two": 2}):
        child.send(message)
        assert heard.get(timeout=60) == ("heard", message)
    assert child.running
    assert not child.wait(0)
    child.send("end")
    assert heard.get(timeout=60) is None
    assert child.wait(60)
    assert child.exit_code() == 7
    child.close()


def test_arguments_are_whole_numbers() -> None:
    """They come to the function as such."""
    child = ChildProcess(serving("os", "_exit"), 5, leads=False)
    assert child.wait(60)
    assert child.exit_code() == 5


def test_a_killed_child_is_gone_and_hears_no_more() -> None:
    """It may be closed more than once."""
    heard: SimpleQueue[Any] = SimpleQueue()
    child = TalkingProcess(SLEEP, heard.put, leads=True)
    child.kill()
    assert child.exit_code() == -signal.SIGKILL
    child.close()
    child.close()
    assert heard.get(timeout=60) is None
    with pytest.raises((OSError, ValueError)):
        child.send("more than a pipe holds" * 10**5)


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_a_leader_takes_its_children_along() -> None:
    """Killing it ends what it has started."""
    heard: SimpleQueue[Any] = SimpleQueue()
    child = TalkingProcess(ECHO, heard.put, leads=True)
    child.send("start")
    _, grandchild = heard.get(timeout=60)
    assert not gone(grandchild)
    child.close()
    until(lambda: gone(grandchild))


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel of others tells no child")
@pytest.mark.parametrize("leads", [False, True])
def test_a_child_dies_with_its_parent(leads: bool) -> None:
    """Even where the parent is killed, and whether or not it listens."""
    code = (
        "import sys, time; sys.path.append('tests/support');"
        "from mtpp.host.child_process import TalkingProcess, serving;"
        f"child = TalkingProcess(serving('talking_child'), lambda word: print(child.pid, flush=True), leads={leads});"
        "child.send('go'); time.sleep(600)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, env=environment(), stdout=subprocess.PIPE)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    assert not gone(pid)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    until(lambda: gone(pid))


def test_a_detached_process_goes_on_alone(tmp_path: Path) -> None:
    """It outlives what started it, in a session of its own, and finds the same modules."""
    mark = tmp_path / "mark"
    (tmp_path / "late_child.py").write_text(
        "import os, time\nfrom pathlib import Path\n\n\ndef note(path, text):\n    time.sleep(0.3)\n"
        "    Path(path + '.part').write_text(f'{text} {os.getpid() == os.getsid(0)}')\n"
        "    os.rename(path + '.part', path)\n"
    )
    code = (
        "import sys\nfrom mtpp.host.child_process import start_detached\n"
        f"sys.path.append({str(tmp_path)!r})\nstart_detached('late_child', 'note', {str(mark)!r}, 'a b')"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=environment(), timeout=60)
    assert not mark.exists()
    until(mark.exists)
    assert mark.read_text() == "a b True"


def test_a_detached_process_that_cannot_be_started_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller hears of it as of any file that is missing."""
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(OSError, match="No such file"):
        start_detached("time", "sleep", "1")
