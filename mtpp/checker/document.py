"""The shape of the documents that the verifier reads: whatever is malformed is named by its JSON pointer.

Part of the independent verifier (:mod:`mtpp.checker.plan`), so it shares no declaration with the readers of these
formats.
"""

from __future__ import annotations

from typing import Any

from mtpp.checker.capacity.shape import CAPACITY, capacity_rule
from mtpp.checker.facts import OWN_COSTS
from mtpp.checker.report import STATED_TIERS
from mtpp.checker.serving import SERVING
from mtpp.document_shape import (
    Path,
    Rule,
    anything,
    array,
    choice,
    exact_cost,
    flag,
    mapping,
    nullable,
    number,
    record,
    refuse,
    sha256,
    tagged,
    text,
    whole,
)

PICOSECONDS_PER_UNIT = {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12}
ABSTRACT = "1"

_SIZE_LIMIT = 2**62

time_unit = choice(*PICOSECONDS_PER_UNIT, ABSTRACT)
"""Rule of the name of a unit."""


def _graph(cost: Rule, *, in_ticks: bool) -> Rule:
    sizes: dict[str, Rule] = {"bytes": whole(below=_SIZE_LIMIT)}
    transfer: dict[str, Rule] = {"transfer": cost}
    size = whole(below=_SIZE_LIMIT)
    passes: dict[str, Rule] = {"backward": cost, "kept_bytes": size, "trainable_bytes": size, "backward_share": cost}
    training: dict[str, Rule] = {} if in_ticks else passes
    op = record({"name": text, "work": cost}, {"kind": text, "param_bytes": whole(below=_SIZE_LIMIT), **training})
    ends: dict[str, Rule] = {"name": text, "producer": text, "consumers": array(text)}
    tensor = record({**ends, **transfer}, sizes) if in_ticks else record(ends, {**sizes, **transfer})
    required: dict[str, Rule] = {
        "name": text,
        "time_unit": time_unit,
        "ops": array(op),
        "tensors": array(tensor),
    }
    weight = record({"name": text, "bytes": size, "readers": array(text)})
    state = record({"name": text, "input": text, "output": text, "bytes": size, "readers": array(text)})
    reads: dict[str, Rule] = {"weights": array(weight), "inputs": array(weight), "states": array(state)}
    optional = {**reads, "results": array(text), "metadata": anything}
    return tagged("mtpp-graph", required, optional)


check_model_graph = _graph(exact_cost, in_ticks=False)
"""Rule of an mtpp-graph whose costs are in its time unit."""

check_embedded_graph = _graph(whole(), in_ticks=True)
"""Rule of an mtpp-graph in ticks: whole numbers, and a transfer on every tensor."""

any_whole = whole(-(2**63))
"""Rule of an integer of 64 bits."""

_SYSTEM: dict[str, Rule] = {
    "bandwidth_bytes_per_s": whole(1),
    "fast_memory_bytes": nullable(whole()),
    "activation_reserve_bytes": whole(),
    "peak": choice("reserve", "order"),
}

_SYSTEM_MORE: dict[str, Rule] = {
    "stage_memory_bytes": nullable(whole()),  # plans from before there was such a limit lack it
    "sequences": whole(1),
}

_RATES = ("peak_flops_per_s", "memory_bandwidth_bytes_per_s")

system = record({"name": text, **dict.fromkeys(_RATES, whole(1)), **_SYSTEM}, _SYSTEM_MORE)
"""Rule of what a graph runs on."""

system_of_devices = record({"name": text, **dict.fromkeys(_RATES, nullable(whole(1))), **_SYSTEM}, _SYSTEM_MORE)
"""Rule of the same for a machine, some of whose devices may bring times in place of rates."""

STAGE_FIGURES = ("ops", "first", "last", "work", "input", "output", "overflow", "cost", "param_bytes", "peak_bytes")
"""What a plan says of each stage beside its index, in the order in which it is compared."""

_STAGE: dict[str, Rule] = {"index": whole()} | {
    figure: nullable(text) if figure in ("first", "last") else whole() for figure in STAGE_FIGURES
}

_STATES: dict[str, Rule] = {"state_bytes": whole()}

_DEVICE = record(
    {
        "name": text,
        "peak_flops_per_s": nullable(whole(1)),
        "memory_bandwidth_bytes_per_s": nullable(whole(1)),
        "bandwidth_bytes_per_s": whole(1),
        "fast_memory_bytes": nullable(whole()),
        "activation_reserve_bytes": whole(),
        "peak": choice("reserve", "order"),
        "stage_memory_bytes": nullable(whole()),
        "latency_ps": whole(below=_SIZE_LIMIT),
        "speed": text,
        "link_speed": text,
        "place": text,
    },
    {
        "costs_sha256": sha256,
        "times": whole(),
        "sequences": whole(1),
        "stage_times_ps": array(whole(below=_SIZE_LIMIT)),
        "tensor_parallel": array(whole(1)),
        "tensor_link_bytes_per_s": whole(1),
    },
)

_LINK = record(
    {"between": array(text)},
    {"bandwidth_bytes_per_s": whole(1), "latency_ps": whole(below=_SIZE_LIMIT), "link_speed": text},
)

machine = record(
    {
        "name": text,
        "sha256": sha256,
        "order": choice("fixed", "free"),
        "transport": choice("direct", "neighbours"),
        "devices": array(_DEVICE),
    },
    {"times": array(array(exact_cost)), "links": array(_LINK)},
)
"""Rule of devices in order."""


