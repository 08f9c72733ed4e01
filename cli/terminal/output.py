"""Standard output, which carries the result and nothing else."""

from __future__ import annotations

import errno
import io
import os
import sys

from mtpp.cli.terminal.waiting import end_waiting
from mtpp.errors import InputError
from mtpp.terminal_safe import terminal_safe_lines


class OutputClosed(Exception):
    """Nobody reads standard output any more; click would handle a BrokenPipeError itself."""


def write_stdout(text: str) -> None:
    """Print *text* on standard output, whatever its encoding can show; a terminal gets no control characters."""
    end_waiting()
    if sys.stdout is None:
        raise InputError("is closed", source="standard output", remedy="send it somewhere, or use -o FILE")
    if sys.stdout.isatty():
        text = terminal_safe_lines(text)
    if not text.endswith("\n"):
        text += "\n"
    try:
        behind = getattr(sys.stdout, "buffer", None)
        if isinstance(behind, io.RawIOBase):
            _write_whole(behind, text)
        else:
            try:
                sys.stdout.write(text)
            except UnicodeEncodeError:
                sys.stdout.buffer.write(text.encode(sys.stdout.encoding or "ascii", "replace"))
            sys.stdout.flush()
    except BrokenPipeError:
        raise OutputClosed from None
    except OSError as error:
        # What is still in the buffer would fail again when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise InputError(f"cannot be written: {error.strerror or error}", source="standard output") from None


def _write_whole(raw: io.RawIOBase, text: str) -> None:
    """Write *text* to a standard output without a buffer, which ``python -u`` and PYTHONUNBUFFERED make.

    There Python drops what a write leaves over that a signal, or the end of the room on a disk, has cut short.
    """
    text = text.replace("\n", os.linesep)
    encoding = sys.stdout.encoding or "ascii"
    try:
        data = text.encode(encoding, sys.stdout.errors or "strict")
    except UnicodeEncodeError:
        data = text.encode(encoding, "replace")
    left = memoryview(data)
    while left:
        count = raw.write(left)
        if count is None:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        left = left[count:]
