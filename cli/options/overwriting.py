"""The files of one command, compared by what they are on the disk: no output is an input, or another output."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field

from mtpp.api.inputs.file_contents import holds_weights, is_result, may_be_model
from mtpp.api.options.path_kinds import MODELS, InputPath, OutputPath
from mtpp.errors import InputError

_MAIN = "--output"
"""Has the first right to a file that several options name, in whichever order they were given."""


@dataclass(frozen=True)
class _Output:
    option: str
    path: str
    folder: bool


@dataclass
class FilesOfCommand:
    """Files that a command reads and writes, each compared with all that were named before.

    Two files are the same if they have one real path, whether they exist or not, or one inode: links of both kinds are
    looked through. Pipes and devices hold nothing that could be lost. A file in a folder that is read counts if the
    command would read it: results of earlier runs among models do not.
    """

    _inputs: list[tuple[str, InputPath]] = field(default_factory=list)
    _outputs: list[_Output] = field(default_factory=list)

    def read(self, path: str, kind: InputPath) -> None:
        """Add a file that is read."""
        for output in self._outputs:
            _compare(output, path, kind)
        self._inputs.append((path, kind))

    def write(self, path: str, kind: OutputPath, option: str) -> None:
        """Add a file that is written, with those beside it."""
        if path == "-":
            return
        folder = kind.folder and (path.endswith(("/", os.sep)) or not os.path.isfile(path))
        outputs = [_Output(option, place, folder) for place in dict.fromkeys((path, *kind.beside(path)))]
        for output in outputs:
            for other in self._outputs:
                if _same(output.path, other.path) or _one_pipe(output.path, other.path):
                    first, second = sorted((other, output), key=lambda one: one.option != _MAIN)
                    raise _taken(second, f"the file of {first.option}")
            for given, input_kind in self._inputs:
                _compare(output, given, input_kind)
        self._outputs += outputs


def _taken(output: _Output, what: str) -> InputError:
    return InputError(f"{output.path} is {what} too", source=output.option, remedy="name another file")


def _compare(output: _Output, path: str, kind: InputPath) -> None:
    """Raise InputError if writing *output* destroys what is at *path*, or what belongs to it."""
    lost = (_lost_with_folder if output.folder else _lost_with_file)(output.path, path, kind)
    if lost is not None and path not in kind.names():
        raise _taken(output, lost)


def _lost_with_file(target: str, path: str, kind: InputPath) -> str | None:
    """Return what the file *target* is of an input, None if it is nothing of it."""
    if _same(target, path):
        return kind.noun
    if kind.folder is None or path == "-" or not os.path.isfile(target):
        return None
    if os.path.isdir(path):
        for member in _entries(path):
            if _same(target, member) and _is_read(member, kind.folder):
                return f"{'a model' if kind.folder == MODELS else 'a file'} of {path}"
    if any(_holds_weights(target, model) for model in _models(path)):
        return f"a file of weights of {path}"
    return None


def _lost_with_folder(folder: str, path: str, kind: InputPath) -> str | None:
    """Return what of an input is in the folder, all of which is replaced."""
    members = [member for member in _entries(folder) if os.path.isfile(member)]
    if any(_same(member, path) for member in members):
        return f"the folder of {kind.noun}"
    if path == "-":
        return None
    if _inside(_real(path), _real(folder)):
        return f"the folder of {kind.noun}"
    if kind.folder is not None and any(_holds_weights(member, model) for member in members for model in _models(path)):
        return f"the folder of weights of {path}"
    return None


def _holds_weights(target: str, model: str) -> bool:
    """Return whether an existing file holds weights of a model; its name is looked for before the model is parsed.

    A model's weights lie in or below its folder and are reached by no symbolic link, so they go by the name of the file
    itself, unless that has further names.
    """
    if is_result(target):
        return False
    beside = _inside(_real(target), _real(os.path.dirname(model) or "."))
    return (beside or os.stat(target).st_nlink > 1) and holds_weights(target, model)


def _models(path: str) -> Iterator[str]:
    """Yield the file, or the files of the folder, that may be models with weights beside them."""
    for file in _entries(path) if os.path.isdir(path) else (path,):
        if os.path.isfile(file):
            yield file


def _is_read(member: str, folder: str) -> bool:
    """Return whether a command that reads a folder reads this file of it."""
    return not is_result(member) and (folder != MODELS or may_be_model(member))


def _same(first: str, second: str) -> bool:
    """Return whether two paths lead to one file, or would; ``-`` is what standard input was taken from."""
    try:
        found = [os.fstat(0) if path == "-" else os.stat(path) for path in (first, second)]
    except (OSError, ValueError):
        return "-" not in (first, second) and _real(first) == _real(second)
    return os.path.samestat(*found) and stat.S_ISREG(found[0].st_mode)


def _one_pipe(first: str, second: str) -> bool:
    """Return whether two outputs would mix in a pipe; a device such as /dev/null takes all."""
    try:
        found = os.stat(first)
    except (OSError, ValueError):
        return False
    return _real(first) == _real(second) and not stat.S_ISCHR(found.st_mode)


def _real(path: str) -> str:
    try:
        return os.path.realpath(path)
    except ValueError:  # a null character: no file has such a name
        return path


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _entries(folder: str) -> list[str]:
    try:
        return [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
    except (OSError, ValueError):
        return []
