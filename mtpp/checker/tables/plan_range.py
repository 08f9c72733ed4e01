"""Plans of one model for several numbers of stages in one document, and the claims that compare them.

Each plan is a document of its own, checked as such. Of all together the document states throughput and gain of each
step, and the knee: the number of stages after which no step brings a tenth of throughput per further device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from mtpp.checker.capacity.shape import CAPACITY
from mtpp.checker.checks import resting, rows_named
from mtpp.checker.document import ABSTRACT, PICOSECONDS_PER_UNIT, check_plan
from mtpp.checker.report import Check, Report, fact
from mtpp.checker.table_report import TableReport
from mtpp.document_shape import Path, any_array, array, nullable, number, record, refuse, tagged, text, whole

FORMAT = "mtpp-plan-range"

TENTH = Fraction(1, 10)
"""Least gain of throughput per further device of a step that counts."""

_ALIKE = ("objective", "max_latency", "max_bottleneck", "time_unit", "system", "machine", "together", "replicas")
"""Keys that are the same in all plans of a range."""

_READ_ALIKE = {"dims": "the sizes", "keep_state": "the kept states", "costs_sha256": "the measured costs"}
"""How a model was read; the load of a language model, whose costs come from it, may depend on the number of stages."""

SERVING_LOAD = "serving"

_NAMES = ("name", "place")
"""Keys of a device that are no figures."""

_SECOND = PICOSECONDS_PER_UNIT["s"]


def _gain(value: Any, path: Path) -> None:
    """Take a finite number of either sign."""
    number(-value if isinstance(value, int | float | Fraction) and value < 0 else value, path)


_row = record(
    {
        "k": whole(1),
        "bottleneck": whole(),
        "latency": whole(),
        "throughput_per_s": nullable(number),
        "gain_per_device": nullable(_gain),
    }
)

_range = tagged(
    FORMAT,
    {
        "rows": array(_row),
        "knee": nullable(whole(1)),
        "missing": array(record({"k": whole(1), "why": text})),
        "plans": any_array,
    },
    {"elapsed_s": number},
)


def check_range(value: Any, path: Path) -> None:
    """Take a range of plans, whose numbers of stages ascend; what its plans embed included."""
    _range(value, path)
    if not value["plans"]:
        refuse("there is no plan", (*path, "plans"))
    for i, plan in enumerate(value["plans"]):
        check_plan(plan, (*path, "plans", i))
    counts = [plan["k"] for plan in value["plans"]]
    for i, (before, after) in enumerate(pairwise(counts), 1):
        if after <= before:
            refuse(f"{after} stages after {before}: they have to ascend", (*path, "plans", i, "k"))
    if [row["k"] for row in value["rows"]] != counts:
        refuse("there has to be a row for each plan, in their order", (*path, "rows"))
    for i, one in enumerate(value["missing"]):
        if one["k"] in counts:
            refuse(f"{one['k']} is not missing: it has a plan", (*path, "missing", i, "k"))


@dataclass(frozen=True)
class RangeReport(TableReport):
    """The outcome of a verification of a range: a report on each plan, and checks of the claims on all of them."""

    ROW, ROWS, MEANS = "plan", "plans", "claims on all plans"


def verify_range(document: Mapping[str, Any], reports: Sequence[Report]) -> RangeReport:
    """Check what a range says of all its plans, given the report on each; those not looked at are unchecked."""
    plans = document["plans"]
    rows = [{"model": plan["model"]["name"], "path": plan["model"]["name"], "k": plan["k"], "upper": None}
            for plan in plans]  # fmt: skip
    derived = _derived(plans)
    return RangeReport(
        rows,
        reports,
        [
            _of_one_model(plans),
            _figures(document["rows"], derived, reports),
            _knee_row(document["knee"], plans, derived, reports),
            *(fact("no plan", f"for k = {one['k']}, as the range says: {one['why']}") for one in document["missing"]),
        ],
    )


def _of_one_model(plans: Sequence[Mapping[str, Any]]) -> Check:
    """Check that the plans can be compared: of one file, one objective, and devices of one kind."""
    name, first = "one model", plans[0]
    for plan in plans[1:]:
        for key, what in (("sha256", "the model's SHA-256"), ("name", "the model's name")):
            if plan["model"][key] != first["model"][key]:
                return Check(name, False, f"{what} of k = {plan['k']} is not that of k = {first['k']}")
        for key, what in _READ_ALIKE.items():
            if SERVING_LOAD not in plan["model"] and plan["model"].get(key) != first["model"].get(key):
                return Check(name, False, f"{what} of k = {plan['k']} are not those of k = {first['k']}")
        for key in _ALIKE:
            if _held(plan, key) != _held(first, key):
                return Check(name, False, f"the {key} of k = {plan['k']} is not that of k = {first['k']}")
    return Check(name, True, "the plans are for the same model, objective and devices")


def _held(plan: Mapping[str, Any], key: str) -> Any:
    """Return a part of a plan to compare.

    Plans of language models may list as many equal devices as they have stages: then one of these. Those of the largest
    load state the sequences that they found.
    """
    own = plan.get(key)
    if key == "machine" and own is not None:
        devices = [{name: one for name, one in device.items() if name not in _NAMES} for device in own["devices"]]
        own = devices[0] if all(device == devices[0] for device in devices) else own
    if CAPACITY in plan and isinstance(own, dict):
        return {name: one for name, one in own.items() if name != "sequences"}
    return own


def _derived(plans: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows that the plans' own figures come to; gains as fractions."""
    rows: list[dict[str, Any]] = []
    for i, plan in enumerate(plans):
        rate, before = _rate(plan), None if i == 0 else _rate(plans[i - 1])
        per_s = None if rate is None or plan["time_unit"] == ABSTRACT else float(rate * _SECOND)
        gain = None
        if rate is not None and before and CAPACITY not in plan:
            gain = (rate / before - 1) / (plan["k"] - plans[i - 1]["k"])
        latency = plan.get("latency", sum(stage["cost"] for stage in plan["stages"]))
        rows.append({"k": plan["k"], "bottleneck": plan["bottleneck"], "latency": latency,
                     "throughput_per_s": per_s, "gain_per_device": gain})  # fmt: skip
    return rows


