"""State that a model keeps between requests, found by the names, types and shapes of its inputs and outputs.

Exporters call the two ends of a state alike: ``past_key_values.0.key`` and ``present.0.key``, ``cache_in`` and
``cache_out``, ``state`` and ``stateN``, ``h`` and ``hn``. Both ends have one type and rank, and sizes are equal but for
one axis, which may grow. Where several outputs fit an input, or several inputs an output, none is taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from mtpp.formats.modelled.op_record import OpRecord
from mtpp.inference.states import State
from mtpp.units import format_bytes
from mtpp.wording import counted

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_PAIRS = ("key", "values")
"""Behind ``past`` in names of caches: ``past_key_values.0.key`` comes out as ``present.0.key``."""

_BEFORE, _AFTER = frozenset({"past", "prev", "previous"}), frozenset({"present", "new", "updated"})
_IN, _OUT = frozenset({"in", "input"}), frozenset({"out", "output", "next"})
_KEPT = frozenset(
    {"cache", "cached", "caches", "state", "states", "hidden", "cell", "memory", "mem", "carry", "kv", "pkv", "h", "c"}
)
"""Words for something that is kept: ``sample`` and ``out_sample`` are no state, ``state_in`` and ``state_out`` are."""

_FIRST, _LAST = "0", "n"
"""Time steps in names of recurrent states: ``h0``, ``h_n``."""

_RENEWED = frozenset({"upd", "update", "updated"})
"""Before names of outputs that are all of an input's but its word for something kept: ``mem0`` and ``upd0``."""

_RENAMED = "renamed"

_LISTED = 3


class Found(NamedTuple):
    """Pairs of inputs and outputs, and lines on inputs for which there are several outputs."""

    pairs: list[tuple[str, str]]
    told: list[str]


def pairs_of(inputs: Iterable[Mapping[str, Any]], outputs: Iterable[Mapping[str, Any]]) -> Found:
    """Return the inputs that come out again, with the outputs that they come out as.

    Parameters
    ----------
    inputs, outputs
        Of the model, as metadata describe them: name, shape, dtype and bytes. An output may have a ``key`` that it is
        returned under, which then tells in place of its name.
    """
    entering, leaving = list(inputs), list(outputs)
    by_core: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for one in leaving:
        for core in {core for core, _ in _outgoing(_called(one))}:
            by_core.setdefault(core, []).append(one)
    fitting: dict[str, list[str]] = {}
    for one in entering:
        cores = [core for core, _ in _incoming(one["name"])]
        others = [other for core in cores for other in by_core.get(core, ()) if is_pair(one["name"], _called(other))]
        others += [other for other in leaving if _same_key(one["name"], other)]
        names = [other["name"] for other in others if same_type(one, other)]
        if names:
            fitting[one["name"]] = list(dict.fromkeys(names))
    claimed = [name for names in fitting.values() for name in names]
    found, told = [], []
    for name, names in fitting.items():
        if len(names) == 1 and claimed.count(names[0]) == 1:
            found.append((name, names[0]))
        else:
            told.append(
                f"input {name!r} may be a state that comes out as {_listing(names)}: `--keep-state IN=OUT` says so"
            )
    return Found(found, told)


def _called(output: Mapping[str, Any]) -> str:
    return str(output.get("key") or output["name"])


def _same_key(entering: str, leaving: Mapping[str, Any]) -> bool:
    """Tell whether an output is returned under the name of an input that is kept: ``past_key_values`` in and out."""
    words = _words(entering)
    return words == _words(str(leaving.get("key") or "")) and not (_KEPT | {"past"}).isdisjoint(words)


def is_pair(entering: str, leaving: str) -> bool:
    """Tell whether the names of an input and an output are those of the two ends of a state."""
    if entering == leaving:
        return False
    return any(
        core == other and _says_so(marks, others, core)
        for core, marks in _incoming(entering)
        for other, others in _outgoing(leaving)
    )


