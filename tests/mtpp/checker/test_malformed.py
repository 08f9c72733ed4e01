"""Documents that are no plans and no graphs: bad input with a JSON pointer, never a traceback and never a verdict."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from graph_strategies import LINK, chain
from plan_documents import graph_document, plan_document

from mtpp.checker.plan import verify_plan
from mtpp.errors import InputError

GRAPH = chain([3, 4], [2], "us")
ABSTRACT = chain([3, 4], [2])

KINDS: dict[str, Any] = {
    "null": None,
    "flag": True,
    "string": "x",
    "array": [],
    "object": {},
    "integer": 7,
    "decimal": Decimal("0.5"),
}


def good_plan() -> dict[str, Any]:
    """Return a correct plan of a chain of two ops in two stages."""
    plan: dict[str, Any] = plan_document(GRAPH, LINK, 2, [0, 1], together=[["op0"]], embed=True)
    return plan


def set_at(document: dict[str, Any], path: tuple[Any, ...], value: Any) -> None:
    """Put a value at a path."""
    target: Any = document
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value


def refusal(plan: Any, graph: Any = None) -> InputError:
    """Return the error that verifying raises."""
    with pytest.raises(InputError) as caught:
        verify_plan(plan, graph)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400
    return caught.value


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every value of the plan whose type is fixed."""
    found = [path] if path else []
    if isinstance(value, dict):
        for key, item in value.items():
            if key not in ("proof", "metadata"):
                found += places(item, (*path, key))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            found += places(item, (*path, i))
    return found


ALSO_ACCEPTED = {
    "sha256": {"null"},
    "seed": {"null"},
    "fast_memory_bytes": {"integer"},
    "stage_memory_bytes": {"integer"},
    "first": {"null"},
    "last": {"null"},
    "ratio": {"null", "integer"},
    "elapsed_s": {"integer"},
}
"""Kinds of value that are well-formed at a key beside the one that stands there."""


def kind_of(value: Any) -> str:
    """Return the name in KINDS of a value's type."""
    return next(kind for kind, example in KINDS.items() if type(example) is type(value))


@pytest.mark.parametrize("path", places(good_plan()), ids=lambda path: "/".join(map(str, path)))
def test_wrong_types_are_refused_at_their_place(path: tuple[Any, ...]) -> None:
    """Every value of a plan, replaced by one of each wrong type, is named by its pointer."""
    accepted = ALSO_ACCEPTED.get(path[-1], set()) | {kind_of(_at(good_plan(), path))}
    for kind in KINDS.keys() - accepted:
        plan = good_plan()
        set_at(plan, path, copy.deepcopy(KINDS[kind]))
        assert refusal(plan).where == "/" + "/".join(map(str, path)), kind


def test_missing_and_unknown_keys_are_named() -> None:
    """Every key of every object of a plan is required but kind, sizes, metadata and stage memory; no other is known."""
    optional = {"graph", "kind", "param_bytes", "bytes", "metadata", "stage_memory_bytes"}
    objects: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((), good_plan()),
        *(
            (key, _at(good_plan(), key))
            for key in [
                ("model",),
                ("system",),
                ("lower_bound",),
                ("stages", 0),
                ("graph",),
                ("graph", "ops", 0),
                ("graph", "tensors", 0),
            ]
        ),
    ]
    for path, value in objects:
        start = "".join(f"/{key}" for key in path)
        for key in value:
            if key in optional and path[:1] != ("stages",):
                continue
            plan = good_plan()
            del _at(plan, path)[key]
            error = refusal(plan)
            assert error.where == f"{start}/{key}"
        plan = good_plan()
        _at(plan, path)["surprise"] = 1
        error = refusal(plan)
        assert (error.where, error.problem) == (f"{start}/surprise", "unknown key")


def _at(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        document = document[key]
    return document


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("version",), 2),
        (("version",), True),
        (("version",), Decimal("1.0")),
        (("format",), "mtpp-graph"),
        (("k",), 0),
        (("k",), -1),
        (("k",), Decimal("2.0")),
        (("k",), 2**63),
        (("bottleneck",), -1),
        (("bottleneck",), 10**4000),
        (("ratio",), float("nan")),
        (("ratio",), Decimal("NaN")),
        (("ratio",), Decimal("sNaN")),
        (("ratio",), Decimal("1e999999999")),
        (("ratio",), 10**400),
        (("ratio",), -1),
        (("elapsed_s",), float("inf")),
        (("elapsed_s",), Decimal("-0.1")),
        (("ticks_per_unit",), 0),
        (("time_unit",), "minutes"),
        (("lower_bound", "tier"), "certain"),
        (("system", "peak"), "none"),
        (("system", "bandwidth_bytes_per_s"), 0),
        (("model", "sha256"), "ABC"),
        (("model", "dims", "batch"), 0),
        (("graph", "ops"), []),
        (("graph", "ops", 0, "work"), Decimal("0.5")),
        (("graph", "ops", 1, "name"), "op0"),
        (("graph", "ops", 1, "name"), ""),
        (("graph", "version"), 3),
        (("graph", "tensors", 0, "producer"), "nobody"),
        (("graph", "tensors", 0, "consumers", 0), "nobody"),
        (("graph", "tensors", 0, "consumers", 0), "op0"),
    ],
)
def test_values_out_of_range_are_refused(path: tuple[Any, ...], value: Any) -> None:
    """A value of the right type that no plan can have is named by its pointer."""
    plan = good_plan()
    set_at(plan, path, value)
    assert refusal(plan).where == "/" + "/".join(map(str, path))


