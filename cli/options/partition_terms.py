"""Options of ``mtpp partition``, and the request that they make."""

from __future__ import annotations

from dataclasses import replace

from mtpp.api.inputs.model import Model
from mtpp.api.partition import PartitionRequest
from mtpp.cli.options.shared import SearchOptions


class PartitionOptions(SearchOptions):
    """Values of the options of ``mtpp partition``, but for its output."""

    k: int | None
    max_bottleneck: str | None
    algorithm: str
    together: tuple[str, ...]
    together_blocks: bool
    ignore_engine: bool
    population: int | None
    generations: int | None
    require_ratio: float | None
    require_optimal: bool
    embed: bool


def partition_request(model: Model, options: PartitionOptions) -> PartitionRequest:
    """Return what the options ask for, but for the time limit."""
    from mtpp.api.inputs.block_groups import block_groups
    from mtpp.api.inputs.engine_groups import engine_groups
    from mtpp.api.partition import parse_group
    from mtpp.cli.options.limits import search_memory
    from mtpp.host.cores import available_cores

    request = PartitionRequest(
        model=model,
        k=options["k"],
        max_bottleneck=options["max_bottleneck"],
        work_limit=options["work_limit"],
        seed=options["seed"],
        jobs=options["jobs"] or available_cores(),
        memory_bytes=search_memory(options["memory_limit"]),
        population=options["population"],
        generations=options["generations"],
    ).with_algorithm(options["algorithm"])
    groups = tuple(map(parse_group, options["together"]))
    if not options["ignore_engine"]:
        groups += engine_groups(model)
    if options["together_blocks"]:
        groups += block_groups(model)
    return replace(request, together=groups)
