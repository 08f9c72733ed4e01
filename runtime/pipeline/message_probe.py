"""Messages of several sizes through the channel that stages use, to see what handing them over takes.

Between two workers that are there anyway, before their stages run: each copies a message from one ring into the next,
the sizes in turn. Stages write into shared memory as they compute, and read from it as they compute; what is measured
is a little more, as if each message was written and read once besides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mtpp.runtime.element_types import Contents
from mtpp.runtime.pipeline.hand_over_line import HandOverLine, Message
from mtpp.runtime.pipeline.memory import Layout
from mtpp.runtime.pipeline.model_file import Expected, ModelFile, OpenedModel
from mtpp.runtime.pipeline.program_file import SUFFIX, OpenedProgram
from mtpp.runtime.pipeline.stage_job import StageTimes, TimesTable
from mtpp.runtime.session import SessionChoices, open_session

ROUNDS = 40
WARM_UP_ROUNDS = 4
"""Messages of each size, timed and before."""

_LEAST, _STEP = 1 << 10, 4
_LARGEST, _MOST = 1 << 18, 1 << 24
"""Sizes in bytes: to the larger one even where what crosses is small, and never beyond the largest."""

_SOURCE, _TARGET = "message", "copy"


def sizes(largest: int) -> tuple[int, ...]:
    """Return sizes of messages that span those of a pipeline, whose largest tensor has so many bytes."""
    found = [_LEAST]
    while found[-1] < min(max(largest, _LARGEST), _MOST):
        found.append(found[-1] * _STEP)
    return tuple(found)


def layout_of(messages: Sequence[int]) -> Layout:
    """Return room for one message of each size."""
    return Layout.of([(str(i), "uint8", (size,)) for i, size in enumerate(messages)])


def line_of(messages: Sequence[int], sender: TimesTable, receiver: TimesTable) -> HandOverLine:
    """Return the line through what two stages took for messages of these sizes, in turn."""
    found = [
        Message(size, float(np.median(times.held[i :: len(messages)])), sent)
        for sent, times in ((True, StageTimes.of(sender.open()[1])), (False, StageTimes.of(receiver.open()[1])))
        for i, size in enumerate(messages)
    ]
    return HandOverLine.through(found)


def copying(messages: Sequence[int], beside: ModelFile) -> CopyingFile:
    """Return what copies messages with the library that runs another model."""
    own: tuple[Expected, ...] = tuple((str(i), "uint8", (size,)) for i, size in enumerate(messages))
    return CopyingFile(Path(f"messages{beside.path.suffix}"), own, own, 0, content=_copying_model(beside.path))


def _copying_model(path: Path) -> bytes:
    if path.suffix == SUFFIX:
        return b""
    from onnx import TensorProto, helper

    source, target = (helper.make_tensor_value_info(name, TensorProto.UINT8, ["n"]) for name in (_SOURCE, _TARGET))
    graph = helper.make_graph([helper.make_node("Identity", [_SOURCE], [_TARGET])], "messages", [source], [target])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return bytes(model.SerializeToString())


@dataclass(frozen=True)
class CopyingFile(ModelFile):
    """A model that copies one message in each run.

    Attributes
    ----------
    content
        Of an ONNX model that copies; empty for PyTorch.
    """

    content: bytes = b""

    def check_place(self) -> None:
        """See :meth:`ModelFile.check_place`: it runs everywhere."""

    def check_declared(self) -> None:
        """See :meth:`ModelFile.check_declared`: it is as it was made."""

    def open(self, choices: SessionChoices) -> Copying:
        """See :meth:`ModelFile.open`."""
        from mtpp.runtime.pipeline.onnx_file import OnnxSession

        display = str(self.path)
        if not self.content:
            return Copying(OpenedProgram(lambda tensor: (tensor,), ((_SOURCE, None),), (_TARGET,), display))
        session = open_session(self.content, choices, display=display)
        return Copying(OnnxSession(session, (_TARGET,), display, {}))


@dataclass
class Copying:
    """A model that copies, and whose turn it is."""

    model: OpenedModel
    runs: int = 0

    def shared(self, views: Mapping[str, Contents]) -> dict[str, Any]:
        """See :meth:`OpenedModel.shared`."""
        return self.model.shared(views)

    def array(self, value: Any) -> Contents:
        """See :meth:`OpenedModel.array`."""
        return self.model.array(value)

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """See :meth:`OpenedModel.run`."""
        return self.model.run({_SOURCE: inputs[self._turn(inputs)]})

    def run_into(
        self, inputs: Mapping[str, Any], outputs: Mapping[str, Any], others: Sequence[str] = ()
    ) -> dict[str, Any]:
        """See :meth:`OpenedModel.run_into`."""
        turn = self._turn(inputs)
        return self.model.run_into({_SOURCE: inputs[turn]}, {_TARGET: outputs[turn]}, others)

    def _turn(self, inputs: Mapping[str, Any]) -> str:
        self.runs += 1
        return str((self.runs - 1) % len(inputs))
