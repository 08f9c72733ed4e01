"""A file of machine code: written whole or not at all, and read only whole and under the name that it was written for.

The name says which kernel it is, of which source, for which arguments and processor; so the checksum is of both.
"""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

_MAGIC = b"mtpp machine code 2\n"
_DIGEST_BYTES = 32


def read_code(path: Path) -> bytes | None:
    """Return what :func:`write_code` wrote; None if there is no such file, it is not whole, or it was another one."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    head = len(_MAGIC) + _DIGEST_BYTES
    content = data[head:]
    if data[:head] != _MAGIC + _checksum(path, content):
        return None
    return content


def write_code(path: Path, content: bytes) -> bool:
    """Write a file of machine code; return False if that is not possible: there is no room, or no right to."""
    part = path.with_name(f"{path.name}.{uuid4().hex[:16]}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(_MAGIC + _checksum(path, content) + content)
        os.replace(part, path)
    except OSError:
        with suppress(OSError):
            part.unlink()
        return False
    return True


def _checksum(path: Path, content: bytes) -> bytes:
    return sha256(path.name.encode() + b"\0" + content).digest()
