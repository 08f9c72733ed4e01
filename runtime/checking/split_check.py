"""Comparison of a split ONNX model with the whole one: both are run on the same inputs, several sets of them.

Ops run with the same kernels on either side (:class:`mtpp.runtime.session.SessionChoices`: constants are folded,
nothing is fused), so results are expected to be equal bit for bit. Where they are not, they have to be equal within a
tolerance (:mod:`mtpp.runtime.checking.tolerances`). Whole numbers, truth values and strings have to be equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError
from mtpp.formats.results.stage_manifest import Described, StageManifest
from mtpp.host.free_memory import free_bytes
from mtpp.runtime.checking.branches import conditions_of, missed, with_conditions
from mtpp.runtime.checking.draws import draw_count, explored_count, explored_limits, fitting, leaning_of
from mtpp.runtime.checking.output_check import OutputCheck, SplitCheck, compared_output, worst_of
from mtpp.runtime.checking.runners import OnnxRuntime, ReferenceEvaluator, Runner
from mtpp.runtime.checking.tolerances import types_between
from mtpp.runtime.random_values import Array, NoValues, random_input
from mtpp.runtime.weights import absent_weights

if TYPE_CHECKING:
    import onnx

_RANDOM = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)

Tell = Callable[[str], None]
Contents = list[dict[str, list[Array]]]
"""Outputs by name of each set of inputs: a tensor, or those of a sequence."""


def check_split(
    model: bytes,
    folder: Path | None,
    manifest: StageManifest,
    stages: Path,
    *,
    display: str,
    seed: int = 0,
    inputs: Mapping[str, Array] | None = None,
    tell: Tell = lambda text: None,
) -> SplitCheck:
    """Run a model whole and split on the same inputs and compare the outputs.

    Parameters
    ----------
    model, folder
        The whole model, serialized, and where its external data lies.
    stages
        The folder of the stages.
    display
        What messages call the model.
    inputs
        Contents of inputs by name; others are random.
    tell
        Is told what is being run.

    Raises
    ------
    NoValues
        If an input or a weight has a type for which no values can be made up, and none are given.
    InputError
        If ONNX Runtime is not installed, or cannot load or run one of the models.

    Notes
    -----
    Sets of inputs lean to different sides, so that sizes and branches that depend on data differ; sets that the whole
    model cannot run are left out, but for the first. One model is in memory at a time, whole or stage, and of the
    tensors between stages those that are still read, of all sets. What ONNX Runtime cannot run, onnx's reference
    evaluator may.
    """
    import onnx

    from mtpp.formats.onnx.external_data import follow_links

    proto = onnx.ModelProto.FromString(model)
    random = tuple(_random_nodes(proto))
    own = folder or Path()
    folder = follow_links(proto, own, display)
    if folder != own:
        model = proto.SerializeToString()
    weights = absent_weights(proto, folder, display, seed, limit=free_bytes())
    whole = _Whole(model, proto, folder, display, weights, manifest, seed, dict(inputs or {}))
    try:
        found = whole.compared(OnnxRuntime(), stages, random, tell)
    except InputError as error:
        if whole.ran or isinstance(error, NoValues):
            raise
        try:
            found = whole.compared(ReferenceEvaluator(), stages, random, tell)
        except InputError:
            raise error from None
        whole.notes.append("ONNX Runtime cannot run the model: compared by onnx's reference evaluator")
    return SplitCheck(found.checks, found.random, len(weights), seed, found.inputs, tuple(whole.notes))


@dataclass(frozen=True)
class _Compared:
    checks: tuple[OutputCheck, ...]
    random: tuple[str, ...]
    inputs: int


@dataclass
class _Whole:
    """A model to be compared with its stages.

    Attributes
    ----------
    ran
        Whether it was run on a set of inputs.
    """

    model: bytes
    proto: onnx.ModelProto
    folder: Path | None
    display: str
    weights: Mapping[str, Array]
    manifest: StageManifest
    seed: int
    given: Mapping[str, Array]
    ran: bool = False
    notes: list[str] = field(default_factory=list)

    def compared(self, runner: Runner, stages: Path, random: tuple[str, ...], tell: Tell) -> _Compared:
        sets = [self._feeds(runner, number) for number in self._numbers(runner, tell)]
        tell("running the whole model")
        expected = self._run(runner, sets)
        tried = len(sets)
        sets = [feeds for feeds, outputs in zip(sets, expected, strict=True) if outputs is not None]
        if len(sets) < tried:
            self.notes.append(f"the whole model cannot be run on {tried - len(sets)} of {tried} sets of inputs")
        own = [outputs for outputs in expected if outputs is not None]
        found = _run_stages(runner, self.manifest, stages, sets, self.seed, tell)
        checks = self._checks(own, found, random=bool(random))
        if not random and not all(check.passed for check in checks):
            tell("running the whole model again")
            again = [outputs for outputs in self._run(runner, sets) if outputs is not None]
            if len(again) < len(own) or not all(check.passed for check in self._checks(own, again, random=False)):
                random = ("the model",)  # a Dropout that trains, or an op of another domain
                checks = self._checks(own, found, random=True)
        return _Compared(checks, random, len(sets))

    def _checks(self, expected: Contents, found: Contents, *, random: bool) -> tuple[OutputCheck, ...]:
        between = types_between(self.manifest)
        return tuple(
            worst_of(
                [
                    compared_output(output, one[output.name], other[output.name], between, random=random)
                    for one, other in zip(expected, found, strict=True)
                ]
            )
            for output in self.manifest.outputs
        )

    def _numbers(self, runner: Runner, tell: Tell) -> Sequence[int]:
        """Return the numbers of the draws: the first ones, and those that reach branches which these do not."""
        count = draw_count(self.manifest, self.given)
        conditions = conditions_of(self.proto)
        if not conditions:
            return range(count)
        tell("looking for inputs that reach all branches")
        names = [name for name in conditions if all(name != one.name for one in self.manifest.inputs)]
        opened = None
        if names:
            wider = with_conditions(self.proto, names)
            opened = runner.open(wider, self.display, self.weights, self.folder)
        reached: set[tuple[str, bool]] = set()
        chosen: list[int] = []
        tried = explored_count(self.manifest, self.given)
        for number in range(tried):
            feeds = self._feeds(runner, number)
            try:
                values = {name: feeds[name] for name in conditions.keys() - {*names}}
                if opened is not None:
                    values |= runner.run(opened, names, feeds, self.display)
            except InputError:
                if number == 0:
                    raise
                continue
            ways = {(name, bool(runner.contents(value)[0].reshape(-1)[0])) for name, value in values.items()}
            if number < count or ways - reached:
                chosen.append(number)
                reached |= ways
        self.notes += missed(conditions, reached, tried)
        return chosen

    def _feeds(self, runner: Runner, number: int) -> dict[str, Any]:
        return {
            one.name: runner.value(
                fitting(one, self.given[one.name])
                if one.name in self.given
                else _random(one, self.seed + number, number)
            )
            for one in self.manifest.inputs
        }

    def _run(self, runner: Runner, sets: Sequence[Mapping[str, Any]]) -> list[dict[str, list[Array]] | None]:
        """Return the outputs for each set of inputs; None where the model cannot be run on it, but for the first."""
        names = list(dict.fromkeys(output.name for output in self.manifest.outputs))
        opened = runner.open(self.model, self.display, self.weights, self.folder)
        found: list[dict[str, list[Array]] | None] = []
        for feeds in sets:
            try:
                made = runner.run(opened, names, feeds, self.display)
            except InputError:
                if not self.ran:
                    raise
                found.append(None)
                continue
            self.ran = True
            found.append({name: runner.contents(value) for name, value in made.items()})
        return found


def _run_stages(
    runner: Runner, manifest: StageManifest, folder: Path, sets: Sequence[Mapping[str, Any]], seed: int, tell: Tell
) -> Contents:
    """Run the stages one after the other, each on all sets of inputs; return the results of the whole model."""
    import onnx

    live = [dict(feeds) for feeds in sets]
    results = [
        {output: runner.contents(feeds[input_]) for output, input_ in manifest.direct if input_ in feeds}
        for feeds in sets
    ]
    last_reader = {tensor.name: stage.index for stage in manifest.stages for tensor in stage.inputs}
    for stage in manifest.stages:
        tell(f"running {stage.file}")
        path = folder / stage.file
        model = onnx.load(path, load_external_data=False)
        weights = absent_weights(model, folder, stage.file, seed, limit=free_bytes())
        del model
        opened = runner.open(path, stage.file, weights, folder)
        names = [tensor.name for tensor in stage.outputs]
        for values, kept in zip(live, results, strict=True):
            made = runner.run(opened, names, {one.name: values[one.name] for one in stage.inputs}, stage.file)
            kept |= {one.name: runner.contents(made[one.name]) for one in stage.outputs if one.result}
            values |= made
            for name in [name for name in values if last_reader.get(name, -1) <= stage.index]:
                del values[name]
        del opened, weights
    return results


def _random(value: Described, seed: int, number: int) -> Array:
    """Return a value for an input of the model; a size that nobody knows, since nobody reads the input, is 1."""
    from onnx import TensorProto

    numbers = {"float32": "FLOAT", "float64": "DOUBLE"}
    kind = dict(TensorProto.DataType.items()).get(numbers.get(value.dtype, value.dtype.upper()))
    if kind is None:
        raise _no_values(value)
    shape = [1 if size is None else size for size in value.shape]
    try:
        return random_input(value.name, kind, shape, seed, explored_limits(value, number), leaning_of(number))
    except NoValues:
        raise _no_values(value) from None


def _no_values(value: Described) -> NoValues:
    return NoValues(
        f"no values can be made up for input {value.name!r}, a {value.dtype}",
        parameter="check",
        remedy="give some: ‹inputs› FILE.npz",
    )


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
