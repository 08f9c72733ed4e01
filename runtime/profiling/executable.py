"""A model made ready to be measured: every node has a name of its own, every input a size, every weight contents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from mtpp.array_types import Array
from mtpp.errors import InputError
from mtpp.formats.modelled.size_terms import SizeTerms, named_sizes
from mtpp.runtime.element_types import as_declared
from mtpp.runtime.random_values import absent_weights, random_input

if TYPE_CHECKING:
    import onnx

    from mtpp.formats.onnx.tensor_type import TensorType

NODE = "n"
"""What names of nodes begin with; their position in the graph follows."""

_WEIGHTS_ARE_NO_INPUTS_SINCE = 4  # the IR version; before it, an initializer had to be among the inputs
_LARGEST_MESSAGE = 2**31 - 1


@dataclass
class Executable:
    """A model that can be run.

    Attributes
    ----------
    model
        With its functions inlined, and nodes called by their positions (:data:`NODE`), those of bodies included.
    folder
        Where its external data lies.
    source
        What messages call it.
    inputs
        Type of each input that has to be fed.
    dims
        Sizes of the symbolic dimensions, those that the given inputs tell included.
    weights
        Random contents of weights whose files are absent, by name.
    feeds
        Contents of the inputs; *made_up* names those that are random.
    random_weight_bytes
        Of all weights that were made up, those that are let go of again included.
    proposed
        Names of the sizes that nobody gave.
    limits
        Least and largest number that make sense in inputs of whole numbers, where something is known of them.
    as_saved
        Whether ONNX Runtime has done to it already what it would do (:mod:`mtpp.runtime.profiling.measured_model`).
    """

    model: onnx.ModelProto
    folder: Path
    source: str
    inputs: dict[str, TensorType]
    dims: dict[str, int]
    weights: dict[str, Array] = field(default_factory=dict)
    feeds: dict[str, Array] = field(default_factory=dict)
    made_up: list[str] = field(default_factory=list)
    as_saved: bool = False
    random_weight_bytes: int = 0
    proposed: tuple[str, ...] = ()
    limits: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def initializer_bytes(self) -> int:
        """Bytes of all weights of the main graph, wherever they are stored."""
        from mtpp.formats.onnx.external_data import all_tensors
        from mtpp.formats.onnx.tensor_type import TensorType, is_known_dtype

        return sum(
            TensorType(tensor.data_type, tuple(tensor.dims)).bytes
            for tensor in all_tensors(self.model.graph)
            if is_known_dtype(tensor.data_type)
        )

    def leave_sizes_open(self) -> None:
        """Declare inputs without sizes: ONNX Runtime refuses a model with a branch that cannot run with them."""
        for value in self.model.graph.input:
            for dim in value.type.tensor_type.shape.dim:
                dim.Clear()

    def serialized(self) -> bytes:
        """Return the model as ONNX Runtime takes it; raise InputError above 2 GiB."""
        try:
            return bytes(self.model.SerializeToString())
        except Exception as error:  # protobuf raises types of its own
            raise InputError(
                f"cannot be made ready to run: {' '.join(str(error).split())[:200]}",
                source=self.source,
                remedy="store the weights as external data (onnx.save_model(…, save_as_external_data=True))",
            ) from None


def prepare(
    data: bytes, folder: Path, source: str, *, dims: SizeTerms, arrays: Mapping[str, Array] | None = None
) -> Executable:
    """Make a model ready to be run, without its random contents (:func:`fill`).

    Parameters
    ----------
    data
        The serialized model, with the weights that are stored in it.
    dims
        Sizes of symbolic dimensions, see :mod:`mtpp.formats.modelled.size_terms`; *arrays* tell those of the inputs
        that they hold.
    arrays
        Contents of inputs by name.
    """
    import onnx

    from mtpp.formats.onnx.dimensions import Dimensions
    from mtpp.formats.onnx.executed_shapes import name_nodes
    from mtpp.formats.onnx.external_data import follow_links
    from mtpp.formats.onnx.loading import parse_model
    from mtpp.formats.onnx.local_functions.inline import inline_functions
    from mtpp.formats.onnx.open_model import input_sizes
    from mtpp.formats.onnx.tensor_type import PartialType, partial_type
    from mtpp.formats.onnx.topology import parameter_names

    parse_model(data, source)  # says in one line what is wrong
    if len(data) > _LARGEST_MESSAGE:
        raise InputError(
            "holds more than 2 GiB of weights itself, which cannot be handed over",
            source=source,
            remedy="store the weights as external data (onnx.save_model(…, save_as_external_data=True))",
        )
    model = inline_functions(onnx.ModelProto.FromString(data), source)
    folder = follow_links(model, folder, source)
    graph = model.graph
    parameters = parameter_names(graph)
    fed = [value for value in graph.input if value.name not in parameters]
    told = _sizes_of(arrays or {}, fed, named_sizes(dims), source)
    settled = input_sizes(data, source, {**dims, **told})
    sizes = settled.sizes
    dimensions = Dimensions(graph, parameters, sizes, source)
    inputs: dict[str, TensorType] = {}
    for value in fed:
        partial = partial_type(value.type)
        if not isinstance(partial, PartialType):
            raise InputError(f"input {value.name!r} is a {partial.what}: none can be made up", source=source)
        partial = dimensions.applied(value.name, partial)
        known = partial.complete()
        if known is None:
            raise dimensions.unknown(value.name, partial, "graph input")
        inputs[value.name] = known
        value.type.CopyFrom(known.to_proto())  # what depends on sizes alone is settled then, as in the graph with costs
    del graph.input[:]  # weights that could be fed would not be folded
    graph.input.extend(fed)
    model.ir_version = max(model.ir_version, _WEIGHTS_ARE_NO_INPUTS_SINCE)
    name_nodes(graph, NODE)
    result = Executable(model, folder, source, inputs, sizes, proposed=settled.proposed)
    _feed(result, arrays or {})
    return result


def fill(executable: Executable, seed: int) -> None:
    """Make up the contents of absent weights and of inputs that were not given."""
    executable.weights = absent_weights(executable.model, executable.folder, executable.source, seed)
    executable.random_weight_bytes += sum(int(array.nbytes) for array in executable.weights.values())
    fill_inputs(executable, seed)


def fill_inputs(executable: Executable, seed: int) -> None:
    """Make up the contents of inputs that were not given."""
    for name, kind in executable.inputs.items():
        if name not in executable.feeds:
            executable.feeds[name] = random_input(name, kind.dtype, kind.shape, seed, executable.limits.get(name))
            executable.made_up.append(name)


def _sizes_of(
    arrays: Mapping[str, Array], fed: list[onnx.ValueInfoProto], dims: Mapping[str, int], source: str
) -> dict[str, int]:
    """Return the sizes of open dimensions that given inputs tell, as ``--dim`` would name them."""
    from mtpp.formats.onnx.tensor_type import PartialType, partial_type

    found: dict[str, int] = {}
    for value in fed:
        kind = partial_type(value.type)
        if value.name not in arrays or not isinstance(kind, PartialType):
            continue
        shape = arrays[value.name].shape
        if kind.dims is not None and len(kind.dims) != len(shape):
            raise _misfit(value.name, f"has {len(shape)} axes, the model's has {len(kind.dims)}", source)
        for axis, size in enumerate(shape):
            dim = None if kind.dims is None else kind.dims[axis]
            if isinstance(dim, int):
                if dim != size:
                    raise _misfit(value.name, f"has size {size} on axis {axis}, the model's has {dim}", source)
                continue
            key = dim if dim is not None else f"{value.name}:{axis}"
            if {**dims, **found}.get(key, size) != size:
                raise _misfit(value.name, f"says {key} = {size}, which is {({**dims, **found})[key]} elsewhere", source)
            found[key] = size
    return found


def _feed(executable: Executable, arrays: Mapping[str, Array]) -> None:
    from onnx import TensorProto, helper

    from mtpp.formats.onnx.tensor_type import dtype_name

    for name, array in arrays.items():
        if name not in executable.inputs:
            known = ", ".join(executable.inputs) or "none"
            raise InputError(f"the model has no input {name!r}", parameter="inputs", remedy=f"it has: {known}")
        kind = executable.inputs[name]
        if array.dtype.kind in "US" and kind.dtype == TensorProto.STRING:
            array = array.astype(object)  # as ONNX Runtime takes texts
        own = as_declared(array, dtype_name(kind.dtype))
        array = array if own is None else own
        if array.dtype != helper.tensor_dtype_to_np_dtype(kind.dtype):
            raise _misfit(name, f"holds {array.dtype}, the model's {dtype_name(kind.dtype)}", executable.source)
        executable.feeds[name] = array


def _misfit(name: str, problem: str, source: str) -> InputError:
    return InputError(f"input {name!r} {problem}", parameter="inputs", where=source, remedy="give what the model takes")
