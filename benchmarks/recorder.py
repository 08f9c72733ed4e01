"""Results of a few hundred command lines, kept and compared: for changes after which every result must be the same.

``python -m benchmarks.recorder record FOLDER [--python PYTHON] [--block NAME …]`` runs ``recorded_commands.txt`` and
keeps exit codes, both streams and files; ``compare BEFORE AFTER`` prints the differences of two such folders, and exits
with 1 if there are any; ``verify FOLDER [--python PYTHON]`` lets another version of mtpp verify the documents that one
version wrote, and compares its verdicts with those recorded. PYTHON is the interpreter of the version that runs.

Seeds are fixed, and times that a run took are masked. Commands that measure, and files of theirs, are compared by
exit codes and names alone.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMMANDS = Path(__file__).with_name("recorded_commands.txt")
INPUTS = ("datasets", "docs", "examples")
"""Folders of this checkout that commands read, whatever version runs."""

RECORD = "recorded.json"
LARGEST_KEPT = 4_000_000
"""Bytes of a file that is kept for the eye; digests are kept of all."""

_LONGEST_S = 300.0
_MEASURES = "~ "

_TIMES = (
    (
        re.compile(r'"(elapsed_s|seconds|created|started|wall_s|cpu_s)": (?:\{[^{}]*\}|[-\d.e]+|"[^"]*"|null)'),
        r'"\1": …',
    ),
    (re.compile(r"\b\d[\d,]*(?:\.\d+)? s\b"), "… s"),
    (re.compile(r"\d+ threads?"), "… threads"),
    (re.compile(r"mtpp-[\w-]+-[\w]{8}\b"), "mtpp-…"),
)
_SECONDS = re.compile(r"(?:\b|_)seconds?\b")
_HEADER = re.compile(r"[ |] seconds(?: \|)?(?: +(?:finished|solved))?$")
_SUM = re.compile(r"^(seconds +)[\d.,]+(?= in all cells)", re.MULTILINE)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_LAST_NUMBER = re.compile(r" +[\d.,]+(?=(?: +(?:yes|no))?$| \|$)")
_MADE_UP = re.compile(rb'graph_id\\\\": \d+')
_COMPILING = re.compile(r"^.*compil(?:ing|ed) .*\n?", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Recorded:
    """One command: its line, how it ended, both streams, and the digests (SHA-256) of the files that it wrote."""

    line: str
    exit: int
    stdout: str
    stderr: str
    files: dict[str, str] = field(default_factory=dict)


def blocks(path: Path = COMMANDS) -> dict[str, list[str]]:
    """Return the lines of each block of a file of commands."""
    found: dict[str, list[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            found[line.strip("[]")] = lines = []
        elif line and not line.startswith("#"):
            lines.append(line)
    return found


def masked(text: str) -> str:
    """Return *text* without the times that a run took: in sentences, in documents, in columns of seconds."""
    text = _COMPILING.sub("", text)
    for pattern, instead in _TIMES:
        text = pattern.sub(instead, text)
    lines = _SUM.sub(r"\1…", text).split("\n")
    if "," in lines[0] and _SECONDS.search(lines[0]):
        return "\n".join(_without_seconds(lines))
    timed = False
    for i, line in enumerate(lines):
        timed = bool(line.strip()) and (timed or _HEADER.search(line) is not None)
        lines[i] = _LAST_NUMBER.sub(" …", line) if timed else line
    return "\n".join(lines)


def _without_seconds(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a CSV without the cells of columns of seconds."""
    timed = {i for i, name in enumerate(lines[0].split(",")) if _SECONDS.search(name)}
    for line in lines:
        yield ",".join("…" if i in timed else cell for i, cell in enumerate(line.split(",")))


def record(folder: Path, python: str, chosen: Sequence[str]) -> None:
    """Run the blocks (all if none is chosen), and keep their commands and files in *folder*, a folder for each."""
    for name, lines in blocks().items():
        if not chosen or name in chosen:
            place = folder / _folder_name(name)
            place.mkdir(parents=True)
            results = [_run(line, place, python) for line in lines]
            _remove_inputs(place)
            (place / RECORD).write_text(json.dumps([asdict(result) for result in results], indent=1), encoding="utf-8")
            print(f"{name}: {len(results)} commands", file=sys.stderr)


def _folder_name(block: str) -> str:
    return re.sub(r"\W+", "-", block)


