"""Scores of partitions that were made by hand or by another tool."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, overload

from mtpp.api.output import ShownResult
from mtpp.errors import InputError, InvalidPartition
from mtpp.host.stop_reason import StopReason
from mtpp.inference.objective import check_stage_memory
from mtpp.inference.partition import Partition
from mtpp.inference.plan import Plan
from mtpp.names import ALGORITHMS, ENGINE_RULES
from mtpp.wording import counted

if TYPE_CHECKING:
    from mtpp.api.inputs.model import Model
    from mtpp.api.observer import Observer
    from mtpp.api.partition_plan import PartitionPlan
    from mtpp.formats.results.stage_comparison import StageComparison
    from mtpp.views.terminal import Medium

RENUMBERED = "the stages were numbered anew, in the order of the data flow"
"""What a caller is warned of where the numbers of stages are not those that were given."""

LISTED = "stages stand on devices in the order of the machine's file: devices of neighbours are not matched to stages"
"""What a caller is warned of where devices may stand anywhere, and other devices may be better."""


@dataclass(frozen=True, eq=False, repr=False)
class ComparedStages(ShownResult):
    """A scored partition held against another one, stage by stage.

    Attributes
    ----------
    plan, other
        Both; the first with the better lower bound of the two where they may have as many stages.
    comparison
        Their stages, and the parts of the difference of the bottlenecks.
    """

    plan: PartitionPlan
    other: PartitionPlan
    comparison: StageComparison

    @property
    def assumptions(self) -> Sequence[str]:
        """What the figures rest on."""
        return self.plan.assumptions

    @property
    def difference(self) -> int:
        """Ticks of the bottleneck above those of the other one."""
        return self.plan.bottleneck - self.other.bottleneck

    def _said(self) -> dict[str, Any]:
        return self.comparison.to_document()

    def _shown(self, medium: str | Medium) -> str:
        from mtpp.views.stage_comparison import compared_text

        return compared_text(self.comparison, medium, self.assumptions)


def plan_of_labels(
    model: Model,
    labels: Sequence[int],
    k: int | None,
    devices: Sequence[int] | None = None,
    degrees: Sequence[int] | None = None,
) -> Plan:
    """Score a partition; *k* defaults to the number of stages that the labels span, or of devices.

    Parameters
    ----------
    devices
        Device of each stage, where the machine's may stand anywhere; None: those of the least bottleneck for these
        stages. With transport between neighbours the order of the list.
    degrees
        Of tensor parallelism of each stage, where devices have any; None: the fastest.
    """
    from mtpp.api.partitioning.single import on_machine
    from mtpp.solvers.bounds.device_room import first_bound
    from mtpp.solvers.last_look.partition import look_at_partition
    from mtpp.solvers.local_search.device_matching import best_devices

    if model.degrees is not None:
        from mtpp.api.language_models.degrees import scored_with_degrees

        return scored_with_degrees(model, labels, k, devices, degrees)
    instance = model.instance(k or max(labels) + 1) if model.machine is None else model.whole_instance(k)
    lower = first_bound(instance)
    if devices is not None:
        instance = instance.on(devices)
    partition = Partition.from_labels(instance, labels)
    if devices is None and _any_order(model) and not instance.machine.neighbours:
        devices = best_devices(instance, partition)
        if devices is not None:
            instance = instance.on(devices)
            partition = Partition.from_stages(instance, partition.assignment)
    plan = Plan(
        graph=model.graph,
        instance=instance,
        partition=partition,
        lower=lower,
        algorithm="given",
        found_by="given",
        seed=0,
        evaluations=1,
        stopped=StopReason.FINISHED,
        devices=None if devices is None else tuple(devices),
    )
    busy = instance.k - len(partition.empty_stages)
    if busy > instance.most_used:
        raise InvalidPartition(f"{busy} blocks were given, but k is {instance.most_used}")
    check_stage_memory(instance, plan.costs)
    look_at_partition(instance, partition, plan.certificate.upper, "given", bounds=[(lower.method, lower.value)])
    return on_machine(plan, model)


def _any_order(model: Model) -> bool:
    """Tell whether unequal devices may stand anywhere in the pipeline."""
    return model.machine is not None and model.machine.free and len(model.machine.classes) > 1


def refuse_cuts(model: Model, labels: Sequence[int], k: int | None) -> None:
    """Raise InputError if cuts make more stages than there may be."""
    stages = len(set(labels))
    most = k if k is not None or model.machine is None else model.machine.count
    if most is not None and stages > most:
        at_most = f"the {counted(most, 'device')} of the machine" if k is None else f"k, {most}"
        raise InputError(f"make {stages} stages, more than {at_most}", parameter="cuts", remedy="give fewer")


def scored(
    model: Model,
    labels: Sequence[int],
    k: int | None,
    observer: Observer,
    devices: Sequence[int] | None = None,
    degrees: Sequence[int] | None = None,
) -> Plan:
    """Score a partition, and warn where its stages had to be numbered anew."""
    plan = plan_of_labels(model, labels, k, devices, degrees)
    if devices is None and _any_order(model) and plan.instance.machine.neighbours:
        observer.warn(LISTED)
    if plan.partition.assignment.tolist() != list(labels):
        observer.warn(RENUMBERED)
    return plan


def score(
    model: Model,
    labels: Sequence[int],
    k: int | None,
    observer: Observer,
    devices: Sequence[int] | None = None,
    degrees: Sequence[int] | None = None,
) -> PartitionPlan:
    """Do the same, and return a plan that shows and saves itself."""
    from mtpp.api.partition_plan import PartitionPlan

    begin = time.monotonic()
    record = scored(model, labels, k, observer, devices, degrees)
    return PartitionPlan.of(record, model, elapsed_s=time.monotonic() - begin)


def compare_stages(
    given: PartitionPlan,
    against: Any,
    observer: Observer,
    *,
    name: str,
) -> ComparedStages:
    """Hold a scored partition against another one, stage by stage.

    Parameters
    ----------
    name
        Of the given one, for people.
    against
        An algorithm, whose best partition into as many stages it is, or an assignment as :func:`evaluate` takes it.
    """
    from mtpp.api.inputs.degrees import degrees_given
    from mtpp.api.inputs.model import devices_given
    from mtpp.api.inputs.user_assignment import plan_among, stage_labels
    from mtpp.api.options.search import Partitioning
    from mtpp.api.partition_plan import PartitionPlan
    from mtpp.api.partitioning.single import on_machine, prepare, search
    from mtpp.formats.results.stage_comparison import StageComparison
    from mtpp.host.deadline import Deadline

    record, model = given.record, given.model
    assert record is not None
    assert model is not None
    k = given.k
    if isinstance(against, str) and against in ALGORITHMS:
        asked = Partitioning.of(k=k, algorithm=against, ignore_engine=True)
        if against in ENGINE_RULES and _any_order(model):
            observer.warn(f"{against} puts stages on devices in the order of the machine's file, as engines do")
        other = on_machine(search(prepare(model, asked), Deadline(), observer), model)
    else:
        other_plan = plan_among(against, k, "against")
        try:
            labels = stage_labels(model.graph, other_plan)
        except InputError as error:
            if error.parameter == "assignment":
                raise InputError(error.problem, parameter="against", remedy=error.remedy) from None
            raise
        most = k if model.machine is not None else max(k, max(labels) + 1)
        devices, degrees = devices_given(model, other_plan), degrees_given(model, other_plan)
        other = plan_of_labels(model, labels, most, devices, degrees)
    if other.partition.k == k and other.lower.value > record.lower.value:
        record = replace(record, lower=other.lower)
    named = PurePath(against).name if isinstance(against, str | os.PathLike) else "the other"
    comparison = StageComparison(record, other, name, named)
    plan, held = (PartitionPlan.of(one, model, elapsed_s=given.elapsed_s or 0.0) for one in (record, other))
    return ComparedStages(plan, held, comparison)


@overload
def evaluate(
    model: Any,
    assignment: Any = None,
    *,
    cuts: str | Sequence[str] | None = None,
    k: int | None = None,
    against: None = None,
    observer: Observer | None = None,
) -> PartitionPlan: ...


@overload
def evaluate(
    model: Any,
    assignment: Any = None,
    *,
    cuts: str | Sequence[str] | None = None,
    k: int | None = None,
    against: Any,
    observer: Observer | None = None,
) -> ComparedStages: ...


def evaluate(
    model: Any,
    assignment: Any = None,
    *,
    cuts: str | Sequence[str] | None = None,
    k: int | None = None,
    against: Any = None,
    observer: Observer | None = None,
) -> PartitionPlan | ComparedStages:
    """Score a partition that was made by hand or by another tool.

    Keywords that are not listed are fields of :class:`mtpp.api.options.search.Scoring`.

    Parameters
    ----------
    model
        A model of :func:`mtpp.read`, or anything that it reads.
    assignment
        The path of a plan, of a JSON object op → stage, of a CSV with op and stage or of a split of a placement
        workload; a dictionary op → stage; a plan, or a range of plans, of which *k* names one; or a list of stages, one
        per op in the order of the model.
    against
        An assignment as above, or the name of an algorithm (``"auto"``: the usual one), whose best partition into as
        many stages it is: the partition is held against it, stage by stage. None: it is scored alone.
    observer
        Is warned where stages are numbered anew, see :class:`mtpp.Observer`.

    Returns
    -------
    The plan, with a lower bound that is quick to prove; with *against* a :class:`ComparedStages`, which has both.

    Raises
    ------
    InputError
        If the model or the assignment cannot be read, a parameter is wrong, or cuts make too many stages.
    InvalidPartition
        An InputError too: an op has no stage, stages need each other's results in a circle, more than *k* are used, or
        one needs more than the stage memory.

    Examples
    --------
    >>> import mtpp
    >>> graph = {"format": "mtpp-graph", "version": 1, "name": "pair", "time_unit": "ms",
    ...          "ops": [{"name": "a", "work": 1}, {"name": "b", "work": 2.5}],
    ...          "tensors": [{"name": "t", "producer": "a", "consumers": ["b"], "transfer": 0.5}]}
    >>> plan = mtpp.evaluate(graph, {"a": 0, "b": 1})
    >>> plan.bottleneck_s, [stage.work_s for stage in plan.stages]
    (0.003, [0.001, 0.0025])
    """
    from mtpp.api.inputs.degrees import degrees_given
    from mtpp.api.inputs.model import devices_given
    from mtpp.api.inputs.reading import as_model
    from mtpp.api.inputs.user_assignment import brought_along, labels_of_cuts, plan_among, stage_labels
    from mtpp.api.observer import listener
    from mtpp.api.options.search import Scoring

    if (assignment is None) == (cuts is None):
        raise InputError("give either ‹assignment› or ‹cuts›", parameter="assignment")
    asked, heard = Scoring.of(cuts=cuts, k=k), listener(observer)
    assignment = plan_among(assignment, asked.k)
    read = as_model(model, observer, assignment=assignment)
    with brought_along(assignment, "assignment" if asked.cuts is None else "cuts"):
        own = stage_labels(read.graph, assignment) if asked.cuts is None else labels_of_cuts(read.graph, asked.cuts)
        if asked.cuts is not None:
            refuse_cuts(read, own, asked.k)
        devices, degrees = devices_given(read, assignment), degrees_given(read, assignment)
        plan = score(read, own, asked.k, heard, devices, degrees)
    if against is None:
        return plan
    with brought_along(against, "against"):
        return compare_stages(plan, against, heard, name=_name_of(assignment, cuts))


def _name_of(assignment: Any, cuts: Any) -> str:
    if cuts is not None:
        return "cuts"
    return PurePath(assignment).name if isinstance(assignment, str | os.PathLike) else "the given"
