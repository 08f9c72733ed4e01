"""Export of the sample models: ``python -m mtpp.datasets.export_samples FOLDER`` (needs ``mtpp[torch]``).

The architectures are written here from their papers; no weights are downloaded, none are kept.
"""

# mypy: disable-error-code="import-not-found, misc, no-any-return"
# (torch is an extra: without it its classes and functions have no types.)

from __future__ import annotations

import io
import sys
from pathlib import Path

import onnx
import torch
from torch import Tensor, nn
from torch.nn import functional

from mtpp.datasets.weightless import name_after_modules, remove_traces, remove_weights, without_traces

OPSET = 20


class Bottleneck(nn.Module):
    """Three convolutions around which a shortcut runs; the stride is in the 3×3 one (version 1.5)."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        wide = 4 * width
        self.conv1 = nn.Conv2d(channels, width, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, wide, 1, bias=False)
        self.norm3 = nn.BatchNorm2d(wide)
        self.relu1, self.relu2, self.relu3 = nn.ReLU(), nn.ReLU(), nn.ReLU()
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or channels != wide:
            self.shortcut = nn.Sequential(nn.Conv2d(channels, wide, 1, stride, bias=False), nn.BatchNorm2d(wide))

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's output, (batch, 4 × width, height / stride, width / stride)."""
        y = self.relu1(self.norm1(self.conv1(x)))
        y = self.relu2(self.norm2(self.conv2(y)))
        return self.relu3(self.norm3(self.conv3(y)) + self.shortcut(x))


class ResNet50(nn.Module):
    """He et al. (2016), Deep Residual Learning for Image Recognition, Table 1, 50 layers; in version 1.5."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.norm1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(3, stride=2, padding=1)
        channels = 64
        for number, (width, blocks) in enumerate([(64, 3), (128, 4), (256, 6), (512, 3)], start=1):
            layer = []
            for block in range(blocks):
                layer.append(Bottleneck(channels, width, stride=2 if block == 0 and number > 1 else 1))
                channels = 4 * width
            self.add_module(f"layer{number}", nn.Sequential(*layer))
        self.average = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(channels, 1000)

    def forward(self, image: Tensor) -> Tensor:
        """Return 1,000 logits for each (3, 224, 224) image."""
        x = self.pool(self.relu(self.norm1(self.conv1(image))))
        for number in range(1, 5):
            x = self.get_submodule(f"layer{number}")(x)
        return self.classifier(torch.flatten(self.average(x), 1))


class DecoderBlock(nn.Module):
    """Causal self-attention and a feed-forward network, each normalised before and with a residual around it."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.expand = nn.Linear(width, 4 * width)
        self.contract = nn.Linear(4 * width, width)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Return the block's output, shaped like *x*: (batch, sequence, width)."""
        batch, sequence, width = x.shape
        split = (batch, sequence, self.heads, width // self.heads)
        parts = self.query_key_value(self.norm1(x)).split(width, dim=2)
        query, key, value = (part.reshape(split).transpose(1, 2) for part in parts)
        scores = query @ key.transpose(2, 3) * (width // self.heads) ** -0.5 + mask
        attended = (functional.softmax(scores, dim=-1) @ value).transpose(1, 2).reshape(batch, sequence, width)
        x = x + self.project(attended)
        return x + self.contract(functional.gelu(self.expand(self.norm2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    """Radford et al. (2019), Language Models are Unsupervised Multitask Learners, the smallest of Table 2."""

    def __init__(self, layers: int = 12, width: int = 768, heads: int = 12, words: int = 50257, context: int = 1024):
        super().__init__()
        self.tokens = nn.Embedding(words, width)
        self.positions = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(DecoderBlock(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, token_ids: Tensor) -> Tensor:
        """Return the logits of the next token at every place: (batch, sequence, words)."""
        place = torch.arange(token_ids.shape[1])
        mask = torch.where(place[:, None] >= place[None, :], 0.0, float("-inf"))
        x = self.tokens(token_ids) + self.positions(place)
        for block in self.blocks:
            x = block(x, mask)
        # The embedding serves as the output layer too: one parameter, read by two ops.
        return functional.linear(self.norm(x), self.tokens.weight)


def export(module: nn.Module, example: Tensor, dims: dict[int, str], *, inputs: str, output: str) -> onnx.ModelProto:
    """Return *module* in evaluation mode as ONNX, without weights; *dims* names the input's symbolic dimensions."""
    # The exporter merges parameters of equal value and drops zero biases: give each one values of its own.
    with torch.no_grad():
        for name, tensor in module.state_dict().items():
            if tensor.is_floating_point() and not name.endswith("running_var"):
                tensor.normal_(0.0, 0.02)
    program = torch.onnx.export(
        module.eval(),
        (example,),
        dynamo=True,
        input_names=[inputs],
        output_names=[output],
        opset_version=OPSET,
        dynamic_shapes=({axis: torch.export.Dim(name) for axis, name in dims.items()},) if dims else None,
        verbose=False,
    )
    if program is None:
        raise RuntimeError("the exporter returned nothing")
    model = program.model_proto
    name_after_modules(model)
    remove_traces(model)
    remove_weights(model)
    return model


def export_program(module: nn.Module, example: Tensor, dims: dict[int, str], name: str) -> bytes:
    """Return what ``torch.export.save`` writes of a module on the device ``meta``, without stack traces."""
    sizes = ({axis: torch.export.Dim(dim) for axis, dim in dims.items()},) if dims else None
    with torch.device("meta"):
        program = torch.export.export(module.eval(), (example,), dynamic_shapes=sizes)
    written = io.BytesIO()
    torch.export.save(program, written)
    return without_traces(written.getvalue(), name)


def main(folder: Path) -> None:
    """Write every sample into *folder*."""
    torch.manual_seed(0)
    models = {
        "resnet50": export(ResNet50(), torch.zeros(1, 3, 224, 224), {}, inputs="image", output="logits"),
        "gpt2": export(
            Gpt2(),
            torch.zeros(2, 64, dtype=torch.int64),
            {0: "batch", 1: "sequence"},
            inputs="token_ids",
            output="logits",
        ),
    }
    for name, model in models.items():
        model.graph.name = name
        path = folder / f"{name}.onnx"
        path.write_bytes(model.SerializeToString(deterministic=True))
        print(f"{path}: {len(model.graph.node)} nodes, {path.stat().st_size:,} bytes")
    with torch.device("meta"):
        programs = {
            "resnet50": (ResNet50(), torch.zeros(1, 3, 224, 224), {}),
            "gpt2": (Gpt2(), torch.zeros(2, 64, dtype=torch.int64), {0: "batch", 1: "sequence"}),
        }
    for name, (module, example, dims) in programs.items():
        path = folder / "pytorch" / f"{name}.pt2"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(export_program(module, example, dims, name))
        print(f"{path}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "samples")
