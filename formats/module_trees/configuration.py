"""Trees of modules as transformers 5 builds them, from a ``config.json`` alone.

Rules by bytes and by name depend on names, on the order of definition, on classes and on buffers, all of which the
implementation decides and no checkpoint has. Checked against transformers' own modules on the meta device.
"""

from __future__ import annotations

from mtpp.errors import InputError
from mtpp.formats.module_trees.architectures import ARCHITECTURES, Architecture
from mtpp.formats.module_trees.sizes import SINGLE, Configuration, Sizes
from mtpp.language_models.modules import Modules, ModuleTensor, ModuleTree


def is_known(configuration: Configuration) -> bool:
    """Return whether the modules of an architecture are known."""
    name = str(configuration.get("model_type", "")).lower()
    return name == "gpt2" or name in ARCHITECTURES


def modules_of_configuration(configuration: Configuration, source: str = "config.json") -> Modules:
    """Tree of the modules that transformers builds.

    Raises
    ------
    InputError
        If the architecture is not among :data:`ARCHITECTURES`, or a size is missing.
    """
    name = str(configuration.get("model_type", "")).lower()
    if name == "gpt2":
        return _gpt2(Sizes(configuration), bool(configuration.get("tie_word_embeddings", True)))
    row = ARCHITECTURES.get(name)
    if row is None:
        raise InputError(
            f"modules of model_type {name!r} are not known",
            source=source,
            remedy=f"known are {', '.join(['gpt2', *ARCHITECTURES])}; others with mtpp[hf], or as a torch.nn.Module",
        )
    sizes = Sizes(configuration)
    tied = bool(configuration.get("tie_word_embeddings", row.tied))
    return _decoder(row, sizes, tied)


def _decoder(row: Architecture, sizes: Sizes, tied: bool) -> Modules:
    block = f"{row.prefix}DecoderLayer"
    layers = tuple(
        ModuleTree(str(i), block, children=tuple(row.layer(sizes, row.prefix, i))) for i in range(sizes.layers)
    )
    frequencies = tuple(
        ModuleTensor(f"{kind}{name}", row.rotary(sizes), SINGLE, buffer=True, stored=False, fixed=True)
        for kind in row.rotary_kinds(sizes)
        for name in ("inv_freq", "original_inv_freq")
    )
    inner = ModuleTree(
        "model",
        row.inner or f"{row.prefix}Model",
        children=(
            _embedding(row, sizes),
            ModuleTree("layers", "ModuleList", children=layers),
            sizes.scale("norm", sizes.hidden, f"{row.prefix}{row.norm}"),
            *([ModuleTree("rotary_emb", f"{row.prefix}RotaryEmbedding", frequencies)] if frequencies else []),
        ),
    )
    head = sizes.linear("lm_head", sizes.vocabulary, sizes.hidden)
    return Modules(
        root=ModuleTree("", f"{row.prefix}ForCausalLM", children=(inner, head)),
        tied=(("lm_head.weight", "model.embed_tokens.weight"),) if tied else (),
        undividable=(block,),
    )


def _embedding(row: Architecture, sizes: Sizes) -> ModuleTree:
    tensors = [sizes.tensor("weight", sizes.vocabulary, sizes.hidden)]
    if row.scaled_embedding:
        tensors.append(ModuleTensor("embed_scale", 1, sizes.element_bytes, buffer=True, stored=False))
    return ModuleTree("embed_tokens", "Embedding", tuple(tensors))


def _gpt2(sizes: Sizes, tied: bool) -> Modules:
    hidden, inner = sizes.hidden, sizes.number("n_inner", 4 * sizes.hidden)

    def block(number: int) -> ModuleTree:
        attention = (
            sizes.linear("c_attn", 3 * hidden, hidden, True, "Conv1D"),
            sizes.linear("c_proj", hidden, hidden, True, "Conv1D"),
            ModuleTree("attn_dropout", "Dropout"),
            ModuleTree("resid_dropout", "Dropout"),
        )
        mlp = (
            sizes.linear("c_fc", inner, hidden, True, "Conv1D"),
            sizes.linear("c_proj", hidden, inner, True, "Conv1D"),
            ModuleTree("act", "Activation"),
            ModuleTree("dropout", "Dropout"),
        )
        children = (
            sizes.scale("ln_1", hidden, "LayerNorm", True),
            ModuleTree("attn", "GPT2Attention", children=attention),
            sizes.scale("ln_2", hidden, "LayerNorm", True),
            ModuleTree("mlp", "GPT2MLP", children=mlp),
        )
        return ModuleTree(str(number), "GPT2Block", children=children)

    inside = ModuleTree(
        "transformer",
        "GPT2Model",
        children=(
            sizes.linear("wte", sizes.vocabulary, hidden, kind="Embedding"),
            sizes.linear(
                "wpe", sizes.needed("n_positions", "n_ctx", "max_position_embeddings"), hidden, kind="Embedding"
            ),
            ModuleTree("drop", "Dropout"),
            ModuleTree("h", "ModuleList", children=tuple(block(i) for i in range(sizes.layers))),
            sizes.scale("ln_f", hidden, "LayerNorm", True),
        ),
    )
    return Modules(
        root=ModuleTree("", "GPT2LMHeadModel", children=(inside, sizes.linear("lm_head", sizes.vocabulary, hidden))),
        tied=(("lm_head.weight", "transformer.wte.weight"),) if tied else (),
        undividable=("GPT2Block",),
        layer_prefix="transformer.h",
        embedding="transformer.wte",
        final_norm="transformer.ln_f",
    )


def llama_names(layers: int, tied: bool) -> Modules:
    """Modules by the names of Llama with tensors of one element, for layouts of models that are not given."""
    small = dict.fromkeys(("hidden_size", "num_attention_heads", "intermediate_size", "vocab_size", "head_dim"), 1)
    return modules_of_configuration(
        {"model_type": "llama", "num_hidden_layers": layers, "tie_word_embeddings": tied, **small}
    )
