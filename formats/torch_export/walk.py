"""One pass over the nodes of an exported program: what folds away, what the rest reads, makes and costs."""

from __future__ import annotations

from mtpp.errors import InputError
from mtpp.formats.modelled.control_notes import COSTLIER_BRANCH, ONE_TRIP
from mtpp.formats.modelled.naming import untaken
from mtpp.formats.modelled.op_record import GraphRecord, OpRecord, Totals
from mtpp.formats.modelled.parameter import Parameter
from mtpp.formats.torch_export.batched_regions import batched_regions
from mtpp.formats.torch_export.call_view import CallView
from mtpp.formats.torch_export.flops.costs import call_cost, plain_kind
from mtpp.formats.torch_export.flops.elementwise import DROPOUTS, is_dropout_in_training
from mtpp.formats.torch_export.flops.movement import BOOKKEEPING, CREATION_LIKE, is_view, viewed
from mtpp.formats.torch_export.in_place import COUNTER, InPlace, returned, statistics_of_model, written
from mtpp.formats.torch_export.program import Call, Program, Subgraph
from mtpp.formats.torch_export.signature import BUFFER, USER
from mtpp.machine.device import Device

RANDOM = frozenset(
    (
        "bernoulli", "exponential", "multinomial", "normal", "poisson", "rand", "rand_like", "randint", "randint_like",
        "randn", "randn_like", "random", "randperm", "uniform",
    )
)  # fmt: skip
"""Kinds of ops that draw random numbers: each is an op of the graph even if it reads nothing."""

_READS_DATA = frozenset(("item", "_local_scalar_dense"))
"""What makes a number of the contents of a tensor."""

_NUMBER_BYTES = 8
_MISFITS = (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError)


