"""Plans: partitions of models into pipeline stages, with what is proven about them."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mtpp.api.output import SavedResult, save_result
from mtpp.api.partitioning.plan_document import plan_document
from mtpp.api.partitioning.stage import Stage
from mtpp.errors import InputError
from mtpp.inference.certificate import Certificate, LowerBound, Tier
from mtpp.names import BOTTLENECK_OBJECTIVE, LATENCY_OBJECTIVE
from mtpp.units import PICOSECONDS
from mtpp.wording import did_you_mean

if TYPE_CHECKING:
    from mtpp.api.inputs.model import Model
    from mtpp.inference.plan import Plan
    from mtpp.views.terminal import Medium


@dataclass(frozen=True)
class _Facts:
    """Figures of a plan that need no list of its ops."""

    name: str
    ops: int
    k: int
    algorithm: str
    found_by: str
    stopped: str | None
    bottleneck: int
    latency: int
    objective: str
    time_unit: str
    ticks_per_unit: int
    empty: tuple[int, ...]

    @classmethod
    def of_record(cls, plan: Plan) -> _Facts:
        """Return those of a plan that was made here."""
        return cls(
            name=plan.graph.name,
            ops=plan.graph.op_count,
            k=plan.instance.most_used,
            algorithm=plan.algorithm,
            found_by=plan.found_by,
            stopped=plan.stopped,
            bottleneck=plan.bottleneck,
            latency=plan.latency,
            objective=plan.goal.objective,
            time_unit=plan.instance.time_unit,
            ticks_per_unit=plan.instance.ticks_per_unit,
            empty=tuple(plan.partition.empty_stages),
        )

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> _Facts:
        """Return those of a well-formed document."""
        return cls(
            name=document["model"]["name"],
            ops=document["model"]["ops"],
            k=document["k"],
            algorithm=document["algorithm"],
            found_by=document.get("found_by", document["algorithm"]),
            stopped=document.get("stopped"),
            bottleneck=document["bottleneck"],
            latency=document.get("latency", sum(stage["cost"] for stage in document["stages"])),
            objective=document.get("objective", BOTTLENECK_OBJECTIVE),
            time_unit=document["time_unit"],
            ticks_per_unit=document["ticks_per_unit"],
            empty=tuple(stage["index"] for stage in document["stages"] if not stage["ops"]),
        )


class PartitionPlan(SavedResult):
    """A partition of a model into stages with its costs and a lower bound on every partition's bottleneck.

    :func:`mtpp.partition` and :func:`mtpp.evaluate` make one, :func:`mtpp.load` reads one. It never changes, and shows
    itself as the table of the command line.

    Attributes
    ----------
    model, record
        The model that it is for, and the plan as solvers know it; None for a plan that was read from a document.
    elapsed_s
        Seconds that it took; None for such a plan.
    """

    def __init__(
        self,
        *,
        document: Mapping[str, Any] | None = None,
        record: Plan | None = None,
        model: Model | None = None,
        elapsed_s: float | None = None,
    ) -> None:
        self._given = document
        self.record = record
        self.model = model
        self.elapsed_s = elapsed_s

    @classmethod
    def of(cls, record: Plan, model: Model, *, elapsed_s: float) -> PartitionPlan:
        """Return what a search or an evaluation came to."""
        return cls(record=record, model=model, elapsed_s=elapsed_s)

    @cached_property
    def _document(self) -> Mapping[str, Any]:
        return self._given if self._given is not None else self._made(embed=False)

    def _made(self, *, embed: bool, elapsed_s: float | None = None) -> dict[str, Any]:
        """Return a new document of a plan that was made here."""
        assert self.record is not None
        assert self.model is not None
        spent_s = self.elapsed_s or 0.0 if elapsed_s is None else elapsed_s
        return plan_document(self.record, self.model, elapsed_s=spent_s, embed=embed)

    @cached_property
    def _facts(self) -> _Facts:
        """What a document of any size says in its first lines; it is not made for that."""
        if self.record is None:
            return _Facts.of_document(self._document)
        return _Facts.of_record(self.record)

    @property
    def verified(self) -> bool:
        """Whether the figures were computed here; those of a document are claims until :func:`mtpp.verify` says so."""
        return self.record is not None

    @property
    def name(self) -> str:
        """Name of the graph."""
        return self._facts.name

    @property
    def op_count(self) -> int:
        """Number of ops."""
        return self._facts.ops

    @property
    def k(self) -> int:
        """Number of stages, empty ones included; on a machine, of devices that may be used."""
        return self._facts.k

    @property
    def replicated(self) -> bool:
        """Whether stages may stand on several devices, which take turns at their requests."""
        return "replicas" in self._document

    @property
    def device_count(self) -> int:
        """Number of devices, of a machine all of them, else as many as there are stages."""
        return sum(len(row.get("devices", (None,))) for row in self._document["stages"])

    @property
    def algorithm(self) -> str:
        """The algorithm asked for; "given" for a partition that was brought along."""
        return self._facts.algorithm

    @property
    def found_by(self) -> str:
        """Part of the algorithm that found it."""
        return self._facts.found_by

    @property
    def stopped(self) -> str | None:
        """Reason for the end of the search, such as "optimal", "time-limit" or "interrupted"; None if it is unknown."""
        return self._facts.stopped

    @property
    def bottleneck(self) -> int:
        """Ticks of the most expensive stage, a picosecond each where the graph has a unit of time."""
        return self._facts.bottleneck

    @property
    def bottleneck_s(self) -> float | None:
        """Seconds of the most expensive stage; None where the graph's costs have no unit of time."""
        return self.bottleneck / PICOSECONDS["s"] if self._timed else None

    @property
    def objective(self) -> str:
        """The figure that the lower bound is of: ``"bottleneck"`` or ``"latency"``."""
        return self._facts.objective

    @property
    def latency(self) -> int:
        """Ticks of one request on an idle pipeline: the sum of all stages."""
        return self._facts.latency

    @property
    def reached(self) -> int:
        """Ticks of the objective: what the lower bound is of."""
        return self.latency if self.objective == LATENCY_OBJECTIVE else self.bottleneck

    @property
    def latency_s(self) -> float | None:
        """Seconds of one request on an idle pipeline; None where the graph's costs have no unit of time."""
        return self.latency / PICOSECONDS["s"] if self._timed else None

    @property
    def throughput_per_s(self) -> float | None:
        """Inferences per second of a full pipeline, steps of a language model; None without a unit of time."""
        return PICOSECONDS["s"] / self.bottleneck if self._timed and self.bottleneck else None

    @property
    def speed_up(self) -> float | None:
        """Time of the whole graph on the fastest device that holds it, over the bottleneck; None if none does."""
        return self.record.speed_up if self.record is not None else self._document.get("speed_up")

    @property
    def crossing_tensors(self) -> int | None:
        """Number of tensors that several stages share; None where an old document does not say it."""
        return self.record.crossing_count if self.record is not None else self._crossing("tensors")

    @property
    def crossing_bytes(self) -> int | None:
        """Bytes of all tensors that several stages share; None where an old document does not say it."""
        return self.record.crossing_bytes if self.record is not None else self._crossing("bytes")

    def _crossing(self, figure: str) -> int | None:
        stated = self._document.get("crossing")
        return None if stated is None else int(stated[figure])

    @property
    def memory_bytes(self) -> int:
        """Bytes of parameters, states and activations of the stage that holds most."""
        return max(stage.memory_bytes for stage in self.stages)

    @property
    def lower_bound_s(self) -> float | None:
        """Seconds of the lower bound; None where the graph's costs have no unit of time."""
        return self.lower_bound.value / PICOSECONDS["s"] if self._timed else None

    @property
    def first_token_s(self) -> float | None:
        """Seconds of a prompt on an idle pipeline; None of plans for one phase."""
        stated = self._document.get("first_token")
        return None if stated is None else stated["latency"] / PICOSECONDS["s"]

    @property
    def capacity(self) -> int | None:
        """Largest context, or most sequences, that the devices hold; None where neither was the objective."""
        return int(self._document["capacity"]["value"]) if "capacity" in self._document else None

    @property
    def frontier(self) -> list[dict[str, Any]]:
        """Plans that no other one beats in both bottleneck and latency, as the document has them; a copy."""
        return copy.deepcopy(list(self._document.get("frontier", [])))

    @property
    def ticks_per_unit(self) -> int:
        """Ticks in one unit of the graph's costs."""
        return self._facts.ticks_per_unit

    @cached_property
    def lower_bound(self) -> LowerBound:
        """The best lower bound, in ticks: ``value``, ``method``, ``tier`` and ``proof``, which cannot be changed."""
        if self.record is not None:
            return self.record.lower.sealed()
        bound = self._document["lower_bound"]
        return LowerBound(bound["value"], bound["method"], Tier(bound["tier"]), bound["proof"]).sealed()

    @property
    def ratio(self) -> float | None:
        """Approximation ratio, objective / lower bound; None where the bound is 0 and the objective is not.

        A claim unless :attr:`verified`.
        """
        return self._certificate.ratio

    @property
    def optimal(self) -> bool:
        """Whether objective and lower bound meet and the bound is a proof; a claim unless :attr:`verified`."""
        return self._certificate.optimal

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """The stages in the order of the pipeline."""
        ops: list[list[str]] = [[] for _ in self._document["stages"]]
        for name, stage in self._document["assignment"].items():
            ops[stage].append(name)
        ticks_per_s = PICOSECONDS["s"] if self._timed else None
        figures = ("cost", "work", "input", "output", "overflow", "param_bytes", "peak_bytes")
        return tuple(
            Stage(
                index=b,
                ops=tuple(ops[b]),
                ticks_per_s=ticks_per_s,
                state_bytes=row.get("state_bytes", 0),
                devices=tuple(one["name"] for one in row.get("devices", [row["device"]] if "device" in row else [])),
                tensor_parallel=row.get("tensor_parallel", 1),
                **{figure: row[figure] for figure in figures},
            )
            for b, row in enumerate(self._document["stages"])
        )

    @property
    def assignment(self) -> dict[str, int]:
        """Stage of each op by name, as a new dictionary."""
        return dict(self._document["assignment"])

    @property
    def empty_stages(self) -> list[int]:
        """Numbers of the stages without ops."""
        return list(self._facts.empty)

    def stage_of(self, name: str) -> int:
        """Return the stage that runs an op.

        Raises
        ------
        InputError
            If the plan has no op of that name.
        """
        try:
            return int(self._document["assignment"][name])
        except (KeyError, TypeError):
            remedy = did_you_mean(name, self._document["assignment"], "") or None
            raise InputError(f"no op is called {name!r}", parameter="name", remedy=remedy) from None

    def document(self, *, embed: bool = False) -> dict[str, Any]:
        """Return the JSON document, ``mtpp-plan`` version 1, as a copy that may be changed.

        Parameters
        ----------
        embed
            Whether the graph goes in, so that :func:`mtpp.verify` needs no model.

        Raises
        ------
        InputError
            If the graph is asked for and is not known: a plan that was read has none unless its document has.
        """
        if not embed or "graph" in self._document:
            return copy.deepcopy(dict(self._document))
        if self.record is None:
            raise InputError(
                "the plan was read without its graph", parameter="embed", remedy="evaluate it on the model"
            )
        return self._made(embed=True)

    def json_text(
        self, file: str | os.PathLike[str] | None = None, *, embed: bool = False, elapsed_s: float | None = None
    ) -> str:
        """Return the text of the document; *elapsed_s* takes the place of its own. Raises as :meth:`document`.

        Parameters
        ----------
        file
            Path of the file that it is for: the model's path is relative to its folder. None: to the working folder.
        """
        from mtpp.formats.results.document_text import document_text

        if elapsed_s is not None and self.record is not None:
            return document_text(self._made(embed=embed, elapsed_s=elapsed_s), file)
        return document_text(self.document(embed=embed) if embed else self._document, file)

    def save(self, path: str | os.PathLike[str], *, embed: bool = False) -> None:
        """Write the plan as JSON, whole or not at all; a name that ends in ``.gz`` is compressed.

        Parameters
        ----------
        embed
            See :meth:`document`.

        Raises
        ------
        InputError
            If the file cannot be written, or if it is the model's own or that of its measured costs.
        """
        from mtpp.api.inputs.model import refuse_own_file
        from mtpp.api.parameters import path_text

        target = path_text(path, "path")
        if self.model is not None:
            refuse_own_file(target, self.model)
        save_result(target, self.json_text(target, embed=embed))

    @property
    def _timed(self) -> bool:
        return self._facts.time_unit != "1"

    @cached_property
    def _certificate(self) -> Certificate:
        if self.record is not None:
            return self.record.certificate
        return Certificate(self.reached, self.lower_bound, self.objective)

    @property
    def assumptions(self) -> list[str]:
        """What the figures rest on, for people; a document knows only of the system and of sizes."""
        from mtpp.api.inputs.groups import told_blocks, told_groups
        from mtpp.inference.model_file import are_modelled, devices_in_words, told_sizes
        from mtpp.machine.device import Device

        if self.model is not None:
            together = [] if self.record is None else self.record.together
            told = [*told_groups(self.model, together), *told_blocks(self.model, together)]
            return [*self.model.assumptions(), *told]
        about, system = self._document["model"], Device.from_document(self._document["system"])
        devices = devices_in_words(system, self._document.get("machine"), modelled=are_modelled(about))
        return [devices, *told_sizes(about["dims"], about.get("proposed_dims", ()))]

    @property
    def stated(self) -> Mapping[str, Any]:
        """The document itself, which is not to be changed; :meth:`document` has a copy."""
        return self._document

    def _said(self) -> Mapping[str, Any]:
        return self._document

    def _shown(self, medium: str | Medium) -> str:
        from mtpp.views.partition_plan import shown_text
        from mtpp.views.shown_plan import shown_document, shown_plan

        if self.record is not None:
            return shown_text(shown_plan(self.record, self.assumptions), medium)
        return shown_text(shown_document(self._document, self.assumptions), medium)
