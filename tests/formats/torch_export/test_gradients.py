"""Gradients of ops of exported programs against PyTorch's own backward pass; skipped without PyTorch."""

# mypy: disable-error-code="import-not-found, misc, no-any-return"

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from mtpp.formats.torch_export import ProgramReading, read_with_modules  # noqa: E402
from mtpp.machine.presets import load_device  # noqa: E402

nn, functional = torch.nn, torch.nn.functional


class Layers(nn.Module):
    """Linear layers with activations between them."""

    def __init__(self, count: int = 4) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(count))

    def forward(self, x: Any) -> Any:
        """Return a tensor like *x*."""
        for layer in self.layers:
            x = layer(x).relu()
        return x


class Adapters(Layers):
    """Linear layers with an adapter of rank 2 beside each."""

    def __init__(self) -> None:
        super().__init__(3)
        self.down = nn.ModuleList(nn.Linear(8, 2, bias=False) for _ in range(3))
        self.up = nn.ModuleList(nn.Linear(2, 8, bias=False) for _ in range(3))

    def forward(self, x: Any) -> Any:
        """Return a tensor like *x*."""
        for layer, down, up in zip(self.layers, self.down, self.up, strict=True):
            x = (layer(x) + up(down(x))).relu()
        return x


class Branches(nn.Module):
    """A part under no_grad, one that is detached, one that only decides, one that nobody reads, a tied weight."""

    def __init__(self) -> None:
        super().__init__()
        self.still, self.cut, self.gate, self.idle, self.main, self.last = (nn.Linear(8, 8) for _ in range(6))
        self.last.weight = self.main.weight
        self.norm = nn.BatchNorm1d(8)

    def forward(self, x: Any) -> Any:
        """Return a tensor like *x*, whole numbers, and a tensor that is detached."""
        with torch.no_grad():
            still = self.still(x)
        cut = self.cut(x).detach()
        gate = self.gate(x).argmax(dim=1)
        self.idle(x)
        y = self.norm(self.main(still + cut).sigmoid()) + torch.ones_like(self.gate(x))
        return self.last(y) * functional.one_hot(gate, 8), gate, self.cut(y).detach()


class InPlace(nn.Module):
    """Tensors written in place, through views too, with trained values and with others."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = (nn.Linear(8, 8) for _ in range(3))

    def forward(self, x: Any) -> Any:
        """Return a tensor like *x*."""
        y = self.first(x).relu_()
        z = torch.zeros_like(y)
        z[:, :4] = self.second(x)[:, :4]
        z.add_(y)
        w = x.clone()
        w.mul_(2)
        return self.third(w) + z.tanh()


class Sequence(nn.Module):
    """Embedding, recurrent layer, attention, normalisation."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.recurrent = nn.Embedding(10, 8), nn.LSTM(8, 8, batch_first=True)
        self.attention, self.norm = nn.MultiheadAttention(8, 2, batch_first=True), nn.LayerNorm(8)

    def forward(self, x: Any) -> Any:
        """Return eight numbers for each word."""
        y, _ = self.recurrent(self.table(x))
        return self.norm(self.attention(y, y, y, need_weights=False)[0])


ROWS, WORDS = torch.zeros(4, 8), torch.zeros(2, 3, dtype=torch.int64)


def _frozen(module: Any, *names: str) -> Any:
    """Freeze the parameters whose names begin so."""
    for name, one in module.named_parameters():
        one.requires_grad_(not name.startswith(names))
    return module


CASES: dict[str, tuple[Callable[[], Any], Any]] = {
    "all": (Layers, ROWS),
    "backbone": (lambda: _frozen(Layers(), "layers.0", "layers.1", "layers.2"), ROWS),
    "middle": (lambda: _frozen(Layers(), "layers.1", "layers.2"), ROWS),
    "biases": (lambda: _frozen(Layers(), *(f"layers.{i}.weight" for i in range(4))), ROWS),
    "adapters": (lambda: _frozen(Adapters(), "layers"), ROWS),
    "branches": (Branches, ROWS),
    "branches frozen": (lambda: _frozen(Branches(), "main", "gate", "norm"), ROWS),
    "in place": (InPlace, ROWS),
    "in place frozen": (lambda: _frozen(InPlace(), "first", "third"), ROWS),
    "sequence": (Sequence, WORDS),
    "sequence frozen": (lambda: _frozen(Sequence(), "table", "recurrent"), WORDS),
    "sequence, recurrent": (lambda: _frozen(Sequence(), "table", "attention"), WORDS),
    "nothing": (lambda: _frozen(Layers(), ""), ROWS),
}


