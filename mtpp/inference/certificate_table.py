"""A table of certificates: one row per graph and k, with the partition, the bound and all that was tried."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mtpp.host.stop_reason import StopReason
from mtpp.inference.certificate import Certificate, LowerBound, Tier, approximation_ratio
from mtpp.inference.frozen import thawed
from mtpp.inference.goal import Goal
from mtpp.inference.model_file import OWN_COSTS
from mtpp.units import PICOSECONDS, InTicks

FORMAT = "mtpp-certificates"
VERSION = 1


@dataclass(frozen=True)
class BoundFigure:
    """What one bound came to on one cell.

    Attributes
    ----------
    value
        In ticks; None if it proved nothing in the time.
    seconds
        That it took.
    solved
        Whether it completed: more time would not raise it.
    proof
        The bound itself, where it can be checked and its proof is small (:func:`with_small_proof`); else None.
    """

    value: int | None
    seconds: float
    solved: bool
    proof: LowerBound | None = None


MOST_PROOF_BYTES = 16_384
"""Of the proof of a single bound, beside the best one, that is kept in a row."""


def with_small_proof(bound: LowerBound | None, method: str) -> LowerBound | None:
    """Return a bound of that method if it is a proof, of :data:`MOST_PROOF_BYTES` at most; else None."""
    if bound is None or not bound.is_proof or bound.method != method:
        return None
    return bound if len(json.dumps(dict(bound.proof))) <= MOST_PROOF_BYTES else None


@dataclass(frozen=True)
class CertificateRow(InTicks):
    """What is known of one graph cut into at most k stages.

    Attributes
    ----------
    model, path, sha256
        The graph's name, the file it was read from and that file's SHA-256.
    dims
        Sizes of symbolic dimensions.
    proposed_dims
        Names of those that nobody gave.
    keep_state
        Inputs that were named as states, with the results that they come out as.
    assumptions
        What the reader of the graph took for granted, in words.
    ops, tensors, time_unit, ticks_per_unit, system
        Of the instance; *system* as in a plan.
    upper, upper_algorithm, assignment
        Objective of the best partition in ticks, what found it, and the stage of each op by name; all None in a table
        of bounds alone.
    lower
        The best bound on the objective, with its proof.
    proven
        The best bound of tier ``exact`` or ``enumerated``, where *lower* is of tier ``solver``; else None.
    bounds
        Every bound that was tried, by name, in the order tried, with small proofs.
    partition_seconds, total_seconds
        That the search for a partition took, and everything together.
    costs_sha256
        Of the file with measured costs, where there was one.
    own_costs
        Whether the file of the graph brings the costs of its ops.
    machine, devices
        Devices in order, as in a plan, and the number of that of each stage; None where all are equal. With *replicas*
        the numbers of all devices of each stage.
    goal
        Objective, and the limit on the other figure.
    replicas
        Whether stages may stand on several devices.
    bottleneck, latency
        Of the best partition in ticks; None without one, and in rows of older programs.
    stopped
        Why the work at the cell ended: ``target`` (the ratio asked for is proven), ``solver-target`` (a bound of tier
        ``solver`` reaches it, to its tolerance), ``finished`` (nothing left to try), ``time-limit``, ``memory-limit``
        or ``interrupted``.
    """

    model: str
    path: str
    sha256: str
    dims: Mapping[str, int]
    ops: int
    tensors: int
    time_unit: str
    ticks_per_unit: int
    system: Mapping[str, Any]
    k: int
    upper: int | None
    upper_algorithm: str | None
    assignment: Mapping[str, int] | None
    lower: LowerBound
    bounds: Mapping[str, BoundFigure]
    partition_seconds: float
    total_seconds: float
    stopped: StopReason
    costs_sha256: str | None = None
    proven: LowerBound | None = None
    proposed_dims: tuple[str, ...] = ()
    keep_state: Mapping[str, str] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()
    machine: Mapping[str, Any] | None = None
    devices: tuple[int, ...] | tuple[tuple[int, ...], ...] | None = None
    goal: Goal = field(default=Goal())
    replicas: bool = False
    bottleneck: int | None = None
    latency: int | None = None
    own_costs: bool = False

    @property
    def modelled(self) -> bool:
        """Whether figures of devices model the costs of the ops."""
        return not self.own_costs and self.costs_sha256 is None

    @property
    def lower_bound(self) -> LowerBound:
        """The best lower bound on the objective, as a plan calls it."""
        return self.lower

    @property
    def lower_bound_s(self) -> float | None:
        """Seconds of the lower bound; None where costs have no unit of time, as for the figures below."""
        return self._seconds(self.lower.value)

    @property
    def bottleneck_s(self) -> float | None:
        """Seconds of the most expensive stage of the best partition; None without one."""
        return self._seconds(self.bottleneck)

    @property
    def latency_s(self) -> float | None:
        """Seconds of one request on an idle pipeline of the best partition; None without one."""
        return self._seconds(self.latency)

    @property
    def throughput_per_s(self) -> float | None:
        """Inferences per second of a full pipeline of the best partition; None without one."""
        return PICOSECONDS["s"] / self.bottleneck if self.timed and self.bottleneck else None

    def _seconds(self, ticks: int | None) -> float | None:
        return ticks / PICOSECONDS["s"] if self.timed and ticks is not None else None

    @property
    def objective(self) -> str:
        """``bottleneck`` or ``latency``: what ``upper`` and ``lower`` are of."""
        return self.goal.objective

    @property
    def plain(self) -> bool:
        """Whether it is of the least bottleneck with a device for each stage, whatever the latency."""
        return self.goal.plain and not self.replicas

    @property
    def ratio(self) -> float | None:
        """Approximation ratio; None without a partition, or where the bound is 0 and the bottleneck is not."""
        return None if self.upper is None else approximation_ratio(self.upper, self.lower.value)

    @property
    def best_proof(self) -> LowerBound | None:
        """The best bound of tier ``exact`` or ``enumerated``; None if none is known."""
        return self.lower if self.lower.is_proof else self.proven

    @property
    def optimal(self) -> bool:
        """Whether bound and bottleneck meet in ticks, and the bound is a proof."""
        return self.upper is not None and Certificate(self.upper, self.lower).optimal

    @property
    def closed(self) -> bool:
        """Whether the partition is optimal, or a bound of tier ``solver`` meets it to the solver's tolerance."""
        if self.upper is None:
            return False
        certificate = Certificate(self.upper, self.lower)
        return certificate.optimal or certificate.closed_by_solver

    def to_document(self) -> dict[str, Any]:
        """Return the row as JSON values."""
        row: dict[str, Any] = {
            "model": self.model,
            "path": self.path,
            "sha256": self.sha256,
            **({} if self.costs_sha256 is None else {"costs_sha256": self.costs_sha256}),
            **({OWN_COSTS: True} if self.own_costs else {}),
            "dims": dict(self.dims),
            **({"proposed_dims": list(self.proposed_dims)} if self.proposed_dims else {}),
            **({"keep_state": dict(self.keep_state)} if self.keep_state else {}),
            **({"assumptions": list(self.assumptions)} if self.assumptions else {}),
            "ops": self.ops,
            "tensors": self.tensors,
            "time_unit": self.time_unit,
            "ticks_per_unit": self.ticks_per_unit,
            "system": dict(self.system),
            **({} if self.machine is None else {"machine": dict(self.machine)}),
            "k": self.k,
            **({"replicas": True} if self.replicas else {}),
            **self.goal.to_document(),
            "lower": self.lower.value,
            "lower_method": self.lower.method,
            "tier": str(self.lower.tier),
            "lower_proof": dict(self.lower.proof),
        }
        if self.proven is not None and not self.lower.is_proof:
            row["proven"] = self.proven.to_document()
            if self.upper is not None:
                row["proven"]["ratio"] = approximation_ratio(self.upper, self.proven.value)
        if self.upper is not None:
            row |= {
                "upper": self.upper,
                **({} if self.bottleneck is None else {"bottleneck": self.bottleneck, "latency": self.latency}),
                "upper_algorithm": self.upper_algorithm,
                "ratio": self.ratio,
                "optimal": self.optimal,
                "assignment": dict(self.assignment or {}),
                **({} if self.devices is None else {"devices": thawed(self.devices)}),
            }
        seconds = {name: figure.seconds for name, figure in self.bounds.items()}
        if proofs := self._proofs():
            row["proofs"] = proofs
        return row | {
            "bounds": {name: figure.value for name, figure in self.bounds.items()},
            "solved": [name for name, figure in self.bounds.items() if figure.solved],
            "seconds": {"partition": self.partition_seconds, **seconds, "total": self.total_seconds},
            "stopped": str(self.stopped),
        }

    def _proofs(self) -> dict[str, Any]:
        """Return the proofs of single bounds, but those that the row has elsewhere."""
        elsewhere = [self.lower.method] + ([] if self.proven is None else [self.proven.method])
        if not (self.replicas or self.goal.of_latency):
            elsewhere.append("simple")
        return {
            name: {"tier": str(figure.proof.tier), "proof": dict(figure.proof.proof)}
            for name, figure in self.bounds.items()
            if figure.proof is not None and name not in elsewhere
        }

    @classmethod
    def from_document(cls, row: Mapping[str, Any]) -> CertificateRow:
        """Return the row that :meth:`to_document` wrote."""
        solved = set(row["solved"])
        proven = row.get("proven")
        proofs = row.get("proofs", {})
        return cls(
            **{key: row[key] for key in _SAME},
            upper=row.get("upper"),
            upper_algorithm=row.get("upper_algorithm"),
            assignment=row.get("assignment"),
            lower=LowerBound(row["lower"], row["lower_method"], Tier(row["tier"]), row["lower_proof"]),
            bounds={
                name: BoundFigure(value, row["seconds"][name], name in solved, _proof_of(name, value, proofs))
                for name, value in row["bounds"].items()
            },
            partition_seconds=row["seconds"]["partition"],
            total_seconds=row["seconds"]["total"],
            stopped=StopReason(row["stopped"]),
            costs_sha256=row.get("costs_sha256"),
            proposed_dims=tuple(row.get("proposed_dims", ())),
            keep_state=row.get("keep_state", {}),
            assumptions=tuple(row.get("assumptions", ())),
            machine=row.get("machine"),
            devices=_devices_of(row["devices"]) if "devices" in row else None,
            goal=Goal.from_document(row),
            replicas=row.get("replicas", False),
            bottleneck=row.get("bottleneck"),
            latency=row.get("latency"),
            own_costs=row.get(OWN_COSTS, False),
            proven=None
            if proven is None
            else LowerBound(proven["value"], proven["method"], Tier(proven["tier"]), proven["proof"]),
        )


def _devices_of(stages: Sequence[Any]) -> Any:
    """Return the number of each stage's device, or the numbers of all its devices."""
    return tuple(tuple(one) if isinstance(one, list) else one for one in stages)


def _proof_of(method: str, value: int | None, proofs: Mapping[str, Any]) -> LowerBound | None:
    if value is None or method not in proofs:
        return None
    return LowerBound(value, method, Tier(proofs[method]["tier"]), proofs[method]["proof"])


_SAME = (
    *("model", "path", "sha256", "dims", "ops", "tensors", "time_unit", "ticks_per_unit"),
    *("system", "k"),
)


def table_document(
    rows: Sequence[CertificateRow], summary: Sequence[Mapping[str, Any]], unfinished: Mapping[str, int] | None = None
) -> dict[str, Any]:
    """Return a table of certificates as JSON values; *unfinished* cells of a run that ended early are counted."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "rows": [row.to_document() for row in rows],
        "summary": [dict(entry) for entry in summary],
        **({"unfinished": dict(unfinished)} if unfinished else {}),
    }
