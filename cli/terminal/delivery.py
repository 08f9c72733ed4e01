"""Delivery of a command's result: standard output in the format asked for, and a file if there is one."""

from __future__ import annotations

from collections.abc import Callable

from mtpp.cli.terminal.output import write_stdout
from mtpp.host.interrupts import held


def deliver(output: str | None, json_text: Callable[[], str], shown: Callable[[], str]) -> None:
    """Write JSON to *output* if given (``-``: standard output, and nothing else then), and show the rest.

    What is to be shown is shown even if the file cannot be written; a signal that comes meanwhile waits for both.
    """
    with held():
        if output == "-":
            write_stdout(json_text())
            return
        try:
            if output is not None:
                from mtpp.api.output import write_text_atomically

                write_text_atomically(output, json_text())
        finally:
            write_stdout(shown())


def deliver_folder(folder: str, written: Callable[[str], None] | None, shown: Callable[[], str]) -> None:
    """Have the folder written, None where there is nothing to write, and show the rest, as :func:`deliver` does."""
    with held():
        try:
            if written is not None:
                written(folder)
        finally:
            write_stdout(shown())
