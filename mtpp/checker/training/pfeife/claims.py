"""Claims of a plan by ``pfeife`` on its devices, its baselines, its schedule's parameters, and its lower bounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from mtpp.checker.report import BOUND_CHECK, Check
from mtpp.checker.training.pfeife.costs import Line, sums_of
from mtpp.checker.training.pfeife.document import (
    as_fraction,
    check_cells,
    check_paths,
    each_device,
    holds_all_buffers,
)
from mtpp.checker.training.pfeife.paths import bound_of, family_network, load_bound, prices_of, schedule_network
from mtpp.checker.training.pfeife.schedule import (
    Rows,
    StageTimes,
    device_bytes,
    fault_of_name,
    looped_rows,
    replay,
    stage_times,
    straight_transfers,
)

DEVICES, BASELINES = "devices", "baselines"

_EVEN = "even"
_BASELINES = ("gpipe", "1f1b", "interleaved-2", "prefetch-2", "interleaved-3", "prefetch-3")


def device_check(plan: dict[str, Any], line: Line, rows: Rows, times: StageTimes, split: list[int]) -> Check:
    """Check busy and idle ticks, peak memory and micro-batches in flight of each device, and that memory suffices."""
    system = plan["system"]
    busy = [sum(times.of(one) for one in row) for row in rows.rows]
    direct = system["transport"] == "direct"
    all_buffers = holds_all_buffers(plan)
    need = device_bytes(line, rows, split, plan["schedule"]["micro_batches"], direct=direct, all_buffers=all_buffers)
    flying = []
    for row in rows.rows:
        held = most = 0
        for _, kind, _ in row:
            held += (kind == "F") - (kind in "BW")
            most = max(most, held)
        flying.append(most)
    due = [
        {
            "index": d,
            "busy_ticks": busy[d],
            "idle_ticks": plan["iteration_ticks"] - busy[d],
            "peak_bytes": need[d] if line.sizes_known else None,
            "in_flight": flying[d],
        }
        for d in range(rows.devices)
    ]
    if len(plan["devices"]) != len(due):
        return Check(DEVICES, False, f"there are rows for {len(plan['devices'])} of {len(due)} devices")
    for d, (said, is_) in enumerate(zip(plan["devices"], due, strict=True)):
        for key, value in is_.items():
            if said[key] != value:
                return Check(DEVICES, False, f"the plan says {key} {said[key]} of device {d}, it is {value}")
    if system["memory_bytes"] is not None:
        if not line.sizes_known:
            return Check(DEVICES, False, "memory is limited, but the graph does not give all sizes")
        limits = each_device(system["memory_bytes"], rows.devices)
        for d, (size, limit) in enumerate(zip(need, limits, strict=True)):
            if size > limit:
                return Check(DEVICES, False, f"device {d} needs {size} bytes and has {limit}")
    return Check(DEVICES, True, "times, memory and micro-batches in flight of each")


def family_rows_check(plan: dict[str, Any], line: Line, rows: Rows, schedule: dict[str, Any]) -> str | None:
    """Return what is wrong with the parameters of a schedule, None if nothing is."""
    rules = plan["rules"]
    micro_batches, devices = schedule["micro_batches"], rows.devices
    if rules["schedule"] != schedule["name"] and (plan["feasible"] or schedule["name"] is not None):
        return f"the schedule is called {_called(schedule['name'])}, asked for was {_called(rules['schedule'])}"
    if rules["schedule"] is not None:
        if rules["prefetch"] is not None:
            return "a schedule was asked for, and a prefetch as well"
        fault = fault_of_name(rules["schedule"], rows, micro_batches)
        if fault is not None:
            return fault
    if rows.stages // devices != schedule["loops"] or (schedule["loop_batch"] is not None and rows.stages % devices):
        return f"the schedule has {rows.stages} stages, not {schedule['loops']} on each device"
    if (schedule["loop_batch"] is None) != (schedule["prefetch"] is None):
        return "the schedule has a loop batch or a prefetch, but not both"
    if schedule["prefetch"] is not None:
        if len(schedule["prefetch"]) != devices:
            return "the prefetch is not of all devices"
        due = looped_rows(devices, micro_batches, schedule["loops"], schedule["loop_batch"], schedule["prefetch"])
        if due.rows != rows.rows or rows.dependencies:
            return "the passes are not in the order that loops, loop batch and prefetch give"
    if rules["schedule"] is not None:
        return None
    if schedule["prefetch"] is None:
        return "no schedule was given, and this one is not of the looped family"
    if not _is_allowed(schedule["loops"], schedule["loop_batch"], plan, line):
        return f"{schedule['loops']} loops of {schedule['loop_batch']} micro-batches were not asked for"
    if rules["prefetch"] is not None:
        if len(rules["prefetch"]) != devices:
            return "the prefetch that was asked for is not of all devices"
        asked = looped_rows(devices, micro_batches, schedule["loops"], schedule["loop_batch"], rules["prefetch"])
        if asked.rows != rows.rows:
            return "the prefetch is not the one asked for"
    return None


def _called(name: str | None) -> str:
    return "nothing" if name is None else repr(name[:60])


def allowed_cells(plan: dict[str, Any], line: Line) -> Iterator[tuple[int, int]]:
    """Yield all loops and loop batches that were asked for, which may be many."""
    single, several = _loop_batches(plan)
    for loops in plan["rules"]["loops"] or ():
        if loops * plan["system"]["devices"] <= line.count:
            yield from ((loops, batch) for batch in (single if loops == 1 else several))


def _is_allowed(loops: int, batch: int, plan: dict[str, Any], line: Line) -> bool:
    single, several = _loop_batches(plan)
    known = loops in (plan["rules"]["loops"] or ()) and loops * plan["system"]["devices"] <= line.count
    return known and batch in (single if loops == 1 else several)


def _loop_batches(plan: dict[str, Any]) -> tuple[Sequence[int], Sequence[int]]:
    """Return the loop batches that may stand with one loop, and with several."""
    devices, total = plan["system"]["devices"], plan["micro_batches"]
    several: Sequence[int] = range(min(devices, total), total + 1)
    if plan["rules"]["loop_batches"] != "any":
        several = [batch for batch in several if total % batch == 0]
    return (total,), several


def _has_one_cell(plan: dict[str, Any], line: Line) -> bool:
    return len(list(islice(allowed_cells(plan, line), 2))) == 1


def baseline_check(plan: dict[str, Any], line: Line, rows: Rows) -> Check:
    """Check even splits under known schedules, and under the plan's own."""
    devices, total = plan["system"]["devices"], plan["schedule"]["micro_batches"]
    limits = plan["system"]["memory_bytes"]
    direct = plan["system"]["transport"] == "direct"
    due: dict[str, tuple[Rows, list[int], int]] = {}
    for name in (*_BASELINES, _EVEN):
        known = rows if name == _EVEN else _known(name, devices, total, line.count)
        if known is None:
            continue
        split = even_split(line, known.stages)
        ticks = replay(known, stage_times(line, split), straight_transfers(line, split) if direct else None)
        if ticks is not None:  # its passes do not wait for each other
            due[name] = known, split, ticks
    if [one["name"] for one in plan["baselines"]] != list(due):
        return Check(BASELINES, False, f"they are not {', '.join(due)}")
    for one in plan["baselines"]:
        name = one["name"]
        known, split, ticks = due[name]
        if one["split"] != split:
            return Check(BASELINES, False, f"the split of {name} is not even")
        if ticks != one["iteration_ticks"]:
            return Check(BASELINES, False, f"the plan says {one['iteration_ticks']} ticks of {name}, it is {ticks}")
        fits = True
        if limits is not None:
            need = device_bytes(line, known, split, total, direct=direct, all_buffers=holds_all_buffers(plan))
            fits = all(size <= limit for size, limit in zip(need, each_device(limits, devices), strict=True))
        if one["fits"] != fits:
            return Check(BASELINES, False, f"the plan says that {name} {'fits' if one['fits'] else 'does not fit'}")
    return Check(BASELINES, True, f"{len(plan['baselines'])} with even stages")


