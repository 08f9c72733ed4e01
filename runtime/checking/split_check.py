"""Comparison of a split ONNX model with the whole one: both are run on the same inputs, several sets of them.

Ops run with the same kernels on either side (:class:`mtpp.runtime.session.SessionChoices`: constants are folded,
nothing is fused), so results are expected to be equal bit for bit. Where they are not, they have to be equal within a
tolerance (:mod:`mtpp.runtime.checking.agreement`). Whole numbers, truth values and strings have to be equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import onnx
from onnx import TensorProto

from mtpp.array_types import Array
from mtpp.errors import InputError
from mtpp.formats.onnx.external_data import follow_links
from mtpp.formats.onnx.topology import describe, subgraphs
from mtpp.formats.results.split import OutputCheck, SplitCheck
from mtpp.formats.results.stage_manifest import TEXT, Described, StageManifest
from mtpp.host.capacity import free_bytes
from mtpp.runtime.checking.agreement import compared_output, types_between, worst_of
from mtpp.runtime.checking.branches import conditions_of, missed, nested_conditions, unseen, with_conditions
from mtpp.runtime.checking.contents import contents_of
from mtpp.runtime.checking.draws import draw_count, explored_count, explored_limits, fitting, leaning_of, spare_numbers
from mtpp.runtime.random_values import NoValues, absent_weights, random_input
from mtpp.runtime.session import first_line, onnxruntime, open_session, ort_value

_RANDOM = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)

Tell = Callable[[str], None]
Contents = list[dict[str, list[Array]]]
"""Outputs by name of each set of inputs: a tensor, or those of a sequence."""

_WRONG_SIZE = "Got invalid dimensions"


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

    Notes
    -----
    Sets of inputs lean to different sides, so that sizes and branches that depend on data differ; others take the place
    of sets that the whole model cannot run. A stage that cannot run what the whole model runs fails the check. One
    model is in memory at a time, whole or stage, and of the tensors between stages those that are still read, of all
    sets. What ONNX Runtime cannot run, onnx's reference evaluator may.
    """
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
    return SplitCheck(found.checks, found.random, len(weights), seed, found.inputs, tuple(whole.notes), found.failure)


