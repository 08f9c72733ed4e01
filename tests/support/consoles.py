"""Console blocks of the pages: commands with what they print, run in a folder of their own.

``python tests/support/consoles.py PAGE…`` writes what the commands of a page print now into the page, where that is
not the same.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from processes import ROOT, environment, environment_with_libraries, run

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))

FOLDERS = ("benchmarks", "datasets", "docs", "examples")
"""Folders of the checkout that commands find where they run."""

_BLOCK = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)
_SECONDS = re.compile(r" +[\d.,]+(?: in all cells together|  (?:yes|no))?$", re.MULTILINE)
_THREADS = re.compile(r"\d+ threads?")
_MEASURING = re.compile(r"mtpp (?:(?:profile|run)\b|(?:partition|plan|split|evaluate)\b.*(?:--costs\b|stages\b))")
_BOUND = re.compile(r"\bmtpp bound (?!.*--time-limit)")
_UNHURRIED = "mtpp bound --time-limit 3600 "
"""A bound is searched for a minute, in which a busy machine may prove less than the page shows."""
_LONGEST_S = 900.0


class Console(NamedTuple):
    """A command in one line and what it prints, as a page has them; *lines* are those of the command on the page."""

    command: str
    shown: str
    lines: str


def consoles(page: Path) -> Iterator[Console]:
    """Yield the commands of a page in their order."""
    for block in _BLOCK.findall(page.read_text(encoding="utf-8")):
        yield from _commands(block)


def _commands(block: str) -> Iterator[Console]:
    """Yield the commands of a block: lines that begin with a prompt, with those that a backslash leads to."""
    assert block.startswith("$ "), f"a console begins with a command: {block}"
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        lines, shown = re.fullmatch(r"((?:[^\n]*\\\n)*[^\n]*\n)(.*)", part, re.DOTALL).groups()  # type: ignore[union-attr]
        yield Console(re.sub(r"\\\n\s*", "", lines).strip(), shown, lines)


def prepare(folder: Path) -> None:
    """Put the checkout's folders, and a command ``mtpp``, into the folder in which commands run."""
    for name in FOLDERS:
        (folder / name).symlink_to(ROOT / name)
    programs = folder / ".bin"
    programs.mkdir()
    (programs / "mtpp").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m mtpp "$@"\n')
    (programs / "mtpp").chmod(0o755)


def printed(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command as a shell does; chains of commands, and their output into a file, without one: that is faster."""
    command = _BOUND.sub(_UNHURRIED, command)
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|&;<>()")
    lexer.whitespace_split = True
    words = list(lexer)
    target = words.pop() if words[-2:-1] == [">"] else None
    words = words[:-1] if target else words
    if any(set(word) <= set("&;<>()") for word in words) or "$" in command or "*" in command:
        return _by_shell(command, folder)
    parts: list[list[str]] = [[]]
    for word in words:
        if word == "|":
            parts.append([])
        else:
            parts[-1].append(word)
    given = ""
    for program, *arguments in parts:
        if program == "mtpp":
            done = run(*arguments, stdin=given.encode(), cwd=folder)
        else:
            done = subprocess.run([program, *arguments], input=given, cwd=folder, capture_output=True, text=True)
        given = done.stdout
    if target:
        (folder / target).write_text(given, encoding="utf-8")
        done.stdout = ""
    return done


def _by_shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    env = environment_with_libraries() if "torch" in command else environment()
    env["PATH"] = f"{folder / '.bin'}:{env['PATH']}"
    return subprocess.run(
        ["sh", "-c", command], cwd=folder, env=env, capture_output=True, text=True, timeout=_LONGEST_S
    )


def agrees(command: str, found: str, shown: str) -> bool:
    """Tell whether a command prints what a page shows, but for what depends on the machine.

    That are seconds and cores of searches. Of what is measured the labels of lines are compared, and more of them may
    be printed where other programs disturbed the measurement.
    """
    if _MEASURING.search(command):
        return bool(shown) == bool(found) and _labels(shown) <= _labels(found)
    if re.match(r"mtpp (?:bound|certify|compare)\b", command):
        return _without_times(found) == _without_times(shown)
    return _lines(found) == _lines(shown)


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


def _labels(text: str) -> set[str]:
    """Return the first cell of each line that has no number in it."""
    cells = (re.split(r" {2,}", line, maxsplit=1)[0].strip() for line in text.splitlines())
    return {cell for cell in cells if not re.search(r"\d", cell)}


def _without_times(text: str) -> list[str]:
    return _lines(_THREADS.sub("threads", _SECONDS.sub("", text)))


def refreshed(page: Path) -> str:
    """Return the text of a page with what its commands print now."""
    with TemporaryDirectory() as name:
        prepare(Path(name))

        def block(match: re.Match[str]) -> str:
            parts = []
            for command, shown, lines in _commands(match[1]):
                done = printed(command, Path(name))
                if done.returncode:
                    raise SystemExit(f"{page}: {command}: {done.stderr}")
                now = shown if agrees(command, done.stdout, shown) else done.stdout
                parts.append("$ " + lines + re.sub(r" +$", "", now, flags=re.MULTILINE))
            return f"```console\n{''.join(parts)}```"

        return _BLOCK.sub(block, page.read_text(encoding="utf-8"))


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        Path(argument).write_text(refreshed(Path(argument).resolve()), encoding="utf-8")
