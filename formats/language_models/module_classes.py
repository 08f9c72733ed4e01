"""Module trees of architectures, as far as weights do not tell them: classes, order of definition, buffers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from mtpp.formats.language_models.architectures import ARCHITECTURES
from mtpp.formats.language_models.configuration import Configuration

_CLASSES = {
    "": "{}ForCausalLM", "model": "{}Model", "embed_tokens": "Embedding", "layers": "ModuleList",
    "layer": "{}DecoderLayer", "self_attn": "{}Attention", "linear_attn": "{}GatedDeltaNet", "mamba": "{}MambaLayer",
    "conv1d": "Conv1d", "linear_attn.norm": "{}RMSNormGated", "mamba.norm": "{}RMSNormGated", "mlp": "{}MLP",
    "sparse": "{}SparseMoeBlock", "block_sparse_moe": "{}MoE", "shared_mlp": "{}MLP", "shared_expert": "{}MLP",
    "shared_experts": "{}MLP", "experts": "{}Experts", "gate": "{}TopKRouter", "router": "{}TopKRouter",
    "rotary_emb": "{}RotaryEmbedding",
}  # fmt: skip
_BEHIND = dict.fromkeys(("mlp", "shared_expert", "shared_experts", "experts"), "act_fn")
_WITHOUT_WEIGHTS = dict.fromkeys(("act_fn", "activation_fn", "activation", "act"), "Activation") | dict.fromkeys(
    ("drop", "dropout", "attn_dropout", "resid_dropout", "resid_attn_dropout", "resid_mlp_dropout"), "Dropout"
)


def _half_a_head(c: Configuration) -> int:
    return c.head_dim() // 2


@dataclass(frozen=True, kw_only=True)
class ModuleClasses:
    """The modules of one architecture.

    Modules go by their names, or by ``parent.name``. A decoder layer goes by ``layer``, a feed-forward network with
    experts by ``sparse``.

    Attributes
    ----------
    prefix
        Beginning of names of classes: ``Llama``.
    classes
        Classes of modules that are not named as usual; ``{}`` stands for the prefix.
    norm
        Class of norms.
    behind
        Names of children that are defined behind the others, in order. Activations and dropouts among them are
        modules without weights; other names without weights are no modules.
    rotary
        Elements of each buffer of frequencies.
    rotary_kinds
        Beginnings of names of these buffers, two for each kind of attention; none where positions are not rotated.
    scaled_embedding
        The embedding has a factor as a buffer.
    single_router
        Weights of routers are of single precision, whatever the type of the model.
    corrected_router
        Routers have a buffer with a number an expert.
    """

    prefix: str
    classes: Mapping[str, str] = field(default_factory=dict)
    norm: str = "{}RMSNorm"
    behind: Mapping[str, str] = field(default_factory=dict)
    rotary: Callable[[Configuration], int] = _half_a_head
    rotary_kinds: Callable[[str, Configuration], Iterable[str]] = lambda name, c: ("",)
    scaled_embedding: bool = False
    single_router: bool = False
    corrected_router: bool = False

    def class_of(self, role: str, parent: str) -> str:
        """Return the class of a module with weights."""
        usual = self.norm if role.endswith("norm") else "Linear"
        return (self._classes.get(f"{parent}.{role}") or self._classes.get(role, usual)).format(self.prefix)

    def in_order(self, role: str, children: Collection[str]) -> Iterator[tuple[str, str | None]]:
        """Yield names of children in order of their definition, with the class of each that has no weights."""
        behind = self._behind.get(role, ())
        yield from ((name, None) for name in children if name not in behind)
        for name in behind:
            if name in children or name in _WITHOUT_WEIGHTS:
                yield name, _WITHOUT_WEIGHTS.get(name)

    @cached_property
    def _classes(self) -> dict[str, str]:
        return {**_CLASSES, **self.classes}

    @cached_property
    def _behind(self) -> dict[str, list[str]]:
        return {role: names.split() for role, names in {**_BEHIND, **self.behind}.items()}


def _partial_rotary(default: float) -> Callable[[Configuration], int]:
    """Half the part of a head that is rotated."""

    def half(c: Configuration) -> int:
        said = c.get("rope_parameters")
        factor = said.get("partial_rotary_factor") if isinstance(said, Mapping) else None
        return int(c.head_dim() * (factor or c.get("partial_rotary_factor", default))) // 2

    return half


def _latent_rotary(c: Configuration) -> int:
    return c.size("qk_rope_head_dim") // 2


def _attention_kinds(name: str, c: Configuration) -> Iterable[str]:
    """Beginnings of names of frequencies, for windowed and full attention as far as layers have them."""
    return (f"{kind}_attention_" for kind in sorted(set(ARCHITECTURES[name].kinds(c))))


def _no_rotary(name: str, c: Configuration) -> Iterable[str]:
    return ()


def _rotary_if_said(name: str, c: Configuration) -> Iterable[str]:
    return ("",) if c.get("position_embedding_type") == "rope" else ()


_GPT2_CLASSES = {
    "": "{}LMHeadModel", "transformer": "{}Model", "wte": "Embedding", "wpe": "Embedding", "h": "ModuleList",
    "layer": "{}Block", "attn": "{}Attention", **dict.fromkeys(("ln_1", "ln_2", "ln_f"), "LayerNorm"),
    **dict.fromkeys(("c_attn", "c_fc", "c_proj"), "Conv1D"),
}  # fmt: skip
_SCALED = {"embed_tokens": "{}TextScaledWordEmbedding"}
_EXPERTS_FIRST = {"sparse": "gate shared_experts"}

MODULE_CLASSES: Mapping[str, ModuleClasses] = {
    "gpt2": ModuleClasses(
        prefix="GPT2", classes=_GPT2_CLASSES, rotary_kinds=_no_rotary,
        behind={
            "transformer": "drop h ln_f", "layer": "attn ln_2 mlp", "attn": "attn_dropout resid_dropout",
            "mlp": "act dropout",
        },
    ),
    "llama": ModuleClasses(prefix="Llama"),
    "granite": ModuleClasses(prefix="Granite"),
    "mistral": ModuleClasses(prefix="Mistral"),
    "qwen2": ModuleClasses(prefix="Qwen2"),
    "qwen3": ModuleClasses(prefix="Qwen3"),
    "olmo2": ModuleClasses(prefix="Olmo2"),
    "cohere2": ModuleClasses(prefix="Cohere2", norm="{}LayerNorm"),
    "gemma2": ModuleClasses(prefix="Gemma2", classes=_SCALED, scaled_embedding=True),
    "gemma3_text": ModuleClasses(
        prefix="Gemma3", classes=_SCALED | {"model": "{}TextModel"},
        rotary_kinds=_attention_kinds, scaled_embedding=True,
    ),
    "phi3": ModuleClasses(
        prefix="Phi3", rotary=_partial_rotary(1.0),
        behind={"layer": "resid_attn_dropout resid_mlp_dropout", "self_attn": "qkv_proj", "mlp": "activation_fn"},
    ),
    "glm": ModuleClasses(prefix="Glm", behind={"mlp": "activation_fn"}, rotary=_partial_rotary(0.5)),
    "glm4": ModuleClasses(prefix="Glm4", behind={"mlp": "activation_fn"}, rotary=_partial_rotary(0.5)),
    "mixtral": ModuleClasses(prefix="Mixtral"),
    "olmoe": ModuleClasses(prefix="Olmoe"),
    "qwen2_moe": ModuleClasses(prefix="Qwen2Moe"),
    "qwen3_moe": ModuleClasses(prefix="Qwen3Moe", behind=_EXPERTS_FIRST),
    "qwen3_next": ModuleClasses(prefix="Qwen3Next", rotary=_partial_rotary(0.25)),
    "gpt_oss": ModuleClasses(prefix="GptOss", classes={"sparse": "{}MLP"}, behind={"experts": ""}),
    "granitemoehybrid": ModuleClasses(
        prefix="GraniteMoeHybrid", rotary_kinds=_rotary_if_said,
        behind={
            "layer": "block_sparse_moe shared_mlp mamba self_attn", "mamba": "act conv1d in_proj norm out_proj",
            "shared_mlp": "activation input_linear output_linear",
        },
    ),
    "deepseek_v2": ModuleClasses(
        prefix="DeepseekV2", classes={"sparse": "{}Moe", "gate": "{}TopkRouter"}, behind=_EXPERTS_FIRST,
        rotary=_latent_rotary, single_router=True,
    ),
    "deepseek_v3": ModuleClasses(
        prefix="DeepseekV3", classes={"sparse": "{}MoE", "gate": "{}TopkRouter"}, behind=_EXPERTS_FIRST,
        rotary=_latent_rotary, single_router=True, corrected_router=True,
    ),
}  # fmt: skip
"""Architectures whose modules are known; their weights are those of the table of architectures."""
