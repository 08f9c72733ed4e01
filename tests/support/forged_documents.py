"""One edit of a true document, of each kind that a forger may think of."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from tampering import Path, altered, leaves

Edit = Callable[[Any, random.Random], Any]
"""Returns another document, or None if there is nothing of its kind to change."""

METHODS = ("simple", "node", "crossings", "fraction", "configuration", "downset", "exact-mip", "work", "magic")
TIERS = ("exact", "enumerated", "solver", "certain")
_BOUNDS = ("lower_bound", "lower_proof", "proven")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | Fraction | Decimal | float) and not isinstance(value, bool)


def _pick(document: Any, rng: random.Random, wanted: Callable[[Path, Any], bool]) -> tuple[Path, Any] | None:
    found = [(path, value) for path, value in leaves(document) if path and wanted(path, value)]
    return rng.choice(found) if found else None


def _in_proof(path: Path) -> bool:
    return any(key in ("proof", "lower_proof") for key in path)


def _other_number(value: Any, rng: random.Random) -> Any:
    others = [value + 1, value - 1, 2 * value, 0, -value - 1, value + rng.randrange(1, 50)]
    extreme = [10**18, 2**62, 2**63, 10**30, Decimal("1e300"), Decimal("0.5"), "1", None, True]
    return rng.choice([other for other in others if other != value] * 3 + extreme)


def number(document: Any, rng: random.Random) -> Any:
    """Change any number outside proofs."""
    picked = _pick(document, rng, lambda path, value: _is_number(value) and not _in_proof(path))
    return None if picked is None else altered(document, picked[0], _other_number(picked[1], rng))


def proof(document: Any, rng: random.Random) -> Any:
    """Change a value inside a proof."""
    picked = _pick(document, rng, lambda path, value: _in_proof(path))
    if picked is None:
        return None
    path, value = picked
    if _is_number(value):
        return altered(document, path, _other_number(value, rng))
    if isinstance(value, str):
        return altered(
            document, path, rng.choice(["x", "", value + "0", "fit", "pull-down", "pull-up", "made", "read"])
        )
    return altered(document, path, not value)


def proof_shape(document: Any, rng: random.Random) -> Any:
    """Leave something out of a proof, or have it twice."""
    owners = [path for path in _containers(document) if _in_proof(path)]
    return _reshaped(document, rng, owners)


def shape(document: Any, rng: random.Random) -> Any:
    """Leave something out of the document, or have it twice."""
    return _reshaped(document, rng, [path for path in _containers(document) if not _in_proof(path)])


def _containers(value: Any, path: Path = ()) -> list[Path]:
    found: list[Path] = []
    if isinstance(value, dict | list) and value:
        found.append(path)
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            found += _containers(item, (*path, key))
    return found


def _reshaped(document: Any, rng: random.Random, owners: list[Path]) -> Any:
    if not owners:
        return None
    wrong = copy.deepcopy(document)
    target = wrong
    for key in rng.choice(owners):
        target = target[key]
    if isinstance(target, dict):
        key = rng.choice(list(target))
        if rng.random() < 0.7:
            del target[key]
        else:
            target["more"] = target[key]
    else:
        i = rng.randrange(len(target))
        how = rng.randrange(4)
        if how == 0:
            del target[i]
        elif how == 1:
            target.insert(i, copy.deepcopy(target[i]))
        elif how == 2:
            target.reverse()
        else:
            del target[i:]
    return wrong


def tier(document: Any, rng: random.Random) -> Any:
    """State another tier."""
    return _stated(document, rng, ("tier",), TIERS)


def method(document: Any, rng: random.Random) -> Any:
    """State another method."""
    return _stated(document, rng, ("method", "lower_method"), METHODS)


def _stated(document: Any, rng: random.Random, keys: tuple[str, ...], values: tuple[str, ...]) -> Any:
    picked = _pick(document, rng, lambda path, _: path[-1] in keys and "knapsack" not in path)
    if picked is None:
        return None
    return altered(document, picked[0], rng.choice([value for value in values if value != picked[1]]))


def text(document: Any, rng: random.Random) -> Any:
    """Change a name or a hash."""
    picked = _pick(document, rng, lambda path, value: isinstance(value, str) and not _in_proof(path))
    if picked is None:
        return None
    return altered(document, picked[0], rng.choice([picked[1] + "x", "", "op0", "0" * 64, "ps", "order", "\ud800"]))


def flag(document: Any, rng: random.Random) -> Any:
    """Turn a truth value around."""
    picked = _pick(document, rng, lambda path, value: isinstance(value, bool) and not _in_proof(path))
    return None if picked is None else altered(document, picked[0], not picked[1])


def groups(document: Any, rng: random.Random) -> Any:
    """Change which ops have to share a stage."""
    owners = [row for row in document.get("rows", [document]) if "assignment" in row]
    if not owners:
        return None
    i = rng.randrange(len(owners))
    wrong = copy.deepcopy(document)
    row = [row for row in wrong.get("rows", [wrong]) if "assignment" in row][i]
    names = list(row["assignment"])
    row["together"] = [] if row.get("together") and rng.random() < 0.5 else [rng.sample(names, min(2, len(names)))]
    return wrong


def bound(document: Any, rng: random.Random) -> Any:
    """Raise a lower bound, with all that follows from it: ratio, optimum, the cutoff of the proof."""
    wrong = copy.deepcopy(document)
    if wrong.get("feasible") is False:
        return None
    row = rng.choice(wrong["rows"]) if wrong.get("rows") else wrong
    if "lower_bound" in row and isinstance(row["lower_bound"]["value"], list):
        return _raised_time(wrong, rng)
    upper = row.get("upper", row.get("bottleneck"))
    key, stated = ("value", row["lower_bound"]) if "lower_bound" in row else ("lower", row)
    value = stated[key]
    higher = upper if upper is not None and rng.random() < 0.5 else value + rng.randrange(1, 3 + value // 4)
    if higher == value:
        higher += 1
    stated[key] = higher
    held = row["lower_bound"]["proof"] if "lower_bound" in row else row["lower_proof"]
    for name, due in (("cutoff", higher), ("work", higher)):
        if name in held:
            held[name] = due
    if upper is not None:
        row["ratio"] = Fraction(upper / higher) if higher else None
        row["optimal"] = upper == higher and (row.get("tier") or stated.get("tier")) != "solver"
    return wrong


def _raised_time(plan: Any, rng: random.Random) -> Any:
    time = Fraction(*plan["time_per_sample_ticks"])
    higher = time if rng.random() < 0.5 else Fraction(*plan["lower_bound"]["value"]) + Fraction(1, rng.randrange(1, 9))
    pair = [higher.numerator, higher.denominator]
    plan["lower_bound"]["value"] = pair
    if "less_than" in plan["lower_bound"]["proof"]:
        plan["lower_bound"]["proof"]["less_than"] = pair
    plan["ratio"] = Fraction(float(time / higher)) if higher else None
    plan["optimal"] = time == higher
    return plan


EDITS: dict[str, Edit] = {
    "number": number,
    "tier": tier,
    "method": method,
    "proof": proof,
    "proof shape": proof_shape,
    "bound raised": bound,
    "groups": groups,
    "flag": flag,
    "text": text,
    "shape": shape,
}
"""Kind of edit → what makes one."""


def edited(document: Any, rng: random.Random) -> tuple[str, Any]:
    """Return the kind of an edit, and the document after it, which differs from the one before."""
    while True:
        kind = rng.choice(list(EDITS))
        wrong = EDITS[kind](document, rng)
        if wrong is not None and wrong != document:
            return kind, wrong
