"""Precedence of passes in a schedule: an order in which all can run, or the passes that wait for each other."""

from __future__ import annotations

from collections.abc import Sequence

from mtpp.errors import Deadlock
from mtpp.training.pfeife.schedule import Pass, PassKind, PassSchedule

_MOST_NAMED = 8
"""Passes of a cycle that a message names."""


def needed(one: Pass, schedule: PassSchedule) -> Sequence[Pass]:
    """Return the passes of other stages, or halves of its own, that a pass waits for; not those before it in its row.

    Notes
    -----
    A forward pass waits for that of the stage before it; the last stage's backward pass for its forward pass; others
    for the gradients of their outputs, which the stage behind sends after its backward pass or the half I of it; the
    half W for the half I.
    """
    stage, kind, m = one
    if kind == PassKind.FORWARD:
        return [Pass(stage - 1, PassKind.FORWARD, m)] if stage else []
    if kind == PassKind.WEIGHT:
        return [Pass(stage, PassKind.INPUT, m)]
    own = Pass(stage, PassKind.FORWARD, m)
    if stage == schedule.stages - 1:
        return [own]
    behind = Pass(stage + 1, PassKind.BACKWARD, m)
    return [own, behind if behind in schedule.passes else Pass(stage + 1, PassKind.INPUT, m)]


def precedence_order(schedule: PassSchedule) -> Sequence[Pass]:
    """Return all passes in an order that keeps the rows and in which every pass comes after those that it waits for.

    Raises
    ------
    Deadlock
        If there is none: the text names passes each of which waits for the next one.

    Notes
    -----
    O(passes).
    """
    waits: dict[Pass, list[Pass]] = {}
    for before, after in schedule.dependencies:
        waits.setdefault(after, []).append(before)
    rows, head = schedule.rows, [0] * schedule.devices
    done: set[Pass] = set()
    order: list[Pass] = []
    blocked: dict[Pass, list[int]] = {}
    ready = list(reversed(range(schedule.devices)))
    while ready:
        d = ready.pop()
        while head[d] < len(rows[d]):
            one = rows[d][head[d]]
            missing = next((p for p in (*needed(one, schedule), *waits.get(one, ())) if p not in done), None)
            if missing is not None:
                blocked.setdefault(missing, []).append(d)
                break
            done.add(one)
            order.append(one)
            head[d] += 1
            ready.extend(blocked.pop(one, ()))
    if any(head[d] < len(rows[d]) for d in range(schedule.devices)):
        raise Deadlock(
            f"passes wait for each other: {_cycle_text(schedule, done, head, waits)}",
            remedy="change the order of the passes, or prefetch less",
        )
    return order


def _cycle_text(schedule: PassSchedule, done: set[Pass], head: list[int], waits: dict[Pass, list[Pass]]) -> str:
    """Return the names of passes each of which waits for the next one, the first again at the end."""
    position = {one: (d, i) for d, row in enumerate(schedule.rows) for i, one in enumerate(row)}
    d = next(d for d in range(schedule.devices) if head[d] < len(schedule.rows[d]))
    walk: list[Pass] = []
    place: dict[Pass, int] = {}
    at = schedule.rows[d][head[d]]
    while at not in place:
        place[at] = len(walk)
        walk.append(at)
        device, index = position[at]
        if index > head[device]:
            at = schedule.rows[device][head[device]]
        else:
            at = next(p for p in (*needed(at, schedule), *waits.get(at, ())) if p not in done)
    names = [one.name for one in [*walk[place[at] :], at]]
    if len(names) > _MOST_NAMED:
        half = _MOST_NAMED // 2
        names = [*names[:half], f"… {len(names) - 2 * half} more …", *names[-half:]]
    return " waits for ".join([names[0], ", which waits for ".join(names[1:])])
