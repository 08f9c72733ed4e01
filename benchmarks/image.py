"""Size of the image: ``python -m benchmarks.image [EXTRAS]``, the Dockerfile's own commands run in a scratch folder.

No container engine is needed: the commands of its first stage build the wheel and the environment, its last one
compiles the inner loops, and what they leave is compressed as a layer of an image is. The base is not measured.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BASE_MB = 45
"""Of python:…-slim, compressed, for one architecture; from memory, as no registry of images is asked."""

LEAST_SHOWN_MB = 2
FOLDERS = ("/source", "/wheels", "/opt/mtpp", "/var/cache/mtpp")
"""Folders that the Dockerfile names, which become folders of the scratch folder."""


def main() -> None:
    """Build what the image adds to its base, and print the sizes of its parts."""
    text = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    commands = re.findall(r"^RUN (.*)$", text, re.MULTILINE)
    extras = sys.argv[1] if len(sys.argv) > 1 else re.search(r"^ARG EXTRAS=(\S+)$", text, re.MULTILINE)[1]  # type: ignore[index]
    with tempfile.TemporaryDirectory() as place:
        scratch = Path(place)
        _copy_sources(scratch / "source")
        env = {**os.environ, "EXTRAS": extras, "PATH": f"{scratch}/opt/mtpp/bin:{scratch}/bin:{os.environ['PATH']}"}
        env |= {name: value.replace("/var", f"{scratch}/var") for name, value in re.findall(r"(NUMBA_\w+)=(\S*)", text)}
        _programs(scratch / "bin")
        (scratch / "var" / "cache" / "mtpp").mkdir(parents=True)
        for command in commands:
            if "useradd" not in command:  # the user is of the image, not of this machine
                subprocess.run(["sh", "-ec", _moved(command, scratch)], check=True, env=env, stdout=sys.stderr)
        _print_sizes(scratch)


def _copy_sources(target: Path) -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in tracked.splitlines():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target / name)


def _programs(folder: Path) -> None:
    """Have ``python`` and ``pip`` be those that this runs with."""
    folder.mkdir()
    for name, arguments in (("python", ""), ("pip", "-m pip ")):
        (folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments}"$@"\n')
        (folder / name).chmod(0o755)


def _moved(command: str, scratch: Path) -> str:
    for folder in FOLDERS:
        command = re.sub(rf"(?<![\w/]){folder}\b", f"{scratch}{folder}", command)
    return command


def _print_sizes(scratch: Path) -> None:
    (wheel,) = scratch.glob("wheels/mtpp-*.whl")
    packages = [path for path in scratch.glob("opt/mtpp/lib/python*/site-packages/*") if path.is_dir()]
    sizes = {path.name: _compressed_mb([path]) for path in packages}
    whole, code = _compressed_mb([scratch / "opt"]), _compressed_mb([scratch / "var"])
    print(f"Python {sys.version.split()[0]}\n\n| part | MB, compressed |\n|---|---:|")
    for name, size in sorted(sizes.items(), key=lambda item: -item[1]):
        if size >= LEAST_SHOWN_MB:
            print(f"| {name} | {size:.1f} |")
    rest = whole - sum(size for size in sizes.values() if size >= LEAST_SHOWN_MB)
    print(f"| other packages | {rest:.1f} |\n| machine code that the wheel has not | {code:.1f} |")
    print(f"| the base, about | {BASE_MB} |\n| **image** | **{whole + code + BASE_MB:.0f}** |")
    print(f"\nThe wheel: {wheel.stat().st_size / 1e6:.1f} MB.")


def _compressed_mb(paths: Iterable[Path]) -> float:
    counted = _Counted()
    with tarfile.open(fileobj=counted, mode="w|") as archive:
        for path in paths:
            archive.add(path, arcname=path.name)
    return counted.close_mb()


class _Counted(io.RawIOBase):
    """A file that counts what its content takes when compressed by gzip, and keeps none of it."""

    def __init__(self) -> None:
        self._compressor = zlib.compressobj(9, wbits=31)
        self._bytes = 0

    def write(self, data: bytes) -> int:  # type: ignore[override]
        """Compress some more."""
        self._bytes += len(self._compressor.compress(data))
        return len(data)

    def close_mb(self) -> float:
        """Return the size of all in megabytes."""
        return (self._bytes + len(self._compressor.flush())) / 1e6


if __name__ == "__main__":
    main()
