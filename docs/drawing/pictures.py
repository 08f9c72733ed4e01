"""The drawings by the names of their files."""

from __future__ import annotations

from collections.abc import Callable

from docs.drawing import (
    branch_and_bound,
    capacity,
    chosen_stages,
    configuration,
    convex_weights,
    crossings,
    downset,
    exact_mip,
    fraction,
    ladder,
    merges,
    node,
    position_weights,
    relaxation,
    simple,
)
from docs.drawing.training import layer_plans, schedule_paths

PICTURES: dict[str, Callable[[], str]] = {
    "ladder": ladder.picture,
    "merges": merges.picture,
    "simple": simple.picture,
    "node": node.picture,
    "crossings": crossings.picture,
    "fraction": fraction.picture,
    "capacity": capacity.picture,
    "configuration": configuration.picture,
    "convex-weights": convex_weights.picture,
    "position-weights": position_weights.picture,
    "downset": downset.picture,
    "relaxation": relaxation.picture,
    "bottleneck-no-dag": chosen_stages.no_dag_picture,
    "bottleneck-no-cut-io": chosen_stages.no_cut_io_picture,
    "bottleneck": chosen_stages.bottleneck_picture,
    "bottleneck-guess": chosen_stages.guess_picture,
    "node-convex": chosen_stages.node_convex_picture,
    "branch-and-bound": branch_and_bound.picture,
    "exact-mip": exact_mip.picture,
    "training-work": layer_plans.work_picture,
    "layer-downsets": layer_plans.downset_picture,
    "chains": layer_plans.chains_picture,
    "exhaustive": layer_plans.exhaustive_picture,
    "paths": schedule_paths.picture,
    "loads": schedule_paths.loads_picture,
    "shares": schedule_paths.shares_picture,
}
"""Drawing by the name of its file in ``docs/bounds``, without its ending."""
