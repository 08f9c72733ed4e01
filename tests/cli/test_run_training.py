"""``mtpp run --engine torch``: plans trained by processes, held against the model that was not split."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from processes import MTPP, environment, printed, run

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from torch import Tensor, nn  # noqa: E402
from torch_models import Transformer, UNet  # noqa: E402

import mtpp  # noqa: E402
from mtpp.runtime.pytorch.tensors import drawn_tensor  # noqa: E402


class Normalised(nn.Module):
    """Convolutions with batch normalisation: buffers change at every micro-batch."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *(
                layer
                for i in range(4)
                for layer in (nn.Conv2d(3 if i == 0 else 8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
            )
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return a loss."""
        return self.layers(x).square().mean()


class Kept(nn.Module):
    """Results that operators keep for their backward passes, one of them read on."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        """Return two tensors like *x*."""
        for layer in self.layers:
            before, x = x, torch.tanh(layer(x))
        return {"before": before, "last": x}


class Turns(nn.Module):
    """Two layers in turn behind one that is frozen; a loss."""

    def __init__(self) -> None:
        super().__init__()
        self.frozen, self.layers = nn.Linear(8, 8), nn.ModuleList(nn.Linear(8, 8) for _ in range(2))
        self.frozen.requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        """Return one number."""
        x = self.frozen(x)
        for i in range(12):
            x = self.layers[i % 2](x).tanh()
        return x.square().mean()


MODELS: dict[str, Any] = {
    "turns": (Turns, lambda: (torch.randn(2, 8),)),
    "transformer": (lambda: Transformer(tied=False), lambda: (torch.randint(0, 1000, (2, 16)),)),
    "tied": (lambda: Transformer(tied=True), lambda: (torch.randint(0, 1000, (2, 16)),)),
    "unet": (UNet, lambda: (torch.randn(2, 3, 16, 16),)),
    "kept": (Kept, lambda: (torch.randn(2, 8),)),
    "normalised": (Normalised, lambda: (torch.randn(2, 3, 8, 8),)),
}


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with an exported program of each model."""
    folder = tmp_path_factory.mktemp("programs")
    for name, (build, inputs) in MODELS.items():
        torch.manual_seed(0)
        written = io.BytesIO()
        torch.export.save(torch.export.export(build().train(), inputs()), written)
        (folder / f"{name}.pt2").write_bytes(written.getvalue())
    return folder


def planned(model: Path, folder: Path, *options: str) -> None:
    """Write a plan for two devices and four micro-batches."""
    sizes = ("--devices", "2", "--micro-batches", "4", "--emit", "torch-pipelining", "-o", folder)
    printed("plan", model, "--planner", "pfeife", *sizes, *options)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options"),
    [
        pytest.param("transformer", ("--loops", "2"), id="transformer"),
        pytest.param("normalised", ("--loops", "1"), id="buffers"),
        pytest.param("transformer", ("--schedule", "zero-bubble"), id="halves"),
        pytest.param("kept", ("--schedule", "zero-bubble"), id="halves-kept"),
        pytest.param("turns", ("--schedule", "zero-bubble"), id="halves-turns"),
        pytest.param("transformer", ("--schedule", "gpipe"), id="gpipe"),
        pytest.param("transformer", ("--schedule", "interleaved"), id="interleaved"),
        pytest.param("tied", ("--loops", "2"), id="tied"),
        pytest.param("unet", ("--loops", "2"), id="unet"),
    ],
)
def test_losses_and_gradients_are_those_of_the_unsplit_model(
    programs: Path, tmp_path: Path, name: str, options: tuple[str, ...]
) -> None:
    """Bit for bit, on two processes; gradients of copies of a parameter are added up, so in another order."""
    model = programs / f"{name}.pt2"
    planned(model, tmp_path / "plan", *options)
    terms = ("--engine", "torch", "--model", model, "--steps", "3", "--format", "json")
    said = json.loads(printed("run", tmp_path / "plan", *terms))
    assert said["agrees"]
    assert said["losses"]["count"] == 12
    assert said["gradients"]["count"] > 0
    assert (said["buffers"]["count"] > 0) == (name == "normalised")
    for kind in ("losses", "gradients", "buffers"):
        assert said[kind]["agrees"]
        if name not in ("tied", "turns"):
            assert said[kind]["exact"] == said[kind]["count"], kind
    assert said["step_s"] > 0
    assert said["predicted_s"] > 0