def _rate(plan: Mapping[str, Any]) -> Fraction | None:
    """Return inferences, or tokens of a language model, in a tick; in a unit of cost where it has none of time."""
    if plan["bottleneck"] == 0:
        return None
    each: int = plan["model"].get("serving", {}).get("tokens", 1)
    ticks = plan["ticks_per_unit"] if plan["time_unit"] == ABSTRACT else 1
    return Fraction(each * ticks, plan["bottleneck"])


def _figures(
    stated: Sequence[Mapping[str, Any]], derived: Sequence[dict[str, Any]], reports: Sequence[Report]
) -> Check:
    name = "throughput and gain"
    for row, own in zip(stated, derived, strict=True):
        for key, due in own.items():
            said = row[key]
            if (None if said is None else float(said)) != (None if due is None else float(due)):
                told = None if due is None else float(due) if key.endswith(("_s", "_device")) else due
                return Check(name, False, f"k = {row['k']}: the range says {key} {said}, it is {told}")
    return resting(name, f"of {len(derived)} plans", _bottlenecks(reports))


def _knee_row(
    stated: int | None, plans: Sequence[Mapping[str, Any]], derived: Sequence[dict[str, Any]], reports: Sequence[Report]
) -> Check:
    """Check the knee: the last number of stages that a step of a tenth per device led to; none without a later one."""
    known = all(row["gain_per_device"] is not None for row in derived[1:])
    due = None
    if known and len(plans) > 1:
        due = next((row["k"] for row in reversed(derived[1:]) if row["gain_per_device"] >= TENTH), derived[0]["k"])
        due = None if due == derived[-1]["k"] else due
    if stated != due:
        return Check("knee", False, f"the range says {stated}, it is {due}")
    told = "none in this range" if due is None else f"after k = {due} no further device of the range brings a tenth"
    return resting("knee", told, _bottlenecks(reports))


def _bottlenecks(reports: Sequence[Report]) -> list[Check]:
    return [row for report in reports for row in rows_named(report.checks, ("bottleneck", "latency"))]
