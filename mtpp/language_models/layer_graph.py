"""The graph of a language model's layers for a load: FLOPs and bytes of each, weights, caches, and tensors between.

Op names: ``embedding`` (with all else that stands before the layers), layers by their modules (``model.layers.0``),
``decoder_embedding`` behind an encoder, ``head`` (with the final norm), then layers for further tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil

from mtpp.errors import InputError
from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.states import State
from mtpp.inference.weights import Weight
from mtpp.language_models import arithmetic
from mtpp.language_models.arithmetic import Step
from mtpp.language_models.language_model import DecoderLayer, LanguageModel, Part
from mtpp.language_models.language_model import Weight as Stored
from mtpp.language_models.outer_parts import multiplied, outer_parts
from mtpp.language_models.serving_load import DECODE, ServingLoad
from mtpp.language_models.tensor_parallel import divided, sent_in_layer
from mtpp.machine.device import Device
from mtpp.machine.tensor_group import all_reduced_bytes, gathered_bytes

EMBEDDING, DECODER_EMBEDDING, HEAD = "embedding", "decoder_embedding", "head"
"""Ops beside the layers, which have their own names."""

MTP_LAYERS, SHARED_CACHES, SHARED_INDEXERS = "MTP layers", "shared caches", "shared indexers"
"""Reasons for layers to stay in one stage."""

ELEMENT_BYTES = 2
"""Of activations, in working memory and on links."""

LOGIT_BYTES = 4


@dataclass(frozen=True)
class LayerOp:
    """A layer, or a part around the layers, as one op.

    Attributes
    ----------
    kind
        Of a layer: ``full``, ``sliding``, ``mla``, …
    flops, traffic_bytes
        Of a step: bytes of weights, caches and states that it reads and writes.
    param_bytes
        Of weights that no other op reads.
    cache_bytes
        Of cache and states of one sequence.
    activation_bytes
        Of intermediate tensors of a step, beside those that come and go.
    sent_bytes
        Sent by each of several GPUs that share the op to the others.
    """

    name: str
    kind: str
    flops: int
    traffic_bytes: int
    param_bytes: int
    cache_bytes: int = 0
    activation_bytes: int = 0
    sent_bytes: Fraction = Fraction(0)

    def time_ps(self, device: Device) -> int:
        """Return max(FLOPs / peak, bytes / memory bandwidth), and the time to send, each rounded up."""
        return device.modelled_work_ps(self.flops, self.traffic_bytes) + device.tensor.exchange_ps(self.sent_bytes)


@dataclass(frozen=True)
class LayerGraph:
    """Layers of a language model for a load.

    Attributes
    ----------
    ops
        In the order of the data flow.
    tensors
        Hidden states and all else that passes from op to op.
    weights
        Tensors that several ops read: a tied embedding.
    groups
        Ops that one stage has to hold, by the reason.
    assumptions
        All that the figures rest on, in words.
    """

    model: LanguageModel
    load: ServingLoad
    ops: Sequence[LayerOp]
    tensors: Sequence[Tensor]
    weights: Sequence[Weight]
    groups: Mapping[str, Sequence[Sequence[str]]]
    assumptions: Sequence[str]

    def times_ps(self, device: Device) -> list[int]:
        """Return the time of each op on a device; raises as :meth:`cost_graph`."""
        if self.load.degree > 1 and device.tensor.link_bytes_per_s is None:
            raise InputError("has no tensor_link, between the GPUs of a stage", source=device.name)
        return [op.time_ps(device) for op in self.ops]

    def cost_graph(self, device: Device, **metadata: object) -> CostGraph:
        """Return the graph with times on a device, in picoseconds: :meth:`LayerOp.time_ps`.

        Parameters
        ----------
        metadata
            More that the graph's metadata hold.

        Raises
        ------
        InputError
            If the device has no rates, or no link between GPUs that share a stage.
        """
        times = zip(self.ops, self.times_ps(device), strict=True)
        ops = [Op(op.name, time, op.kind, op.param_bytes) for op, time in times]
        rows = [(op.name, op.cache_bytes) for op in self.ops if op.cache_bytes]
        return CostGraph.build(
            name=self.model.name,
            time_unit="ps",
            ops=ops,
            tensors=self.tensors,
            weights=self.weights,
            inputs=[
                Weight(f"{op.name}.activations", op.activation_bytes, [op.name])
                for op in self.ops
                if op.activation_bytes
            ],
            states=[State(f"{name}.cache", f"{name}.cache", f"{name}.cache", size, [name]) for name, size in rows],
            metadata={
                "flops": sum(op.flops for op in self.ops),
                "parameter_bytes": self.model.bytes,
                "assumptions": list(self.assumptions),
                **metadata,
            },
        )


def layer_graph(model: LanguageModel, load: ServingLoad) -> LayerGraph:
    """Return the layers of a model as ops.

    Parameters
    ----------
    load
        At decode layers of an encoder do nothing, and their output moves no more.

    Notes
    -----
    O(tensors of the model) time and memory.

    Raises
    ------
    Undividable
        If engines do not divide the model over so many GPUs.
    """
    whole = with_further_layers(model, load.mtp)
    return _Graph(divided(whole, load.degree), load, _rows(whole)).built()


def with_further_layers(model: LanguageModel, count: int | None) -> LanguageModel:
    """Return a model with so many layers for further tokens: those that it lacks are like its last ones."""
    if count is None or count == len(model.mtp):
        return model
    found = list(model.mtp[:count])
    while len(found) < count:
        like = found[-1] if found else model.layers[-1]
        found.append(replace(like, name=f"mtp.{len(found)}", part="mtp"))
    changed = replace(model, mtp=tuple(found))
    return replace(changed, types=dict.fromkeys(model.types, changed.bytes)) if len(model.types) == 1 else changed


@dataclass
class _Graph:
    """A layer graph in the making.

    Attributes
    ----------
    model
        Of several GPUs that share it, the share of one.
    rows
        Tokens of the whole vocabulary.
    """

    model: LanguageModel
    load: ServingLoad
    rows: int
    ops: list[LayerOp] = field(default_factory=list)
    tensors: list[Tensor] = field(default_factory=list)
    unknown: int = 0

    def built(self) -> LayerGraph:
        """Add all ops and tensors."""
        model, load, outer = self.model, self.load, outer_parts(self.model)
        encoder, decoder = model.encoder_layers, model.decoder_layers
        shared = self._shared_weights(bool(encoder))
        once = {weight.name for weight in shared}
        before = Part([*model.embedding.weights, *outer.first])
        idle = bool(encoder) and load.phase == DECODE
        summed = all_reduced_bytes(self._state_bytes, load.degree)
        first = _without(before, once)
        self._add(EMBEDDING, "embedding", self._lookup(before, idle), first, sent=Fraction(0) if idle else summed)
        previous = EMBEDDING
        for number, layer in enumerate(encoder):
            own = Part([*layer.weights, *(outer.encoder if number == len(encoder) - 1 else ())])
            self._pass(previous, [layer.name], prompts_only=True)
            self._layer(layer, own)
            previous = layer.name
        if encoder:
            # A decoder's stages come behind the encoder's: its embedding waits for the output, too
            self._pass(previous, [DECODER_EMBEDDING, *(layer.name for layer in decoder)], prompts_only=True)
            step = arithmetic.embedding(model, load.tokens)
            self._add(DECODER_EMBEDDING, "embedding", step, Part(), sent=summed)
            previous = DECODER_EMBEDDING
        for layer in decoder:
            self._pass(previous, [layer.name])
            self._layer(layer, layer)
            previous = layer.name
        self._inputs_of_layers(decoder)
        after = Part([*model.head.weights, *outer.last])
        self._pass(previous, [HEAD, *(layer.name for layer in model.mtp[:1])])
        logits = load.batch * self.rows
        sent = gathered_bytes(ELEMENT_BYTES * logits, load.degree)
        self._add(HEAD, "head", self._logits(outer.last), after, activations=LOGIT_BYTES * logits, sent=sent)
        for number, layer in enumerate(model.mtp):
            if number:
                self._pass(model.mtp[number - 1].name, [layer.name])
            self._layer(layer, layer)
        return LayerGraph(
            model, load, self.ops, self.tensors, shared, self._groups(decoder), self._assumptions(bool(encoder))
        )

    @property
    def _hidden_bytes(self) -> int:
        """Bytes of the hidden states of a step."""
        streams = self.model.sizes.get("altup_num_inputs")
        width = self.model.hidden * (streams if isinstance(streams, int) and streams > 0 else 1)
        return self.load.tokens * width * ELEMENT_BYTES

    @property
    def _state_bytes(self) -> int:
        """Bytes of what blocks of layers put out in a step."""
        return self.load.tokens * self.model.hidden * ELEMENT_BYTES

    def _pass(self, producer: str, consumers: Sequence[str], *, prompts_only: bool = False) -> None:
        """Add the hidden states behind an op."""
        size = 0 if prompts_only and self.load.phase == DECODE else self._hidden_bytes
        self.tensors.append(Tensor(f"{producer}.out", producer, tuple(consumers), size))

    def _add(
        self, name: str, kind: str, step: Step, part: Part, *, cache: int = 0, activations: int = 0,
        sent: Fraction = Fraction(0),
    ) -> None:  # fmt: skip
        self.ops.append(LayerOp(name, kind, step.flops, ceil(step.bytes), part.bytes, cache, activations, sent))

    def _layer(self, layer: DecoderLayer, part: Part) -> None:
        load = self.load
        source = load.context if layer.work is not None and layer.work.cross is not None else 0
        step = self._step(layer, source)
        cache = layer.cache.bytes(load.context, load.kv_dtype, load.context if layer.cache.per_source_token else 0)
        if layer.part == "encoder":
            cache = 0
        tokens = 0 if layer.part == "encoder" and load.phase == DECODE else load.tokens
        hidden = self.model.hidden
        activations = 2 * ELEMENT_BYTES * tokens * _widest(layer, hidden)
        sent = sent_in_layer(layer, ELEMENT_BYTES * tokens * hidden, load.degree)
        kind = layer.kind or layer.part
        self._add(layer.name, kind, step, part, cache=cache, activations=activations, sent=sent)

    def _step(self, layer: DecoderLayer, source: int) -> Step:
        load = self.load
        if load.phase == DECODE:
            known = arithmetic.decode(layer, load.batch, load.context, source=source, kv_dtype=load.kv_dtype)
        else:
            # an encoder works on the source, as long as the prompt
            seen = load.context if layer.part == "encoder" else source
            known = arithmetic.prefill(layer, load.context, sequences=load.batch, source=seen, kv_dtype=load.kv_dtype)
        if known is not None:
            return known
        self.unknown += 1
        kept = layer.cache.bytes(load.context, load.kv_dtype)
        return Step(
            2 * load.tokens * layer.parameters,
            weight_bytes=arithmetic.read_weights(layer, load.tokens),
            read_bytes=load.batch * (kept if load.phase == DECODE else 0),
            written_bytes=load.batch * (0 if load.phase == DECODE else kept),
        )

    def _lookup(self, part: Part, idle: bool) -> Step:
        """Return the step of the embedding, and of projections beside it; idle is one of a source, at decode."""
        if idle:
            return Step()
        tokens = self.load.tokens
        step, projected = arithmetic.embedding(self.model, tokens), multiplied(part.weights)
        read = sum(weight.bytes for weight in part.weights if multiplied([weight]))
        return replace(step, projections=2 * tokens * projected, weight_bytes=step.weight_bytes + read)

    def _logits(self, last: Sequence[Stored]) -> Step:
        """Return the step of the final norm, of projections behind it and of the head: a row for each sequence."""
        step, tokens = arithmetic.head(self.model, self.load.batch), self.load.batch
        more = sum(weight.bytes for weight in last)
        more_flops = 2 * tokens * multiplied(last)
        return replace(step, projections=step.projections + more_flops, weight_bytes=step.weight_bytes + more)

    def _shared_weights(self, encoder: bool) -> list[Weight]:
        """Return the embedding where head, decoder or layers for further tokens read it, too."""
        model = self.model
        readers = [EMBEDDING, *([DECODER_EMBEDDING] if encoder else [])]
        if model.tied and not any(len(weight.shape) > 1 for weight in model.head.weights):
            readers.append(HEAD)
        readers += [layer.name for layer in model.mtp if not _has_embedding(layer)]
        if len(readers) == 1:
            return []
        return [Weight(one.name, one.bytes, readers) for one in model.embedding.weights]

    def _inputs_of_layers(self, decoder: Sequence[DecoderLayer]) -> None:
        """Add the embeddings of each layer, which the embedding makes for each token."""
        width = self.model.sizes.get("hidden_size_per_layer_input")
        if isinstance(width, int) and width > 0:
            size = self.load.tokens * width * ELEMENT_BYTES
            self.tensors += [
                Tensor(f"{EMBEDDING}.of.{layer.name}", EMBEDDING, (layer.name,), size) for layer in decoder
            ]

    def _groups(self, decoder: Sequence[DecoderLayer]) -> dict[str, list[list[str]]]:
        found: dict[str, list[list[str]]] = {}
        if self.model.mtp:
            found[MTP_LAYERS] = [[HEAD, *(layer.name for layer in self.model.mtp)]]
        for reason, spans in (
            (SHARED_CACHES, _reading_caches(decoder)),
            (SHARED_INDEXERS, _reading_indexers(self.model, len(decoder))),
        ):
            groups = [[layer.name for layer in decoder[first : last + 1]] for first, last in spans]
            if groups:
                found[reason] = groups
        return found

    def _assumptions(self, encoder: bool) -> list[str]:
        load, model = self.load, self.model
        texts = [load.told()]
        if encoder:
            texts.append(f"source of {load.context:,} tokens; at decode the encoder does nothing")
        texts.append("working memory: tensors between layers, and twice the widest matrix of a layer for each token, "
                     f"at {ELEMENT_BYTES} bytes; logits at {LOGIT_BYTES}")  # fmt: skip
        texts.append("time of a layer: the longer of FLOPs and bytes of weights, caches and states; "
                     "sampling and kernel launches are not modelled")  # fmt: skip
        if any(layer.work is not None and layer.work.experts is not None for layer in model.layers):
            texts.append("experts are chosen uniformly: the expected number of distinct ones is read")
        if any(layer.cache.window is not None for layer in model.layers):
            texts.append("a window keeps its tokens and no more; engines add a block")
        if self.unknown:
            texts.append(f"{self.unknown} layers of unknown arithmetic: 2 FLOPs a parameter and token")
        if not model.caches_known:
            texts.append("caches are not known, and not counted")
        return texts + list(model.notes)


def _rows(model: LanguageModel) -> int:
    """Return the rows of the head: tokens of the vocabulary."""
    weights = model.head.weights or model.embedding.weights
    return max((weight.shape[0] for weight in weights if len(weight.shape) == 2), default=0)


def _without(part: Part, names: set[str]) -> Part:
    return Part([weight for weight in part.weights if weight.name not in names])


def _widest(layer: DecoderLayer, hidden: int) -> int:
    """Return the most elements that a token has behind a matrix of a layer, those of its experts together."""
    experts = None if layer.work is None else layer.work.experts
    shapes = [weight.shape for weight in layer.weights if len(weight.shape) == 2 and "expert" not in weight.name]
    widest = max((max(shape) for shape in shapes), default=0)
    if experts is None:
        return widest
    return max(widest, experts.chosen * experts.weights // (3 * max(1, hidden)))


def _has_embedding(layer: DecoderLayer) -> bool:
    return any("embed_tokens" in weight.name for weight in layer.weights)


def _reading_caches(decoder: Sequence[DecoderLayer]) -> Iterator[tuple[int, int]]:
    """Give the spans of layers from those whose caches others read to the last of these."""
    readers = [i for i, layer in enumerate(decoder) if layer.kind == "shared"]
    if not readers:
        return
    last = {layer.cache.window: i for i, layer in enumerate(decoder[: readers[0]])}
    known = [decoder[i].work for i in readers]
    windows = {work.attention.window for work in known if work is not None and work.attention is not None}
    sources = [i for window, i in last.items() if window in windows or None in known]
    yield min(sources, default=0), readers[-1]


def _reading_indexers(model: LanguageModel, count: int) -> Iterator[tuple[int, int]]:
    """Give the spans of layers that take the tokens chosen by the indexer of their first one."""
    types = model.sizes.get("indexer_types")
    frequency, offset = model.sizes.get("index_topk_freq"), model.sizes.get("index_skip_topk_offset", 2)
    if not isinstance(types, list) and isinstance(frequency, int) and isinstance(offset, int) and frequency > 1:
        types = ["shared" if max(i - offset + 1, 0) % frequency else "full" for i in range(count)]
    if not isinstance(types, list) or len(types) < count:
        return
    first = 0
    for i in range(1, count + 1):
        if i == count or types[i] != "shared":
            if i - first > 1:
                yield first, i - 1
            first = i
