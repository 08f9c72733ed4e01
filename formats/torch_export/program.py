"""Nodes and values of an exported program, as its file has them, with graphs that only set a mode inlined."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from mtpp.errors import InputError
from mtpp.formats.io.json_shape import shown
from mtpp.formats.modelled.size_roles import InputShape
from mtpp.formats.modelled.size_terms import SizeTerms
from mtpp.formats.torch_export.archive import STORAGE, ProgramText
from mtpp.formats.torch_export.module_stack import innermost_module, visits_of
from mtpp.formats.torch_export.signature import PARAMETER, USER, ProgramInput, input_of, number_of, results_of
from mtpp.formats.torch_export.sizes import Sizes, hint_of
from mtpp.formats.torch_export.symbols import symbols_of
from mtpp.formats.torch_export.tensor_type import WHOLE_DTYPES, TensorType, is_known_dtype

_MODES = frozenset(
    {"hints_wrap", "tag_activation_checkpoint", "wrap", "wrap_with_autocast", "wrap_with_set_grad_enabled"}
)
"""Operators that run a graph once, under some mode."""

_TARGET = re.compile(r"torch\.ops\.(?P<space>\w+)\.(?P<name>\w+)(?:\.(?P<overload>\w+))?")
_DEEPEST = 50


@dataclass(frozen=True, slots=True)
class TensorRef:
    """A tensor that a node reads or makes, by its name in the program."""

    name: str


@dataclass(frozen=True, slots=True)
class Subgraph:
    """A graph that a node runs: the branch of a condition, the body of a loop."""

    name: str
    calls: Sequence[Call]
    inputs: Sequence[str | None]
    outputs: Sequence[str | None]


@dataclass(frozen=True, slots=True)
class Call:
    """A node: an operator with its operands.

    Attributes
    ----------
    kind
        ``aten.linear``, without the overload.
    name
        In the program.
    operands
        By their names in the operator's schema; tensors are :class:`TensorRef`, sizes are whole numbers.
    outputs
        Tensors that it makes, None for what is none.
    module
        Path of the module of the model that it came from, None where the file does not say.
    visit
        How often the program had called that module before.
    visits
        The same of every module around it that had been called before, by path.
    position
        In its graph.
    graphs
        That it runs.
    reads_sizes, makes_sizes
        Names of sizes and other whole numbers among its operands and results.
    gradients
        Whether gradients are on where it runs: not under ``torch.no_grad``.
    """

    kind: str
    overload: str
    name: str
    operands: Mapping[str, Any]
    outputs: Sequence[str | None]
    module: str | None
    position: int
    graphs: Sequence[Subgraph] = ()
    reads_sizes: Sequence[str] = ()
    makes_sizes: Sequence[str] = ()
    gradients: bool = True
    visit: int = 0
    visits: Mapping[str, int] = field(default_factory=dict)

    def tensors(self) -> Iterator[str]:
        """Yield the names of the tensors that it reads, those in lists included."""
        yield from _tensors(self.operands.values())


def _tensors(values: Any) -> Iterator[str]:
    for value in values:
        if isinstance(value, TensorRef):
            yield value.name
        elif isinstance(value, list):
            yield from _tensors(value)


@dataclass
class Program:
    """Nodes of an exported program in their order, and the types of its tensors. Make one with :func:`read_nodes`.

    Attributes
    ----------
    rewritten
        Tensors at the end of the program, each with the buffer, parameter or input that it becomes.
    stored_as
        Where parameters, buffers and constants are stored, by their names in the model; nothing where nobody knows.
    sized_by_data
        Tensors with a size that only a run tells.
    numbers
        Inputs that are whole numbers, and no tensors.
    trainable
        Tensors of the parameters that require gradients; None where the file does not say it of any.
    """

    source: str
    sizes: Sizes
    inputs: Sequence[ProgramInput]
    outputs: Sequence[str]
    calls: Sequence[Call] = ()
    types: dict[str, TensorType] = field(default_factory=dict)
    rewritten: Sequence[tuple[str, str]] = ()
    stored_as: Mapping[str, str] = field(default_factory=dict)
    numbers: Sequence[str] = ()
    trainable: frozenset[str] | None = None
    torch_version: str = ""
    sized_by_data: set[str] = field(default_factory=set)

    @cached_property
    def stored(self) -> Mapping[str, ProgramInput]:
        """Parameters, buffers and constants by the name of their tensor."""
        return {one.name: one for one in self.inputs if one.kind != USER}


def read_nodes(text: ProgramText, dims: SizeTerms, source: str, *, spare: bool = False) -> Program:
    """Return a program with all its sizes."""
    reader = _Reader(text, source)
    try:
        program = reader.program(dims, spare=spare)
        reader.check(program)
    except InputError:
        raise
    except (KeyError, TypeError, AttributeError, IndexError, ValueError, OverflowError, RecursionError) as error:
        what = f"missing {error}" if isinstance(error, KeyError) else " ".join(str(error).split())[:200]
        raise InputError(
            f"the program is malformed: {what}", source=source, where=reader.place, remedy="export it again"
        ) from None
    return program


class _Reader:
    def __init__(self, text: ProgramText, source: str) -> None:
        self._text, self._source = text, source
        self.place = "/graph_module"
        self._gradients = True

    def program(self, dims: SizeTerms, *, spare: bool) -> Program:
        module = self._text.program["graph_module"]
        graph = module["graph"]
        self.place = "/graph_module/signature"
        inputs = [one for spec in module["signature"]["input_specs"] if (one := input_of(spec)) is not None]
        users = {one.name for one in inputs if one.kind == USER}
        self.place = "/graph_module/graph/tensor_values"
        numbers = [name for spec in module["signature"]["input_specs"] if (name := number_of(spec)) is not None]
        symbols, places = _symbols(graph, {*users, *numbers})
        shapes = [_shape(name, graph["tensor_values"].get(name)) for name in users]
        sizes = Sizes(symbols, places, _ranges(self._text.program), dims, self._source, inputs=shapes, spare=spare)
        self.place = "/graph_module/signature/output_specs"
        returned, rewritten = results_of(module["signature"].get("output_specs", ()), graph["outputs"])
        by_target = {one.target: one.name for one in inputs if one.kind != USER} | {one: one for one in users}
        program = Program(self._source, sizes, inputs, returned)
        program.rewritten = [(value, by_target[target]) for value, target in rewritten]
        program.numbers = tuple(numbers)
        program.torch_version = str(self._text.program.get("torch_version", ""))
        program.stored_as = {
            target: place
            for config in (self._text.weights, self._text.constants)
            for target, entry in config.items()
            if isinstance(entry, dict) and (place := _place(entry)) is not None
        }
        parameters = {one.name: one.target for one in inputs if one.kind == PARAMETER}
        program.trainable = trainable_parameters(parameters, self._text.weights, graph["tensor_values"])
        program.calls = list(self._calls(program, graph, {}, "", "/graph_module/graph", 0))
        return program

    def check(self, program: Program) -> None:
        """Raise ValueError if a tensor is read before it is made, is made twice, or has no type."""
        known: set[str] = set()

        def make(name: Any) -> None:
            if not isinstance(name, str) or name not in program.types:
                raise ValueError(f"tensor {shown(name)} has no type")
            if name in known:
                raise ValueError(f"tensor {name!r} is made twice")
            known.add(name)

        self.place = "/graph_module/signature/input_specs"
        for one in program.inputs:
            make(one.name)
            if not isinstance(one.target, str):
                raise ValueError(f"{shown(one.target)} is no name of a parameter")
        for call in program.calls:
            self.place = f"node {call.name!r}"
            missing = [name for name in call.tensors() if name not in known]
            if missing:
                raise ValueError(f"it reads tensor {shown(missing[0])}, which nothing before it makes")
            for graph in call.graphs:
                _check_types(graph, program.types)
            for name in call.outputs:
                if name is not None:
                    make(name)
        self.place = "/graph_module/graph/outputs"
        for name in (*program.outputs, *(value for value, _ in program.rewritten)):
            if name not in known:
                raise ValueError(f"tensor {shown(name)} is made by nothing")

    def _calls(
        self, program: Program, graph: Mapping[str, Any], names: dict[str, str], prefix: str, place: str, depth: int
    ) -> Iterator[Call]:
        """Yield the nodes of a graph; *names* are those of its tensors where they differ from the file's."""
        if depth > _DEEPEST:
            raise InputError(f"graphs nested more than {_DEEPEST} deep", source=self._source, where=place)
        values = graph["tensor_values"]
        for key, entry in values.items():
            name = names.setdefault(key, prefix + key)
            if name not in program.types:
                self.place = f"{place}/tensor_values/{key}"
                program.types[name] = self._type(entry, program.sizes, key)
                if any(_is_of_data(size) for size in entry["sizes"]):
                    program.sized_by_data.add(name)
        whole = graph.get("sym_int_values", {})
        for position, node in enumerate(graph["nodes"]):
            self.place = f"{place}/nodes/{position}"
            node = _without_token(node)
            kind, overload = _kind(node["target"])
            operands: dict[str, Any] = {}
            graphs = []
            for i, one in enumerate(node["inputs"]):
                key = one.get("name") or str(i)
                argument = one["arg"]
                if "as_graph" in argument:
                    graphs.append(argument["as_graph"])
                    operands[key] = None
                else:
                    operands[key] = self._argument(argument, names, whole, program.sizes)
            made = [names.get(name, prefix + name) if name is not None else None for name in _made(node["outputs"])]
            label = node.get("name") or next((name for name in made if name), f"{kind}_{position}")
            label = prefix + label if node.get("name") else label
            here = self.place
            if kind.partition(".")[2] in _MODES and kind.startswith("higher_order.") and len(graphs) == 1:
                outside = self._gradients
                if kind.endswith("set_grad_enabled"):
                    self._gradients = next(iter(operands.values())) is not False
                yield from self._inlined(program, graphs[0], operands, made, f"{label}/", here, depth)
                self._gradients = outside
                continue
            inner = [self._subgraph(program, one, f"{label}/", here, depth) for one in graphs]
            module, visit = innermost_module(node.get("metadata", {}))
            visits = visits_of(node.get("metadata", {}))
            read = [prefix + name for name in _sizes([one["arg"] for one in node["inputs"]])]
            last = (inner, read, [prefix + name for name in _sizes(node["outputs"])], self._gradients, visit, visits)
            yield Call(kind, overload, label, operands, made, module, position, *last)

    def _inlined(
        self,
        program: Program,
        argument: Mapping[str, Any],
        operands: Mapping[str, Any],
        made: Sequence[str | None],
        prefix: str,
        place: str,
        depth: int,
    ) -> Iterator[Call]:
        graph = argument["graph"]
        after = list(operands.values())
        given = after[after.index(None) + 1 :]
        names: dict[str, str] = {}
        for entry, value in zip(graph["inputs"], given, strict=False):
            if "as_tensor" in entry and isinstance(value, TensorRef):
                names[entry["as_tensor"]["name"]] = value.name
        for result, name in zip(_made(graph["outputs"]), made, strict=False):
            if result is not None and name is not None and result not in names:
                names[result] = name
        yield from self._calls(program, graph, names, prefix, f"{place}/{argument['name']}", depth + 1)

    def _subgraph(self, program: Program, argument: Mapping[str, Any], prefix: str, place: str, depth: int) -> Subgraph:
        graph, name = argument["graph"], argument["name"]
        names: dict[str, str] = {}
        calls = list(self._calls(program, graph, names, f"{prefix}{name}/", f"{place}/{name}", depth + 1))
        ends = [[names.get(one) if one else None for one in _made(graph[key])] for key in ("inputs", "outputs")]
        return Subgraph(name, calls, *ends)

    def _type(self, entry: Mapping[str, Any], sizes: Sizes, name: str) -> TensorType:
        dtype = entry["dtype"]
        if not is_known_dtype(dtype):
            problem = f"tensor {name!r} has the element type {shown(dtype)}"
            raise InputError(problem, source=self._source, where=self.place, remedy="export it with another type")
        shape = tuple(sizes.of(size, f"tensor {name!r}, axis {axis}") for axis, size in enumerate(entry["sizes"]))
        if any(size < 0 for size in shape):
            raise InputError("a size cannot be negative", source=self._source, where=self.place)
        return TensorType(dtype, shape, _strides(entry.get("strides"), sizes, len(shape)))

    def _argument(
        self, argument: Mapping[str, Any], names: Mapping[str, str], whole: Mapping[str, Any], sizes: Sizes
    ) -> Any:
        """Return an operand as Python has it."""
        ((kind, value),) = argument.items()
        if kind in ("as_tensor", "as_optional_tensor"):
            if kind == "as_optional_tensor":
                return self._argument(value, names, whole, sizes)
            return TensorRef(names.get(value["name"], value["name"]))
        if kind == "as_tensors":
            return [TensorRef(names.get(one["name"], one["name"])) for one in value]
        if kind == "as_optional_tensors":
            return [self._argument(one, names, whole, sizes) for one in value]
        if kind == "as_nested_tensors":
            return [TensorRef(names.get(one["name"], one["name"])) for row in value for one in row]
        if kind == "as_sym_int":
            return self._whole(value, whole, sizes)
        if kind == "as_sym_ints":
            return [self._whole(one, whole, sizes) for one in value]
        return None if kind == "as_none" else value

    def _whole(self, value: Mapping[str, Any], whole: Mapping[str, Any], sizes: Sizes) -> int | None:
        if "as_int" in value:
            return int(value["as_int"])
        known = whole.get(value["as_name"])
        return None if known is None else sizes.of(known, f"size {value['as_name']!r}")


