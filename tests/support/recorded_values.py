"""Values of documents that a verification does not hold to anything, and why: of all others each is checked.

The page on trust prints this list, and a test changes every value of every kind of document: the verdict changes, or
the value is here.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Recorded(NamedTuple):
    """A place in a document, ``*`` for any key or index, ``**`` for any number of them, ``{a,b}`` for one of some."""

    place: str
    why: str


HOW_FOUND = "how the result was found; a name has to be one that there is"
TIMES = "times that work took"
FOR_PEOPLE = "words for people"
MODEL_NAME = "the name of a model; which one it is says its SHA-256"
MODEL_PATH = "where the model was; which one it is says its SHA-256"
TERMS = "terms of the claim, which the document chose: the claim is checked under these"
NO_EFFECT = "terms of costs, without effect on a graph that brings its own"
LESS = "may say less than is true: a weaker bound is one as well"
PROOF = "numbers of a proof: whichever are here have to prove the bound"

_PROOF_PARTS = "merges,flow,drawn,weights,ops,steps,capacity,families,blocks,nodes,relaxed"
"""Parts of proofs of tier ``exact`` in which several numbers may do."""

_SYSTEM = (
    Recorded("system/name", "the name of a system; its values count"),
    Recorded("system/*", TERMS),
)


def _proof_parts(*places: str) -> tuple[Recorded, ...]:
    ends = "op", f"{{{_PROOF_PARTS}}}/**"
    return tuple(Recorded(f"{place}/{end}", PROOF) for place in places for end in ends)


RECORDED: dict[str, tuple[Recorded, ...]] = {
    "mtpp-plan": (
        Recorded("model/name", MODEL_NAME),
        Recorded("model/path", MODEL_PATH),
        *_SYSTEM,
        Recorded("together", TERMS),
        Recorded("together/**", TERMS),
        *(Recorded(key, HOW_FOUND) for key in ("algorithm", "found_by", "seed", "evaluations", "stopped")),
        Recorded("fewest_devices/max_bottleneck", TERMS),
        Recorded("elapsed_s", TIMES),
        Recorded("graph/name", MODEL_NAME),
        Recorded("graph/ops/*/kind", FOR_PEOPLE),
        Recorded("graph/metadata/**", FOR_PEOPLE),
        *_proof_parts("lower_bound/proof"),
    ),
    "mtpp-plan-range": (
        *(Recorded(f"plans/*/{key}", HOW_FOUND) for key in ("algorithm", "found_by", "seed", "evaluations", "stopped")),
        Recorded("plans/*/model/path", MODEL_PATH),
        Recorded("plans/*/elapsed_s", TIMES),
        *(Recorded(f"missing/*/{key}", "why the document has no plan, which is no claim") for key in ("k", "why")),
        *_proof_parts("plans/*/lower_bound/proof"),
    ),
    "mtpp-certificates": (
        Recorded("rows/*/model", MODEL_NAME),
        Recorded("rows/*/path", MODEL_PATH),
        *(Recorded(f"rows/*/{one.place}", one.why) for one in _SYSTEM),
        Recorded("rows/*/together/**", TERMS),
        Recorded("rows/*/assumptions/*", FOR_PEOPLE),
        *(Recorded(f"rows/*/{key}", HOW_FOUND) for key in ("upper_algorithm", "solved/*", "stopped")),
        Recorded("rows/*/seconds/*", TIMES),
        *_proof_parts("rows/*/lower_proof", "rows/*/proven/proof", "rows/*/proofs/*/proof"),
    ),
    "mtpp-training-plan, version 1": (
        Recorded("planner", "a planner that there is, and whose plans are such"),
        Recorded("model/name", MODEL_NAME),
        Recorded("model/path", MODEL_PATH),
        Recorded("system/**", TERMS),
        Recorded("proven", "may say less than is true"),
        Recorded("lower_bound/proof/downsets", HOW_FOUND),
        Recorded("knapsack/**", HOW_FOUND),
        *(Recorded(key, FOR_PEOPLE) for key in ("notes", "notes/*", "reason")),
        Recorded("stopped", HOW_FOUND),
        Recorded("elapsed_s", TIMES),
    ),
    "mtpp-training-plan by graphpipe": (
        Recorded("model/name", MODEL_NAME),
        Recorded("model/path", MODEL_PATH),
        *(Recorded(key, TERMS) for key in ("system/*", "rules/**")),
        Recorded("stages/*/forwards_backwards", "another one that is allowed may make the same order of passes"),
        Recorded("memory_bound/value", LESS),
        *(Recorded(f"{bound}/proof/left_out/*", PROOF) for bound in ("lower_bound", "memory_bound")),
        *(Recorded(key, FOR_PEOPLE) for key in ("notes", "notes/*", "reason")),
        Recorded("stopped", HOW_FOUND),
        Recorded("elapsed_s", TIMES),
    ),
    "mtpp-training-plan by pfeife": (
        Recorded("model/name", MODEL_NAME),
        Recorded("model/path", MODEL_PATH),
        Recorded("model/system/*", NO_EFFECT),
        *(Recorded(key, TERMS) for key in ("system/**", "costs/*", "rules/**")),
        Recorded("schedule/prefetch/*", "more than there is to prefetch is no other schedule"),
        *(Recorded(f"{bound}/method", "one bound may go by two names") for bound in ("lower_bound", "family_bound")),
        *(Recorded(f"{bound}/proof/**", PROOF) for bound in ("lower_bound", "family_bound")),
        Recorded("memory_bound/value", LESS),
        Recorded("reason", FOR_PEOPLE),
        Recorded("stopped", HOW_FOUND),
        Recorded("elapsed_s", TIMES),
    ),
}
"""Kind of document → its values that are not checked."""


def kind_of(document: dict[str, object]) -> str:
    """Return the kind of a document, as :data:`RECORDED` has it."""
    if document["format"] != "mtpp-training-plan":
        return str(document["format"])
    return "mtpp-training-plan" + (", version 1" if document["version"] == 1 else f" by {document['planner']}")


def is_recorded(kind: str, place: tuple[str | int, ...]) -> Recorded | None:
    """Return the entry of a place in a document of that kind; None if what stands there is checked."""
    text = "/".join(map(str, place))
    return next((one for one in RECORDED[kind] if _pattern(one.place).fullmatch(text)), None)


def _pattern(place: str) -> re.Pattern[str]:
    return re.compile("/".join(map(_part, place.split("/"))), re.DOTALL)


def _part(part: str) -> str:
    if part.startswith("{"):
        return f"({'|'.join(map(re.escape, part[1:-1].split(',')))})"
    return {"*": "[^/]*", "**": ".*"}.get(part, re.escape(part))


def listed_as_table() -> str:
    """Return the list as a table in Markdown: one line a kind and reason, in their order."""
    lines = ["| document | not checked | why |", "|---|---|---|"]
    for kind, entries in RECORDED.items():
        reasons: dict[str, list[str]] = {}
        for one in entries:
            reasons.setdefault(one.why, []).append(f"`{one.place}`")
        lines += [f"| {kind} | {', '.join(places)} | {why} |" for why, places in reasons.items()]
    return "\n".join(lines)
