"""Types of parameters that name files: which of them a command reads, and which it writes.

A command says so with the type of each option and argument, and no more: while the command line is parsed, and so
before any work, every file to be written is compared with every file to be read (:mod:`mtpp.cli.options.overwriting`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from mtpp.cli.options.overwriting import MODELS, STAGES

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from mtpp.cli.options.overwriting import FilesOfCommand

_META = "mtpp.files"


def nothing_else(path: str) -> Iterable[str]:
    """Return no path: nothing is written but the file itself."""
    return ()


class FileType(click.ParamType):  # type: ignore[type-arg]  # generic in new versions of click only
    """A path as it was given; what a command reads or writes there must not meet another of its files.

    Attributes
    ----------
    noun
        What messages call the file, with an article.
    """

    name = "text"
    noun = ""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return *value*, compared with the files of the parameters before it.

        Raises
        ------
        click.BadParameter
            If it is empty, as a variable of a shell that is not set.
        InputError
            If the command would write over one of its files.
        """
        if not str(value):
            self.fail("the name of a file is empty", param, ctx)
        if ctx is not None and param is not None and not ctx.resilient_parsing:
            self.take(_files_of(ctx), str(value), param)
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[Any]]:
        """Have the shell complete the names of files."""
        from mtpp.cli.options.completing import paths

        return paths(incomplete)

    def take(self, files: FilesOfCommand, path: str, param: click.Parameter) -> None:
        """Add *path* to the files of the command."""
        raise NotImplementedError


class InputFile(FileType):
    """A file that a command reads; ``-`` is standard input.

    Parameters
    ----------
    noun
        What messages call it, with an article.
    folder
        :data:`MODELS` or :data:`STAGES` where it may hold more files than its own, or be a folder of them.
    names
        Values that are no files, such as the names of presets.
    """

    def __init__(
        self,
        noun: str,
        *,
        folder: str | None = None,
        names: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self.noun = noun
        self.folder = folder
        self.names = names

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[Any]]:
        """Complete names of something else than a file where there are such, and have the shell complete files."""
        from mtpp.cli.options.completing import items

        return [*super().shell_complete(ctx, param, incomplete), *items(self.names(), incomplete)]

    def unless(self, text: str) -> bool:
        """Return whether *text* is a name of something else than a file."""
        return text in self.names()

    def take(self, files: FilesOfCommand, path: str, param: click.Parameter) -> None:
        """Add *path* to what the command reads."""
        files.read(path, self)


class OutputFile(FileType):
    """A file that a command writes; ``-`` is standard output.

    Parameters
    ----------
    beside
        Paths of further files that are written for a value.
    folder
        Whether it is a folder, whose files are all replaced.
    """

    def __init__(self, *, beside: Callable[[str], Iterable[str]] = nothing_else, folder: bool = False) -> None:
        self.beside = beside
        self.folder = folder

    def take(self, files: FilesOfCommand, path: str, param: click.Parameter) -> None:
        """Add *path* to what the command writes."""
        files.write(path, self, max(param.opts, key=len) if param.opts[0].startswith("-") else param.opts[0].upper())


def csv_beside(path: str) -> Iterable[str]:
    """Return the path of the CSV beside a picture."""
    from mtpp.views.certificate_plot import csv_path

    try:
        return (csv_path(path),)
    except ValueError:  # no name to change the ending of
        return ()


MODEL = InputFile("a model", folder=MODELS)
"""A model, or a folder of models where a command takes several."""

FOLDER_OF_STAGES = InputFile("the folder of stages", folder=STAGES)
DOCUMENT = InputFile("the document")
RESULT = InputFile("the result")
ASSIGNMENT = InputFile("an assignment")
PIPELINE = InputFile("the pipeline")

OUTPUT = OutputFile()
OUTPUT_FOLDER = OutputFile(folder=True)
"""A folder, or a file where that is none yet."""


def _files_of(ctx: click.Context) -> FilesOfCommand:
    from mtpp.cli.options.overwriting import FilesOfCommand

    files: FilesOfCommand = ctx.meta.setdefault(_META, FilesOfCommand())
    return files