def _known(name: str, devices: int, total: int, ops: int) -> Rows | None:
    """Return the schedule of a baseline."""
    kind, _, loops_text = name.partition("-")
    full = [devices - 1 - d for d in range(devices)]
    if kind in ("gpipe", "1f1b") and not loops_text and devices <= ops:
        return looped_rows(devices, total, 1, total, [total if kind == "gpipe" else 0] * devices)
    if kind not in ("interleaved", "prefetch") or loops_text not in ("2", "3") or int(loops_text) * devices > ops:
        return None
    return looped_rows(devices, total, int(loops_text), min(devices, total) if kind == "interleaved" else total, full)


def even_split(line: Line, stages: int) -> list[int]:
    """Return the split at the positions nearest to equal parts of the time on device 0, the lower one of two."""
    sums = sums_of([f + g for f, g in zip(line.forward[0], line.backward[0], strict=True)])
    n, total = line.count, sums[-1]
    split = [0]
    for s in range(1, stages):
        nearest = min(range(n + 1), key=lambda p: (abs(stages * sums[p] - s * total), p))
        split.append(min(max(nearest, split[-1] + 1), n - (stages - s)))
    return [*split, n]


def along_order(plan: dict[str, Any], method: str) -> str:
    """Return the order of ops that a bound by a method is of, behind a comma; nothing if it is of any order."""
    if method == "loads":
        return ""
    return ", along this order of ops" if plan["rules"]["order"] == "search" else ", along the file's order"


def schedules_asked_for(plan: dict[str, Any]) -> str:
    """Return the class of schedules that the bound on all of them is of."""
    given = plan["rules"]["schedule"] is not None
    return "the schedule asked for" if given else "looped schedules asked for, with whole backward passes"


