"""A parsed model whose sizes may be open, and walks over it with sizes that are given or proposed."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx

from mtpp.errors import InputError
from mtpp.formats.modelled.op_record import GraphRecord
from mtpp.formats.modelled.open_sizes import OpenedSize, OpenSizes, UnknownSize, is_misfit
from mtpp.formats.modelled.size_terms import SizeTerms, are_proposed, named_sizes, size_of_others
from mtpp.formats.onnx.constants.on_demand import StoredConstants
from mtpp.formats.onnx.dimensions import Dimensions, OpenTensor
from mtpp.formats.onnx.estimates.numbers import INFINITE, Numbers
from mtpp.formats.onnx.loading import opset_versions, parse_model
from mtpp.formats.onnx.local_functions.inline import inline_functions
from mtpp.formats.onnx.scope import Known, Scope
from mtpp.formats.onnx.shape_rules.layout_shapes import channel_block
from mtpp.formats.onnx.shapes import ShapeInference
from mtpp.formats.onnx.tensor_type import OpaqueType, PartialType, TensorType, ValueType, dtype_name, partial_type
from mtpp.formats.onnx.topology import parameter_names, reads
from mtpp.formats.onnx.value_ranges import row_limits
from mtpp.formats.onnx.walking.walk import Walk
from mtpp.machine.device import Device
from mtpp.machine.presets import load_device

if TYPE_CHECKING:
    from mtpp.formats.onnx.proposals.fit import Fit


@dataclass(frozen=True)
class Walked:
    """What walking over a model gave.

    Attributes
    ----------
    estimates
        Sizes that may differ from run to run, by ``TENSOR:AXIS``, where they begin to.
    proposed
        Keys of the sizes that nobody gave.
    """

    dimensions: Dimensions
    scope: Scope
    record: GraphRecord
    estimates: Mapping[str, OpenedSize]
    proposed: tuple[str, ...] = ()


@dataclass(frozen=True)
class OpenModel:
    """A model with its local functions inlined, tensors above 64 KiB without contents.

    Attributes
    ----------
    folder
        Where its external data lies: looked at only where sizes depend on it. None where there is no such place.
    """

    model: onnx.ModelProto
    source: str
    folder: Path | None = None

    @classmethod
    def parsed(cls, data: bytes, source: str, folder: Path | None = None) -> OpenModel:
        """Parse a serialized model."""
        return cls(inline_functions(parse_model(data, source), source), source, folder)

    @cached_property
    def parameters(self) -> Collection[str]:
        """Names of the initializers of the main graph."""
        return parameter_names(self.model.graph)

    def walked(self, terms: SizeTerms, system: Device, *, spare: bool = False, propose_sizes: bool = True) -> Walked:
        """Walk over the model with the sizes given, and with proposed ones if that is asked for.

        Parameters
        ----------
        spare
            Whether sizes for what the model does not have are left aside.
        propose_sizes
            Whether the error for open sizes tells all of them, with sizes that fit.
        """
        widened: list[int] = []
        try:
            return self._settled(terms, system, widened, spare=spare, propose_sizes=propose_sizes)
        except InputError as error:
            if isinstance(error, UnknownSize):
                error.inputs = self._declared_inputs()
            sizes = error.sizes if isinstance(error, OpenSizes) else ()
            unfit = is_misfit(error) or any(one.proposal is None for one in sizes)
            if not unfit or not any(widened):
                raise
            # Sizes that data decides need not be the largest all at once.
            with contextlib.suppress(InputError):
                return self._settled(terms, system, None, spare=spare, propose_sizes=propose_sizes)
            raise

    def _settled(
        self, terms: SizeTerms, system: Device, widened: list[int] | None, *, spare: bool, propose_sizes: bool
    ) -> Walked:
        """Walk over the model; *widened*: with the largest sizes, of which numbers are noted, None for estimates."""
        graph = self.model.graph
        try:
            return self._walk(terms, system, widened, spare=spare)
        except OpenTensor as error:
            take = are_proposed(terms)
            if error.misfit or not (take or propose_sizes):
                raise
            named = Dimensions(graph, self.parameters, named_sizes(terms), self.source, spare=spare).given

        from mtpp.formats.onnx.proposals import propose

        def attempt(sizes: Mapping[str, int], fit: Fit) -> InputError | None:
            try:
                self._walk(sizes, system, widened, fit=fit)
            except InputError as failed:
                return failed
            return None

        sizes = propose(graph, self.parameters, named, self.source, attempt, take=take)
        # Walked over once more, as any reader does that is given these sizes: a trial is stricter.
        return replace(self._walk({**named, **sizes}, system, widened), proposed=tuple(sizes))

    def _walk(
        self,
        terms: SizeTerms,
        system: Device,
        widened: list[int] | None,
        *,
        spare: bool = False,
        fit: Fit | None = None,
    ) -> Walked:
        model, graph = self.model, self.model.graph
        block = channel_block(graph)
        for trusting in (True, False):
            dimensions = Dimensions(graph, self.parameters, terms, self.source, spare=spare)
            scope = Scope()
            self._define_inputs(dimensions, scope)
            inference = ShapeInference(opset_versions(model), model.ir_version, block, trusting=trusting)
            constants = StoredConstants.of(model, self.folder)
            walk = Walk(system, inference, dimensions, self.source, fit, constants, widest=widened is not None)
            try:
                record = walk.graph(graph, scope)
            except InputError as error:
                if trusting and walk.overruled and fit is None and is_misfit(error):
                    continue  # declared sizes of data-dependent axes may be those of another run
                raise
            finally:
                if widened is not None:
                    widened.append(walk.widened)
            return Walked(dimensions, scope, record, walk.estimates)
        raise AssertionError("unreachable")

    def _define_inputs(self, dimensions: Dimensions, scope: Scope) -> None:
        """Make the graph's inputs known; one whose shape is open must not be read by any node."""
        graph = self.model.graph
        unknown: list[tuple[str, PartialType | OpaqueType]] = []
        for value in graph.input:
            if value.name in self.parameters:
                continue
            kind = partial_type(value.type)
            known: ValueType | None
            if isinstance(kind, PartialType):
                kind = dimensions.applied(value.name, kind, others=value.name in self._used)
                known = kind.complete()
            else:
                known = kind
            if isinstance(kind, OpaqueType) or known is None:
                unknown.append((value.name, kind))
            else:
                scope.define(value.name, self._input(value.name, known, scope.level))
        for name, kind in unknown:
            if name not in self._used:
                continue
            if isinstance(kind, PartialType):
                raise dimensions.unknown(name, kind, "graph input")
            raise InputError(
                f"tensor {name!r} is a {kind.what}, which has no static size",
                source=self.source,
                where="graph input",
                remedy="cut the model after it",
            )

    def _input(self, name: str, kind: ValueType, level: int) -> Known:
        """Return what is known of an input: numbers that pick rows are no more than there are."""
        known = Known(kind, level)
        if isinstance(kind, TensorType) and (most := self._row_limits.get(name)) is not None:
            known.numbers = Numbers.spread(-INFINITE, float(most), whole=True, shape=kind.shape)
        return known

    def _declared_inputs(self) -> list[dict[str, Any]]:
        """Return inputs as the file declares them, with names of open sizes, ``?`` for one without a name."""
        found = []
        for value in self.model.graph.input:
            kind = partial_type(value.type)
            if value.name in self.parameters:
                continue
            if isinstance(kind, PartialType):
                shape = None if kind.dims is None else ["?" if dim is None else dim for dim in kind.dims]
                found.append({"name": value.name, "shape": shape, "dtype": dtype_name(kind.dtype or 0)})
            else:
                found.append({"name": value.name, "shape": None, "dtype": kind.what})
        return found

    @cached_property
    def _row_limits(self) -> Mapping[str, int]:
        """The most that inputs can be which pick rows of tables."""
        return row_limits(self.model.graph)

    @cached_property
    def _used(self) -> frozenset[str]:
        """Names of all tensors that a node reads."""
        return frozenset(name for node in self.model.graph.node for name in reads(node))


@dataclass(frozen=True)
class InputSizes:
    """Sizes by name, and the names of those that nobody gave."""

    sizes: dict[str, int]
    proposed: tuple[str, ...] = ()


def input_sizes(data: bytes, source: str, terms: SizeTerms) -> InputSizes:
    """Return the sizes that a model's inputs need, by name."""
    named = named_sizes(terms)
    whole = OpenModel.parsed(data, source)
    graph = whole.model.graph
    dimensions = Dimensions(graph, whole.parameters, named, source)
    needed: list[str] = []
    for value in graph.input:
        kind = partial_type(value.type)
        if value.name not in whole.parameters and isinstance(kind, PartialType):
            needed += dimensions.keys_of(value.name, dimensions.applied(value.name, kind))
    if not needed:
        return InputSizes(named)
    others = size_of_others(terms)
    if others is not None:
        return InputSizes({**named, **dict.fromkeys(needed, others)})
    found = whole.walked(terms, load_device())
    proposed = tuple(key for key in found.proposed if key in needed)
    return InputSizes({**named, **{key: found.dimensions.given[key] for key in proposed}}, proposed)
