"""Stages of a plan as engines know them: ranges of layers, embedding, head, MTP layers, device, tensor degree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from mtpp.errors import InputError
from mtpp.language_models.language_model import LanguageModel
from mtpp.language_models.layer_graph import DECODER_EMBEDDING, EMBEDDING, HEAD


@dataclass(frozen=True, kw_only=True)
class LayerStage:
    """A stage with something on it.

    Attributes
    ----------
    layers
        Decoder layers from the first to before the second.
    number
        Of the stage in its plan, stages without ops counted.
    embedding, head
        Whether it has the embedding; the final norm and the head.
    mtp
        Number of layers for further tokens.
    encoder
        Encoder layers, as ``layers``.
    decoder_embedding
        Whether it has the embedding of the decoder beside an encoder.
    device
        Number of its device in the machine's list; None without a machine.
    name, place
        Of the device; empty without a machine.
    tensor_parallel
        GPUs that share each of its layers.
    gpu
        Number of the first GPU of its device, those of earlier devices counted; None: all have as many as it uses.
    """

    layers: tuple[int, int]
    number: int = 0
    embedding: bool = False
    head: bool = False
    mtp: int = 0
    encoder: tuple[int, int] = (0, 0)
    decoder_embedding: bool = False
    device: int | None = None
    name: str = ""
    place: str = ""
    tensor_parallel: int = 1
    gpu: int | None = None

    @property
    def count(self) -> int:
        """Number of decoder layers."""
        return self.layers[1] - self.layers[0]

    @property
    def encoder_count(self) -> int:
        """Number of encoder layers."""
        return self.encoder[1] - self.encoder[0]


@dataclass(frozen=True)
class StageDevice:
    """Device of a stage, as the attributes of :class:`LayerStage` of the same names."""

    device: int | None
    name: str = ""
    place: str = ""
    tensor_parallel: int = 1
    gpu: int | None = None


def stages_of_counts(counts: Sequence[int], mtp: int = 0) -> list[LayerStage]:
    """Return stages with so many layers; the embedding on the first, head and MTP layers on the last.

    Examples
    --------
    >>> [stage.layers for stage in stages_of_counts([2, 0, 3])]
    [(0, 2), (2, 2), (2, 5)]
    """
    last = len(counts) - 1
    return [
        LayerStage(layers=pair, number=i, embedding=i == 0, head=i == last, mtp=mtp if i == last else 0)
        for i, pair in enumerate(pairwise(accumulate(counts, initial=0)))
    ]


def ops_of_layers(model: LanguageModel) -> list[str]:
    """Return the names of a model's ops in order, those of layers for further tokens left out."""
    encoder, decoder = ([layer.name for layer in some] for some in (model.encoder_layers, model.decoder_layers))
    return [EMBEDDING, *encoder, *([DECODER_EMBEDDING] if encoder else []), *decoder, HEAD]


def layer_stages(
    model: LanguageModel, stage_of: Mapping[str, int], devices: Sequence[StageDevice] = ()
) -> list[LayerStage]:
    """Return the stages that have ops, in the order of the pipeline.

    Parameters
    ----------
    stage_of
        Stage of each op by its name: those of :func:`ops_of_layers`; others are layers for further tokens.
    devices
        Of each stage, those without ops included; empty without a machine.

    Raises
    ------
    InputError
        If an op has no stage, or layers of a stage are not consecutive.
    """
    encoder, decoder = ([layer.name for layer in some] for some in (model.encoder_layers, model.decoder_layers))
    for name in ops_of_layers(model):
        if name not in stage_of:
            raise InputError(f"no stage is known of {name!r}", source=model.name, remedy="plan anew")
    further = stage_of.keys() - {*ops_of_layers(model)}
    used = sorted(set(stage_of.values()))
    held = _ranges(decoder, stage_of, used, model.name)
    before = _ranges(encoder, stage_of, used, model.name)
    stages = [
        LayerStage(
            layers=held[stage],
            number=stage,
            embedding=stage_of[EMBEDDING] == stage,
            head=stage_of[HEAD] == stage,
            mtp=sum(stage_of[name] == stage for name in further),
            encoder=before[stage],
            decoder_embedding=bool(encoder) and stage_of[DECODER_EMBEDDING] == stage,
        )
        for stage in used
    ]
    return [replace(stage, **vars(devices[stage.number])) for stage in stages] if devices else stages


def _ranges(
    names: Sequence[str], stage_of: Mapping[str, int], stages: Sequence[int], source: str
) -> dict[int, tuple[int, int]]:
    """Return the layers of each stage; of a stage without any an empty range after those before it."""
    for before, after in pairwise(names):
        if stage_of[before] > stage_of[after]:
            problem = f"{after!r} is in stage {stage_of[after]}, and {before!r}, which comes before it, in a later one"
            raise InputError(problem, source=source, remedy="give stages in the order of the layers")
    found, start = {}, 0
    for stage in stages:
        stop = start + sum(stage_of[name] == stage for name in names)
        found[stage], start = (start, stop), stop
    return found