def lower_check(plan: dict[str, Any], line: Line, rows: Rows, least: int | None) -> Check:
    """Check the bound on all splits of the plan's schedule; *least* is what was proven of all schedules."""
    stated = plan["lower_bound"]
    method = plan["family_bound"]["method"] if stated["method"] == "family" else stated["method"]
    holds = f"of all splits under this plan's own schedule{along_order(plan, method)}"
    if stated["tier"] != "exact":
        return Check(BOUND_CHECK, False, f"a bound by {stated['method'][:40]} is of tier exact")
    if stated["method"] == "family":
        due: int | str | None = least
        if stated["proof"] or due is None:
            due = "rests on the bound on schedules asked for, which does not hold"
    elif stated["method"] == "loads":
        due = _loads(plan, line, stated, rows)
    elif stated["method"] == "paths" and plan["system"]["transport"] == "neighbours":
        check_paths(stated["proof"], ("lower_bound", "proof"))
        due = _mixture(line, schedule_network(rows), stated["proof"])
    else:
        due = f"no checker for method {stated['method'][:60]!r}"
    return _compared(BOUND_CHECK, stated, due, holds)


def family_check(plan: dict[str, Any], line: Line, name: str, rows: Rows) -> tuple[Check, int | None]:
    """Check the bound on all schedules that were asked for, and return what is proven of them."""
    stated, rules = plan["family_bound"], plan["rules"]
    method = plan["lower_bound"]["method"] if stated["method"] == "schedule" else stated["method"]
    holds = f"of all splits under {schedules_asked_for(plan)}{along_order(plan, method)}"
    due: int | str
    if stated["tier"] != "exact":
        return Check(name, False, f"a bound by {stated['method'][:40]} is of tier exact"), None
    if stated["method"] == "schedule":
        only = rules["schedule"] is not None or (rules["prefetch"] is not None and _has_one_cell(plan, line))
        own = plan["lower_bound"]
        if stated["proof"] or not only or own["method"] not in ("paths", "loads"):
            due = "it is that of one schedule, and others were asked for"
        else:
            row = lower_check(plan, line, rows, None)
            due = own["value"] if row.passed else row.detail
    elif stated["method"] == "loads":
        due = _loads(plan, line, stated, rows)
    elif stated["method"] == "paths" and plan["system"]["transport"] == "neighbours" and rules["schedule"] is None:
        check_cells(stated["proof"], ("family_bound", "proof"))
        due = _cells(plan, line, stated["proof"]["cells"])
    else:
        due = f"no checker for method {stated['method'][:60]!r}"
    check = _compared(name, stated, due, holds)
    return check, due if check.passed and isinstance(due, int) else None


def _compared(name: str, stated: dict[str, Any], due: int | str | None, holds: str) -> Check:
    if not isinstance(due, int):
        return Check(name, False, f"{stated['method'][:40]}: {due}")
    if stated["value"] > due:
        return Check(name, False, f"the plan says {stated['value']} ticks, its proof shows {due}")
    return Check(name, True, f"{stated['value']} ticks by {stated['method']}, {holds}")


def _mixture(line: Line, network: Any, proof: dict[str, Any]) -> int | str:
    if not proof["paths"]:
        return 0
    prices = prices_of(network, proof)
    return prices if isinstance(prices, str) else bound_of(line, network.stages, prices, proof["total"])


def _loads(plan: dict[str, Any], line: Line, stated: dict[str, Any], rows: Rows) -> int | str:
    if stated["proof"]:
        return "it needs no proof"
    halves = any(kind in "IW" for row in rows.rows for _, kind, _ in row)
    speeds = [as_fraction(one) for one in each_device(plan["system"]["speed"], plan["system"]["devices"])]
    return load_bound(line, speeds, plan["schedule"]["micro_batches"], halves=halves)


def _cells(plan: dict[str, Any], line: Line, cells: list[dict[str, Any]]) -> int | str:
    """Return the least of what the mixtures of all cells prove, or what is wrong with them."""
    due = list(islice(allowed_cells(plan, line), len(cells) + 1))
    if [(cell["loops"], cell["loop_batch"]) for cell in cells] != due:
        return "its cells are not all loops and loop batches asked for"
    devices, total = plan["system"]["devices"], plan["schedule"]["micro_batches"]
    prefetch = plan["rules"]["prefetch"]
    values = []
    for cell in cells:
        loops, batch = cell["loops"], cell["loop_batch"]
        if prefetch is None:
            network = family_network(devices, total, loops, batch)
        else:
            rows = looped_rows(devices, total, loops, batch, prefetch)
            stages = loops * devices
            if replay(rows, StageTimes([1] * stages, [1] * stages, [0] * (stages - 1))) is None:
                continue  # its passes wait for each other: there is no such schedule
            network = schedule_network(rows)
        value = _mixture(line, network, cell)
        if isinstance(value, str):
            return f"{loops} loops of {batch} micro-batches: {value}"
        values.append(value)
    return min(values) if values else "no schedule that was asked for runs"
