"""Validity of the stages of a plan by ``graphpipe``: Jeon et al. (2025), section 3, condition by condition.

Every layer is in one stage; no edge goes to an earlier one, so that the stage graph is acyclic and stages are convex
(C1); each stage runs on d devices of its own, with micro-batches of a size that all its layers can run, and enough of
them in flight.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from mtpp.checker.facts import counted
from mtpp.checker.report import Check, complete
from mtpp.checker.training.graphpipe.costs import GraphModel, LayerChoice
from mtpp.checker.training.graphpipe.pipeline import GraphStage, edges_between
from mtpp.checker.training.graphpipe.setting import Setting
from mtpp.checker.training.model import LayerId
from mtpp.checker.training.plan_rows import Rows, configurations_row, edges_row, layers_row, stages_of_layers

SHAPE = ("layers", "edges", "devices", "configurations", "micro-batch sizes", "orders", "in flight")
"""Rows on the stages being a plan at all."""

NO_STAGES = "the stages are no plan"


class Schedule(NamedTuple):
    """Samples b of a stage's micro-batches, k of its kFkB order, and its micro-batches in flight."""

    b: int
    k: int
    in_flight: int


def fewest_in_flight(b: int, k: int, behind: Iterable[Schedule], mini_batch: int) -> int:
    """Return the fewest micro-batches in flight, given the stages that read from this one.

    Notes
    -----
    Jeon et al. (2025), Table 2, in one line. In samples, i_x is at least i_y + max(0, k_x·b_x - k_y·b_y) + m or 2m for
    each stage y behind x, m being the larger size of the two, and doubled if it is below both k·b; a stage with none
    behind it keeps k·b. Rounded up to micro-batches, and never more than there are.
    """
    needed = k * b
    for other in behind:
        ours, theirs, larger = k * b, other.k * other.b, max(b, other.b)
        step = 2 * larger if larger < min(ours, theirs) else larger
        needed = max(needed, other.b * other.in_flight + max(0, ours - theirs) + step)
    return min(-(-needed // b), mini_batch // b)


def sizes_agree(b: int, other: int) -> bool:
    """Tell whether neighbours may have micro-batches of these sizes: one divides the other."""
    return max(b, other) % min(b, other) == 0


def validity_checks(rows: Rows, model: GraphModel, setting: Setting) -> list[Check]:
    """Check stages as a document has them, all but what they take; what rests on a row that fails is unchecked."""
    checks = [layers_row(rows, model.ids)]
    if checks[0].passed:
        stage_of = stages_of_layers(rows, model.ids)
        order = "in the order of the line" if setting.sequential else "in a topological order"
        checks += [
            edges_row(model.edges, model.ids, stage_of, f": {counted(len(rows), 'stage')} {order}"),
            _check_devices(rows, setting),
            _check_configurations(rows, model),
            _check_sizes(rows, model, stage_of, setting),
        ]
        if all(check.passed for check in checks):
            checks += [_check_orders(rows, setting), _check_in_flight(rows, model, stage_of, setting)]
    return list(complete(checks, SHAPE, NO_STAGES))


def stages_of(rows: Rows, model: GraphModel) -> list[GraphStage]:
    """Return stages that passed :func:`validity_checks`."""
    place = {name: i for i, name in enumerate(model.ids)}

    def chosen(row: dict[str, Any], layer: LayerId) -> LayerChoice:
        named = row["configurations"][str(layer)]
        return next(one for one in model.choices[place[layer]] if one.name == named)

    return [
        GraphStage(
            {place[layer]: chosen(row, layer) for layer in row["layers"]},
            row["data_parallel"],
            row["micro_batch"],
            row["forwards_backwards"],
            row["in_flight"],
        )
        for row in rows
    ]


def _check_devices(rows: Rows, setting: Setting) -> Check:
    name = "devices"
    for i, row in enumerate(rows):
        d = row["data_parallel"]
        if row["tensor_parallel"] != 1:
            said = row["tensor_parallel"]
            return Check(name, False, f"stage {i}: a tensor-parallel degree of {said}, this planner knows only 1")
        if d > 1 and not setting.data_parallel:
            return Check(name, False, f"stage {i}: a data-parallel degree of {d}, without data parallelism")
        if row["devices"] != d:
            return Check(name, False, f"stage {i}: the plan says {row['devices']} devices, it is {d}")
    total = sum(row["data_parallel"] for row in rows)
    if total > setting.devices:
        return Check(name, False, f"stages take {total} devices, there are {setting.devices}")
    return Check(name, True, f"{total} of {setting.devices}")


def _check_configurations(rows: Rows, model: GraphModel) -> Check:
    def usable(layer: int, _: int) -> set[str]:
        return {one.name for one in model.choices[layer]}

    return configurations_row(rows, model.ids, lambda v, t: usable(v, t) | model.barred[v], usable, "on one device")


def _check_sizes(rows: Rows, model: GraphModel, stage_of: dict[int, int], setting: Setting) -> Check:
    name = "micro-batch sizes"
    place = {layer: i for i, layer in enumerate(model.ids)}
    for i, row in enumerate(rows):
        b, d = row["micro_batch"], row["data_parallel"]
        if b not in setting.sizes:
            return Check(name, False, f"stage {i}: {b} samples are not one of the sizes that stages may have")
        if b % d:
            return Check(name, False, f"stage {i}: {b} samples do not divide evenly among {d} devices")
        if b != rows[0]["micro_batch"] and not setting.per_stage:
            first = rows[0]["micro_batch"]
            return Check(name, False, f"stage {i}: {b} samples, stage 0 has {first}, and all have to be the same")
        for layer in row["layers"]:
            for one in model.choices[place[layer]]:
                if one.name == row["configurations"].get(str(layer)) and one.passes(b // d) is None:
                    what = f"{one.name[:60]!r} of layer {layer!r}"
                    return Check(name, False, f"stage {i}: {what} has no costs of {b // d} samples on a device")
    for s, t in edges_between(model, stage_of, line_of=len(rows) if setting.sequential else 0):
        b, other = rows[s]["micro_batch"], rows[t]["micro_batch"]
        if not sizes_agree(b, other):
            return Check(name, False, f"stages {s} and {t}: neither of {b} and {other} samples divides the other")
    *most, last = sorted({row["micro_batch"] for row in rows})
    return Check(name, True, "".join(f"{size}, " for size in most) + counted(last, "sample"))


def _check_orders(rows: Rows, setting: Setting) -> Check:
    name = "orders"
    for i, row in enumerate(rows):
        k, in_flight = row["forwards_backwards"], row["in_flight"]
        if k not in setting.intervals:
            return Check(name, False, f"stage {i}: {k}F{k}B is not one of the orders that stages may have")
        if k > in_flight:
            return Check(
                name, False, f"stage {i}: {k}F{k}B with {counted(in_flight, 'micro-batch')} in flight, fewer than {k}"
            )
    return Check(name, True, ", ".join(f"{k}F{k}B" for k in sorted({row["forwards_backwards"] for row in rows})))


def _check_in_flight(rows: Rows, model: GraphModel, stage_of: dict[int, int], setting: Setting) -> Check:
    name = "in flight"
    schedules = [Schedule(row["micro_batch"], row["forwards_backwards"], row["in_flight"]) for row in rows]
    behind: list[list[Schedule]] = [[] for _ in rows]
    for s, t in edges_between(model, stage_of, line_of=len(rows) if setting.sequential else 0):
        behind[s].append(schedules[t])
    for i, (b, k, in_flight) in enumerate(schedules):
        fewest, most = fewest_in_flight(b, k, behind[i], setting.mini_batch), setting.batches(b)
        if in_flight < fewest:
            return Check(name, False, f"stage {i}: {counted(in_flight, 'micro-batch')}, at least {fewest} are needed")
        if setting.least and in_flight != fewest:
            return Check(
                name,
                False,
                f"stage {i}: {counted(in_flight, 'micro-batch')}, it has to be the fewest that do, {fewest}",
            )
        if in_flight > most:
            return Check(name, False, f"stage {i}: {counted(in_flight, 'micro-batch')}, a mini-batch has {most}")
    return Check(name, True, f"at most {counted(max(one.in_flight for one in schedules), 'micro-batch')}")
