"""Training plans, written for the program that trains: a folder of files, all or nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtpp.api.parameters import choice, flag, path_text
from mtpp.errors import InputError
from mtpp.names import FORMS

if TYPE_CHECKING:
    from mtpp.formats.results.graph_plan import PlannedGraph
    from mtpp.formats.results.split_plan import PlannedSplit
    from mtpp.training.graph_problem import GraphProblem
    from mtpp.training.pfeife.problem import SplitProblem


def check_emitted(form: Any, folder: Any, *, force: Any = False) -> None:
    """Check that a plan can be written to a folder, before the work.

    Raises
    ------
    InputError
        If there is no such form, or the folder cannot be made, or holds something that may not be replaced.
    """
    from mtpp.formats.io.new_folder import check_folder
    from mtpp.formats.training.torch_pipelining import OURS

    choice(form, "form", FORMS)
    check_folder(path_text(folder, "folder"), OURS, force=flag(force, "force"))


def check_runnable(problem: SplitProblem | GraphProblem, form: str) -> None:
    """Check that the program can run what is planned.

    Raises
    ------
    InputError
        If it cannot; the text says what stands in the way.
    """
    from mtpp.formats.training.torch_pipelining import check_graph_runnable
    from mtpp.formats.training.torch_pipelining import check_runnable as check
    from mtpp.training.graph_problem import GraphProblem

    choice(form, "form", FORMS)
    if isinstance(problem, GraphProblem):
        check_graph_runnable(problem)
    else:
        check(problem)


def emit_plan(
    planned: PlannedSplit | PlannedGraph,
    form: str,
    folder: str | os.PathLike[str],
    *,
    force: bool = False,
    imports: Iterable[str] = (),
) -> None:
    """Write a plan for another program, all of it or nothing.

    Parameters
    ----------
    force
        Whether files that an earlier call wrote there may be replaced.
    imports
        Python modules that register operators of the model, recorded for those who run it.
    """
    from mtpp.api.options.kinds import Module, Repeated
    from mtpp.formats.io.new_folder import new_folder, write_file
    from mtpp.formats.results.document_text import document_text
    from mtpp.formats.results.split_plan import PlannedSplit
    from mtpp.formats.training.torch_pipelining import OURS, PLAN, torch_pipelining_files

    check_emitted(form, folder, force=force)
    modules = Repeated(Module()).read(imports, "imports")
    if planned.plan is None:
        raise InputError("there is no plan to write", parameter="plan")
    document = planned.document()
    about = planned.about if isinstance(planned, PlannedSplit) else document["model"]
    text = document_text(document, Path(path_text(folder, "folder")) / PLAN)
    files = torch_pipelining_files(planned.plan, about, text, modules)
    with new_folder(path_text(folder, "folder"), OURS, force=force) as draft:
        for name, text in files.items():
            write_file(draft / name, text.encode())
