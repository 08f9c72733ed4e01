"""The independent verifier of training plans: everything that one says, re-derived from the model in exact fractions.

It imports nothing from the rest of the program but the errors: :mod:`mtpp.verify_training_document` knows the shape of
the documents, :mod:`mtpp.verify_training_model` turns costs into ticks, :mod:`mtpp.verify_training_pipeline` checks
that the stages are a plan at all, :mod:`mtpp.verify_training_stages` says what they take, and
:mod:`mtpp.verify_training_bounds` re-derives lower bounds. Not checked: how the plan was found (planner, times), its
notes, what other ways of choosing configurations would have come to, and the model's name.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from mtpp.verify_checks import check_file
from mtpp.verify_document import PICOSECONDS_PER_UNIT
from mtpp.verify_report import BOUND_CHECK, NO_TIER, Check, Report
from mtpp.verify_training_bounds import TrainingClaim, check_work
from mtpp.verify_training_document import STAGE_TIMES, SUPERSTAGE_TIMES, as_fraction, check_training_plan
from mtpp.verify_training_infeasible import infeasible_checks
from mtpp.verify_training_levels import LevelFigures, SuperstageFigures, all_superstages
from mtpp.verify_training_model import StatedModel, TickModel, training_model_in_ticks
from mtpp.verify_training_pipeline import pipeline_checks, pipeline_of
from mtpp.verify_training_stages import TrainingFigures, pipeline_figures

_PLAN = "the plan"
_DERIVED = ("stage figures", "stage memory", "time per sample")


def verify_training_plan(plan: Any, model: StatedModel, model_sha256: str) -> Report:
    """Re-derive what *plan* says and compare.

    Parameters
    ----------
    plan
        Parsed document; numbers that are not whole are exact rationals.
    model
        The model, as read from its file.
    model_sha256
        Of that file, in lower-case hexadecimal.

    Returns
    -------
    A report with one check per claim. A well-formed document that is wrong fails checks; it raises nothing.

    Raises
    ------
    InputError
        If the document is malformed (*where* is a JSON pointer), or its layers cannot be told apart.

    Notes
    -----
    O(stages · (layers + edges)), times the degrees of data parallelism for some bounds.
    """
    check_training_plan(plan, ())
    system = plan["system"]
    ticks = training_model_in_ticks(model, system["bandwidth_bytes_per_s"])
    checks = [
        check_file(plan["model"]["sha256"], model_sha256, _PLAN),
        _check_counts(plan["model"], ticks),
        _check_ticks(plan, ticks),
    ]
    if not plan["feasible"]:
        found, tier = infeasible_checks(plan, ticks)
        return Report((*checks, *found), tier, None, tier == "exact", subject="that there is no plan")
    checks += pipeline_checks(plan, ticks)
    time: Fraction | None = None
    if all(check.passed is not False for check in checks[3:]):
        stages = pipeline_of(plan, ticks)
        outer: list[SuperstageFigures] = []
        if system["topology"] is None:
            figures = pipeline_figures(ticks, stages, system["convention"], system["max_micro_batches"])
        else:
            levels = LevelFigures(plan, stages, ticks, model)
            figures, outer = levels.stages, levels.superstages
        time = max([stage.time for stage in figures] + [communicated.time for communicated in outer])
        checks += [
            _check_figures(plan, figures, outer, time),
            _check_memory(figures, system["memory_bytes"]),
            _check_time(plan, time),
        ]
    else:
        checks += [Check(name, None, "not checked: the stages are no plan") for name in _DERIVED]
    bound, tier = _check_bound(plan, ticks)
    checks.append(bound)
    reached = as_fraction(plan["time_per_sample_ticks"]) if time is None else time
    value = as_fraction(plan["lower_bound"]["value"])
    checks += _check_gap(plan, reached, value)
    ratio = None if time is None or tier == NO_TIER else _quotient(time, value)
    return Report(tuple(checks), tier, ratio, bound_rechecked=bound.passed is True)


def _check_counts(stated: dict[str, Any], model: TickModel) -> Check:
    name = "layer and edge counts"
    layers, edges = len(model.ids), len(model.edges)
    if (stated["layers"], stated["edges"]) != (layers, edges):
        claim = f"{_PLAN} says {stated['layers']} layers and {stated['edges']} edges"
        return Check(name, False, f"{claim}, the model has {layers} and {edges}")
    return Check(name, True, f"{layers} layers, {edges} edges")


def _check_ticks(plan: dict[str, Any], model: TickModel) -> Check:
    name, unit, stated = "ticks", plan["time_unit"], plan["ticks_per_unit"]
    if unit != model.time_unit:
        return Check(name, False, f"{_PLAN}'s time unit is {unit!r}, the model's {model.time_unit!r}")
    due = PICOSECONDS_PER_UNIT[unit]
    if stated != due:
        return Check(name, False, f"{_PLAN} says {stated} ticks per unit ({unit}), it is {due}")
    return Check(name, True, f"{stated} per unit ({unit})")


def _check_figures(
    plan: dict[str, Any], figures: list[TrainingFigures], outer: list[SuperstageFigures], time: Fraction
) -> Check:
    name = "stage figures"
    unit = PICOSECONDS_PER_UNIT[plan["time_unit"]]
    for i, (stated, mine) in enumerate(zip(plan["stages"], figures, strict=True)):
        said: list[tuple[str, Any, Any]] = [
            ("in_flight", stated["in_flight"], mine.in_flight),
            ("memory_bytes", stated["memory_bytes"], mine.memory_bytes),
            ("time_ticks", as_fraction(stated["time_ticks"]), mine.time),
            ("utilization", _real(stated["utilization"]), _utilization(mine.time, time)),
        ]
        said += [(key, _real(stated[key]), float(getattr(mine, key) / unit)) for key in STAGE_TIMES]
        for key, claimed, due in said:
            if claimed != due:
                return Check(name, False, f"stage {i}: {_PLAN} says {key} {claimed}, it is {due}")
    for row, communicated in zip(all_superstages(plan.get("superstages", ())), outer, strict=True):
        said = [
            ("time_ticks", as_fraction(row["time_ticks"]), communicated.time),
            ("utilization", _real(row["utilization"]), _utilization(communicated.time, time)),
        ]
        said += [(key, _real(row[key]), float(getattr(communicated, key) / unit)) for key in SUPERSTAGE_TIMES]
        for key, claimed, due in said:
            if claimed != due:
                run = f"superstage of level {row['level']} from stage {row['stages'][0]} on"
                return Check(name, False, f"{run}: {_PLAN} says {key} {claimed}, it is {due}")
    return Check(name, True, f"{len(figures)} stages" + (f", {len(outer)} superstages" if outer else ""))


def _check_memory(figures: list[TrainingFigures], limit: int) -> Check:
    name = "stage memory"
    held, stage = max((stage.memory_bytes, -i) for i, stage in enumerate(figures))
    if held > limit:
        return Check(name, False, f"stage {-stage} needs {held} bytes, the limit is {limit}")
    return Check(name, True, f"at most {held} of {limit} bytes")


def _check_time(plan: dict[str, Any], time: Fraction) -> Check:
    name = "time per sample"
    stated = as_fraction(plan["time_per_sample_ticks"])
    if stated != time:
        return Check(name, False, f"{_PLAN} says {stated} ticks, it is {time}")
    unit = plan["time_unit"]
    due = float(time / PICOSECONDS_PER_UNIT[unit])
    throughput = float(PICOSECONDS_PER_UNIT["s"] / time) if time else None
    for key, mine in (("time_per_sample", due), ("throughput_per_s", throughput)):
        if _real(plan[key]) != mine:
            return Check(name, False, f"{_PLAN} says {key} {_real(plan[key])}, it is {mine}")
    return Check(name, True, f"{time} ticks, {due!r} {unit}")


def training_claim(plan: dict[str, Any], model: StatedModel) -> TrainingClaim:
    """Return what a plan which passed claims of its lower bound."""
    return _claim(plan, training_model_in_ticks(model, plan["system"]["bandwidth_bytes_per_s"]))


def _claim(plan: dict[str, Any], model: TickModel) -> TrainingClaim:
    stated = plan["lower_bound"]
    return TrainingClaim(model, plan["system"], as_fraction(stated["value"]), stated["proof"])


def _check_bound(plan: dict[str, Any], model: TickModel) -> tuple[Check, str]:
    """Check the lower bound, as far as its tier allows, and return the tier that it has then."""
    method, tier = plan["lower_bound"]["method"], plan["lower_bound"]["tier"]
    if tier == "enumerated":
        stated = plan["lower_bound"]["proof"].get("less_than", plan["lower_bound"]["value"])
        if stated != plan["lower_bound"]["value"]:
            return Check(BOUND_CHECK, False, f"{method}: the proof is not for the value of the bound"), NO_TIER
        return Check(BOUND_CHECK, None, f"{method}: the search itself is not re-run: use --deep"), tier
    if tier != "exact":
        return Check(BOUND_CHECK, False, f"no bound of tier {tier} is known for training plans"), NO_TIER
    if method != "work":
        return Check(BOUND_CHECK, False, f"no checker for method {method[:60]!r}"), NO_TIER
    passed, detail = check_work(_claim(plan, model))
    return Check(BOUND_CHECK, passed, detail), tier if passed else NO_TIER


def _check_gap(plan: dict[str, Any], time: Fraction, bound: Fraction) -> list[Check]:
    """Compare the time per sample with the lower bound, and what the plan says of the two."""
    if bound > time:
        below = Check("bound order", False, f"the lower bound {bound} is above the time per sample {time}")
    else:
        below = Check("bound order", True, f"{bound} <= {time} ticks")
    due, stated = _quotient(time, bound), _real(plan["ratio"])
    if stated == due:
        quotients = Check("ratio", True, "none: the lower bound is zero" if due is None else f"{due!r}")
    else:
        quotients = Check("ratio", False, f"{_PLAN} says {stated!r}, it is {due!r}")
    closed = time == bound
    if plan["optimal"] == closed:
        proven = Check("optimal", True, "proven" if closed else "not proven")
    else:
        proven = Check("optimal", False, f"{_PLAN} says {plan['optimal']}, but {bound} {'=' if closed else '<'} {time}")
    return [below, quotients, proven]


def _quotient(time: Fraction, bound: Fraction) -> float | None:
    if bound == 0:
        return 1.0 if time == 0 else None
    return float(time / bound)


def _utilization(time: Fraction, slowest: Fraction) -> float:
    return float(time / slowest) if slowest else 1.0


def _real(value: Any) -> float | None:
    """Return the float that a number in the document was written from."""
    return None if value is None else float(value)
