"""Results read back from the files that they were saved to."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mtpp.api.plan import PartitionPlan


def load(plan: Any, *, max_input_size: int | str = "2GiB") -> PartitionPlan:
    """Read a plan that was saved; what it says is claimed until :func:`mtpp.verify` has checked it.

    Parameters
    ----------
    plan
        Path of a plan's file, its bytes, or the parsed document.
    max_input_size
        Refuse larger files; bytes, or a text such as ``"2GiB"``.

    Raises
    ------
    InputError
        If it is no plan, malformed, or contradicts itself: the message names the place in the document.

    Examples
    --------
    >>> import mtpp
    >>> plan = mtpp.partition(mtpp.datasets.sample_path("resnet50"), 4)
    >>> again = mtpp.load(plan.document())
    >>> again.bottleneck == plan.bottleneck, again.verified
    (True, False)
    """
    from mtpp.api.inputs.model_terms import given_size
    from mtpp.api.inputs.reading import source_of
    from mtpp.api.loading.plan_claims import refuse_contradictions
    from mtpp.api.plan import PartitionPlan
    from mtpp.checker.document import check_plan
    from mtpp.formats.io.json_shape import attributed
    from mtpp.formats.results.plan import as_plan, read_plan

    limit = given_size(max_input_size)
    if isinstance(plan, Mapping):
        display, document = "<dict>", as_plan(copy.deepcopy(dict(plan)), "<dict>")
    else:
        source = source_of(plan, limit, "plan", expected="a plan")
        display, document = source.display, read_plan(source.data, source.display)
    with attributed(display):
        check_plan(document, ())
        refuse_contradictions(document)
    return PartitionPlan(document=document)
