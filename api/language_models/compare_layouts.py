"""Rules of engines compared: the layouts that they make by themselves, on many models and machines."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtpp.api.options.layouts import Ruling
from mtpp.api.output import SavedResult
from mtpp.errors import InputError
from mtpp.names import LAYOUT_RULES

if TYPE_CHECKING:
    from mtpp.api.inputs.model import Model
    from mtpp.api.language_models.served_model import ServedModel
    from mtpp.api.observer import Observer
    from mtpp.api.options.reading import Reading
    from mtpp.inference.plan import Plan
    from mtpp.views.terminal import Medium


class LayoutComparison(SavedResult):
    """Rules of engines against the best plans: iterates over its rows."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document

    def __len__(self) -> int:
        return len(self._document["rows"])

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._document["rows"])

    def _said(self) -> dict[str, Any]:
        return self._document

    def _shown(self, medium: str | Medium) -> str:
        from mtpp.views.layout_comparison import layout_comparison_text

        return layout_comparison_text(self._document, medium)


def language_models_at(paths: Iterable[str]) -> list[str]:
    """Return the paths of language models: of each path itself, or of all in a folder.

    Raises
    ------
    InputError
        If a path is none, and no folder that has any.
    """
    found: dict[str, None] = {}
    for path in paths:
        inside = _models_in(Path(path), deep=True)
        if not inside:
            raise InputError("has no language model", source=path, remedy="layouts are of language models")
        found |= dict.fromkeys(inside)
    return list(found)


def _models_in(path: Path, *, deep: bool = False) -> list[str]:
    """Return the paths of the language models in a folder, or of the one that it is."""
    from mtpp.api.inputs.language_models import names_language_model

    several = sorted(path.glob("*.gguf")) if path.is_dir() and not (path / "config.json").exists() else []
    if len(several) > 1 and not any("-of-" in one.name for one in several):
        return [str(one) for one in several]
    if names_language_model(str(path)):
        return [str(path)]
    return [name for one in sorted(path.iterdir()) for name in _models_in(one)] if deep and path.is_dir() else []