def _check_types(graph: Subgraph, types: Mapping[str, TensorType]) -> None:
    """Raise ValueError if a tensor in a graph has no type."""
    for call in graph.calls:
        for name in (*call.tensors(), *call.outputs):
            if name is not None and name not in types:
                raise ValueError(f"tensor {shown(name)} has no type")
        for inner in call.graphs:
            _check_types(inner, types)


def _place(entry: Mapping[str, Any]) -> str | None:
    """Return where a tensor is stored: tied ones are in one place.

    PyTorch does not say it of those on the device ``meta``, our own archives do.
    """
    meta = entry.get("tensor_meta")
    if not isinstance(meta, dict) or not isinstance(entry.get("path_name"), str):
        return None
    device = meta.get("device")
    storage = entry.get(STORAGE, entry["path_name"])
    if STORAGE not in entry and (not isinstance(device, dict) or device.get("type") == "meta"):
        return None
    return f"{storage} {meta.get('sizes')} {meta.get('strides')} {meta.get('storage_offset')}"


def _symbols(graph: Mapping[str, Any], users: set[str]) -> tuple[dict[str, int | None], dict[str, str]]:
    """Return the symbols of all sizes with their hints, and where user inputs have one by itself, or are one."""
    symbols: dict[str, int | None] = {}
    places: dict[str, str] = {}
    entries: list[tuple[str, int | None, Any]] = [
        (name, axis, size) for name, one in graph["tensor_values"].items() for axis, size in enumerate(one["sizes"])
    ]
    entries += [(name, None, size) for name, size in graph.get("sym_int_values", {}).items()]
    for name, axis, size in entries:
        expression = size.get("as_expr") if isinstance(size, dict) else None
        if not isinstance(expression, dict) or not isinstance(expression.get("expr_str"), str):
            continue
        try:
            found = symbols_of(expression["expr_str"])
        except ValueError:
            continue
        alone = len(found) == 1 and expression["expr_str"].startswith("Symbol(")
        for symbol in found:
            symbols.setdefault(symbol, None)
        if alone:
            symbols[found[0]] = symbols[found[0]] or hint_of(expression)
            if name in users:
                places.setdefault(name if axis is None else f"{name}:{axis}", found[0])
    return symbols, places


