"""Comparison of a split ONNX model with the whole one: both are run on the same random inputs.

Ops run with the same kernels on either side (:class:`mtpp.runtime.session.SessionChoices`: constants are folded,
nothing is fused), so results are expected to be equal bit for bit. Where they are not, they have to be equal within a
tolerance (:mod:`mtpp.runtime.checking.tolerances`). Whole numbers, truth values and strings have to be equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError
from mtpp.formats.results.stage_manifest import Described, StageManifest
from mtpp.host.free_memory import free_bytes
from mtpp.runtime.checking.contents import contents_of
from mtpp.runtime.checking.output_check import OutputCheck, SplitCheck, compared_output
from mtpp.runtime.checking.tolerances import types_between
from mtpp.runtime.random_values import Array, random_input
from mtpp.runtime.session import first_line, onnxruntime, open_session, ort_value
from mtpp.runtime.weights import absent_weights

if TYPE_CHECKING:
    import onnx

_WRONG_SIZE = "Got invalid dimensions"
_RANDOM = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)


def check_split(
    model: bytes,
    folder: Path | None,
    manifest: StageManifest,
    stages: Path,
    *,
    display: str,
    seed: int = 0,
    tell: Callable[[str], None] = lambda text: None,
) -> SplitCheck:
    """Run a model whole and split on random inputs and compare the outputs.

    Parameters
    ----------
    model, folder
        The whole model, serialized, and where its external data lies.
    stages
        The folder of the stages.
    display
        What messages call the model.
    tell
        Is told what is being run.

    Raises
    ------
    InputError
        If ONNX Runtime is not installed, or cannot load or run one of the models; if an input or a weight has a type
        for which no values can be made up.

    Notes
    -----
    One model is in memory at a time, whole or stage, and of the tensors between stages those that are still read.
    """
    import onnx

    ort = onnxruntime()
    proto = onnx.ModelProto.FromString(model)
    feeds = {value.name: _random(ort, value, seed) for value in manifest.inputs}
    absent = absent_weights(proto, folder or Path(), display, seed, limit=free_bytes())
    random = tuple(_random_nodes(proto))
    filled = len(absent)
    del proto
    names = [output.name for output in manifest.tensors_out]

    def whole() -> dict[str, list[Array]]:
        session = open_session(model, display=display, weights=absent, folder=folder)
        return {name: contents_of(value) for name, value in _run(session, names, feeds, display).items()}

    tell("running the whole model")
    expected = whole()
    absent.clear()
    results = _run_stages(manifest, stages, feeds, seed, tell)
    found = {name: contents_of(value) for name, value in results.items()}
    between = types_between(manifest)

    def compared(others: Mapping[str, list[Array]], *, random: bool) -> tuple[OutputCheck, ...]:
        return tuple(
            compared_output(output, expected[output.name], others[output.name], between, random=random)
            for output in manifest.outputs
        )

    checks = compared(found, random=bool(random))
    if not random and not all(check.passed for check in checks):
        tell("running the whole model again")
        absent.update(absent_weights(onnx.ModelProto.FromString(model), folder or Path(), display, seed))
        if not all(check.passed for check in compared(whole(), random=False)):
            random = ("the model",)  # a Dropout that trains, or an op of another domain
            checks = compared(found, random=True)
    return SplitCheck(checks, random, filled, seed)


def _run_stages(
    manifest: StageManifest, folder: Path, feeds: Mapping[str, Any], seed: int, tell: Callable[[str], None]
) -> dict[str, Any]:
    """Run the stages one after the other; return the results of the whole model."""
    import onnx

    live = dict(feeds)
    results = {output: feeds[input_] for output, input_ in manifest.direct}
    last_reader = {tensor.name: stage.index for stage in manifest.stages for tensor in stage.inputs}
    for stage in manifest.stages:
        tell(f"running {stage.file}")
        path = folder / stage.file
        model = onnx.load(path, load_external_data=False)
        weights = absent_weights(model, folder, stage.file, seed, limit=free_bytes())
        del model
        session = open_session(path, display=stage.file, weights=weights)
        inputs = {tensor.name: live[tensor.name] for tensor in stage.inputs}
        made = _run(session, [tensor.name for tensor in stage.outputs], inputs, stage.file)
        del session, weights, inputs
        results.update((tensor.name, made[tensor.name]) for tensor in stage.outputs if tensor.result)
        live.update(made)
        for name in [name for name in live if last_reader.get(name, -1) <= stage.index]:
            del live[name]
    return results


def _run(session: Any, names: list[str], feeds: Mapping[str, Any], display: str) -> dict[str, Any]:
    try:
        return dict(zip(names, session.run_with_ort_values(names, dict(feeds)), strict=True))
    except Exception as error:  # its exceptions have no base of their own
        text = first_line(error)
        remedy = "sizes that depend on data are not those of the plan: set ‹dims› TENSOR:AXIS=…, and plan anew"
        raise InputError(
            f"ONNX Runtime cannot run it: {text}",
            source=display,
            remedy=remedy if _WRONG_SIZE in text else None,
        ) from None


def _random(ort: Any, value: Described, seed: int) -> Any:
    """Return a value for an input of the model; a size that nobody knows, since nobody reads the input, is 1."""
    from onnx import TensorProto

    numbers = {"float32": "FLOAT", "float64": "DOUBLE"}
    number = dict(TensorProto.DataType.items()).get(numbers.get(value.dtype, value.dtype.upper()))
    if number is None:
        raise InputError(
            f"no values can be made up for input {value.name!r}, a {value.dtype}",
            parameter="check",
            remedy="compare whole and split on data of its own",
        )
    shape = [1 if size is None else size for size in value.shape]
    return ort_value(ort, random_input(value.name, number, shape, seed, value.limits))


def _random_nodes(model: onnx.ModelProto) -> Iterator[str]:
    """Yield the nodes that draw random numbers, those in bodies and functions included."""
    from mtpp.formats.onnx.topology import describe, subgraphs

    waiting = [*model.graph.node, *(node for function in model.functions for node in function.node)]
    while waiting:
        node = waiting.pop()
        if node.op_type in _RANDOM and node.domain in ("", "ai.onnx"):
            yield describe(node)
        for _, body in subgraphs(node):
            waiting += body.node