@dataclass(frozen=True)
class _Compared:
    checks: tuple[OutputCheck, ...]
    random: tuple[str, ...]
    inputs: int
    failure: str | None = None


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
        self.notes.clear()
        numbers = self._numbers(runner, tell)
        tell("running the whole model")
        sets, own = self._run_enough(runner, numbers)
        try:
            found = _run_stages(runner, self.manifest, stages, sets, self.seed, tell)
        except NoValues:
            raise
        except InputError as error:
            return _Compared((), random, len(sets), f"{error.source or 'a stage'}: {error.problem}")
        checks = self._checks(own, found, random=bool(random))
        if not random and not all(check.passed for check in checks):
            tell("running the whole model again")
            again = self._run_again(runner, sets)
            if not all(check.passed for check in self._checks(own, again, random=False)):
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
        nested = nested_conditions(self.proto)
        if not conditions and not nested:
            return range(count)
        tell("looking for inputs that reach all branches")
        names = [name for name in conditions if all(name != one.name for one in self.manifest.inputs)]
        tried = explored_count(self.manifest, self.given)
        ways = self._ways(runner, names, nested, tried) if nested else None
        notes: list[str] = []
        if ways is None:
            notes, nested = unseen(nested), []
            ways = self._ways(runner, names, nested, tried)
        reached: set[tuple[str, bool]] = set()
        chosen: list[int] = []
        for number, own in (ways or {}).items():
            if number < count or own - reached:
                chosen.append(number)
                reached |= own
        self.notes += notes
        self.notes += missed({**conditions, **{place: place for place in nested}}, reached, tried)
        return chosen or list(range(count))  # the whole model says as what they fail, and others take their place

    def _ways(
        self, runner: Runner, names: list[str], nested: list[str], tried: int
    ) -> dict[int, set[tuple[str, bool]]] | None:
        """Return the ways that each draw takes, but for those that the model cannot be run on.

        A condition of the main graph goes by its name, one nested in it by its place. None: no draw can be run with
        nested ones counted.
        """
        conditions = conditions_of(self.proto).keys()
        opened = None
        counts: dict[str, str] = {}
        if names or nested:
            wider, counts = with_conditions(self.proto, names, nested)
            try:
                opened = runner.open(wider, self.display, self.weights, self.folder)
            except InputError:
                if nested:
                    return None
                raise
        found: dict[int, set[tuple[str, bool]]] = {}
        for number in range(tried):
            feeds = self._feeds(runner, number)
            try:
                made = {} if opened is None else runner.run(opened, [*names, *counts], feeds, self.display)
            except InputError:
                continue
            values = {name: made.get(name, feeds.get(name)) for name in conditions}
            found[number] = {(name, bool(runner.contents(one)[0].reshape(-1)[0])) for name, one in values.items()}
            for name, place in counts.items():
                true, false = runner.contents(made[name])[0].tolist()
                found[number] |= {(place, way) for way, times in ((True, true), (False, false)) if times}
        return found if found or not nested else None

    def _feeds(self, runner: Runner, number: int) -> dict[str, Any]:
        return {one.name: runner.value(self._value(one, number)) for one in self.manifest.inputs}

    def _value(self, one: Described, number: int) -> Array:
        """Return a value for an input: that it is given, or a random one; a text that no stage reads is empty."""
        if one.name in self.given:
            return fitting(one, self.given[one.name])
        if one.dtype == TEXT and one.name not in self.manifest.inputs_read:
            return np.full([size or 0 for size in one.shape], "", object)
        return _random(one, self.seed + number, number)

    def _run_enough(self, runner: Runner, numbers: Sequence[int]) -> tuple[list[dict[str, Any]], Contents]:
        """Return sets of inputs that the model can be run on, as many as there are numbers if they are found."""
        opened = self._open(runner)
        sets: list[dict[str, Any]] = []
        found: Contents = []
        first: InputError | None = None
        tried = 0
        for number in (*numbers, *spare_numbers(self.manifest, self.given, numbers)):
            if len(sets) == len(numbers):
                break
            tried += 1
            feeds = self._feeds(runner, number)
            try:
                found.append(self._outputs(runner, opened, feeds))
            except InputError as error:
                if isinstance(error, NoValues):
                    raise
                first = first or error
                continue
            self.ran = True
            sets.append(feeds)
        if first is not None and not sets:
            raise first
        if len(sets) < tried:
            self.notes.append(f"the whole model cannot be run on {tried - len(sets)} of {tried} sets of inputs")
        return sets, found

    def _run_again(self, runner: Runner, sets: Sequence[Mapping[str, Any]]) -> Contents:
        opened = self._open(runner)
        return [self._outputs(runner, opened, feeds) for feeds in sets]

    def _open(self, runner: Runner) -> Any:
        return runner.open(self.model, self.display, self.weights, self.folder)

    def _outputs(self, runner: Runner, opened: Any, feeds: Mapping[str, Any]) -> dict[str, list[Array]]:
        names = list(dict.fromkeys(output.name for output in self.manifest.outputs))
        made = runner.run(opened, names, feeds, self.display)
        return {name: runner.contents(value) for name, value in made.items()}


def _run_stages(
    runner: Runner, manifest: StageManifest, folder: Path, sets: Sequence[Mapping[str, Any]], seed: int, tell: Tell
) -> Contents:
    """Run the stages one after the other, each on all sets of inputs; return the results of the whole model."""
    live = [dict(feeds) for feeds in sets]
    results = [
        {output: runner.contents(feeds[input_]) for output, input_ in manifest.direct if input_ in feeds}
        for feeds in sets
    ]
    last_reader = {tensor.name: stage.index for stage in manifest.stages for tensor in stage.inputs}
    for stage in manifest.stages:
        tell(f"running {stage.file}")
        path = folder / stage.file
        try:
            model = onnx.load(path, load_external_data=False)
        except Exception as error:  # protobuf and the system raise types of their own
            raise InputError(f"cannot be read: {first_line(error)}", source=stage.file) from None
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
    waiting = [*model.graph.node, *(node for function in model.functions for node in function.node)]
    while waiting:
        node = waiting.pop()
        if node.op_type in _RANDOM and node.domain in ("", "ai.onnx"):
            yield describe(node)
        for _, body in subgraphs(node):
            waiting += body.node