def _is_of_data(size: Any) -> bool:
    """Say whether a size depends on a symbol that PyTorch has made up while it ran: ``u0``."""
    expression = size.get("as_expr") if isinstance(size, dict) else None
    text = expression.get("expr_str") if isinstance(expression, dict) else None
    try:
        return isinstance(text, str) and any(symbol.startswith("u") for symbol in symbols_of(text))
    except ValueError:
        return True


def _shape(name: str, entry: Any) -> InputShape:
    """Return a user input with the symbols that are sizes of it by themselves."""
    sizes = entry["sizes"] if isinstance(entry, dict) else []
    dims = [
        size.get("as_int") if isinstance(size, dict) and type(size.get("as_int")) is int else None for size in sizes
    ]
    floating = isinstance(entry, dict) and entry.get("dtype") not in WHOLE_DTYPES
    return InputShape(name, floating, dims)


def _ranges(program: Mapping[str, Any]) -> dict[str, tuple[int | None, int | None]]:
    given = program.get("range_constraints")
    rows = given.items() if isinstance(given, dict) else ()
    ends = {name: (row.get("min_val"), row.get("max_val")) for name, row in rows if isinstance(row, dict)}
    return {name: tuple(end if type(end) is int else None for end in pair) for name, pair in ends.items()}  # type: ignore[misc]


