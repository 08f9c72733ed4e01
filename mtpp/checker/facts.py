"""Setting of a claim, which the document chose: the system, sizes, and groups of ops, held to what the user asks for.

These rows have no verdict, except where the user says what they have to be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any

from mtpp.checker.report import Check, fact

DECIMAL = (("P", 10**15), ("T", 10**12), ("G", 10**9), ("M", 10**6), ("k", 10**3))
BINARY = (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))


def quantity(value: int, unit: str, prefixes: Sequence[tuple[str, int]] = DECIMAL) -> str:
    """Write a number exactly: with the largest prefix that leaves three decimals at most."""
    for prefix, size in prefixes:
        if value >= size:
            if value * 1000 % size or value >= 10**6 * size:
                break
            thousandths = value * 1000 // size
            digits = f"{thousandths // 1000}.{thousandths % 1000:03}".rstrip("0").rstrip(".")
            return f"{digits} {prefix}{unit}"
    return f"{value} {unit}"


def memory(value: int) -> str:
    """Write an amount of memory exactly, in binary units or else in decimal ones: ``16 GiB``, ``100 MB``."""
    text = quantity(value, "B", BINARY)
    return quantity(value, "B") if text == f"{value} B" else text


def factor(ratio: Fraction | float) -> str:
    """Write the factor that something is proven to be within, with six digits: rounded up, so that it is proven too."""
    exact = Fraction(ratio)
    rounded = Context(prec=6, rounding=ROUND_CEILING).divide(Decimal(exact.numerator), Decimal(exact.denominator))
    return f"{float(rounded):.6g}"


def counted(count: int, what: str) -> str:
    """Write a number of things: ``1 stage``, ``8 stages``."""
    plural = "" if count == 1 else "es" if what.endswith("ch") else "s"
    return f"{count} {what}{plural}"


def one_of(stages: int) -> str:
    """Write where each layer is: ``one of 8 stages``, ``the only stage``."""
    return "the only stage" if stages == 1 else f"one of {counted(stages, 'stage')}"


def _bytes(value: int | None) -> str:
    return "none" if value is None else memory(value)


_NO_RATE = "no rate"
"""Of a machine whose devices bring times of their own."""


def _rate(value: int | None) -> str:
    return _NO_RATE if value is None else quantity(value, "B/s")


_KEYS: dict[str, dict[str, tuple[str, Any]]] = {
    "system": {
        "peak_flops_per_s": ("{}", lambda value: _NO_RATE if value is None else quantity(value, "FLOP/s")),
        "memory_bandwidth_bytes_per_s": ("memory {}", _rate),
    },
    "bandwidth": {"bandwidth_bytes_per_s": ("{}", _rate)},
    "memory": {
        "fast_memory_bytes": ("fast memory {}", _bytes),
        "stage_memory_bytes": ("stage memory limit {}", _bytes),
        "activation_reserve_bytes": ("activation reserve {}", _bytes),
        "peak": ("activations by {}", str),
    },
    "sequences": {"sequences": ("{} at a time", str)},
}
"""Row → key of a system → how its value is written."""


OWN_COSTS = "own_costs"
"""Key of what a document says of a model whose file brings the costs of its ops."""


def system_rows(
    system: Mapping[str, Any],
    due: Mapping[str, Any],
    said_by: str,
    about: Mapping[str, Any],
    own_costs: bool | None = None,
) -> list[Check]:
    """Return the rows on what a graph runs on.

    Parameters
    ----------
    due
        The same keys with what the user says that they are; those that are not here are the document's to choose.
    about
        Part of the document on the model.
    own_costs
        Whether the file of the model brings the costs of its ops; None where it is not at hand.
    """
    told = {"sequences": 1, **system}
    several = "sequences" in system or due.get("sequences", 1) != 1
    rows = {name: keys for name, keys in _KEYS.items() if name != "sequences" or several}
    if about.get(OWN_COSTS) and own_costs is False:
        costs = f"{said_by} says that the model brings its own costs, and they are modelled"
        own = [Check("system", False, costs)]
        return own + [_system_row(name, keys, told, due, said_by) for name, keys in rows.items() if name != "system"]
    costs = "measured" if "costs_sha256" in about else "the model's own" if own_costs or about.get(OWN_COSTS) else ""
    return [_system_row(name, keys, told, due, said_by, costs) for name, keys in rows.items()]


def _system_row(
    name: str,
    keys: dict[str, tuple[str, Any]],
    system: Mapping[str, Any],
    due: Mapping[str, Any],
    said_by: str,
    costs: str = "",
) -> Check:
    """Return one row; *costs* says where those of ops come from, if not from the system's rates."""
    stated = {key: system.get(key) for key in keys}
    wrong = [
        f"{said_by} says {template.format(write(stated[key]))}, it has to be {write(due[key])}"
        for key, (template, write) in keys.items()
        if key in due and stated[key] != due[key]
    ]
    if wrong:
        return Check(name, False, "; ".join(wrong))
    text = ", ".join(template.format(write(stated[key])) for key, (template, write) in keys.items())
    if name == "system":
        text = f"{system['name']}: {f'models no costs, they are {costs}' if costs else text}"
    if name == "memory" and stated["fast_memory_bytes"] is None and stated["stage_memory_bytes"] is None:
        text = "no limit on any stage"
    return Check(name, True, f"{text}, as asked for") if set(keys) & set(due) else fact(name, text)


def dims_rows(stated: Mapping[str, Any], due: Mapping[str, int] | None, said_by: str) -> list[Check]:
    """Return the row on sizes that a model was given, if it was given any or should have been; *due*: by the user."""
    name = "dims"
    dims: Mapping[str, int] = stated["dims"]
    proposed = stated.get("proposed_dims", ())
    nowhere = next((key for key in proposed if key not in dims), None)
    if nowhere is not None:
        return [Check(name, False, f"{said_by} says that {nowhere!r} was proposed, and nothing of its size")]
    sizes = [f"{key} = {value}{' (proposed)' if key in proposed else ''}" for key, value in dims.items()]
    text = ", ".join(sizes) or "none"
    for key, value in (due or {}).items():
        if dims.get(key) != value:
            return [Check(name, False, f"{said_by} says {key} = {dims.get(key, 'nothing')}, it has to be {value}")]
    if due:
        return [Check(name, True, f"{text}, as asked for")]
    return [fact(name, text)] if dims else []


def groups_row(groups: Iterable[Sequence[str]], op_count: int) -> Check:
    """Return the row on ops that had to share a stage: a claim is about partitions that keep them together."""
    groups = list(groups)
    if not groups:
        return fact("groups", "none: any op may be in any stage")
    held = len({op for group in groups for op in group})
    return fact(
        "groups",
        f"{counted(len(groups), 'group')}, {held} of {op_count} ops: only partitions that keep each together count",
    )
