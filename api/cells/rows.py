"""Rows of a table of certificates, made of the state of a cell."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mtpp.inference.certificate_table import CertificateRow
from mtpp.inference.placement import replicas_on_devices, stages_on_devices
from mtpp.inference.replicas.partition import ReplicatedPartition
from mtpp.solvers.aim import Aim

if TYPE_CHECKING:
    from mtpp.inference.goal import Goal
    from mtpp.inference.instance import Instance
    from mtpp.inference.model_file import ModelFile
    from mtpp.inference.partition import Partition
    from mtpp.solvers.certify.cell_state import Certification


_OF_FILE = (
    *("path", "sha256", "costs_sha256", "own_costs", "dims", "proposed_dims", "keep_state", "assumptions"),
    "machine",
)


def certificate_row(state: Certification, instance: Instance, file: ModelFile, goal: Goal) -> CertificateRow:
    """Return the row of an instance of the model in *file*, whose work has ended."""
    assert state.stopped is not None
    return CertificateRow(
        **_of_file(file),
        ops=file.ops,
        tensors=file.tensors,
        time_unit=instance.time_unit,
        ticks_per_unit=instance.ticks_per_unit,
        system=instance.device.to_document(),
        k=instance.most_used,
        upper=state.upper,
        upper_algorithm=state.upper_algorithm,
        lower=state.lower,
        proven=None if state.lower.is_proof else state.proven,
        bounds=state.bounds,
        partition_seconds=state.partition_seconds,
        total_seconds=state.total_seconds,
        stopped=state.stopped,
        goal=goal,
        replicas=instance.replicas,
        **_of_partition(state.partition, instance, file),
    )


def _of_partition(partition: Partition | None, instance: Instance, file: ModelFile) -> dict[str, Any]:
    """Return the stages and devices of a partition, and both its figures, as a row has them."""
    if partition is None:
        return {"assignment": None}
    stages = partition.assignment.tolist()
    devices: tuple[int, ...] | tuple[tuple[int, ...], ...] | None = None
    count = None if file.machine is None else len(file.machine["devices"])
    if isinstance(partition, ReplicatedPartition):
        devices = replicas_on_devices(partition, count)
    elif count is not None:
        stages, devices = stages_on_devices(partition, count, instance.machine.free)
    costs = Aim(instance).costs(partition)
    return {
        "assignment": dict(zip(instance.op_names, stages, strict=True)),
        "devices": devices,
        "bottleneck": costs.bottleneck,
        "latency": costs.latency,
    }


def of_file(row: CertificateRow, file: ModelFile) -> CertificateRow:
    """Return a row of the same graph as one of *file*, which may be another."""
    return replace(row, **_of_file(file))


def _of_file(file: ModelFile) -> dict[str, Any]:
    return {"model": file.name, **{name: getattr(file, name) for name in _OF_FILE}}


def sealed(row: CertificateRow) -> CertificateRow:
    """Return the same row with mappings and proofs that cannot be changed."""
    from mtpp.inference.frozen import frozen

    return replace(
        row,
        dims=frozen(row.dims),
        system=frozen(row.system),
        assignment=frozen(row.assignment),
        bounds=frozen(row.bounds),
        lower=row.lower.sealed(),
        proven=None if row.proven is None else row.proven.sealed(),
    )


def bounds_alone(row: CertificateRow) -> CertificateRow:
    """Return a row without its upper side."""
    return replace(row, upper=None, upper_algorithm=None, assignment=None, bottleneck=None, latency=None)
