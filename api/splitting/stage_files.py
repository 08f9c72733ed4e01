"""Files of the stages of a model, written and checked: of an ONNX model, or of an exported PyTorch program."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mtpp.api.inputs.stage_plan import PlannedModel
    from mtpp.api.observer import Observer
    from mtpp.api.options.splitting import Splitting
    from mtpp.array_types import Array
    from mtpp.formats.onnx.stages import Split
    from mtpp.formats.results.split import SplitCheck, WrittenStages
    from mtpp.formats.results.stage_manifest import StageManifest
    from mtpp.formats.results.stage_records import PlannedStage


def onnx_stages(
    model: PlannedModel, asked: Splitting, folder: Path, observer: Observer, show: Callable[[str], None]
) -> WrittenStages:
    """Write one ONNX model per stage into an empty folder; check them if asked to."""
    from mtpp.formats.onnx.reader import Reading
    from mtpp.formats.onnx.stages import split_model
    from mtpp.formats.onnx.stages.writing import write_split
    from mtpp.formats.results.split import WrittenStages
    from mtpp.inference.frozen import frozen

    source, plan, reading = model.source, model.plan, model.reading
    assert isinstance(reading, Reading)
    if asked.imports:
        from mtpp.runtime.pytorch.importing import nothing_to_register

        raise nothing_to_register(source.display)
    if asked.check:
        from mtpp.runtime.session import require_onnxruntime

        require_onnxruntime()
    show("cutting")
    split = split_model(reading, source.data, plan.labels, source=source.display, folder=model.folder)
    manifest, fault = write_split(folder, split, _predicted(model), _about(model), source.display)
    if fault is not None:
        observer.warn(f"{source.display}: no valid model for onnx.checker, neither whole nor split: {fault}")
    shared, calls = _shared(split, folder), (split.calls_kept, split.calls_inlined)
    del split  # and the weights with it
    result = None
    if asked.check:
        result = _checked(model, manifest, folder, asked, observer, show)
    return WrittenStages(
        None,
        manifest,
        tuple(plan.param_bytes),
        tuple((folder / stage.file).stat().st_size for stage in manifest.stages),
        frozen(shared),
        *calls,
        result,
    )


def program_stages(
    model: PlannedModel, asked: Splitting, folder: Path, observer: Observer, show: Callable[[str], None]
) -> WrittenStages:
    """Write one exported program per stage into an empty folder; check them if asked to."""
    from mtpp.formats.results.split import WrittenStages
    from mtpp.formats.torch_export import ProgramReading
    from mtpp.runtime.pytorch.flat_program import flat_program
    from mtpp.runtime.pytorch.importing import import_registering
    from mtpp.runtime.pytorch.loading import load_program
    from mtpp.runtime.pytorch.stage_files import write_program_stages
    from mtpp.runtime.pytorch.stage_modules import split_program

    source, plan, reading = model.source, model.plan, model.reading
    assert isinstance(reading, ProgramReading)
    show("loading")
    import_registering(asked.imports)
    loaded = load_program(source.runnable, source.display, seed=None)
    show("cutting")
    flat = flat_program(loaded.exported, reading.symbols)
    results = list(loaded.exported.graph_signature.user_outputs)
    split = split_program(flat, results, reading.nodes, plan.labels, source.display)
    show("exporting the stages")
    about = {**_about(model), "imports": tuple(asked.imports)}
    manifest = write_program_stages(folder, split, _predicted(model), about, source.display)
    del loaded, flat, split  # and the weights with them
    check = None
    if asked.check:
        from mtpp.runtime.checking.program_check import check_split_program

        check = check_split_program(
            source.runnable,
            manifest,
            folder,
            display=source.display,
            seed=asked.seed,
            inputs=_inputs_of(asked, manifest),
            tell=_told(observer, show),
        )
        _warn_of(check, observer)
        _warn_of_run(manifest, observer)
    sizes = tuple((folder / stage.file).stat().st_size for stage in manifest.stages)
    return WrittenStages(None, manifest, tuple(plan.param_bytes), sizes, {}, 0, 0, check)


def _about(model: PlannedModel) -> dict[str, Any]:
    """Return what a manifest says of the model that was split."""
    from mtpp.formats.results.stage_manifest import WholeModel

    plan, graph = model.plan, model.reading.graph
    return {
        "name": graph.name,
        **model.source.identity,
        "ops": graph.op_count,
        "k": plan.k,
        "time_unit": plan.time_unit,
        "ticks_per_unit": plan.ticks_per_unit,
        "bottleneck": plan.bottleneck,
        "work": sum(plan.works),
        "one_device": None if plan.one_device is None else WholeModel(*plan.one_device),
    }


def _predicted(model: PlannedModel) -> dict[int, PlannedStage]:
    from mtpp.formats.results.stage_records import PlannedStage

    plan = model.plan
    on = plan.devices or [("", "cpu")] * plan.k
    figures = zip(plan.costs, plan.works, on, strict=True)
    return {i: PlannedStage(cost, work, *own) for i, (cost, work, own) in enumerate(figures)}


def _told(observer: Observer, show: Callable[[str], None]) -> Callable[[str], None]:
    def tell(text: str) -> None:
        observer.note(text)
        show(text)

    return tell


def _warn_of(check: SplitCheck, observer: Observer) -> None:
    """Warn of what makes a comparison say less than one may think."""
    if check.absent:
        weights = "weight is" if check.absent == 1 else "weights are"
        observer.warn(f"{check.absent:,} {weights} absent: checked with random ones")
    if check.random:
        observer.warn(f"{check.random[0]} draws random numbers: only types and shapes of the outputs were compared")
    for note in check.notes:
        observer.warn(note)
    for output in check.outputs:
        if output.empty and output.passed and not check.random:
            observer.warn(f"output {output.name!r} has no elements for any of the inputs: nothing of it was compared")
        if not output.finite and not check.random:
            observer.warn(f"output {output.name!r} has no finite value: that it is the same says little")


def _shared(split: Split, folder: Path) -> dict[str, int | None]:
    files = {name: (folder / name).stat().st_size for name in split.data_files.files}
    return {**files, **dict.fromkeys(split.data_files.absent)}


def _checked(
    model: PlannedModel,
    manifest: StageManifest,
    folder: Path,
    asked: Splitting,
    observer: Observer,
    show: Callable[[str], None],
) -> SplitCheck | None:
    """Return what was found; None, with a warning, if no values can be made up for the model."""
    from mtpp.formats.results.split import SplitCheck
    from mtpp.runtime.guarded import guarded
    from mtpp.runtime.random_values import NoValues

    source = model.source
    arguments = {
        "model": source.data,
        "folder": model.folder,
        "manifest": manifest,
        "stages": folder,
        "display": source.display,
        "seed": asked.seed,
        "inputs": _inputs_of(asked, manifest),
    }
    try:
        found = guarded(
            "mtpp.runtime.checking.split_check:check_split", arguments, source.display, _told(observer, show)
        )
    except NoValues as error:
        observer.warn(f"{source.display}: not checked: {error.problem}; {error.remedy}")
        return None
    assert isinstance(found, SplitCheck)
    _warn_of(found, observer)
    _warn_of_run(manifest, observer)
    return found


def _inputs_of(asked: Splitting, manifest: StageManifest) -> dict[str, Array]:
    """Return contents of inputs that were given for the check."""
    from mtpp.api.parameters import given_arrays
    from mtpp.runtime.checking.draws import check_names

    arrays = given_arrays(asked.inputs)
    check_names(manifest, arrays)
    return arrays


def _warn_of_run(manifest: StageManifest, observer: Observer) -> None:
    """Warn of tensors that ``run`` has no memory for: what passes the check is to run."""
    from mtpp.runtime.pipeline.wiring import not_handed_on

    found = not_handed_on(manifest)
    if found:
        name, problem = found[0]
        more = f", nor {len(found) - 1} more" if len(found) > 1 else ""
        observer.warn(f"`mtpp run` cannot hand on tensor {name!r}{more}: {problem}")