def compare_rules(
    models: Sequence[str | Model], asked: Ruling, reading: Reading, observer: Observer
) -> LayoutComparison:
    """Audit the layouts that engines make by themselves of each model on each machine.

    Raises
    ------
    InputError
        If a model or a machine cannot be read, or the number of stages is not known.
    """
    from mtpp.api.inputs.model import Model
    from mtpp.api.inputs.serving import refuse_both_phases

    for one in models:
        refuse_both_phases(one.how if isinstance(one, Model) else reading)
    engines = _engines(asked.layouts)
    machines: list[Any] = list(asked.machines or ()) or [reading.machine]
    if asked.k is None and machines == [None]:
        raise InputError("is not known", parameter="k", remedy="give ‹k› or ‹machines›")
    counts: Sequence[int | None] = asked.k or (None,)
    names = _names(machines)
    rows: list[dict[str, Any]] = []
    total = len(models) * len(machines) * len(counts)
    with observer.steps() as progress:
        for source in models:
            for machine, name in zip(machines, names, strict=True):
                for k in counts:
                    progress.show(_label(source, name, k), len(rows) // len(engines), total)
                    model = _read(source, machine, k, reading, observer)
                    rows += _rows(model, name, k, engines, asked, observer)
    return LayoutComparison(_document(rows, engines))


def _names(machines: Sequence[Any]) -> list[str | None]:
    """Return names of machine files without folder and suffix, whole paths where such names are not different."""
    names = [None if machine is None else Path(os.fspath(machine)).stem for machine in machines if _is_path(machine)]
    if len(names) < len(machines) or len(set(names)) < len(names):
        return [None if machine is None else str(machine) for machine in machines]
    return names


def _is_path(machine: Any) -> bool:
    return machine is None or isinstance(machine, str | os.PathLike)


def _label(source: str | Model, machine: str | None, k: int | None) -> str:
    name = source if isinstance(source, str) else source.graph.name
    return f"{name} · {machine if k is None else f'k = {k}'}"


def _engines(names: Sequence[str] | None) -> list[str]:
    if names is None or list(names) == ["all"]:
        return list(LAYOUT_RULES)
    for name in names:
        if name not in LAYOUT_RULES:
            remedy = f"engines with a rule are {', '.join(LAYOUT_RULES)}"
            raise InputError(f"{name!r} is no engine with a rule", parameter="layouts", remedy=remedy)
    return list(dict.fromkeys(names))


def _read(source: str | Model, machine: Any, k: int | None, reading: Reading, observer: Observer) -> Model:
    from mtpp.api.inputs.model import for_stages, read_model
    from mtpp.api.options.reading import Reading

    if not isinstance(source, str):
        return for_stages(source, k)
    how = reading if machine is None else Reading.of(**{**_given(reading), "machine": machine})
    return read_model(source, how, observer.warn, stages=k)


def _given(reading: Reading) -> dict[str, Any]:
    """Return the options of a reading that are not as usual."""
    from mtpp.api.options.option import options_of

    usual = options_of(type(reading))
    return {name: value for name, value in reading.values().items() if value != usual[name].default}


def _rows(
    model: Model, name: str | None, k: int | None, engines: Sequence[str], asked: Ruling, observer: Observer
) -> list[dict[str, Any]]:
    """Return a row for each engine."""
    from mtpp.api.language_models.best_plan import best_plan
    from mtpp.api.language_models.served_model import ServedModel

    served = ServedModel.of(model)
    best = best_plan(model, k, asked.time_limit_s, observer)
    machine = model.machine
    common = {
        "model": model.graph.name,
        "source": model.source.display,
        "machine": name if machine is None or name is not None else machine.name,
        "devices": k or (None if machine is None else machine.count),
    }
    return [common | {"engine": engine, **_row(served, engine, k, best)} for engine in engines]


def _row(served: ServedModel, engine: str, k: int | None, best: Plan | None) -> dict[str, Any]:
    from mtpp.api.language_models.layout_evaluation import ratio_of

    figures = {
        "best": None if best is None else best.bottleneck,
        "lower_bound": None if best is None else best.lower.value,
        "optimal": None if best is None else best.certificate.optimal,
    }
    try:
        given = served.layout(engine, "default", k)
        audit = served.audit(given, k).audit
    except InputError as error:
        absent = dict.fromkeys(("layers", "bottleneck", "ratio", "fits", "comparable"))
        return figures | absent | {"findings": [], "refused": str(error)}
    return figures | {
        "layers": [len(stage.holder.layers) for stage in audit.stages if stage.device is not None],
        "bottleneck": audit.bottleneck,
        "ratio": ratio_of(audit, best),
        "fits": audit.fits,
        "comparable": audit.comparable,
        "findings": list(audit.findings),
        "refused": None,
    }


def _document(rows: list[dict[str, Any]], engines: Sequence[str]) -> dict[str, Any]:
    from mtpp.formats.results.layouts.comparison import FORMAT, VERSION, summary_of

    return {
        "format": FORMAT,
        "version": VERSION,
        "engines": list(engines),
        "rows": rows,
        "summary": summary_of(rows),
    }


def compare_layouts(
    models: Any,
    machines: Any = None,
    *,
    k: int | Iterable[int] | None = None,
    layouts: str | Iterable[str] | None = None,
    time_limit_s: float | None = None,
    reading: Reading | None = None,
    observer: Observer | None = None,
) -> LayoutComparison:
    """Measure the rules by which engines cut language models against the best plans.

    Keywords that are not listed are fields of :class:`mtpp.api.options.layouts.Ruling`.

    Parameters
    ----------
    models
        Paths of language models and of folders of them, or models of :func:`mtpp.read`, in a list or alone.
    reading
        How models are read: context, sequences and so on.
    observer
        Is told of progress and warned, see :class:`mtpp.Observer`.

    Returns
    -------
    A row for each model, machine and engine, with the ratio of its bottleneck to the proven lower bound of all plans;
    None where the layout does not fit, or the engine refuses the model.

    Raises
    ------
    InputError
        If a model or a machine cannot be read, or the number of stages is not known.

    Examples
    --------
    >>> import mtpp
    >>> mtpp.compare_layouts("models", ["one.toml", "other.toml"])  # doctest: +SKIP
    """
    from mtpp.api.inputs.model import Model
    from mtpp.api.inputs.reading import reading_of
    from mtpp.api.observer import listener
    from mtpp.api.parameters import path_text

    paths = [os.fspath(machines)] if isinstance(machines, str | os.PathLike) else machines
    asked = Ruling.of(machines=paths, k=k, layouts=layouts, time_limit_s=time_limit_s)
    given: list[str | Model] = []
    for one in models if isinstance(models, list | tuple | set | Iterator) else [models]:
        given += [one] if isinstance(one, Model) else language_models_at([path_text(one, "models")])
    if not given:
        raise InputError("there is none", parameter="models", remedy="give a folder or a model")
    return compare_rules(given, asked, reading_of(reading), listener(observer))
