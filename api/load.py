"""Results read back from the files that they were saved to."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mtpp.document_shape import pointer
from mtpp.errors import InputError
from mtpp.inference.certificate import approximation_ratio
from mtpp.machine.device import Device
from mtpp.names import BOTTLENECK_OBJECTIVE
from mtpp.wording import counted

if TYPE_CHECKING:
    from mtpp.api.cells.certificate_table import BoundTable, CertificateTable
    from mtpp.api.partition_plan import PartitionPlan
    from mtpp.api.partitioning.plan_range import PlanRange


def load(plan: Any, *, max_input_size: int | str = "2GiB") -> PartitionPlan | PlanRange | CertificateTable | BoundTable:
    """Read plans or a table that were saved; what they say is claimed until :func:`mtpp.verify` has checked it.

    Parameters
    ----------
    plan
        Path of the file of a plan, of a range of plans or of a table of certificates; its bytes, or the document.
    max_input_size
        Refuse larger files; bytes, or a text such as ``"2GiB"``.

    Returns
    -------
    What :func:`mtpp.partition`, :func:`mtpp.certify` or :func:`mtpp.bound` returned, as far as the document holds it.
    Its ``verified`` is False.

    Raises
    ------
    InputError
        If it is neither, malformed, or contradicts itself: the message names the place in the document.

    Examples
    --------
    >>> import mtpp
    >>> plan = mtpp.partition(mtpp.datasets.sample_path("resnet50"), 4)
    >>> again = mtpp.load(plan.document())
    >>> again.bottleneck == plan.bottleneck, again.verified
    (True, False)
    """
    from mtpp.api.inputs.reading import source_of
    from mtpp.api.options.kinds import Quantity
    from mtpp.formats.io.json_shape import attributed
    from mtpp.formats.io.recorded_paths import located
    from mtpp.formats.results.verifiable import is_range, is_table, is_training_plan, read_verifiable, verifiable

    limit = Quantity().read(max_input_size, "max_input_size")
    if isinstance(plan, Mapping):
        display, document = "<dict>", verifiable(copy.deepcopy(dict(plan)), "<dict>")
    else:
        source = source_of(plan, limit, "plan", expected="a plan or a table")
        display, document = source.display, located(read_verifiable(source.data, source.display), source.path)
    with attributed(display):
        if is_table(document):
            return _table_of(document)
        if is_range(document):
            return _range_of(document)
        if is_training_plan(document):
            raise InputError("a plan for training, which is not loaded", where="/format", remedy="mtpp.verify takes it")
        return _plan_of(document)


def _plan_of(document: Mapping[str, Any]) -> PartitionPlan:
    from mtpp.api.partition_plan import PartitionPlan
    from mtpp.checker.document import check_plan

    check_plan(document, ())
    _refuse_contradictions(document)
    return PartitionPlan(document=document)


def _range_of(document: Mapping[str, Any]) -> PlanRange:
    from mtpp.api.partitioning.plan_range import PlanRange
    from mtpp.checker.tables.plan_range import check_range
    from mtpp.formats.results.plan_range import range_document

    check_range(document, ())
    plans = []
    for i, plan in enumerate(document["plans"]):
        try:
            plans.append(_plan_of(plan))
        except InputError as error:
            error.where = f"/plans/{i}{error.where or ''}"
            raise
    missing = {one["k"]: one["why"] for one in document["missing"]}
    due = range_document(document["plans"], missing)
    if due["knee"] != document["knee"]:
        raise InputError(f"{document['knee']}, but the plans say {due['knee']}", where="/knee")
    for i, (row, own) in enumerate(zip(document["rows"], due["rows"], strict=True)):
        for key, value in own.items():
            said = None if row[key] is None else float(row[key])
            if said != (None if value is None else float(value)):
                raise InputError(f"{said}, but the plans say {value}", where=pointer("rows", i, key))
    return PlanRange(plans, missing, document=document)


def _refuse_contradictions(document: Mapping[str, Any]) -> None:
    """Refuse a well-formed plan whose own figures contradict each other.

    Every plan that any version of mtpp wrote passes. Early ones call a plan optimal whose bound of tier ``solver``
    meets its bottleneck; that is taken here, and shown as what it is.

    Raises
    ------
    InputError
        With the place of the figure that the others contradict.
    """
    Device.from_document(document["system"])
    for contradictions in (_in_stages, _in_assignment, _in_groups, _in_graph, _in_certificate):
        for problem, *place in contradictions(document):
            raise InputError(str(problem), where=pointer(*place))


def _in_shared_stages(document: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    stages = document["stages"]
    count = document["k"] if "machine" not in document else len(document["machine"]["devices"])
    listed = [device["index"] for row in stages for device in row["devices"]]
    if sorted(listed) != list(range(count)):
        yield f"not each of {counted(count, 'device')} once", "stages"
    for i, row in enumerate(stages):
        if row["index"] != i:
            yield f"expected {i}, found {row['index']}", "stages", i, "index"
    most = max((row["cost"] for row in stages), default=0)
    if document["bottleneck"] != most:
        yield f"{document['bottleneck']}, but the most expensive stage costs {most}", "bottleneck"


def _in_stages(document: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    if "replicas" in document:
        yield from _in_shared_stages(document)
        return
    k, stages, machine = document["k"], document["stages"], document.get("machine")
    count = k if machine is None else len(machine["devices"])
    if len(stages) != count:
        due = f"k is {k}" if machine is None else f"the machine has {counted(count, 'device')}"
        yield f"{len(stages)} stages, but {due}", "stages"
    if k > count:
        yield f"{k}, but the machine has {counted(count, 'device')}", "k"
    for i, row in enumerate(stages):
        if row["index"] != i:
            yield f"expected {i}, found {row['index']}", "stages", i, "index"
        parts = sum(row[part] for part in ("work", "input", "output", "overflow"))
        if row["cost"] != parts:
            yield f"{row['cost']}, but its parts add up to {parts}", "stages", i, "cost"
        if machine is not None and row["device"]["index"] >= count:
            yield f"{row['device']['index']} is the number of no device", "stages", i, "device", "index"
    most = max(row["cost"] for row in stages)
    if document["bottleneck"] != most:
        yield f"{document['bottleneck']}, but the most expensive stage costs {most}", "bottleneck"
    total = sum(row["cost"] for row in stages)
    if document.get("latency", total) != total:
        yield f"{document['latency']}, but all stages cost {total}", "latency"


def _in_assignment(document: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    count, assignment, ops = len(document["stages"]), document["assignment"], document["model"]["ops"]
    for name, stage in assignment.items():
        if not 0 <= stage < count:
            yield f"{stage} is not the number of a stage", "assignment", name
    if len(assignment) != ops:
        yield f"{ops}, but {len(assignment)} ops have a stage", "model", "ops"
    held = Counter(assignment.values())
    for i, row in enumerate(document["stages"]):
        if row["ops"] != held[i]:
            yield f"{row['ops']}, but {held[i]} ops are assigned to it", "stages", i, "ops"
        for end in ("first", "last"):
            if (row[end] is None) != (held[i] == 0) or (row[end] is not None and assignment.get(row[end]) != i):
                yield f"{row[end]!r} is no op of this stage", "stages", i, end


def _in_groups(document: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    assignment = document["assignment"]
    for i, group in enumerate(document["together"]):
        for j, name in enumerate(group):
            if name not in assignment:
                yield f"no op is called {name!r}", "together", i, j
            elif assignment[name] != assignment[group[0]]:
                yield f"{name!r} is not in the stage of {group[0]!r}", "together", i, j


def _in_graph(document: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    for part in ("ops", "tensors") if "graph" in document else ():
        stated, there = document["model"][part], len(document["graph"][part])
        if stated != there:
            yield f"{stated}, but the graph has {there}", "model", part


def _in_certificate(document: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    objective = document.get("objective", BOTTLENECK_OBJECTIVE)
    bound, stated = document["lower_bound"], document["ratio"]
    if objective not in document:
        yield f"it is the objective, and there is no {objective}", "objective"
        return
    upper = document[objective]
    due = approximation_ratio(upper, bound["value"])
    said, is_ = ("none" if one is None else f"{float(one)!r}" for one in (stated, due))
    ratio = f"{said}, but {objective} / lower bound is {is_}"
    place = ("lower_bound", "value")
    yield from _in_bound(document, upper, bound["value"], bound["tier"], *place, ratio=ratio, objective=objective)


def _in_bound(
    stated: Mapping[str, Any],
    upper: int,
    lower: int,
    tier: str,
    *place: str,
    ratio: str,
    objective: str = BOTTLENECK_OBJECTIVE,
) -> Iterator[tuple[Any, ...]]:
    """Yield contradictions of an objective and its lower bound, which stands at *place*; *ratio*: said of a wrong."""
    if lower > upper:
        yield f"{lower} is above the {objective}, {upper}", *place
    if _differs(stated["ratio"], upper, lower):
        yield ratio, "ratio"
    if stated["optimal"] and lower < upper:
        yield f"true, but the lower bound, {lower}, is below the {objective}, {upper}", "optimal"
    if not stated["optimal"] and lower == upper and tier != "solver":
        yield f"false, but a proof meets the {objective}", "optimal"


def _table_of(document: Mapping[str, Any]) -> CertificateTable | BoundTable:
    """Return the table of a document of ``mtpp-certificates``; of bounds alone where no row has a partition."""
    from mtpp.api.cells.certificate_table import BoundTable, CertificateTable
    from mtpp.api.cells.rows import sealed
    from mtpp.checker.table import check_table
    from mtpp.inference.certificate_table import CertificateRow

    check_table(document, ())
    rows = []
    for i, row in enumerate(document["rows"]):
        for problem, *place in _contradictions(row):
            raise InputError(str(problem), where=pointer("rows", i, *place))
        seconds = {name: float(value) for name, value in row["seconds"].items()}
        rows.append(sealed(CertificateRow.from_document({**row, "seconds": seconds})))
    with_upper = not rows or any(row.upper is not None for row in rows)
    return (CertificateTable if with_upper else BoundTable)(tuple(rows), stopped=None, loaded=document)


def _contradictions(row: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Yield what figures of a row contradict others; early tables call optimal what a bound of tier solver closes."""
    for name in ("partition", *row["bounds"], "total"):
        if name not in row["seconds"]:
            yield "missing key", "seconds", name
    for i, name in enumerate(row["solved"]):
        if name not in row["bounds"]:
            yield f"no bound is called {name!r}", "solved", i
    if "upper" not in row:
        return
    upper, lower, k = row["upper"], row["lower"], row["k"]
    yield from _in_bound(row, upper, lower, row["tier"], "lower", ratio="is not upper / lower")
    if "proven" in row and _differs(row["proven"]["ratio"], upper, row["proven"]["value"]):
        yield "is not upper / value", "proven", "ratio"
    if len(row["assignment"]) != row["ops"]:
        yield f"{row['ops']}, but {len(row['assignment'])} ops have a stage", "ops"
    for name, stage in row["assignment"].items():
        if not 0 <= stage < k:
            yield f"{stage} is not the number of a stage", "assignment", name


def _differs(stated: Any, upper: int, lower: int) -> bool:
    return (None if stated is None else float(stated)) != approximation_ratio(upper, lower)
