"""Delivery of a command's result: standard output in the format asked for, and a file if there is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mtpp.cli.terminal.output import write_stdout
from mtpp.host.interrupts import held

if TYPE_CHECKING:
    from mtpp.api.output import ShownResult


def check_output(output: str | None) -> None:
    """Check that a result can be written where it should be, before the work; nothing is in the way of none.

    Raises
    ------
    InputError
        If there is no place for a file.
    """
    from mtpp.api.output import check_output as check

    if output not in (None, "-"):
        check(output)


def deliver(output: str | None, result: ShownResult, output_format: str, **choices: Any) -> None:
    """Write a result as JSON to *output* if given, and show it in a format; *choices* are more of its method ``text``.

    See :func:`deliver_texts`.
    """
    deliver_texts(output, result.to_json, lambda: result.text(output_format, **choices))


def deliver_texts(output: str | None, json_text: Callable[[], str], shown: Callable[[], str]) -> None:
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


def deliver_folder(folder: str, written: Callable[[str], None] | None, result: ShownResult, output_format: str) -> None:
    """Have the folder written, None where there is nothing to write, and show the result, as :func:`deliver` does."""
    with held():
        try:
            if written is not None:
                written(folder)
        finally:
            write_stdout(result.text(output_format))