@pytest.mark.parametrize("plan", [None, [], "plan", 3, True])
def test_a_plan_is_an_object(plan: Any) -> None:
    """Anything but an object is no plan."""
    assert refusal(plan).problem == "not an mtpp-plan document"


def test_a_graph_is_no_plan() -> None:
    """A graph in place of a plan is told so by its format, not by its keys."""
    error = refusal(graph_document(GRAPH))
    assert error.where == "/format"
    assert "mtpp-plan" in str(error)


def test_pointers_are_escaped() -> None:
    """Names with slashes and tildes are escaped in pointers (RFC 6901), and lone surrogates can be printed."""
    plan = good_plan()
    plan["assignment"]["a/b~c"] = "x"
    assert refusal(plan).where == "/assignment/a~1b~0c"
    del plan["assignment"]["a/b~c"]
    plan["assignment"]["\ud800"] = "x"
    assert str(refusal(plan)).encode("utf-8")


def test_deep_nesting_is_no_trouble() -> None:
    """Values nested deeper than the interpreter's stack are refused or passed over without recursion."""
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    plan = good_plan()
    plan["graph"]["metadata"] = {"deep": deep}
    assert verify_plan(plan, None).passed
    plan["k"] = deep
    assert refusal(plan).problem == "expected a whole number, found an array"
    while deep:
        deep = deep.pop()  # Taken apart by hand: freeing it in one go is recursive, too.


MODEL_FAULTS: list[tuple[Callable[[dict[str, Any]], Any], str]] = [
    (lambda g: g.update(time_unit="h"), "/time_unit"),
    (lambda g: g.update(ops=[]), "/ops"),
    (lambda g: g.update(surprise=1), "/surprise"),
    (lambda g: g.pop("tensors"), "/tensors"),
    (lambda g: g["ops"][0].update(work=-1), "/ops/0/work"),
    (lambda g: g["ops"][0].update(work=0.5), "/ops/0/work"),
    (lambda g: g["ops"][0].update(work=Decimal("NaN")), "/ops/0/work"),
    (lambda g: g["ops"][0].update(work=Decimal("1e-999999999")), "/ops/0/work"),
    (lambda g: g["ops"][0].update(work=Decimal("1e999999999")), "/ops/0/work"),
    (lambda g: g["ops"][0].update(work=10**18), "/ops/0/work"),
    (lambda g: g["ops"][0].update(param_bytes=Fraction(1, 2)), "/ops/0/param_bytes"),
    (lambda g: g["tensors"][0].pop("transfer"), "/tensors/0"),
    (lambda g: g["tensors"][0].update(transfer="2"), "/tensors/0/transfer"),
    (lambda g: g["tensors"][0].update(bytes=-1), "/tensors/0/bytes"),
    (lambda g: g["tensors"][0].update(consumers=["op1", "op1"]), "/tensors/0/consumers/1"),
    (
        lambda g: g["tensors"].append({"name": "back", "producer": "op1", "consumers": ["op0"], "transfer": 1}),
        "/tensors",
    ),
    (lambda g: g["tensors"].append(dict(g["tensors"][0])), "/tensors/1/name"),
]


@pytest.mark.parametrize(("break_graph", "where"), MODEL_FAULTS)
def test_faults_of_the_model_point_into_the_model(break_graph: Callable[[dict[str, Any]], Any], where: str) -> None:
    """A malformed model is told from a malformed plan by the error's source."""
    model = graph_document(GRAPH)
    break_graph(model)
    error = refusal(good_plan(), model)
    assert (error.source, error.where) == ("model", where)


def test_abstract_graphs_need_transfers_and_no_memory() -> None:
    """Without a time unit there is no bandwidth: bytes alone are no cost, and a fast memory means nothing."""
    plan = plan_document(ABSTRACT, LINK, 2, [0, 1], embed=True)
    model = graph_document(ABSTRACT)
    model["tensors"][0] = {"name": "t0", "producer": "op0", "consumers": ["op1"], "bytes": 8}
    assert refusal(plan, model).where == "/tensors/0"
    plan["system"]["fast_memory_bytes"] = 10
    assert refusal(plan).where == "/system/fast_memory_bytes"


@pytest.mark.parametrize("memory", ["fast_memory_bytes", "stage_memory_bytes"])
def test_reserve_above_the_memory_is_refused(memory: str) -> None:
    """A reserve that leaves no room for parameters is an error, not an overflow."""
    plan = good_plan()
    plan["system"] |= {memory: 10, "activation_reserve_bytes": 11}
    assert refusal(plan).where == "/system/activation_reserve_bytes"


def test_python_json_constants_are_refused() -> None:
    """What Python's JSON reader lets through, NaN and Infinity, is no number here."""
    text = json.dumps(good_plan() | {"elapsed_s": float("nan")}, default=float)
    assert refusal(json.loads(text, parse_float=Decimal)).where == "/elapsed_s"
