"""Results read back from the files that they were saved to."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.api.cells.certificate_table import BoundTable, CertificateTable
    from mtpp.api.partition_plan import PartitionPlan


def load(plan: Any, *, max_input_size: int | str = "2GiB") -> PartitionPlan | CertificateTable | BoundTable:
    """Read a plan or a table that was saved; what it says is claimed until :func:`mtpp.verify` has checked it.

    Parameters
    ----------
    plan
        Path of the file of a plan or of a table of certificates, its bytes, or the parsed document.
    max_input_size
        Refuse larger files; bytes, or a text such as ``"2GiB"``.

    Returns
    -------
    What :func:`mtpp.partition`, :func:`mtpp.certify` or :func:`mtpp.bound` returned, as far as the document holds it.
    Its ``verified`` is False.

    Raises
    ------
    InputError
        If it is neither, malformed, or contradicts itself: the message names the place in the document.

    Examples
    --------
    >>> import mtpp
    >>> plan = mtpp.partition(mtpp.datasets.sample_path("resnet50"), 4)
    >>> again = mtpp.load(plan.document())
    >>> again.bottleneck == plan.bottleneck, again.verified
    (True, False)
    """
    from mtpp.api.inputs.reading import source_of
    from mtpp.api.options.kinds import Quantity
    from mtpp.formats.io.json_shape import attributed
    from mtpp.formats.results.verifiable import is_table, is_training_plan, read_verifiable, verifiable

    limit = Quantity().read(max_input_size, "max_input_size")
    if isinstance(plan, Mapping):
        display, document = "<dict>", verifiable(copy.deepcopy(dict(plan)), "<dict>")
    else:
        source = source_of(plan, limit, "plan", expected="a plan or a table")
        display, document = source.display, read_verifiable(source.data, source.display)
    with attributed(display):
        if is_table(document):
            from mtpp.api.loading.table import table_of

            return table_of(document)
        if is_training_plan(document):
            raise InputError("a plan for training, which is not loaded", where="/format", remedy="mtpp.verify takes it")
        return _plan_of(document)


def _plan_of(document: Mapping[str, Any]) -> PartitionPlan:
    from mtpp.api.loading.plan_claims import refuse_contradictions
    from mtpp.api.partition_plan import PartitionPlan
    from mtpp.checker.document import check_plan

    check_plan(document, ())
    refuse_contradictions(document)
    return PartitionPlan(document=document)