def _says_so(entering: frozenset[str], leaving: frozenset[str], core: tuple[str, ...]) -> bool:
    if entering & _BEFORE and leaving & _AFTER:
        return True
    if not core:
        return False
    if entering & {_RENAMED}:
        return bool(leaving & _RENEWED)
    if leaving & {"new", "updated"}:
        return True
    kept = not _KEPT.isdisjoint(core)
    return kept and (bool(leaving & {"next", _LAST, "present"}) or bool(entering & (_IN | _BEFORE) and leaving & _OUT))


def _incoming(name: str) -> list[tuple[tuple[str, ...], frozenset[str]]]:
    """Return the words of an input's name without those that say that it comes in, and these, in all readings."""
    words = _words(name)
    found = [_without(words, _BEFORE | _IN)]
    if len(words) > 1 and words[-1] == _FIRST:
        found.append((tuple(words[:-1]), frozenset({_FIRST})))
    if len(words) > 1 and words[0] in _KEPT:
        found.append((tuple(words[1:]), frozenset({_RENAMED})))
    return found


def _outgoing(name: str) -> list[tuple[tuple[str, ...], frozenset[str]]]:
    words = _words(name)
    found = [_without(words, _AFTER | _OUT)]
    if len(words) > 1 and words[0] in _RENEWED:
        found.append((tuple(words[1:]), frozenset({words[0]})))
    if len(words) > 1 and words[-1] == _LAST:
        found.append((tuple(words[:-1]), frozenset({_LAST})))
    if words in (["hn"], ["cn"]):
        found.append(((words[0][0],), frozenset({_LAST})))
    return found


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]


def _without(words: Sequence[str], marks: frozenset[str]) -> tuple[tuple[str, ...], frozenset[str]]:
    kept = list(words)
    for mark in ("past", "present"):
        if mark in marks and mark in kept:
            at = kept.index(mark) + 1
            if tuple(kept[at : at + 2]) == _PAIRS:
                del kept[at : at + 2]
    return tuple(word for word in kept if word not in marks), frozenset(words) & marks


def same_type(entering: Mapping[str, Any], leaving: Mapping[str, Any]) -> bool:
    """Tell whether two ends have one type and rank, and sizes that are equal but for one axis, which may grow."""
    if entering["dtype"] != leaving["dtype"]:
        return False
    sizes, others = entering["shape"], leaving["shape"]
    if len(sizes) != len(others):
        return False
    differing = [(one, other) for one, other in zip(sizes, others, strict=True) if one != other]
    if len(differing) > 1:
        return False
    return all(not (isinstance(one, int) and isinstance(other, int)) or one < other for one, other in differing)


def states_of(
    pairs: Iterable[tuple[str, str]], sizes: Mapping[str, int], ops: Sequence[OpRecord], names: Sequence[str]
) -> list[State]:
    """Return the states between the ends of pairs that an op reads.

    Parameters
    ----------
    sizes
        Bytes of inputs and outputs; a state has those of its larger end.
    """
    readers: dict[str, list[str]] = {}
    for op, op_name in zip(ops, names, strict=True):
        for tensor in (*op.inputs, *op.states):
            readers.setdefault(tensor, []).append(op_name)
    found: dict[str, State] = {}
    taken: set[str] = set()
    for source, target in pairs:
        size = max(sizes.get(source, 0), sizes.get(target, 0))
        if source in readers and size > 0:
            end = source if target in taken else target  # what several states become is named once
            taken.add(end)
            found[source] = State(source, source, end, size, readers[source])
    return list(found.values())


def told_states(states: Sequence[State]) -> list[str]:
    """Return one line on the states that were found, for people; none if there are none."""
    if not states:
        return []
    total = format_bytes(sum(state.bytes for state in states))
    ends = [f"{state.input} → {state.output}" if state.input != state.output else state.input for state in states]
    return [f"{counted(len(states), 'state')} kept between requests, {total} for each sequence: {_listing(ends)}"]


def _listing(texts: Sequence[str]) -> str:
    more = len(texts) - _LISTED
    return ", ".join(texts[:_LISTED]) + (f", … {more} more" if more > 0 else "")
