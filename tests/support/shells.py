"""Shells with ``mtpp`` on their path, in which a TAB can be pressed."""

from __future__ import annotations

import os
import pty
import select
import shlex
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from processes import MTPP, environment

INTERACTIVE = {
    "bash": ("bash", "--norc", "--noprofile", "-i"),
    "zsh": ("zsh", "-f", "-i"),
}
_SET_UP = {
    "bash": ["bind 'set bell-style none'"],
    "zsh": ["autoload -U compinit", "compinit -u -D", "unsetopt beep"],
}
_LOAD = {"bash": 'eval "$(mtpp completion bash)"', "zsh": 'eval "$(mtpp completion zsh)"'}
_PATIENCE_S = 60.0


def shell_environment(folder: Path) -> dict[str, str]:
    """Return the environment of a shell that finds ``mtpp``, a script written to *folder*, and no start-up file."""
    program = folder / "bin" / "mtpp"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec {shlex.join(MTPP)} "$@"\n')
    program.chmod(0o755)
    ours = {name: value for name, value in environment().items() if name not in ("PS1", "PROMPT_COMMAND", "ZDOTDIR")}
    path = f"{program.parent}{os.pathsep}{ours['PATH']}"
    return {**ours, "PATH": path, "HOME": str(folder), "TERM": "dumb", "INPUTRC": "/dev/null"}


def after_tabs(shell: str, lines: Sequence[str], folder: Path) -> list[str]:
    """Return the command lines that *lines* become by a TAB in an interactive shell that runs in *folder*."""
    ready, answer = folder / "ready", folder / "answer"
    screen, terminal = pty.openpty()
    process = subprocess.Popen(
        INTERACTIVE[shell], stdin=terminal, stdout=terminal, stderr=terminal, cwd=folder,
        env=shell_environment(folder), start_new_session=True,
    )  # fmt: skip
    os.close(terminal)
    found = []
    try:
        os.write(screen, "\n".join([*_SET_UP[shell], _LOAD[shell], ": > ready", ""]).encode())
        _watch(screen, ready.exists)
        for line in lines:
            # To the beginning of the line, which becomes the argument of a command that writes it down.
            os.write(screen, f"{line}\t\x01printf %s '\x05' > part; mv part answer\n".encode())
            _watch(screen, answer.exists)
            found.append(answer.read_text())
            answer.unlink()
    finally:
        process.kill()
        process.wait()
        os.close(screen)
        ready.unlink(missing_ok=True)
    return found


def fish_completions(typed: str, folder: Path) -> list[str]:
    """Return what fish offers for *typed*, without the descriptions."""
    script = f"mtpp completion fish | source; complete -C {shlex.quote(typed)}"
    return [line.partition("\t")[0] for line in _printed(["fish", "--no-config", "-c", script], folder)]


def bash_replies(words: Sequence[str], folder: Path) -> list[str]:
    """Return all that bash would offer for the last of *words*, which are as bash broke them."""
    script = (
        'eval "$(mtpp completion bash)"\ncompopt() { COMPREPLY+=("$2"); }\n'
        f"COMP_WORDS=({shlex.join(words)})\nCOMP_CWORD={len(words) - 1}\n_mtpp_completion mtpp\n"
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    return _printed(["bash", "--norc", "--noprofile", "-c", script], folder)


def _printed(command: Sequence[str], folder: Path) -> list[str]:
    done = subprocess.run(
        command, cwd=folder, env=shell_environment(folder), capture_output=True, text=True, timeout=_PATIENCE_S
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout.splitlines()


def _watch(screen: int, happened: Callable[[], bool]) -> None:
    """Read what the shell shows, as a terminal does, until something has happened."""
    shown = b""
    end = time.monotonic() + _PATIENCE_S
    while not happened():
        if time.monotonic() > end:
            raise TimeoutError(f"the shell shows {shown.decode(errors='replace')!r}")
        if select.select([screen], [], [], 0.05)[0]:
            shown += os.read(screen, 4096)