def brings_costs(value: Any, path: Path) -> None:
    """Take true, which is all that the key can say."""
    if value is not True:
        refuse("is true where the model brings its own costs, else left out", path)


def check_plan(value: Any, path: Path) -> None:
    """Take a plan; what it embeds included, the content of the lower bound's proof not."""
    with_machine = isinstance(value, dict) and "machine" in value
    with_replicas = isinstance(value, dict) and "replicas" in value
    rules = {True: (_replicated, _replicated_on_machine), False: (_on_equal_devices, _on_machine)}
    with_degrees = isinstance(value, dict) and "degrees" in value
    (_at_degrees if with_degrees else rules[with_replicas][with_machine])(value, path)
    if with_replicas and value["replicas"] is not True:
        refuse("a plan without replicas does not have the key", (*path, "replicas"))
    if with_machine and not value["machine"]["devices"]:
        refuse("the machine has no devices", (*path, "machine", "devices"))


_BOUND = record({"value": whole(), "method": text, "tier": choice(*STATED_TIERS), "proof": anything})

_PLAN: dict[str, Rule] = {
    "model": record(
        {
            "name": text,
            "sha256": nullable(sha256),
            "ops": whole(),
            "tensors": whole(),
            "dims": mapping(whole(1)),
        },
        {
            "path": text,
            "costs_sha256": sha256,
            "costs_path": text,
            OWN_COSTS: brings_costs,
            "adapters": array(text),
            "proposed_dims": array(text),
            "keep_state": mapping(text),
            "param_bytes": whole(),
            "serving": SERVING,
        },
    ),
    "system": system,
    "k": whole(1),
    "algorithm": text,
    "seed": nullable(whole()),
    "ticks_per_unit": whole(1),
    "time_unit": time_unit,
    "bottleneck": whole(),
    "lower_bound": _BOUND,
    "ratio": nullable(number),
    "optimal": flag,
    "together": array(array(text)),
    "assignment": mapping(any_whole),
    "elapsed_s": number,
}

_MORE: dict[str, Rule] = {
    "throughput_per_s": nullable(number), "speed_up": nullable(number),
    "crossing": record({"tensors": whole(), "bytes": whole()}),
    "found_by": text, "evaluations": whole(), "stopped": text, "latency": whole(),
    "objective": choice("bottleneck", "latency"), "max_bottleneck": whole(), "max_latency": whole(),
    "frontier": array(
        record({
            "bottleneck": whole(), "latency": whole(), "lower_bound": _BOUND, "assignment": mapping(any_whole),
            "devices": array(whole()),
        })
    ),
}  # fmt: skip

_FEWEST = record({"max_bottleneck": whole()}, {"lower_bound": _BOUND})

_ON_MACHINE_MORE: dict[str, Rule] = {
    "one_device": nullable(record({"index": whole(), "cost": whole()})),
    "graph": check_model_graph,
}

_on_equal_devices = tagged(
    "mtpp-plan",
    {**_PLAN, "stages": array(record(_STAGE, _STATES))},
    {**_MORE, "fewest_devices": _FEWEST, "graph": check_embedded_graph},
)
_on_machine = tagged(
    "mtpp-plan",
    {
        **_PLAN,
        "system": system_of_devices,
        "machine": machine,
        "stages": array(record({**_STAGE, "device": record({"name": text, "index": whole()})}, _STATES)),
    },
    {**_MORE, "fewest_devices": _FEWEST, **_ON_MACHINE_MORE},
)
_share = record({"graph": check_model_graph, "times": array(nullable(array(exact_cost)))})
_at_degrees = tagged(
    "mtpp-plan",
    {
        **_PLAN,
        "system": system_of_devices,
        "machine": machine,
        "degrees": array(whole(1)),
        "stages": array(
            record({**_STAGE, "device": record({"name": text, "index": whole()}), "tensor_parallel": whole(1)}, _STATES)
        ),
    },
    {
        **{key: rule for key, rule in _MORE.items() if key != "frontier"},
        "graph": check_model_graph,
        "graphs": mapping(_share),
        "none_empty": flag,
        "one_degree": flag,
        "fewest_devices": _FEWEST,
        CAPACITY: capacity_rule,
        "first_token": record(
            {
                "latency": whole(),
                "dims": mapping(whole(1)),
                "stages": array(record({"cost": whole(), "peak_bytes": whole()})),
            },
            {"max_latency": whole(), "graphs": mapping(_share)},
        ),
    },
)

_each = record({"name": text, "index": whole(), "cost": nullable(whole())})
_SHARED_STAGE: dict[str, Rule] = {**_STAGE, "devices": array(_each)}
_SHARED: dict[str, Rule] = {**_PLAN, "replicas": flag, "stages": array(record(_SHARED_STAGE, _STATES))}
_SHARED_MORE: dict[str, Rule] = {
    key: _MORE[key]
    for key in ("found_by", "evaluations", "stopped", "latency", "throughput_per_s", "speed_up", "crossing")
}
_SHARED_MORE["objective"] = choice("bottleneck")
_replicated = tagged("mtpp-plan", _SHARED, {**_SHARED_MORE, "graph": check_embedded_graph})
_replicated_on_machine = tagged(
    "mtpp-plan",
    {**_SHARED, "system": system_of_devices, "machine": machine},
    {**_SHARED_MORE, **_ON_MACHINE_MORE},
)