class Endless(nn.Module):
    """Layers whose last result is infinite."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(*(nn.Linear(8, 8) for _ in range(4)))

    def forward(self, x: Tensor) -> Tensor:
        """Return no finite number."""
        return self.layers(x).sum() / 0.0


@pytest.mark.slow
def test_losses_that_are_not_finite_are_told(tmp_path: Path) -> None:
    """A warning says that they say little; JSON has no number for them."""
    torch.manual_seed(0)
    model = tmp_path / "endless.pt2"
    torch.export.save(torch.export.export(Endless(), (torch.randn(2, 8),)), model)
    planned(model, tmp_path / "plan")
    done = run("run", tmp_path / "plan", "--engine", "torch", "--model", model, "--steps", "2", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["last_losses"] == [None] * 4
    assert "the losses have left the finite numbers" in done.stderr


class Dropping(nn.Module):
    """Layers with dropout between them."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.3), nn.Linear(8, 8), nn.Dropout(0.5))

    def forward(self, x: Tensor) -> Tensor:
        """Return a loss."""
        return self.layers(x).square().mean()


@pytest.mark.slow
def test_dropout_is_trained_and_not_compared(tmp_path: Path) -> None:
    """Each process draws numbers of its own; losses are those of its stages with the same ones."""
    model, count = tmp_path / "dropping.pt2", 4
    torch.manual_seed(0)
    torch.export.save(torch.export.export(Dropping().train(), (torch.randn(2, 8),)), model)
    planned(model, tmp_path / "plan", "--loops", "1")
    with pytest.raises(mtpp.InputError, match=r"draws random numbers, in 'layers.1' first: .*, or leave"):
        mtpp.run_training(tmp_path / "plan", model)
    found = mtpp.run_training(tmp_path / "plan", model, steps=1, compare=False)
    assert found.agrees is None
    assert "not compared with the unsplit model" in str(found)
    said = found.document()
    assert (said["compared"], said["agrees"], said["losses"], said["unsplit_s"]) == (False, None, None, None)
    batches = [(drawn_tensor("x", "float32", [2, 8], m),) for m in range(count)]
    for stage in mtpp.stage_modules(tmp_path / "plan", model):
        torch.manual_seed(stage.stage_index)
        made = [stage(*one) for one in batches]
        batches = [one if isinstance(one, tuple) else (one,) for one in made]
    assert found.losses == [float(one.detach()) for (one,) in batches]


@pytest.mark.slow
def test_stages_and_schedule_train_in_a_loop_of_ones_own(programs: Path, tmp_path: Path) -> None:
    """One process has all stages of a plan for one device; its losses are the module's."""
    model = programs / "transformer.pt2"
    printed(
        "plan", model, "--planner", "pfeife", "--devices", "1", "--micro-batches", "2", "--loops", "3",
        "--emit", "torch-pipelining", "-o", tmp_path / "plan",
    )  # fmt: skip
    modules = mtpp.stage_modules(tmp_path / "plan", model, rank=0)
    assert [one.stage_index for one in modules] == [0, 1, 2]
    torch.manual_seed(0)
    whole = Transformer(tied=False)
    names = {name.removeprefix("stage.") for one in modules for name, _ in one.named_parameters()}
    assert names == set(dict(whole.named_parameters()))

    def loss(logits: Tensor, target: Tensor) -> Tensor:
        return nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())

    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path / 'meeting'}", rank=0, world_size=1)
    try:
        schedule = mtpp.pipeline_schedule(tmp_path / "plan", modules, loss, scale_grads=False)
        ids, target = torch.randint(0, 1000, (4, 16)), torch.randint(0, 1000, (4, 16))
        losses: list[Tensor] = []
        schedule.step(ids, target=target, losses=losses)
    finally:
        torch.distributed.destroy_process_group()
    for part, (own, due) in enumerate(zip(ids.split(2), target.split(2), strict=True)):
        expected = loss(whole(own), due)
        expected.backward()
        assert torch.equal(losses[part], expected)
    for one in modules:
        for name, parameter in one.stage.named_parameters():
            assert torch.equal(parameter.grad, whole.get_parameter(name).grad), name


