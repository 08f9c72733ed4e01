"""Known facts of each tensor during a walk over a graph, with bodies of control flow nested inside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import onnx

from mtpp.formats.modelled.parameter import Parameter
from mtpp.formats.onnx.constants.lazy_contents import Contents
from mtpp.formats.onnx.estimates.numbers import MOST_FOLLOWED, Number, Numbers
from mtpp.formats.onnx.estimates.partial_values import PartialValue, Sureness
from mtpp.formats.onnx.tensor_type import OpaqueType, PartialType, SequenceType, TensorType, ValueType
from mtpp.formats.onnx.values import Array, dtype_of, is_evaluated, is_small, tensor_of

RANK = -1
"""In place of an axis: the number of axes itself."""

NO_AXES: frozenset[int] = frozenset()


@dataclass(slots=True)
class Known:
    """What is known of one tensor.

    Attributes
    ----------
    level
        Nesting depth of the graph that defines it; 0 is the main graph.
    parameter
        None for an activation.
    value
        Contents, where they are small and each element has a number: certain ones, or assumed ones (*elements*).
    open_axes
        Axes of which only a run tells the size, :data:`RANK` among them if not even their number is certain: what the
        type says of them is an estimate, for costs. A sequence has any if its length or its elements are open.
    elements
        Contents of which not every element is certain; None where all of *value* are, or none is known.
    contents
        Of a constant: made on demand, where *value* is not known.
    numbers
        The least and the most of each element, once somebody asked for them.
    maker
        Tells these by a rule.
    assumed_axes
        Open axes of which no largest size is known: their estimate is an assumption.
    """

    type: ValueType
    level: int
    parameter: Parameter | None = None
    value: Array | None = None
    open_axes: frozenset[int] = NO_AXES
    elements: PartialValue | None = None
    contents: Contents | None = None
    numbers: Numbers | None = None
    maker: Callable[[], Numbers | None] | None = None
    assumed_axes: frozenset[int] = NO_AXES
    _sizes: dict[int, Number] = field(default_factory=dict, init=False)
    _type_proto: onnx.TypeProto | None = field(default=None, init=False)
    _sure_type_proto: onnx.TypeProto | None = field(default=None, init=False)
    _tensor_proto: onnx.TensorProto | None = field(default=None, init=False)

    @property
    def type_proto(self) -> onnx.TypeProto | None:
        """The type as shape inference wants it, made once; None for what is no tensor."""
        if self._type_proto is None and isinstance(self.type, TensorType):
            self._type_proto = self.type.to_proto()
        return self._type_proto

    def __post_init__(self) -> None:
        """Know the contents of what has no elements."""
        if self.value is None and isinstance(self.type, TensorType) and not self.type.count and not self.open_axes:
            empty = PartialValue.unknown(self.type)
            self.value = None if empty is None else empty.array

    def take(self, contents: PartialValue) -> None:
        """Take contents: those of a tensor with open axes are no more than assumed."""
        if self.open_axes:
            contents = contents.at_most(Sureness.ASSUMED)
        if contents.least >= Sureness.ASSUMED:
            self.value = contents.array
        if contents.least < Sureness.CERTAIN and contents.says_anything:
            self.elements = contents

    @property
    def ranged(self) -> Numbers | None:
        """The least and the most of each element, by its contents, by a rule, or by its type; None for no numbers."""
        kind = self.type
        if not isinstance(kind, TensorType):
            return None
        if self.value is not None and (self.elements is None or (self.numbers is None and self.maker is None)):
            return Numbers.constants(self.value)
        if self.numbers is None and self.maker is not None:
            maker, self.maker = self.maker, None
            self.numbers = maker()
        if self.numbers is not None and self.open_axes:
            self.numbers = self.numbers.together  # there may be fewer
        if self.numbers is None and is_small(kind.dtype, 1):
            self.numbers = Numbers.fresh(dtype_of(kind.dtype), None if self.open_axes else kind.shape)
        if self.elements is None or self.numbers is None:
            return self.numbers
        return self.numbers.with_constants(self.elements.array, self.elements.sureness == Sureness.CERTAIN)

    def assume(self) -> None:
        """Take estimates of elements that sizes got since: all sizes that one number decides have the same."""
        before = self.elements or PartialValue.unknown(self.type)
        if self.value is not None or self.open_axes or before is None or before.array.size > MOST_FOLLOWED:
            return
        numbers = self.ranged
        if numbers is None or not numbers.each or numbers.array.shape != before.array.shape:
            return
        array, sureness = before.array.copy(), before.sureness.copy()
        for index in np.ndindex(array.shape):
            if sureness[index] == Sureness.UNKNOWN and (estimate := numbers.array[index].estimate) is not None:
                array[index], sureness[index] = estimate, Sureness.ASSUMED
        if (sureness != before.sureness).any():
            self.take(PartialValue(array, sureness))

    @property
    def forgotten(self) -> Known:
        """The same tensor, of whose contents nothing is known."""
        return replace(self, value=None, elements=None, numbers=None, maker=None)

    def size(self, axis: int) -> Number:
        """Return the size of an axis: between nothing and its estimate, where that is the largest that it can be."""
        assert isinstance(self.type, TensorType)
        size = float(self.type.shape[axis])
        if axis not in self._sizes:
            is_range = axis in self.open_axes and axis not in self.assumed_axes
            self._sizes[axis] = Number.between(0.0, size, whole=True) if is_range else Number.constant(size)
        return self._sizes[axis]

    def fetch(self) -> bool:
        """Take the contents of a constant that are made on demand; say whether there are some that were not known."""
        if self.contents is None or self.value is not None or self.elements is not None:
            return False
        array = self.contents.get()
        if array is None or not is_evaluated(array):
            return False
        self.take(PartialValue.uniform(array, Sureness.CERTAIN if self.contents.certain else Sureness.ASSUMED))
        return True

    @property
    def on_demand(self) -> Contents | None:
        """The contents of a constant, known or made on demand; None where there is no way to them."""
        if self.value is not None:
            value = self.value
            return Contents(lambda: value, certain=self.elements is None)
        return self.contents

    @property
    def is_certain(self) -> bool:
        """True if neither a size nor an element is an estimate."""
        return not self.open_axes and self.elements is None

    @property
    def certain_value(self) -> Array | None:
        """The contents, where they are small and all certain."""
        return self.value if self.elements is None else None

    @property
    def partial(self) -> PartialValue | None:
        """The contents of a small tensor as far as they are known."""
        if self.elements is not None:
            return self.elements
        if self.value is not None:
            return PartialValue.uniform(self.value, Sureness.CERTAIN)
        return None if self.open_axes else PartialValue.unknown(self.type)

    @property
    def sure_type(self) -> PartialType | None:
        """The type without what is estimated; None for what is no tensor."""
        return None if not isinstance(self.type, TensorType) else self.type.without(self.open_axes)

    @property
    def sure(self) -> PartialType | SequenceType | OpaqueType | None:
        """Certain part of the type; None where nothing is certain."""
        if isinstance(self.type, TensorType):
            return self.type.without(self.open_axes)
        return None if self.open_axes else self.type

    @property
    def sure_type_proto(self) -> onnx.TypeProto | None:
        """The type without what is estimated, as shape inference wants it, made once; None for what is no tensor."""
        if not self.open_axes:
            return self.type_proto
        if self._sure_type_proto is None and (sure := self.sure_type) is not None:
            self._sure_type_proto = sure.to_proto()
        return self._sure_type_proto

    @property
    def tensor_proto(self) -> onnx.TensorProto | None:
        """The contents as shape inference wants them, made once."""
        if self._tensor_proto is None and self.value is not None:
            self._tensor_proto = tensor_of(self.value)
        return self._tensor_proto


class Scope:
    """Tensors of one graph by name; what it does not define itself is looked up in the graphs around it."""

    def __init__(self, outer: Scope | None = None) -> None:
        self.outer = outer
        self.level: int = 0 if outer is None else outer.level + 1
        self._known: dict[str, Known] = {}

    def define(self, name: str, known: Known) -> None:
        """Make a tensor known."""
        self._known[name] = known

    def defines(self, name: str) -> bool:
        """Say whether this graph itself (not one around it) defines *name*."""
        return name in self._known

    def find(self, name: str) -> Known | None:
        """Return what is known of *name*, None if it is defined nowhere."""
        scope: Scope | None = self
        while scope is not None:
            known = scope._known.get(name)
            if known is not None:
                return known
            scope = scope.outer
        return None