def _run(line: str, place: Path, python: str) -> Recorded:
    """Run a line in a shell in *place*, where ``mtpp`` is that of *python*."""
    _add_inputs(place, python)
    before = _digests(place)
    environment = {**os.environ, "COLUMNS": "120", "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}
    environment["PATH"] = f"{place / '.bin'}{os.pathsep}{environment['PATH']}"
    done = subprocess.run(
        ["sh", "-c", line.removeprefix(_MEASURES)],
        cwd=place,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_LONGEST_S,
    )
    written = {name: digest for name, digest in _digests(place).items() if before.get(name) != digest}
    if line.startswith(_MEASURES):
        return Recorded(line, done.returncode, "", "", dict.fromkeys(written, "measured"))
    return Recorded(line, done.returncode, masked(done.stdout), masked(done.stderr), written)


def _add_inputs(place: Path, python: str) -> None:
    for name in INPUTS:
        if not (place / name).is_symlink():
            (place / name).symlink_to(ROOT / name)
    programs = place / ".bin"
    programs.mkdir(exist_ok=True)
    (programs / "mtpp").write_text(f'#!/bin/sh\nexec {shlex.quote(os.path.abspath(python))} -m mtpp "$@"\n')
    (programs / "mtpp").chmod(0o755)


def _remove_inputs(place: Path) -> None:
    """Leave what commands wrote, and of that no large files."""
    shutil.rmtree(place / ".bin", ignore_errors=True)
    for name in INPUTS:
        (place / name).unlink(missing_ok=True)
    for path in _files(place):
        if path.stat().st_size > LARGEST_KEPT:
            path.unlink()


def _files(place: Path) -> Iterator[Path]:
    """Yield the files that commands wrote; those of links are inputs."""
    for folder, names, files in os.walk(place):
        names[:] = sorted(name for name in names if not (Path(folder) / name).is_symlink() and name != ".bin")
        yield from (Path(folder) / name for name in sorted(files))


def _digests(place: Path) -> dict[str, str]:
    return {path.relative_to(place).as_posix(): _digest(path) for path in _files(place)}


def _digest(path: Path) -> str:
    """Return the digest of a file without its times, and without ids that PyTorch makes up; of a store, a word."""
    if path.suffix in {".db", ".png"}:
        return "times in it"
    if path.suffix == ".pt2" and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            names = sorted(name for name in archive.namelist() if not name.endswith("serialization_id"))
            data = b"".join(name.encode() + _MADE_UP.sub(b"", archive.read(name)) for name in names)
    else:
        data = path.read_bytes()
    with suppress(UnicodeDecodeError):  # a model
        text = masked(data.decode())
        page_of_times = path.suffix == ".html" and _SECONDS.search(text)
        data = (_NUMBER.sub("…", text) if page_of_times else text).encode()
    return hashlib.sha256(data).hexdigest()


def _recorded(folder: Path) -> dict[str, list[Recorded]]:
    """Read what :func:`record` kept of each block."""
    return {
        path.parent.name: [Recorded(**fields) for fields in json.loads(path.read_text(encoding="utf-8"))]
        for path in sorted(folder.glob(f"*/{RECORD}"))
    }


def compare(before: Path, after: Path) -> int:
    """Print the differences of two recordings; return how many commands differ."""
    old, new = _recorded(before), _recorded(after)
    differing = 0
    for block in sorted({*old, *new}):
        lines = {result.line: result for result in new.get(block, [])}
        for result in old.get(block, []):
            other = lines.pop(result.line, None)
            differences = ["not recorded again"] if other is None else list(_differences(result, other))
            differing += _say(block, result.line, differences)
        for line in lines:
            differing += _say(block, line, ["not recorded before"])
    print(f"{differing} commands differ" if differing else "all commands are equal")
    return differing


def _differences(before: Recorded, after: Recorded) -> Iterator[str]:
    if before.exit != after.exit:
        yield f"exit code {before.exit}, then {after.exit}"
    for stream in ("stdout", "stderr"):
        old, new = getattr(before, stream).splitlines(), getattr(after, stream).splitlines()
        yield from (line for line in difflib.unified_diff(old, new, stream, stream, lineterm="", n=0))
    for name in sorted({*before.files, *after.files}):
        if before.files.get(name) != after.files.get(name):
            yield f"{name}: another file"


def _say(block: str, line: str, differences: Iterable[str]) -> bool:
    text = "\n".join(f"    {difference}" for difference in differences)
    if text:
        print(f"{block}: {line}\n{text}")
    return bool(text)


def verify(folder: Path, python: str) -> int:
    """Run the recorded ``mtpp verify`` lines over the documents kept, by *python*; return how many end otherwise."""
    differing = 0
    for block, results in _recorded(folder).items():
        place = folder / block
        for result in results:
            if re.match(r"mtpp verify [^|]*$", result.line) and not result.line.endswith("--help"):
                now = _run(result.line, place, python)
                differing += _say(block, result.line, _differences(result, now))
        _remove_inputs(place)
    print(f"{differing} verdicts differ" if differing else "all verdicts are equal")
    return differing


def main(arguments: Sequence[str] | None = None) -> int:
    """Record, compare or verify, as the command line says; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(dest="action", required=True)
    recording = actions.add_parser("record")
    recording.add_argument("folder", type=Path)
    recording.add_argument("--python", default=sys.executable)
    recording.add_argument("--block", action="append", default=[], choices=list(blocks()))
    comparing = actions.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    verifying = actions.add_parser("verify")
    verifying.add_argument("folder", type=Path)
    verifying.add_argument("--python", default=sys.executable)
    given = parser.parse_args(arguments)
    if given.action == "record":
        record(given.folder.resolve(), given.python, given.block)
        return 0
    if given.action == "compare":
        return int(compare(given.before, given.after) > 0)
    return int(verify(given.folder.resolve(), given.python) > 0)


if __name__ == "__main__":
    sys.exit(main())