def exported(name: str) -> tuple[ProgramReading, Any]:
    """Return what is read of a module, and its program."""
    torch.manual_seed(0)
    make, inputs = CASES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(make().train(), (inputs,))
        written = io.BytesIO()
        torch.export.save(program, written)
    return read_with_modules(written.getvalue(), source=name, system=load_device(), name=name), program


class Recorder(torch.fx.Interpreter):
    """Runs a program and notes the tensors of each node, and where gradients come to."""

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self.tensors: dict[str, list[Any]] = {}
        self.has: set[str] = set()
        self.comes: set[str] = set()

    def run_node(self, n: Any) -> Any:
        """Run a node."""
        made = super().run_node(n)
        listed = [one for one in (made if isinstance(made, tuple | list) else [made]) if isinstance(one, torch.Tensor)]
        for one in listed if n.op in ("placeholder", "call_function") else []:
            if one.requires_grad:
                self.has.add(n.name)
                one.register_hook(lambda gradient, name=n.name: self.comes.add(name))
        return made


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_pytorch(name: str) -> None:
    """Which ops have a backward pass, which of their parameters are trained, and what gradients they hand on."""
    reading, program = exported(name)
    graph = reading.graph
    signature = program.graph_signature
    held = {**program.state_dict, **program.constants}
    targets = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
    _, inputs = CASES[name]
    values = [
        held[targets[n.name]] if n.name in targets else inputs.clone()
        for n in program.graph.find_nodes(op="placeholder")
    ]
    recorder = Recorder(program.graph_module)
    results = recorder.run(*values)
    users = set(signature.user_outputs)
    outputs = program.graph.output_node().args[0]
    losses = [
        (one.float() ** 2).sum()
        for node, one in zip(outputs, results, strict=True)
        if node.name in users and one.is_floating_point() and one.requires_grad
    ]
    if losses:
        sum(losses).backward()
    nodes = {node.name: node for node in program.graph.nodes}
    assert len(graph.trainable_bytes) == len(graph.backward_share) == graph.op_count
    for v, names in enumerate(reading.nodes):
        ours = [nodes[one] for one in names if one in nodes]
        if len(ours) < len(names):
            continue  # inside a graph that sets a mode
        inner = set(names)
        runs = any(n.name in recorder.comes for n in _made(ours))
        read = {one for n in ours for one in n.all_input_nodes if one.name not in inner}
        live = {one for one in read if one.name in recorder.has and runs}
        weights = {
            id(held[targets[n.name]]): held[targets[n.name]] for n in read if n.name in signature.inputs_to_parameters
        }
        trained = {key: one for key, one in weights.items() if one.requires_grad and one.grad is not None and runs}
        assert graph.trainable_bytes[v] == sum(one.nbytes for one in trained.values()), names
        passes = any(n.name not in targets for n in live)
        mostly = bool(trained) and 2 * graph.trainable_bytes[v] >= sum(one.nbytes for one in weights.values())
        due = (passes + mostly) / 2 if weights else float(passes)
        assert graph.backward_share[v] == due, names


def _made(nodes: list[Any]) -> list[Any]:
    """Return nodes with the parts of their results."""
    return nodes + [
        user for n in nodes for user in n.users if user.op == "call_function" and "getitem" in str(user.target)
    ]


def test_a_file_that_does_not_say_it_trains_everything() -> None:
    """Nothing is said of gradients where no parameter of a file says whether it is trained."""
    from exported_programs import archive, node, program, tensor

    for said, trainable, share in (({}, (), ()), ({"requires_grad": False}, (0,), (0,))):
        types = {"x": tensor(2, 2), "p_w": tensor(2, 2) | said, "y": tensor(2, 2)}
        nodes = [node("linear", ["y"], input="x", weight="p_w")]
        document = program(types, nodes, stored={"p_w": "parameter"}, outputs=["y"])
        graph = read_with_modules(archive(document), source="x", system=load_device(), name="x").graph
        assert (graph.trainable_bytes, graph.backward_share) == (trainable, share)