def test_bad_input_is_refused(programs: Path, tmp_path: Path) -> None:
    """In one line, with the place."""
    model, folder = programs / "transformer.pt2", tmp_path / "plan"
    planned(model, folder)
    terms = ("--engine", "torch", "--model")
    cases: list[tuple[tuple[Any, ...], str]] = [
        ((folder, *terms, programs / "unet.pt2"), "belongs to another model"),
        ((folder, *terms, model, "--batches", "3"), "--batches has no effect"),
        ((programs, *terms, model), "no plan.json in it"),
        ((folder, *terms, folder / "plan.json"), "not an exported PyTorch program"),
    ]
    for options, words in cases:
        done = run("run", *options)
        assert (done.returncode, words in done.stderr) == (2, True), done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_edited_plans_are_refused(programs: Path, tmp_path: Path) -> None:
    """Files that say different things, and both of them edited alike: nothing is trained that was not planned."""
    model, folder = programs / "transformer.pt2", tmp_path / "plan"
    planned(model, folder, "--loops", "1")
    names = "plan.json", "stages.json"
    kept = {name: (folder / name).read_text() for name in names}

    def stages(document: dict[str, Any]) -> list[list[str]]:
        key = "layers" if "schedule" in document else "ops"
        return [row[key] for row in document["stages"]]

    def moved(document: dict[str, Any]) -> None:
        stages(document)[0].append(stages(document)[1].pop(0))

    def emptied(document: dict[str, Any]) -> None:
        first, second = stages(document)
        first += second
        second.clear()

    def exchanged(document: dict[str, Any]) -> None:
        first, second = stages(document)
        first[:], second[:] = second[:], first[:]

    cases: list[tuple[tuple[str, ...], Any, str]] = [
        (names[1:], moved, "/stages: are not those of plan.json"),
        (names[1:], lambda one: one.update(devices=5), "/devices: 5 is not the 2 of plan.json"),
        (names[1:], lambda one: one["stages"][0].update(device=1), "/stages/0/device: expected 0, found 1"),
        (names[:1], lambda one: one.update(iteration_ticks=1), "/iteration_ticks: its passes take"),
        (names[:1], lambda one: one["schedule"].update(dependencies=[["0F0", "0F1"]]), "has dependencies"),
        (names, lambda one: stages(one)[1].append(stages(one)[0][0]), "is named twice"),
        (names, emptied, "stage 1 has no op"),
        (names, exchanged, "in stage 0 reads from"),
    ]
    for edited, change, words in cases:
        for name in names:
            document = json.loads(kept[name])
            if name in edited:
                change(document)
            (folder / name).write_text(json.dumps(document))
        done = run("run", folder, "--engine", "torch", "--model", model)
        assert (done.returncode, words in done.stderr) == (2, True), (words, done.stderr)
        assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_dead_process_ends_the_run(programs: Path, tmp_path: Path) -> None:
    """The others end with it, and nothing is left behind."""
    planned(programs / "transformer.pt2", tmp_path / "plan")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    terms = ["run", str(tmp_path / "plan"), "--engine", "torch", "--model", str(programs / "transformer.pt2")]
    process = subprocess.Popen(
        [*MTPP, *terms, "--steps", "1000000", "-v"],
        env={**environment(), "TMPDIR": str(scratch)},
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if "1,000,000 steps" in line:
                break
        time.sleep(1)
        own = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        children = [int(pid) for pid in own.read_text().split()]
        os.kill(children[-1], signal.SIGKILL)
        _, said = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 2
    assert "killed by SIGKILL" in said
    assert not [path for path in scratch.iterdir() if not path.name.startswith("torchinductor")]  # PyTorch's own
    for pid in children:
        assert not Path(f"/proc/{pid}").exists()
