"""Types of parameters that name files: which of them a command reads, and which it writes.

A command says so with the type of each option and argument, and no more: while the command line is parsed, and so
before any work, every file to be written is compared with every file to be read (:mod:`mtpp.cli.options.overwriting`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from mtpp.api.options.path_kinds import MODELS, STAGES, InputPath, OutputPath
from mtpp.cli.options.completing import items, paths

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_META = "mtpp.files"


class FileType(click.ParamType):  # type: ignore[type-arg]  # generic in new versions of click only
    """A path as it was given; a file that a command reads or writes there must not meet another of its files."""

    name = "text"

    def __init__(self, kind: InputPath | OutputPath) -> None:
        self.kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return *value*, compared with the files of the parameters before it."""
        from mtpp.cli.options.overwriting import FilesOfCommand

        path = str(value)
        if not path:
            self.fail("the name of a file is empty", param, ctx)
        if ctx is not None and param is not None and not ctx.resilient_parsing:
            files = ctx.meta.setdefault(_META, FilesOfCommand())
            if isinstance(self.kind, InputPath):
                files.read(path, self.kind)
            else:
                name = max(param.opts, key=len) if param.opts[0].startswith("-") else param.opts[0].upper()
                files.write(path, self.kind, name)
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[Any]]:
        """Have the shell complete files, and names of something else than a file where there are such."""
        return [*paths(incomplete), *items(self.kind.names(), incomplete)]


def csv_beside(path: str) -> Iterable[str]:
    """Return the path of the CSV beside a picture."""
    from mtpp.views.certificate_plot import csv_path

    try:
        return (csv_path(path),)
    except ValueError:  # no name to change the ending of
        return ()


MODEL = FileType(InputPath("a model", folder=MODELS))
"""A model, or a folder of models where a command takes several."""

FOLDER_OF_STAGES = FileType(InputPath("the folder of stages", folder=STAGES))
DOCUMENT = FileType(InputPath("the document"))
RESULT = FileType(InputPath("the result"))
ASSIGNMENT = FileType(InputPath("an assignment"))
PIPELINE = FileType(InputPath("the pipeline"))

OUTPUT = FileType(OutputPath())