class Runner(Protocol):
    """A program that runs models; values between models are of its own kind."""

    def value(self, array: Array) -> Any:
        """Return an array as a value."""

    def contents(self, value: Any) -> list[Array]:
        """Return a value as an array, or as those of a sequence."""

    def open(self, model: bytes | Path, display: str, weights: Mapping[str, Array], folder: Path | None) -> Any:
        """Return a model ready to run; raise InputError if it cannot be loaded."""

    def run(self, opened: Any, names: Sequence[str], feeds: Mapping[str, Any], display: str) -> dict[str, Any]:
        """Return outputs by name; raise InputError if the model cannot be run."""


class OnnxRuntime:
    """ONNX Runtime, with values of its own."""

    def value(self, array: Array) -> Any:
        """Return an array as a value: see :meth:`Runner.value`."""
        return ort_value(onnxruntime(), array)

    def contents(self, value: Any) -> list[Array]:
        """Return arrays: see :meth:`Runner.contents`."""
        return contents_of(value)

    def open(self, model: bytes | Path, display: str, weights: Mapping[str, Array], folder: Path | None) -> Any:
        """Return a session: see :meth:`Runner.open`."""
        return open_session(
            model, display=display, weights=weights, folder=folder if isinstance(model, bytes) else None
        )

    def run(self, opened: Any, names: Sequence[str], feeds: Mapping[str, Any], display: str) -> dict[str, Any]:
        """Return outputs by name: see :meth:`Runner.run`."""
        try:
            return dict(zip(names, opened.run_with_ort_values(list(names), dict(feeds)), strict=True))
        except Exception as error:  # its exceptions have no base of their own
            text = first_line(error)
            remedy = "sizes that depend on data are not those of the plan: set ‹dims› TENSOR:AXIS=…, and plan anew"
            raise InputError(
                f"ONNX Runtime cannot run it: {text}", source=display, remedy=remedy if _WRONG_SIZE in text else None
            ) from None


class ReferenceEvaluator:
    """onnx's reference evaluator; values are arrays and lists of them."""

    def value(self, array: Array) -> Any:
        """Return an array as it is; texts as Python's."""
        return array.astype(object) if array.dtype.kind in "SU" else array

    def contents(self, value: Any) -> list[Array]:
        """Return arrays: see :meth:`Runner.contents`."""
        return _arrays(value)

    def open(self, model: bytes | Path, display: str, weights: Mapping[str, Array], folder: Path | None) -> Any:
        """Return an evaluator: see :meth:`Runner.open`."""
        import onnx
        from onnx.external_data_helper import load_external_data_for_model
        from onnx.reference import ReferenceEvaluator as Evaluator

        if weights:
            raise InputError("weights are absent that onnx's reference evaluator needs", source=display)
        try:
            proto = onnx.ModelProto.FromString(model if isinstance(model, bytes) else model.read_bytes())
            if any(function.overload for function in proto.functions):
                raise InputError("onnx's reference evaluator takes no overloads of functions", source=display)
            load_external_data_for_model(proto, str(model.parent if isinstance(model, Path) else folder or Path()))
            return Evaluator(proto)
        except InputError:
            raise
        except Exception as error:  # whatever its kernels raise
            raise self._failed(error, display) from None

    def run(self, opened: Any, names: Sequence[str], feeds: Mapping[str, Any], display: str) -> dict[str, Any]:
        """Return outputs by name: see :meth:`Runner.run`."""
        try:
            with np.errstate(all="ignore"):
                return dict(zip(names, opened.run(list(names), dict(feeds)), strict=True))
        except Exception as error:  # whatever its kernels raise
            raise self._failed(error, display) from None

    @staticmethod
    def _failed(error: BaseException, display: str) -> InputError:
        text = " ".join(str(error).split())[:200] or type(error).__name__
        return InputError(f"onnx's reference evaluator cannot run it: {text}", source=display)


def _arrays(value: Any) -> list[Array]:
    return [np.asarray(one) for one in value] if isinstance(value, list) else [np.asarray(value)]