def _kind(target: Any) -> tuple[str, str]:
    match = _TARGET.fullmatch(target)
    if match is None:
        return str(target), ""
    return f"{match['space']}.{match['name']}", match["overload"] or ""


def _without_token(node: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the call that a token of effects keeps in order: its operator stands behind the token, as an operand."""
    if not str(node["target"]).endswith("higher_order.with_effects"):
        return node
    _, operator, *operands = node["inputs"]
    return {**node, "target": operator["arg"]["as_operator"], "inputs": operands, "outputs": node["outputs"][1:]}


def _made(outputs: Sequence[Mapping[str, Any]]) -> Iterator[str | None]:
    """Yield the tensors among outputs, None for each that is none."""
    for output in outputs:
        ((kind, value),) = output.items()
        if kind == "as_tensor":
            yield value["name"]
        elif kind == "as_tensors":
            yield from (one["name"] for one in value)
        elif kind == "as_optional_tensors":
            yield from (one["as_tensor"]["name"] if "as_tensor" in one else None for one in value)
        elif kind == "as_optional_tensor":
            yield value["as_tensor"]["name"] if "as_tensor" in value else None
        else:
            yield None


def _strides(entries: Any, sizes: Sizes, rank: int) -> tuple[int, ...] | None:
    """Return strides; None where the file does not tell them, or only by what is not known."""
    if not isinstance(entries, list) or len(entries) != rank:
        return None
    try:
        return tuple(sizes.of(one, "strides") for one in entries)
    except InputError:
        return None


def _sizes(arguments: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the names of sizes among operands or results."""
    for argument in arguments:
        ((kind, value),) = argument.items()
        if kind in ("as_sym_int", "as_sym_bool", "as_sym_float"):
            value = [value]
        elif kind not in ("as_sym_ints", "as_sym_bools", "as_sym_floats"):
            continue
        yield from (one["as_name"] for one in value if "as_name" in one)


def trainable_parameters(
    targets: Mapping[str, str], weights: Mapping[str, Any], values: Mapping[str, Any]
) -> frozenset[str] | None:
    """Return the tensors of the parameters that require gradients; None where the file does not say it of any.

    Parameters
    ----------
    targets
        Names of parameters in the model, by those of their tensors.
    weights
        What the archive says of stored weights, by their names in the model; it goes before *values*.
    values
        What the program says of tensors.
    """
    said = {tensor: _requires_grad(weights.get(target), values.get(tensor)) for tensor, target in targets.items()}
    if said and set(said.values()) == {None}:
        return None
    return frozenset(tensor for tensor, required in said.items() if required)


def _requires_grad(entry: Any, value: Any) -> bool | None:
    stored = entry.get("tensor_meta") if isinstance(entry, dict) else None
    for meta in (stored, value):
        if isinstance(meta, dict) and isinstance(meta.get("requires_grad"), bool):
            return bool(meta["requires_grad"])
    return None
