"""The ``ModelProto`` of one stage, put together from what the stage needs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import onnx
from onnx import numpy_helper

from mtpp.formats.modelled.naming import unique_names
from mtpp.formats.onnx.external_data import all_tensors, tensors_of_node
from mtpp.formats.onnx.local_functions.attributes import function_key
from mtpp.formats.onnx.scope import Scope
from mtpp.formats.onnx.stages.contents import Contents
from mtpp.formats.onnx.stages.descriptions import Descriptions
from mtpp.formats.onnx.stages.needs import Needs
from mtpp.formats.onnx.stages.units import Unit, called_functions
from mtpp.formats.onnx.topology import LEAST_WITH_DEFAULTS

_REBUILT = {
    "ModelProto": {"graph", "functions", "opset_import", "training_info"},
    "GraphProto": {"node", "initializer", "sparse_initializer", "input", "output", "value_info"}
    | {"quantization_annotation"},
}


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
