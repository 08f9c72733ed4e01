"""A partition of an ONNX model as one model per stage.

Every stage is for the sizes that the plan was made for: symbolic dimensions have got their sizes, and what the file
computes from the shapes of activations is stored in the stage. Sizes that only a run tells are open, and what follows
from them is computed there. Of the model itself, each stage keeps the producer, the documentation and the metadata;
``training_info`` is left out. Initializers that an input of the same name would let a
caller replace are constants in a stage.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

import onnx
from onnx import numpy_helper

from mtpp.errors import InputError
from mtpp.formats.modelled.naming import unique_names
from mtpp.formats.onnx.external_data import ExternalPlace, all_tensors, external_place, tensors_of_node
from mtpp.formats.onnx.local_functions.attributes import function_key
from mtpp.formats.onnx.reader import Reading, only_branches
from mtpp.formats.onnx.scope import Scope
from mtpp.formats.onnx.stages.contents import Contents, contents_of
from mtpp.formats.onnx.stages.descriptions import Descriptions
from mtpp.formats.onnx.stages.inseparable import optional_names
from mtpp.formats.onnx.stages.needs import Needs, Sources, readers_of
from mtpp.formats.onnx.stages.units import PlacedOp, Unit, Units, called_functions, units_of
from mtpp.formats.onnx.stages.validity import fault_of
from mtpp.formats.onnx.topology import LEAST_WITH_DEFAULTS, parameter_names
from mtpp.formats.onnx.value_ranges import ranges_of
from mtpp.formats.results.stage_manifest import MODEL_INPUT, Described, StageInput, StageOutput

_CHUNK_BYTES = 1 << 22

_REBUILT = {
    "ModelProto": {"graph", "functions", "opset_import", "training_info"},
    "GraphProto": {"node", "initializer", "sparse_initializer", "input", "output", "value_info"}
    | {"quantization_annotation"},
}


@dataclass(frozen=True)
class StageWires:
    """One stage that runs an op: what it reads and hands on."""

    index: int
    ops: int
    inputs: tuple[StageInput, ...]
    outputs: tuple[StageOutput, ...]


@dataclass(frozen=True)
class Split:
    """A model cut into stages; the stages' models are built one by one when asked for.

    Attributes
    ----------
    inputs, outputs
        Of the whole model; a tensor that it returns twice stands twice.
    stages
        Those that run an op, in the order of the pipeline.
    direct
        (output, input) of the whole model that are one tensor.
    data_files
        External data that the stages share.
    calls_kept, calls_inlined
        Calls of local functions that are still calls, and those that were replaced by their bodies.
    """

    inputs: tuple[Described, ...]
    outputs: tuple[Described, ...]
    stages: tuple[StageWires, ...]
    direct: tuple[tuple[str, str], ...]
    data_files: DataFiles
    calls_kept: int
    calls_inlined: int
    _assembly: Assembly
    _needs: Mapping[int, Needs]

    def build(self, stage: StageWires) -> onnx.ModelProto:
        """Return the model of one stage."""
        names = ([tensor.name for tensor in stage.inputs], [tensor.name for tensor in stage.outputs])
        model = self._assembly.model(self._needs[stage.index], *names)
        self.data_files.rename(self._assembly.tensors(model))
        return model

    def whole_fault(self) -> str | None:
        """Return what ``onnx.checker`` finds wrong with the whole model, None if nothing."""
        return fault_of(self._assembly.whole())


def split_model(reading: Reading, data: bytes, labels: Sequence[int], *, source: str, folder: Path | None) -> Split:
    """Cut a model along a partition.

    Parameters
    ----------
    reading, data
        The model as read, and the bytes that it was read from.
    labels
        Stage of each op of ``reading.graph``; every edge goes to the same or a later stage.
    source
        What messages call the model.
    folder
        Where its external data lies; None for standard input.

    Raises
    ------
    InputError
        If the model is above 2 GiB, a place of external data is refused, or a node needs the shape of a tensor that a
        later stage makes.

    Notes
    -----
    Memory: once the model, and once the stage that is built. O(nodes + tensors) time, times the number of stages that
    need copies of the same folded nodes.
    """
    return _Cutting(reading, contents_of(data, reading, source), labels, source, folder).split()


class _Cutting:
    def __init__(
        self, reading: Reading, contents: Contents, labels: Sequence[int], source: str, folder: Path | None
    ) -> None:
        self._contents = contents
        self._scope = reading.scope
        self._source = source
        self._limits = ranges_of(reading.model.graph, reading.scope, only_branches(reading))
        self._open_at = only_branches(reading)
        self._graph = contents.model.graph
        self._data_files = DataFiles(contents.tensors(), folder, source)
        stored = contents.initializers.keys() | parameter_names(self._graph)
        self._model_inputs = [value.name for value in self._graph.input if value.name not in stored]
        self._results = list(dict.fromkeys(value.name for value in self._graph.output))
        ops = map(PlacedOp, reading.graph.op_names, labels)
        self._found: Units = units_of(contents, reading.scope, dict(zip(reading.positions, ops, strict=True)))
        beside = {t.name for t in contents.initializers.values() if t.data_location == onnx.TensorProto.EXTERNAL}
        self._sources = Sources(
            self._units,
            reading.scope,
            stored,
            set(self._model_inputs),
            source,
            optional_names(reading.model.graph),
            beside,
        )
        declared = {info.name: info for group in (self._graph.value_info, self._graph.input) for info in group}
        declared.update((info.name, info) for info in self._graph.output)
        self._descriptions = Descriptions(reading.scope, declared, source)

    @property
    def _units(self) -> Sequence[Unit]:
        return self._found.units

    @cached_property
    def _members(self) -> dict[int, list[int]]:
        members: dict[int, list[int]] = {}
        for i, unit in enumerate(self._units):
            if unit.stage is not None:
                members.setdefault(unit.stage, []).append(i)
        return dict(sorted(members.items()))

    def split(self) -> Split:
        needs = {stage: self._sources.needs_of(stage, members) for stage, members in self._members.items()}
        results = self._stages_of_results(needs)
        readers = readers_of(needs)
        described = self._descriptions.described
        stages = tuple(
            StageWires(
                stage,
                sum(self._units[i].ops for i in members),
                self._inputs(needs[stage]),
                self._outputs(stage, readers, results),
            )
            for stage, members in self._members.items()
        )
        return Split(
            inputs=tuple(replace(described(name), limits=self._limits.get(name)) for name in self._model_inputs),
            outputs=tuple(described(value.name) for value in self._graph.output),
            stages=stages,
            direct=tuple((name, name) for name in self._results if name in self._model_inputs),
            data_files=self._data_files,
            calls_kept=self._found.calls_kept,
            calls_inlined=self._found.calls_inlined,
            _assembly=Assembly(self._contents, self._units, self._scope, self._descriptions, self._open_at),
            _needs=needs,
        )

    def _stages_of_results(self, needs: Mapping[int, Needs]) -> dict[str, int]:
        """Return the stage that returns each output of the model; constants get one that holds them, or the last."""
        results = {}
        for name in self._results:
            if not self._sources.is_constant(name):
                stage = self._units[self._sources.maker[name]].stage if name in self._sources.maker else None
                if stage is not None:
                    results[name] = stage
                continue
            holders = [stage for stage in needs if needs[stage].has(name, self._units)]
            results[name] = holders[0] if holders else max(needs)
            self._sources.add(needs[results[name]], results[name], name)
        return results

    def _inputs(self, needs: Needs) -> tuple[StageInput, ...]:
        """Return what a stage reads: inputs of the model as it lists them, then tensors in the order they are made."""
        sources = {name: MODEL_INPUT for name in self._model_inputs if name in needs.model_inputs}
        order = self._sources.maker
        sources |= {name: needs.received[name] for name in sorted(needs.received, key=lambda name: order[name])}
        found = []
        for name, maker in sources.items():
            tensor = self._descriptions.described(name)
            found.append(StageInput(tensor.name, tensor.dtype, tensor.shape, maker))
        return tuple(found)

    def _outputs(
        self, stage: int, readers: Mapping[str, list[int]], results: Mapping[str, int]
    ) -> tuple[StageOutput, ...]:
        made = [name for i in self._members[stage] for name in self._units[i].outputs]
        names = [name for name in made if name in readers or name in results]
        names += [name for name, maker in results.items() if maker == stage and name not in made]
        # Nobody may need what it makes: it is returned all the same, or there would be nothing to ask the stage for.
        found = []
        for name in names or made:
            tensor = self._descriptions.described(name)
            readers_of_it = tuple(readers.get(name, ()))
            found.append(StageOutput(tensor.name, tensor.dtype, tensor.shape, readers_of_it, name in results))
        return tuple(found)


class DataFiles:
    """The files of external data of a model, each under a safe name.

    Every file that the model refers to gets a name of our own, so that no name in a model becomes one on the disk.
    Files are copied, not linked: onnx refuses external data with several hard links, since a link can smuggle a file
    in.

    Parameters
    ----------
    tensors
        All tensors of the model: their places are checked.
    folder
        Of the model's file; None for a model from standard input, which has nothing beside it.

    Attributes
    ----------
    files
        Safe name → path of the file, of those that exist.
    absent
        Safe names of those that do not.
    """

    def __init__(self, tensors: Iterable[onnx.TensorProto], folder: Path | None, source: str) -> None:
        self._folder = folder
        self._source = source
        self._names: dict[str, str] = {}
        self.files: dict[str, Path] = {}
        self.absent: list[str] = []
        for tensor in tensors:
            place = self._place(tensor)
            if place is None or place.location in self._names:
                continue
            name = f"weights-{len(self._names)}.bin"
            self._names[place.location] = name
            if place.is_there:
                self.files[name] = place.path
            else:
                self.absent.append(name)

    def _place(self, tensor: onnx.TensorProto) -> ExternalPlace | None:
        if tensor.data_location == onnx.TensorProto.EXTERNAL and self._folder is None:
            raise InputError(
                "its contents lie in a file beside the model",
                source=self._source,
                where=f"tensor {tensor.name!r}",
                remedy="give the file of the model in place of standard input",
            )
        return external_place(tensor, self._folder or Path(), self._source)

    def rename(self, tensors: Iterable[onnx.TensorProto]) -> None:
        """Let tensors refer to their contents under the safe names."""
        for tensor in tensors:
            place = self._place(tensor)
            if place is None:
                continue
            entries = {entry.key: entry.value for entry in tensor.external_data}
            entries["location"] = self._names[place.location]
            del tensor.external_data[:]
            for key, value in entries.items():
                tensor.external_data.add(key=key, value=value)

    def copy(self, folder: Path) -> None:
        """Copy the files that exist into *folder*, flushed to the disk."""
        for name, path in self.files.items():
            with self._open(path) as file, (folder / name).open("xb") as copy:
                shutil.copyfileobj(file, copy, _CHUNK_BYTES)
                copy.flush()
                os.fsync(copy.fileno())

    def _open(self, path: Path) -> BinaryIO:
        try:
            # A link that was put there since the place was checked is not followed.
            return os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)), "rb")
        except OSError as error:
            raise InputError(f"{path.name!r} cannot be read: {error.strerror or error}", source=self._source) from None


class Assembly:
    """Builds the models of stages.

    Parameters
    ----------
    units
        In topological order.
    open_at
        First outputs of nodes with a branch that cannot run with the sizes of the plan: what loads a stage with such a
        node must not know them.
    """

    def __init__(
        self,
        contents: Contents,
        units: Sequence[Unit],
        scope: Scope,
        descriptions: Descriptions,
        open_at: Collection[str] = (),
    ) -> None:
        self._contents = contents
        self._units = units
        self._scope = scope
        self._descriptions = descriptions
        self._open_at = open_at
        self._functions = {function_key(function): function for function in contents.model.functions}

    def model(self, needs: Needs, inputs: Sequence[str], outputs: Sequence[str]) -> onnx.ModelProto:
        """Return the model of a stage; external data still under the names that the whole model has for it.

        Parameters
        ----------
        inputs, outputs
            Names, in order.
        """
        model = onnx.ModelProto()
        _copy_rest(self._contents.model, model)
        model.opset_import.extend(self._contents.opsets)
        graph = model.graph
        whole = self._contents.model.graph
        _copy_rest(whole, graph)
        self._add_nodes(graph, needs)
        called = called_functions(graph.node, self._functions)
        model.functions.extend(f for key, f in self._functions.items() if key in called)
        graph.input.extend(self._descriptions.value_info(name) for name in inputs)
        graph.output.extend(self._descriptions.value_info(name) for name in outputs)
        self._annotate(graph, needs, {*inputs})
        self._store(graph, needs)
        if model.ir_version < LEAST_WITH_DEFAULTS:
            graph.input.extend(
                onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
                for tensor in graph.initializer
            )
        else:  # a caller may give it another value, as to the whole model
            graph.input.extend(value for value in whole.input if value.name in needs.stored)
        made_at = {name for i in needs.units for name in self._units[i].outputs}
        made = made_at - {*outputs}
        for info in whole.value_info:
            if info.name in made:
                graph.value_info.append(self._descriptions.value_info(info.name))
        if made_at & {*self._open_at}:
            for info in (*graph.input, *graph.output, *graph.value_info):
                for dim in info.type.tensor_type.shape.dim:
                    dim.Clear()
        return model

    def whole(self) -> onnx.ModelProto:
        """Return the whole model, as it was."""
        model = onnx.ModelProto()
        model.CopyFrom(self._contents.model)
        model.graph.initializer.extend(self._contents.initializers.values())
        return model

    @staticmethod
    def tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
        """Yield every tensor stored in a stage, to be changed in place."""
        yield from all_tensors(model.graph)
        for function in model.functions:
            for node in function.node:
                yield from tensors_of_node(node)

    def _add_nodes(self, graph: onnx.GraphProto, needs: Needs) -> None:
        """Add the nodes, each under a name of its own: bodies of functions repeat theirs, and ONNX Runtime minds."""
        indices = sorted(needs.units)
        graph.node.extend(self._units[i].node for i in indices)
        named = [(i, node) for i, node in zip(indices, graph.node, strict=True) if self._units[i].name]
        named.sort(key=lambda entry: self._units[entry[0]].stage is None)  # ops keep the names of the plan
        names = unique_names((self._units[i].name, node.op_type, i) for i, node in named)
        for (_, node), name in zip(named, names, strict=True):
            node.name = name

    def _annotate(self, graph: onnx.GraphProto, needs: Needs, inputs: set[str]) -> None:
        """Keep the quantisation of the tensors in the stage, with the scales and zero points that it names."""
        made = {name for i in needs.units for name in self._units[i].outputs} | inputs
        for annotation in self._contents.model.graph.quantization_annotation:
            if annotation.tensor_name in made | needs.stored:
                graph.quantization_annotation.append(annotation)
                named = {entry.value for entry in annotation.quant_parameter_tensor_names}
                needs.stored |= named & self._contents.initializers.keys()

    def _store(self, graph: onnx.GraphProto, needs: Needs) -> None:
        graph.initializer.extend(tensor for name, tensor in self._contents.initializers.items() if name in needs.stored)
        graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in sorted(needs.values.items()))
        graph.sparse_initializer.extend(
            sparse for sparse in self._contents.model.graph.sparse_initializer if sparse.values.name in needs.stored
        )


def _copy_rest(whole: onnx.ModelProto | onnx.GraphProto, part: onnx.ModelProto | onnx.GraphProto) -> None:
    """Copy every field but those that a stage has of its own."""
    rebuilt = _REBUILT[whole.DESCRIPTOR.name]
    for field, value in whole.ListFields():
        if field.name in rebuilt:
            continue
        if isinstance(value, str | bytes | int | float):
            setattr(part, field.name, value)
        elif hasattr(value, "CopyFrom") and not hasattr(value, "extend"):
            getattr(part, field.name).CopyFrom(value)
        else:
            getattr(part, field.name).extend(value)