class Walk:
    """Goes over the nodes of a program, and of the graphs nested in it.

    Attributes
    ----------
    record
        Ops of the program, in its order.
    calls
        The node of each op.
    in_place
        What was written, and by whom.
    numbers_of_data
        Names of numbers that only a run tells.
    constants
        What is stored, or folds into a constant, by the name of its tensor.
    kept
        Buffers and inputs that the program writes, by the names of their tensors, each with the tensor that it becomes:
        itself where it is written in place. Statistics of norms are not among them: they are of no sequence.
    """

    def __init__(self, program: Program, system: Device) -> None:
        self._program, self._system = program, system
        self._regions = batched_regions(program.calls, program.types)
        self.record = GraphRecord()
        self.calls: list[Call] = []
        self.in_place = InPlace()
        self.constants: dict[str, Parameter] = {}
        self._names = {one.target for one in program.inputs}
        self.kept: dict[str, str] = {}
        self.numbers_of_data: set[str] = set()
        self._written = {name for call in program.calls for name in written(self.view(call))}

    def run(self) -> None:
        """Go over the program."""
        roots: dict[str, str] = {}
        for one in self._program.inputs:
            self.in_place.enter(one.name)
            if one.kind != USER:
                place = self._program.stored_as.get(one.target, one.target)
                root = roots.setdefault(place, one.target)
                self.constants[one.name] = Parameter(root, self._program.types[one.name].bytes)
        unfoldable = self._unfoldable()
        becomes = {name: value for value, name in self._program.rewritten}
        statistics = self._statistics()
        self.kept = {
            one.name: becomes.get(one.name, one.name)
            for one in self._program.inputs
            if one.kind in (BUFFER, USER) and one.name in unfoldable and one.name not in statistics
        }
        for call in self._program.calls:
            self._call(call, unfoldable)
        self._keep_regions_whole()
        for name in self._program.outputs:
            self.in_place.read(None, name)
        makers = {name: op for op, record in enumerate(self.record.ops) for name, _ in record.outputs}
        for value, name in self._program.rewritten:
            self.in_place.rewrite(makers.get(value), name)
        self.in_place.finish()

    def _statistics(self) -> set[str]:
        """Return the buffers that norms and observers update: one for the model, not one for each sequence."""
        buffers = {one.name: one.target for one in self._program.inputs if one.kind == BUFFER}
        found = {name for call in self._program.calls for name in statistics_of_model(self.view(call))}
        counters = {name for name, target in buffers.items() if target.rpartition(".")[2] == COUNTER}
        return (found | counters) & buffers.keys()

    def _keep_regions_whole(self) -> None:
        """Keep the ops of each region of ``torch.vmap`` together: no tensor of another stage has its hidden axis."""
        first: dict[int, int] = {}
        for op, call in enumerate(self.calls):
            region = self._regions.of_call.get(call.name)
            if region is not None:
                self.in_place.together.append([first.setdefault(region, op), op])

    def is_in_region(self, op: int) -> bool:
        """Say whether an op belongs to a region of ``torch.vmap``."""
        return self.calls[op].name in self._regions.of_call

    def _unfoldable(self) -> set[str]:
        """Return the tensors whose storage is written, stored ones included: what makes or reads them is an op."""
        source: dict[str, str] = {}
        for call in self._program.calls:
            for name, shared in zip(call.outputs, self.shared(self.view(call)), strict=True):
                if name is not None and shared is not None:
                    source[name] = source.get(shared, shared)
        roots = {source.get(name, name) for name in self._written} | {name for _, name in self._program.rewritten}
        return roots | {name for name, root in source.items() if root in roots}

    def view(self, call: Call) -> CallView:
        """Return a call as cost rules see it."""
        types = self._program.types
        made = [None if name is None else types.get(name) for name in call.outputs]
        return CallView(call, plain_kind(call.kind), types, made)

    def shared(self, view: CallView) -> list[str | None]:
        """Return for each result of a call the tensor whose storage it may share."""
        nothing: list[str | None] = [None] * len(view.outputs)
        if targets := returned(view):
            return list(targets if len(targets) == len(nothing) else targets[:1] * len(nothing))
        try:
            return viewed(view) if is_view(view) else nothing
        except _MISFITS:
            return nothing

    def _call(self, call: Call, unfoldable: set[str]) -> None:
        view = self.view(call)
        made = [name for name in call.outputs if name is not None]
        makes_number = view.kind in _READS_DATA or any(name in self.numbers_of_data for name in call.reads_sizes)
        makes_number = makes_number or (view.kind == "sym_size" and self._open(call))
        numbers = list(call.makes_sizes) if makes_number else []
        if not made and not numbers and (not written(view) or view.kind in BOOKKEEPING):
            self.record.folded += 1
            return
        constant = not written(view) and not unfoldable.intersection(made) and not numbers
        constant = constant and not self._draws(view) and not call.graphs
        constant = constant and not any(name in self.numbers_of_data for name in call.reads_sizes)
        constant = constant and not any(name in unfoldable for name in call.tensors())
        if constant and view.kind not in CREATION_LIKE:
            constant = all(name in self.constants for name in call.tensors())
        if constant:
            self._fold(view)
            return
        op = len(self.record.ops)
        record = OpRecord(index=call.position, label=call.name, kind=call.kind)
        record.outputs = [(name, self._program.types[name].bytes) for name in made]
        record.outputs += [(name, _NUMBER_BYTES) for name in numbers]
        self.numbers_of_data.update(numbers)
        reads = self._reads(call, record)
        record.inputs |= {name: 0 for name in call.reads_sizes if name in self.numbers_of_data and name not in numbers}
        if call.graphs:
            self._take_graphs(view, record)
        else:
            self._cost(view, record, reads)
        self.record.ops.append(record)
        self.calls.append(call)
        self._touch(op, view)

    def _draws(self, view: CallView) -> bool:
        return view.kind in RANDOM or (view.kind in DROPOUTS and is_dropout_in_training(view))

    def _open(self, call: Call) -> bool:
        """Say whether the tensor that a size is asked of is none that the program is given."""
        return any(name.startswith("u") for name in self._program.sizes.symbols) and not all(
            name in self.constants for name in call.tensors()
        )

    def _touch(self, op: int, view: CallView) -> None:
        for name in dict.fromkeys(view.call.tensors()):
            self.in_place.read(op, name)
        for name in written(view):
            self.in_place.write(op, name)
        for made, shared in zip(view.call.outputs, self.shared(view), strict=True):
            if made is not None:
                self.in_place.make(op, made, shared)

    def _fold(self, view: CallView) -> None:
        """Make the results of a call constants: a view of all of a stored tensor is that tensor."""
        self.record.folded += 1
        for name, kind, shared in zip(view.call.outputs, view.outputs, self.shared(view), strict=True):
            if name is None or kind is None:
                continue
            whole = shared is not None and self._program.types[shared].count == kind.count
            known = self.constants.get(shared or "") if whole else None
            parts = [self.constants[one] for one in view.call.tensors() if one in self.constants]
            label = name if parts else untaken(name, self._names)
            self.constants[name] = known or Parameter(label, kind.bytes, parts or None)

    def _reads(self, call: Call, record: OpRecord) -> int:
        """Enter what a call reads; return the bytes."""
        reads = 0
        for name in dict.fromkeys(call.tensors()):
            constant = self.constants.get(name)
            reads += self._program.types[name].bytes
            if constant is None:
                record.inputs[name] = 0
            else:
                held = record.states if name in self.kept else record.parameters
                held |= constant.stored
        return reads

    def _cost(self, view: CallView, record: Totals, reads: int) -> None:
        changed = written(view)
        made = [kind for kind in view.outputs if kind is not None]
        if not made and not changed:
            return  # sizes and checks
        try:
            cost, modelled = call_cost(view)
        except _MISFITS as error:
            raise InputError(
                f"operands do not fit the operator: {error}",
                source=self._program.source,
                where=f"{view.call.kind} {view.call.name!r}",
                remedy="export the program again",
            ) from None
        if not modelled:
            record.not_modelled[view.call.kind] += 1
        writes = sum(kind.bytes for kind in made or [self._program.types[name] for name in changed])
        traffic = (reads if cost.reads is None else cost.reads) + (writes if cost.writes is None else cost.writes)
        times = self._regions.copies(view.call)
        record.flops += times * cost.flops
        record.macs += times * cost.macs
        record.work_ps += self._system.modelled_work_ps(times * cost.flops, traffic)

    def _take_graphs(self, view: CallView, record: OpRecord) -> None:
        """Take the costs of the graphs that a call runs: of the costliest branch, or of one round of a loop."""
        bodies = [self._body(one) for one in view.call.graphs]
        branches = view.call.kind.endswith(".cond")
        taken = [max(bodies, key=lambda one: one.work_ps)] if branches else bodies
        rounds = 1
        if view.call.kind.rpartition(".")[2] in ("scan", "map_impl", "map"):
            listed = [one for name in view.call.operands for one in view.tensors(name)]
            rounds = max((one.shape[0] for one in listed if one.shape), default=1)
        for body in taken:
            record.work_ps += rounds * body.work_ps
            record.flops += rounds * body.flops
            record.macs += rounds * body.macs
            record.not_modelled += body.not_modelled
        note = COSTLIER_BRANCH if branches else "one trip for each element of what is gone through"
        if not branches and rounds == 1:
            note = f"{ONE_TRIP}: how many there are is known only when it runs"
        record.notes.append({"op": "", "kind": "", "trip_count": rounds, "note": note})

    def _body(self, graph: Subgraph) -> Totals:
        totals = Totals()
        for call in graph.calls:
            view = self.view(call)
            if call.graphs:
                nested = OpRecord()
                self._take_graphs(view, nested)
                totals.work_ps += nested.work_ps
                totals.flops += nested.flops
                totals.macs += nested.macs
                totals.not_modelled += nested.not_modelled
            elif any(name is not None for name in call.outputs):
                reads = sum(self._program.types[name].bytes for name in dict.fromkeys(call.tensors()))
                self._cost(view, totals, reads)
        return totals
