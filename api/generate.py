"""Synthetic graphs for test beds, seed by seed, as objects or as files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtpp.api.observer import Observer, listener
from mtpp.api.parameters import path_text, shortened
from mtpp.api.recipes import Drawing, Recipe
from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.inference.graph import CostGraph
    from mtpp.training.model import TrainingModel

_FILE_SUFFIXES = (".json", ".gz")


def generate(recipe: Recipe, *, seed: int = 0, count: int = 1) -> Iterator[CostGraph]:
    """Draw the graphs of the seeds from *seed* on, one by one; each is the same as when drawn alone.

    Parameters
    ----------
    recipe
        A family with its sizes, one of :mod:`mtpp.api.recipes`.
    seed, count
        As in :class:`mtpp.api.recipes.Drawing`.

    Raises
    ------
    InputError
        If a parameter cannot be, or all graphs would be the same; a graph that cannot be raises when it is drawn.

    Examples
    --------
    >>> from mtpp.api.recipes import Chain
    >>> [graph.name for graph in generate(Chain(n=9), seed=4, count=2)]
    ['chain-9-4', 'chain-9-5']
    """
    _check(recipe, seed, count)
    return map(recipe.draw, range(seed, seed + count))


def generate_files(
    recipe: Recipe,
    path: str | os.PathLike[str],
    *,
    seed: int = 0,
    count: int = 1,
    observer: Observer | None = None,
) -> list[Path]:
    """Draw graphs as :func:`generate` does, and write each to a file, whole or not at all, over what may be there.

    Parameters
    ----------
    path
        A file for one graph; or a folder, which is made if it is missing, for files that are named after graphs.
    observer
        Is told of each file.

    Returns
    -------
    Paths of the files, in the order of seeds.
    """
    _check(recipe, seed, count)
    output, told = path_text(path, "path"), listener(observer)
    if count > 1 or output.endswith(("/", os.sep)) or os.path.isdir(output):
        return _write_folder(recipe, range(seed, seed + count), _made_folder(output), told)
    from mtpp.formats.io.sink import check_output

    check_output(output)
    return [_write_file(output, recipe.draw(seed), told.say)]


def graph_text(graph: CostGraph) -> str:
    """Return the text of a graph in the native format."""
    from mtpp.formats.graphs.native import write_native

    return write_native(graph)


def training_model_text(model: TrainingModel) -> str:
    """Return the text of a model to be trained in the native format."""
    from mtpp.formats.training.native import write_training_model

    return write_training_model(model)


def write_training_model_file(model: TrainingModel, path: str | os.PathLike[str]) -> None:
    """Write a model to be trained to a file, whole or not at all."""
    from mtpp.formats.io.sink import write_text_atomically

    write_text_atomically(path_text(path, "path"), training_model_text(model))


def _check(recipe: Any, seed: Any, count: Any) -> None:
    if not hasattr(recipe, "draw"):
        remedy = "give one of mtpp.api.recipes"
        raise InputError(f"{shortened(recipe)} is no recipe", parameter="recipe", remedy=remedy)
    Drawing(seed=seed, count=count)
    if count > 1 and not recipe.varies:
        remedy = "give a range such as ‹layers› 2-12"
        raise InputError("all graphs would be the same", parameter="count", remedy=remedy)


def _write_folder(recipe: Recipe, seeds: range, folder: Path, observer: Observer) -> list[Path]:
    ops, written = 0, []
    for seed in seeds:
        graph = recipe.draw(seed)
        ops += graph.op_count
        path = str(folder / f"{graph.name}.json")
        written.append(_write_file(path, graph, observer.note if len(seeds) > 1 else observer.say))
    if len(seeds) > 1:
        observer.say(f"{folder}: {len(seeds):,} graphs, {ops:,} ops in all")
    return written


def _write_file(path: str, graph: CostGraph, tell: Callable[[str], None]) -> Path:
    from mtpp.formats.io.sink import write_text_atomically

    write_text_atomically(path, graph_text(graph))
    tell(f"{path}: {graph.op_count:,} ops, {graph.tensor_count:,} tensors")
    return Path(path)


def _made_folder(path: str) -> Path:
    folder = Path(path)
    if folder.suffix in _FILE_SUFFIXES and not folder.is_dir() and not path.endswith(("/", os.sep)):
        remedy = "give a folder: ‹folder› FOLDER/"
        raise InputError("several graphs do not go into one file", source=path, remedy=remedy)
    try:
        os.mkdir(path)
    except FileExistsError:
        if not folder.is_dir():
            raise InputError("is not a directory", source=path, remedy="give the name of a folder") from None
    except FileNotFoundError:
        raise InputError(f"there is no directory {str(folder.parent)!r}", source=path, remedy="make it first") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot be made: {reason}", source=path, remedy="choose another place") from None
    return folder
