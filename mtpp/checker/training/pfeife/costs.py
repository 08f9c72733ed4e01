"""Costs of a model cut along an order, in ticks and bytes, from the model and the setting that a plan states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any, NamedTuple

from mtpp.checker.checks import model_graph
from mtpp.checker.document import PICOSECONDS_PER_UNIT
from mtpp.checker.graph import TickGraph, first_come_order
from mtpp.checker.training.model import StatedConfiguration, StatedModel, layer_ids, transfer_ticks
from mtpp.checker.training.pfeife.document import ALL_TRAINED, STATED, as_fraction, each_device
from mtpp.document_shape import refuse
from mtpp.errors import InputError

LARGEST = 2**61


class Tensor(NamedTuple):
    """A tensor by positions of its producer and its readers; *size* is None where the model does not say."""

    producer: int
    readers: tuple[int, ...]
    ticks: int
    size: int | None


@dataclass(frozen=True)
class Line:
    """Ops in an order, by position.

    Attributes
    ----------
    forward, backward
        Of each op and a micro-batch, by device; ticks.
    plain_forward, plain_backward
        The same on a device of speed 1.
    fixed, kept
        Bytes of each op, whatever is in flight and for each micro-batch in flight.
    least_held
        Bytes with one micro-batch in flight, of a layer as its smallest configuration.
    repeated
        Bytes that count more than once at most, since each op of a graph keeps all weights that it reads.
    """

    names: list[Any]
    time_unit: str
    ticks_per_unit: int
    forward: list[list[int]]
    backward: list[list[int]]
    plain_forward: list[int]
    plain_backward: list[int]
    fixed: list[int]
    kept: list[int]
    tensors: list[Tensor]
    latency: int
    sizes_known: bool
    least_held: list[int]
    repeated: int

    @property
    def count(self) -> int:
        """Number of ops."""
        return len(self.names)

    @property
    def devices(self) -> int:
        """D."""
        return len(self.forward)

    def crossing(self, amounts: Sequence[int]) -> list[int]:
        """Return the sum of amounts of all tensors that cross each position, 0 to n."""
        steps = [0] * (self.count + 2)
        for tensor, amount in zip(self.tensors, amounts, strict=True):
            if tensor.readers:
                steps[tensor.producer + 1] += amount
                steps[max(tensor.readers) + 1] -= amount
        sums, total = [], 0
        for step in steps[:-1]:
            total += step
            sums.append(total)
        return sums

    def handover(self) -> list[int]:
        """Return the ticks of handing over all that crosses each position."""
        moved = self.crossing([tensor.ticks for tensor in self.tensors])
        count = self.crossing([1] * len(self.tensors))
        return [ticks + self.latency if any_ else 0 for ticks, any_ in zip(moved, count, strict=True)]


def sums_of(values: Sequence[int]) -> list[int]:
    """Return the sums of the first values."""
    sums = [0]
    for value in values:
        sums.append(sums[-1] + value)
    return sums


def graph_line(plan: dict[str, Any], document: Any) -> Line | str:
    """Return a graph in the order that a plan cuts; or why that cannot be."""
    system, costs = plan["system"], plan["costs"]
    graph = model_graph(document, {"bandwidth_bytes_per_s": system["bandwidth_bytes_per_s"]}, 1)
    ratio, state = as_fraction(costs["backward_ratio"]), as_fraction(costs["state"])
    if costs.get("configurations") is not None:
        return f"it says that layers run as {costs['configurations']} configurations, and is of a graph"
    rule = plan["costs"].get("trained", ALL_TRAINED)
    states = any(key in op for op in document["ops"] for key in ("trainable_bytes", "backward_share"))
    if "trained" in plan["costs"] and rule != (STATED if states else ALL_TRAINED):
        return f"it says that {rule} parameters are trained, and the graph {'' if states else 'does not '}state which"
    trained = gradients_of(graph, document["ops"]) if rule == STATED else None
    kept = [0] * graph.op_count
    for t, size in enumerate(graph.tensor_bytes):
        touching = (graph.producer[t], *graph.consumers[t])
        if trained is None or any(trained[v].runs for v in touching):
            kept[graph.producer[t]] += size or 0
    backward = [ceil(ratio * work) for work in graph.work]
    sizes = graph.read_bytes()
    fixed = [ceil(state * size) for size in sizes]
    if trained is not None:
        backward = [ceil(ratio * one.part * work) for one, work in zip(trained, graph.work, strict=True)]
        fixed = [ceil(state * one.parameters) + size - one.parameters for one, size in zip(trained, sizes, strict=True)]
    for v, op in enumerate(document["ops"]):
        if "backward" in op:
            backward[v] = ceil(Fraction(*op["backward"].as_integer_ratio()) * graph.ticks_per_unit)
        if "kept_bytes" in op:
            kept[v] = op["kept_bytes"]
    order = _order(plan["order"], graph.order, graph.op_names, [(u, v) for _, u, v in graph.edges()])
    place = {v: p for p, v in enumerate(order)}
    tensors = [
        Tensor(place[graph.producer[t]], tuple(place[v] for v in graph.consumers[t]), graph.transfer[t], size)
        for t, size in enumerate(graph.tensor_bytes)
    ]
    return _line(
        plan,
        [graph.op_names[v] for v in order],
        (graph.time_unit, graph.ticks_per_unit),
        [[column[v] for v in order] for column in (graph.work, backward, fixed, kept)],
        tensors,
        sizes_known=None not in graph.tensor_bytes,
        repeated=ceil(max(state, Fraction(1)) * (sum(sizes) - sum(graph.param_bytes))),
    )


def layer_line(plan: dict[str, Any], model: StatedModel) -> Line | str:
    """Return a layer model in the order that a plan cuts, each layer as its plan says; or why that cannot be."""
    ids = layer_ids(model)
    ratio = as_fraction(plan["costs"]["backward_ratio"])
    index = {one: i for i, one in enumerate(ids)}
    edges = [(index[edge.source], index[edge.target]) for edge in model.edges]
    rule = plan["costs"]["configurations"]
    if rule is None:
        return "it does not say which configurations layers run as"
    if plan["costs"].get("trained") is not None:
        return "it says which parameters of a graph are trained, and is of layers"
    named: dict[str, str] = {}
    for s, row in enumerate(plan["stages"]):
        if sorted(row.get("configurations", {})) != sorted(map(str, row["layers"])):
            return f"the configurations of stage {s} are not of its layers"
        named |= row["configurations"]
    limit = plan["system"]["memory_bytes"]
    most = None if limit is None else max(each_device(limit, plan["system"]["devices"]))
    unit = PICOSECONDS_PER_UNIT[model.time_unit]
    columns: list[list[int]] = [[], [], [], []]
    smallest: list[int] = []
    for layer in model.layers:
        choices = {one.id: one for one in layer.configurations.get(1, ())}
        if not choices:
            return f"layer {layer.id!r} has no configuration for one device"
        due = _choice(list(choices.values()), rule, most)
        chosen = choices.get(named.get(str(layer.id), "")) if plan["feasible"] else due
        if chosen is None:
            return f"layer {layer.id!r} has no configuration {named.get(str(layer.id))!r} for one device"
        if _rank(chosen, rule) != _rank(due, rule):
            return (
                f"layer {layer.id!r} runs as {chosen.id!r}, which is not its {rule} configuration: that is {due.id!r}"
            )
        smallest.append(min(one.memory_a + one.memory_b for one in choices.values()))
        forward, backward = _passes(chosen, model, ratio, unit)
        for column, value in zip(columns, (forward, backward, chosen.memory_b, chosen.memory_a), strict=True):
            column.append(value)
    order = _order(plan["order"], first_come_order(len(ids), edges), ids, edges)
    place = {v: p for p, v in enumerate(order)}
    bandwidth = plan["system"]["bandwidth_bytes_per_s"]
    tensors = [
        Tensor(place[u], (place[v],), transfer_ticks(edge.communication_bytes, bandwidth), edge.communication_bytes)
        for (u, v), edge in zip(edges, model.edges, strict=True)
    ]
    return _line(
        plan,
        [ids[v] for v in order],
        (model.time_unit, unit),
        [[column[v] for v in order] for column in columns],
        tensors,
        sizes_known=True,
        held=[smallest[v] for v in order],
    )


def _choice(choices: Sequence[StatedConfiguration], rule: str, most: int | None) -> StatedConfiguration:
    """Return the configuration that a layer runs as; *most* is the memory of the largest device."""
    if rule == "fastest":
        fitting = [one for one in choices if most is None or one.memory_a + one.memory_b <= most]
        choices = fitting or choices
    return min(choices, key=lambda one: _rank(one, rule))


def _rank(one: StatedConfiguration, rule: str) -> tuple[Any, ...]:
    if rule == "fastest":
        return one.time_per_sample, one.memory_a, one.memory_b
    if rule == "least-kept":
        return one.memory_a, one.memory_b, one.time_per_sample
    return one.memory_a + one.memory_b, one.memory_a, one.time_per_sample


def _passes(one: StatedConfiguration, model: StatedModel, ratio: Fraction, unit: int) -> tuple[int, int]:
    listed = one.micro_batches.get(model.micro_batch_size or 0)
    if listed is not None:
        return ceil(Fraction(listed.forward) * unit), ceil(Fraction(listed.backward) * unit)
    whole = Fraction(one.time_per_sample) * unit
    forward = whole / (1 + ratio)
    return ceil(forward), ceil(whole - forward)


def _line(
    plan: dict[str, Any],
    names: list[Any],
    unit: tuple[str, int],
    columns: list[list[int]],
    tensors: list[Tensor],
    *,
    sizes_known: bool,
    held: list[int] | None = None,
    repeated: int = 0,
) -> Line:
    forward, backward, fixed, kept = columns
    speeds = [as_fraction(one) for one in each_device(plan["system"]["speed"], plan["system"]["devices"])]
    rows: dict[Fraction, tuple[list[int], list[int]]] = {}
    for speed in set(speeds):
        rows[speed] = ([ceil(one / speed) for one in forward], [ceil(one / speed) for one in backward])
        if sum(rows[speed][0]) + sum(rows[speed][1]) + sum(tensor.ticks for tensor in tensors) >= LARGEST:
            refuse("the costs are too large", ("system",))
    return Line(
        names,
        *unit,
        [rows[speed][0] for speed in speeds],
        [rows[speed][1] for speed in speeds],
        forward,
        backward,
        fixed,
        kept,
        tensors,
        plan["system"]["latency_ticks"],
        sizes_known,
        held or [a + b for a, b in zip(fixed, kept, strict=True)],
        repeated,
    )


def _order(stated: Any, own: Sequence[int], names: Sequence[Any], edges: Sequence[tuple[int, int]]) -> list[int]:
    """Return the order of a plan as positions in the model: its own, or one that is stated."""
    if stated is None:
        return list(own)
    index = {name: v for v, name in enumerate(names)}
    if len(stated) != len(names) or {one if isinstance(one, str) else int(one) for one in stated} != set(index):
        refuse("is no order of all ops of the model", ("order",))
    order = [index[name] for name in stated]
    place = {v: p for p, v in enumerate(order)}
    for u, v in edges:
        if place[u] > place[v]:
            refuse(f"{names[v]!r} comes before {names[u]!r}, which it reads from", ("order", place[v]))
    return order


class Gradients(NamedTuple):
    """Bytes of an op's parameters that are trained, and the part of its backward pass that runs."""

    parameters: int
    part: Fraction

    @property
    def runs(self) -> bool:
        """True if it has a backward pass."""
        return self.part > 0 or self.parameters > 0


def gradients_of(graph: TickGraph, ops: Sequence[dict[str, Any]]) -> list[Gradients]:
    """Return what is trained in each op, and which gradients follow from it where the graph does not state them."""
    before: list[list[int]] = [[] for _ in ops]
    for _, u, v in graph.edges():
        before[v].append(u)
    found = [Gradients(0, Fraction(0))] * len(ops)
    sizes = graph.read_bytes()
    for v in graph.order:
        op, size = ops[v], sizes[v]
        parameters = op.get("trainable_bytes", size)
        flows = any(found[u].runs for u in before[v])
        part = Fraction(flows)
        if size > 0:
            part = Fraction(flows + (parameters > 0), 2)
        if "backward_share" in op:
            part = Fraction(*op["backward_share"].as_integer_ratio())
        if parameters > size or part > 1:
            raise InputError("more than all of it is trained", source="model", where=f"/ops/{v}")
        found[v] = Gradients(parameters, part)
    return found
